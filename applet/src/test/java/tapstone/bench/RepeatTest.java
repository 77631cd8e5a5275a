package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** What of REPEAT has no one right answer: signatures with a random part, generated keys, random bytes. */
class RepeatTest {

    private static final int ECDSA = 0x0A;
    private static final int KEY_PAIR = 0x0D;
    private static final int RANDOM = 0x0E;

    private final Card card = Card.selected();

    @Test
    void ecdsaSignaturesVerify() {
        TestKeys.load(card, 6);
        for (int length : new int[] {0, 32, 256}) {
            byte[] message = Bytes.pattern(70, length);
            int buffer = card.buffer(message);
            for (int operations : new int[] {1, 3}) {
                byte[] signature = card.expect(Apdu.repeat(ECDSA, buffer, 1, operations));
                assertTrue(Judge.ecdsaVerifies(TestKeys.P256.w(), message, signature));
                byte[] other = Bytes.join(message, Bytes.bytes(1));
                assertFalse(Judge.ecdsaVerifies(TestKeys.P256.w(), other, signature));
            }
            card.expect(Apdu.release(buffer));
        }
    }

    @Test
    void generatedPointsAreOnTheCurve() {
        byte[] first = card.expect(Apdu.repeat(KEY_PAIR, Apdu.NO_INPUT, 1, 1));
        byte[] second = card.expect(Apdu.repeat(KEY_PAIR, Apdu.NO_INPUT, 3, 3));
        assertTrue(Judge.onCurve(first));
        assertTrue(Judge.onCurve(second));
        assertFalse(Arrays.equals(first, second));
        second[64] ^= 1;
        assertFalse(Judge.onCurve(second), "the judge takes anything");
    }

    @Test
    void aGeneratedPairLeavesTheLoadedKeyAlone() {
        TestKeys.load(card, 6);
        card.expect(Apdu.repeat(KEY_PAIR, Apdu.NO_INPUT, 1, 1));
        int buffer = card.buffer(TestKeys.P256_PEER.w());
        byte[] shared = card.expect(Apdu.repeat(0x0C, buffer, 1, 1));
        assertArrayEquals(Judge.ecdh(TestKeys.P256.s(), TestKeys.P256_PEER.w()), shared);
    }

    @Test
    void randomBytesAreAsManyAsTheInputAndDiffer() {
        int buffer = card.buffer(new byte[256]);
        byte[] first = card.expect(Apdu.repeat(RANDOM, buffer, 1, 1));
        byte[] second = card.expect(Apdu.repeat(RANDOM, buffer, 1, 3));
        assertEquals(256, first.length);
        assertFalse(Arrays.equals(first, second));
        assertEquals(0, card.expect(Apdu.repeat(RANDOM, buffer, 3, 0)).length);
    }

    @Test
    void asManyWritesAsAreAllowedAreDone() {
        byte[] cells = Bytes.pattern(71, 256);
        int buffer = card.buffer(cells);
        assertArrayEquals(cells, card.expect(Apdu.repeat(0x10, buffer, 1, 1000)));
        assertEquals(0x6A80, card.send(Apdu.repeat(0x10, buffer, 1, 1001)).status());
    }

    @Test
    void asManyAsFitTwoBytes() {
        byte[] input = Bytes.pattern(72, 64);
        int buffer = card.buffer(input);
        byte[] digest = card.expect(Apdu.repeat(0x05, buffer, 32767, 32767));
        assertArrayEquals(Judge.digest("SHA-1", input), digest);
    }
}
