package tapstone.bench;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/**
 * The two programs of the JCOP study, written anew for the applet's machine with the study's sizes, and their
 * images.
 */
final class Programs {

    static final int HALT = 0x00;
    static final int PUSH1 = 0x01;
    static final int PUSH2 = 0x02;
    static final int DUP = 0x03;
    static final int DROP = 0x04;
    static final int SWAP = 0x05;
    static final int ADD = 0x10;
    static final int SUB = 0x11;
    static final int XOR = 0x12;
    static final int JUMP = 0x20;
    static final int JNZ = 0x21;
    static final int OUT1 = 0x30;
    static final int OUT2 = 0x31;

    static final int BLANK_BYTES = 270;
    static final int BLANK_INSTRUCTIONS = 3;
    static final int BLANK_SEALED = 50;
    static final int VM_BYTES = 296;
    static final int VM_INSTRUCTIONS = 984;
    static final int VM_OUTPUT_BYTES = 480;
    static final int VM_SEALED = 39;

    private static final int DIGEST = 20;
    private static final int ROUNDS = 6;
    private static final int WORDS_A_ROUND = 40;
    private static final int STEPS_A_ROUND = 38;

    private Programs() {
    }

    /** Three instructions, and bytes that are never reached. */
    static byte[] blank() {
        return fill(Bytes.bytes(PUSH1, 0x54, DROP, HALT), BLANK_BYTES);
    }

    /**
     * Six rounds, each of 40 words of output with a step of arithmetic between most of them: 7 instructions
     * before the rounds, 6 + 80 + 76 in each, 5 after them.
     */
    static byte[] vm() {
        ByteArrayOutputStream code = new ByteArrayOutputStream();
        emit(code, PUSH2, 0x54, 0x50, PUSH2, 0x12, 0x34, XOR, PUSH1, 0x07, SUB);
        emit(code, PUSH1, ROUNDS);
        int loop = code.size() + 3;
        emit(code, JUMP, loop >> 8, loop);
        // Between rounds the counter lies above the value, in a round below it.
        emit(code, SWAP);
        for (int word = 0; word < WORDS_A_ROUND; word++) {
            emit(code, DUP, OUT2);
            if (word < STEPS_A_ROUND) {
                emit(code, PUSH2, word * 5 + 1, word * 37 + 11, new int[] {ADD, XOR, SUB}[word % 3]);
            }
        }
        emit(code, SWAP, PUSH1, 1, SUB, DUP, JNZ, loop >> 8, loop);
        emit(code, ADD, DUP, SUB, JNZ, loop >> 8, loop, HALT);
        return fill(code.toByteArray(), VM_BYTES);
    }

    /** What the vm program writes, computed as a program of this language would. */
    static byte[] vmOutput() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int value = (0x5450 ^ 0x1234) - 7;
        for (int round = 0; round < ROUNDS; round++) {
            for (int word = 0; word < WORDS_A_ROUND; word++) {
                out.writeBytes(Bytes.number(value));
                int operand = ((word * 5 + 1) & 0xFF) << 8 | (word * 37 + 11) & 0xFF;
                if (word < STEPS_A_ROUND) {
                    value = switch (word % 3) {
                        case 0 -> value + operand;
                        case 1 -> value ^ operand;
                        default -> value - operand;
                    };
                }
            }
        }
        return out.toByteArray();
    }

    /** An image with nothing sealed. */
    static byte[] plain(byte[] program) {
        byte[] body = body(program);
        return Bytes.join(header(0, body.length), body);
    }

    /** An image whose first bytes are sealed under the Triple DES key. */
    static byte[] sealedTripleDes(byte[] program, int sealed) {
        byte[] body = body(program);
        return image(Judge.tripleDesM2(TestKeys.TRIPLE_DES, head(body, sealed)), body, sealed);
    }

    /** An image whose first bytes are sealed under an RSA key. */
    static byte[] sealedRsa(TestKeys.Rsa key, byte[] program, int sealed) {
        byte[] body = body(program);
        return image(Judge.rsaEncrypt(key, head(body, sealed), program.length), body, sealed);
    }

    static byte[] header(int sealed, int clear) {
        return Bytes.join(Bytes.bytes(0x54, 0x50), Bytes.number(sealed), Bytes.number(clear));
    }

    static byte[] body(byte[] program) {
        return Bytes.join(Judge.digest("SHA-1", program), program);
    }

    static byte[] head(byte[] body, int sealed) {
        byte[] head = Arrays.copyOf(body, sealed);
        return Bytes.join(head, Judge.digest("SHA-1", head));
    }

    static byte[] image(byte[] sealed, byte[] body, int sealedBytesOfBody) {
        byte[] clear = Arrays.copyOfRange(body, sealedBytesOfBody, body.length);
        return Bytes.join(header(sealed.length, clear.length), sealed, clear);
    }

    private static byte[] fill(byte[] code, int length) {
        byte[] program = Bytes.pattern(length, length);
        System.arraycopy(code, 0, program, 0, code.length);
        return program;
    }

    private static void emit(ByteArrayOutputStream code, int... bytes) {
        for (int value : bytes) {
            code.write(value);
        }
    }
}
