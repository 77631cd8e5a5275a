package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** The images are as long as what the JCOP study posted, and its counts are what the programs run to. */
class ProgramsTest {

    @Test
    void blankIsOfTheStudysSizes() {
        byte[] blank = Programs.blank();
        assertEquals(270, blank.length);
        assertEquals(296, Programs.plain(blank).length);
        assertEquals(318, Programs.sealedTripleDes(blank, Programs.BLANK_SEALED).length);
        assertEquals(502, Programs.sealedRsa(TestKeys.RSA_2048, blank, Programs.BLANK_SEALED).length);
    }

    @Test
    void vmIsOfTheStudysSizes() {
        byte[] vm = Programs.vm();
        assertEquals(296, vm.length);
        assertEquals(322, Programs.plain(vm).length);
        assertEquals(347, Programs.sealedTripleDes(vm, Programs.VM_SEALED).length);
        assertEquals(539, Programs.sealedRsa(TestKeys.RSA_2048, vm, Programs.VM_SEALED).length);
        assertEquals(480, Programs.vmOutput().length);
    }

    @Test
    void theyRunAsManyInstructions() {
        Card card = Card.selected();
        assertEquals(3, instructions(card, Programs.blank()));
        assertEquals(984, instructions(card, Programs.vm()));
    }

    private static int instructions(Card card, byte[] program) {
        card.expect(Apdu.load(card.buffer(Programs.plain(program)), 0));
        byte[] count = card.expect(Apdu.run());
        return (count[0] & 0xFF) << 8 | count[1] & 0xFF;
    }
}
