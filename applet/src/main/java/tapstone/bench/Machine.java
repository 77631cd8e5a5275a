package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.framework.Util;

/**
 * The stack machine that interprets a loaded program: COMMANDS.md, "The machine".
 *
 * <p>It stands for what an interpreter on a card costs, byte code over byte code. Its registers and its stack
 * are cells of one array in RAM, because fields of an object are EEPROM.
 */
final class Machine {

    /** The longest program, and the longest output. */
    static final short MEMORY = (short) 512;

    private static final byte HALT = 0x00;
    private static final byte PUSH1 = 0x01;
    private static final byte PUSH2 = 0x02;
    private static final byte DUP = 0x03;
    private static final byte DROP = 0x04;
    private static final byte SWAP = 0x05;
    private static final byte ADD = 0x10;
    private static final byte SUB = 0x11;
    private static final byte XOR = 0x12;
    private static final byte JUMP = 0x20;
    private static final byte JNZ = 0x21;
    private static final byte OUT1 = 0x30;
    private static final byte OUT2 = 0x31;

    private static final short STACK = (short) 16;
    private static final short MOST_INSTRUCTIONS = (short) 32767;

    // The registers: cells of their own, then the cells of the stack.
    private static final byte INSTRUCTION = 0;
    private static final byte DEPTH = 1;
    private static final byte PROGRAM_LENGTH = 2;
    private static final byte OUTPUT_LENGTH = 3;
    private static final byte STATE = 4;
    private static final byte BUFFER = 5;
    private static final byte FIRST_OF_STACK = 6;

    // The states: EMPTY is 0, so that a machine which the card has cleared is empty.
    private static final short EMPTY = 0;
    private static final short LOADED = 1;
    private static final short HAS_RUN = 2;

    private final short[] registers;
    private final byte[] output = Memory.bytes(MEMORY);
    private final byte[] program = Memory.bytes(MEMORY);

    Machine(short[] registers) {
        this.registers = registers;
    }

    /**
     * Allocates the registers. They are apart from the machine's other memory so that they can come before
     * all else: each instruction writes some of them, which is no life for cells of EEPROM.
     */
    static short[] registers() {
        return Memory.shorts((short) (FIRST_OF_STACK + STACK));
    }

    /** Forgets the program. */
    void forget() {
        registers[STATE] = EMPTY;
    }

    /** Forgets the program if it came from this buffer. */
    void forgetBuffer(short buffer) {
        if (registers[BUFFER] == buffer) {
            forget();
        }
    }

    /** Where a program is to be put before {@link #loaded}. */
    byte[] program() {
        return program;
    }

    /** The output; free to be used for something else while nothing is loaded. */
    byte[] output() {
        return output;
    }

    /** Says that a program is in place now, and which buffer it came from. */
    void loaded(short length, short buffer) {
        registers[PROGRAM_LENGTH] = length;
        registers[BUFFER] = buffer;
        registers[STATE] = LOADED;
    }

    /** The buffer of a program that has run; 6985 when none has. */
    short bufferOfOutput() {
        requireState(HAS_RUN);
        return registers[BUFFER];
    }

    short outputLength() {
        return registers[OUTPUT_LENGTH];
    }

    /** Runs the program to its HALT; the answer is the number of instructions. */
    short run() {
        requireState(LOADED);
        registers[INSTRUCTION] = 0;
        registers[DEPTH] = 0;
        registers[OUTPUT_LENGTH] = 0;
        short instructions = 0;
        byte opcode;
        do {
            if (instructions == MOST_INSTRUCTIONS) {
                fail();
            }
            instructions++;
            opcode = fetch();
            execute(opcode);
        } while (opcode != HALT);
        registers[STATE] = HAS_RUN;
        return instructions;
    }

    private void execute(byte opcode) {
        short top;
        switch (opcode) {
            case HALT:
                break;
            case PUSH1:
                push((short) (fetch() & 0xFF));
                break;
            case PUSH2:
                push(fetchShort());
                break;
            case DUP:
                top = pop();
                push(top);
                push(top);
                break;
            case DROP:
                pop();
                break;
            case SWAP:
                swap();
                break;
            case ADD:
                top = pop();
                push((short) (pop() + top));
                break;
            case SUB:
                top = pop();
                push((short) (pop() - top));
                break;
            case XOR:
                top = pop();
                push((short) (pop() ^ top));
                break;
            case JUMP:
                jump(fetchShort());
                break;
            case JNZ:
                top = fetchShort();
                if (pop() != 0) {
                    jump(top);
                }
                break;
            case OUT1:
                append((byte) pop());
                break;
            case OUT2:
                top = pop();
                append((byte) (top >> 8));
                append((byte) top);
                break;
            default:
                fail();
        }
    }

    private void swap() {
        short top = pop();
        short below = pop();
        push(top);
        push(below);
    }

    private byte fetch() {
        short at = registers[INSTRUCTION];
        if (at >= registers[PROGRAM_LENGTH]) {
            fail();
        }
        registers[INSTRUCTION] = (short) (at + 1);
        return program[at];
    }

    private short fetchShort() {
        byte high = fetch();
        return Util.makeShort(high, fetch());
    }

    private void jump(short target) {
        if (target < 0 || target >= registers[PROGRAM_LENGTH]) {
            fail();
        }
        registers[INSTRUCTION] = target;
    }

    private void push(short value) {
        short depth = registers[DEPTH];
        if (depth == STACK) {
            fail();
        }
        registers[(short) (FIRST_OF_STACK + depth)] = value;
        registers[DEPTH] = (short) (depth + 1);
    }

    private short pop() {
        short depth = registers[DEPTH];
        if (depth == 0) {
            fail();
        }
        depth--;
        registers[DEPTH] = depth;
        return registers[(short) (FIRST_OF_STACK + depth)];
    }

    private void append(byte value) {
        short length = registers[OUTPUT_LENGTH];
        if (length == MEMORY) {
            fail();
        }
        output[length] = value;
        registers[OUTPUT_LENGTH] = (short) (length + 1);
    }

    private void requireState(short state) {
        if (registers[STATE] != state) {
            ISOException.throwIt(ISO7816.SW_CONDITIONS_NOT_SATISFIED);
        }
    }

    private static void fail() {
        ISOException.throwIt(ISO7816.SW_WRONG_DATA);
    }
}
