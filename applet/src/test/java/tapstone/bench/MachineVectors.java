package tapstone.bench;

import java.util.HexFormat;

/** Each instruction by its output, and each way to leave stack, program or output. */
final class MachineVectors {

    private static final int HALT = Programs.HALT;
    private static final int PUSH1 = Programs.PUSH1;
    private static final int PUSH2 = Programs.PUSH2;
    private static final int DUP = Programs.DUP;
    private static final int DROP = Programs.DROP;
    private static final int SWAP = Programs.SWAP;
    private static final int ADD = Programs.ADD;
    private static final int SUB = Programs.SUB;
    private static final int XOR = Programs.XOR;
    private static final int JUMP = Programs.JUMP;
    private static final int JNZ = Programs.JNZ;
    private static final int OUT1 = Programs.OUT1;
    private static final int OUT2 = Programs.OUT2;

    private MachineVectors() {
    }

    static Script script() {
        Script script = new Script();
        instructions(script);
        limits(script);
        leaves(script);
        return script;
    }

    private static void instructions(Script script) {
        runs(script, "HALT", 1, "", HALT);
        runs(script, "PUSH1 is zero-extended", 3, "00FF", PUSH1, 0xFF, OUT2, HALT);
        runs(script, "PUSH2", 3, "8123", PUSH2, 0x81, 0x23, OUT2, HALT);
        runs(script, "DUP", 6, "77880088", PUSH2, 0x77, 0x88, DUP, OUT2, PUSH1, 0x88, OUT2, HALT);
        runs(script, "DUP leaves both", 5, "77887788", PUSH2, 0x77, 0x88, DUP, OUT2, OUT2, HALT);
        runs(script, "DROP", 5, "0001", PUSH1, 1, PUSH1, 2, DROP, OUT2, HALT);
        runs(script, "SWAP", 6, "00010002", PUSH1, 1, PUSH1, 2, SWAP, OUT2, OUT2, HALT);
        runs(script, "ADD", 5, "0100", PUSH1, 0xFF, PUSH1, 1, ADD, OUT2, HALT);
        runs(script, "ADD wraps", 5, "0001", PUSH2, 0xFF, 0xFF, PUSH1, 2, ADD, OUT2, HALT);
        runs(script, "SUB takes the top away", 5, "0003", PUSH1, 5, PUSH1, 2, SUB, OUT2, HALT);
        runs(script, "SUB wraps", 5, "FFFD", PUSH1, 2, PUSH1, 5, SUB, OUT2, HALT);
        runs(script, "XOR", 5, "F00F", PUSH2, 0xFF, 0x00, PUSH2, 0x0F, 0x0F, XOR, OUT2, HALT);
        runs(script, "OUT1 is the low byte", 3, "23", PUSH2, 0x81, 0x23, OUT1, HALT);
        runs(script, "JUMP forwards", 2, "", JUMP, 0, 4, 0xFF, HALT);
        runs(script, "JNZ at 0 goes on", 5, "07", PUSH1, 0, JNZ, 0, 0, PUSH1, 7, OUT1, HALT);
        runs(script, "JNZ at 0 does not judge its target", 3, "", PUSH1, 0, JNZ, 0xFF, 0xFF, HALT);
        runs(script, "JNZ at 8000 goes", 3, "", PUSH2, 0x80, 0, JNZ, 0, 7, 0xFF, HALT);
        runs(script, "a loop backwards", 20, "030201",
                PUSH1, 3, DUP, OUT1, PUSH1, 1, SUB, DUP, JNZ, 0, 2, HALT);
    }

    /** As far as it goes. */
    private static void limits(Script script) {
        int[] sixteen = new int[33];
        for (int i = 0; i < 16; i++) {
            sixteen[2 * i] = PUSH1;
        }
        runs(script, "16 cells", 17, "", sixteen);
        runs(script, "512 bytes of output", 1 + 256 * 6 + 1, "01".repeat(512), outputs(256));
        runs(script, "32,767 instructions", 32767, "", instructions(32767));
    }

    private static void leaves(Script script) {
        fails(script, "an unknown instruction", 0x06);
        fails(script, "an unknown instruction", 0xFF);
        fails(script, "the end of the program", PUSH1, 1);
        fails(script, "an operand behind the end", PUSH1);
        fails(script, "half an operand behind the end", PUSH2, 1);
        fails(script, "half a target behind the end", JUMP, 0);
        fails(script, "JUMP to the end", JUMP, 0, 3);
        fails(script, "JUMP to 8000", JUMP, 0x80, 0);
        fails(script, "JNZ to the end", PUSH1, 1, JNZ, 0, 5);
        for (int opcode : new int[] {DUP, DROP, OUT1, OUT2}) {
            fails(script, "nothing on the stack", opcode, HALT);
        }
        fails(script, "JNZ, nothing on the stack", JNZ, 0, 3, HALT);
        for (int opcode : new int[] {SWAP, ADD, SUB, XOR}) {
            fails(script, "one on the stack", PUSH1, 1, opcode, HALT);
        }
        fails(script, "DUP on a full stack", full(DUP, HALT));
        fails(script, "PUSH1 on a full stack", full(PUSH1, 1, HALT));
        fails(script, "PUSH2 on a full stack", full(PUSH2, 1, 1, HALT));
        fails(script, "514 bytes of output", outputs(257));
        fails(script, "513 bytes of output",
                PUSH1, 1, OUT1, PUSH2, 1, 0, PUSH2, 1, 1, OUT2, PUSH1, 1, SUB, DUP, JNZ, 0, 6, HALT);
        fails(script, "32,768 instructions", instructions(32768));
        fails(script, "for ever", JUMP, 0, 0);
    }

    /** Writes 0101 so many times, six instructions each; PUSH2, the loop, HALT. */
    private static int[] outputs(int words) {
        return new int[] {PUSH2, words >> 8, words & 0xFF,
            PUSH2, 0x01, 0x01, OUT2, PUSH1, 1, SUB, DUP, JNZ, 0, 3, HALT};
    }

    /** PUSH2, rounds of four instructions, as many PUSH1 as are missing, HALT. */
    private static int[] instructions(int count) {
        int rounds = (count - 2) / 4;
        int missing = count - 2 - 4 * rounds;
        int[] code = new int[11 + 2 * missing];
        int[] loop = {PUSH2, rounds >> 8, rounds & 0xFF, PUSH1, 1, SUB, DUP, JNZ, 0, 3};
        System.arraycopy(loop, 0, code, 0, loop.length);
        for (int i = 0; i < missing; i++) {
            code[loop.length + 2 * i] = PUSH1;
        }
        return code;
    }

    /** Sixteen PUSH1, then the code. */
    private static int[] full(int... code) {
        int[] all = new int[32 + code.length];
        for (int i = 0; i < 16; i++) {
            all[2 * i] = PUSH1;
        }
        System.arraycopy(code, 0, all, 32, code.length);
        return all;
    }

    private static void runs(Script script, String note, int instructions, String output, int... code) {
        byte[] expected = HexFormat.of().parseHex(output);
        byte[] image = Programs.plain(Bytes.bytes(code));
        script.buffer(0, Math.max(image.length, expected.length), image);
        script.step("load: " + note, Apdu.load(0, 0), Bytes.bytes(1));
        script.step("run: " + note, Apdu.run(), Bytes.number(instructions));
        script.step("unbind", Apdu.unbind(), Bytes.bytes(0)).content(0, expected).release(0);
    }

    /** A program that fails stays loaded and fails again. */
    private static void fails(Script script, String note, int... code) {
        script.buffer(0, Programs.plain(Bytes.bytes(code)));
        script.step("load: " + note, Apdu.load(0, 0), Bytes.bytes(1));
        script.refused("run: " + note, Apdu.run(), 0x6A80);
        script.refused("unbind what failed", Apdu.unbind(), 0x6985);
        script.refused("run again: " + note, Apdu.run(), 0x6A80).release(0);
    }
}
