package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What outlives a deselection and a loss of power: keys do, buffers and programs do not. */
class LifeTest {

    /** With RAM the card clears, without it the applet does. */
    static Object[][] cardsAndEnds() {
        Supplier<Card> ram = Card::new;
        Supplier<Card> eeprom = Card::withoutRam;
        Consumer<Card> deselected = card -> { };
        Consumer<Card> reset = Card::reset;
        return new Object[][] {{ram, deselected}, {ram, reset}, {eeprom, deselected}, {eeprom, reset}};
    }

    @ParameterizedTest
    @MethodSource("cardsAndEnds")
    void buffersAndProgramsEnd(Supplier<Card> make, Consumer<Card> end) {
        Card card = make.get();
        card.select();
        int buffer = card.buffer(Programs.plain(Programs.blank()));
        card.expect(Apdu.load(buffer, 0));
        end.accept(card);
        card.select();
        assertEquals(0x6A82, card.send(Apdu.length(buffer)).status());
        assertEquals(0x6985, card.send(Apdu.run()).status());
        assertEquals(0x9000, card.send(Apdu.allocate(1280)).status());
    }

    @ParameterizedTest
    @MethodSource("cardsAndEnds")
    void keysStay(Supplier<Card> make, Consumer<Card> end) {
        Card card = make.get();
        card.select();
        for (int key = 1; key <= 6; key++) {
            TestKeys.load(card, key);
        }
        end.accept(card);
        card.select();
        byte[] plain = Bytes.pattern(80, 22);
        int buffer = card.buffer(Judge.tripleDesM2(TestKeys.TRIPLE_DES, plain));
        assertArrayEquals(plain, card.read(card.expect(Apdu.decrypt(buffer, 1))[0]));
        for (int algorithm : new int[] {3, 4, 7, 8, 9, 0x0A, 0x0B, 0x0C}) {
            int status = card.send(Apdu.repeat(algorithm, Apdu.NO_INPUT, 1, 0)).status();
            boolean needsInput = algorithm != 9 && algorithm != 0x0A;
            assertEquals(needsInput ? 0x6A80 : 0x9000, status, "the key of algorithm " + algorithm);
        }
    }
}
