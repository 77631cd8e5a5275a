package tapstone.bench;

import javacard.security.MessageDigest;

/** One member for each thing that a card does not take, to show that {@link Converter} sees it. */
final class Offences {

    private static final short LIMIT = 100;

    private long longField;
    private int[] intArray;
    private byte[][] table;
    private final byte[] bytes = new byte[8];

    int returnsInt() {
        return 1;
    }

    boolean text(Object other) {
        return other == "text";
    }

    void counts() {
        for (int i = 0; i < 3; i++) {
            bytes[0] = 0;
        }
    }

    void newer() {
        MessageDigest.getInitializedMessageDigestInstance((byte) 1, false);
    }

    void inherited() {
        hashCode();
    }

    void outside(short value) {
        bytes[0] = (byte) Math.abs(value);
    }

    boolean compares(short a, short b) {
        return a + b > LIMIT;
    }

    byte indexes(short a) {
        return bytes[a + 1];
    }

    short shifts(short a, short b) {
        return (short) ((a + b) >> 1);
    }

    boolean chooses(boolean which, short a) {
        return (which ? a : a * 2) == LIMIT;
    }

    boolean large(short a) {
        return a == 40000;
    }

    byte[] allocates() {
        return new byte[1];
    }

    Object concatenates(short a) {
        return "" + a;
    }

    void locks() {
        synchronized (this) {
            bytes[0] = 1;
        }
    }

    Object characters() {
        return new char[1];
    }

    /** The same kinds of things as a card takes them. */
    short innocent(boolean which, short a, short b) {
        short sum = (short) (a + b + (which ? 1 : 2));
        for (short i = 0; i < LIMIT; i++) {
            sum += (short) (bytes[(short) (i & 7)] & 0xFF);
        }
        return (short) (sum >> 1) == LIMIT ? sum : (short) -sum;
    }
}
