package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.framework.JCSystem;

/**
 * REPEAT: so many set-ups, then so many operations, with no transfer between them.
 *
 * <p>Two counts of each give a host two equations, and so what one set-up and one operation cost without
 * the command around them. Algorithm 00 runs the same two loops and does nothing in them.
 */
final class Repeat {

    /** The longest input, and the longest result: what a short APDU can answer. */
    static final short LONGEST = (short) 256;
    /** How often one command may write the same EEPROM cells. */
    private static final short MOST_WRITES = (short) 1000;

    private final Keys keys;
    private final byte[] result = Memory.bytes(LONGEST);
    private final Algorithms algorithms;

    Repeat(Keys keys, Engines engines) {
        this.keys = keys;
        this.algorithms = new Algorithms(keys, engines, result);
    }

    /** The memory with the last result. */
    byte[] result() {
        return result;
    }

    /** Answers 6A86 unless P1 is an algorithm. */
    void requireAlgorithm(byte algorithm) {
        if (algorithm < 0 || algorithm > Algorithms.LAST) {
            ISOException.throwIt(ISO7816.SW_INCORRECT_P1P2);
        }
    }

    /** Does it; the answer is the result's length. */
    short run(byte algorithm, short setUps, short operations, byte[] input, short start, short length) {
        requireCounts(algorithm, setUps, operations);
        byte key = Algorithms.keyOf(algorithm);
        if (key != 0) {
            keys.requireComplete(key);
        }
        require(inputFits(algorithm, input, start, length));
        if (algorithm == Algorithms.WRITE_RAM) {
            requireRam();
        }
        for (short i = 0; i < setUps; i++) {
            algorithms.setUp(algorithm, key);
        }
        short resultLength = 0;
        for (short i = 0; i < operations; i++) {
            resultLength = algorithms.operate(algorithm, input, start, length);
        }
        if (operations > 0) {
            algorithms.collect(algorithm, resultLength);
        }
        return resultLength;
    }

    private static void requireCounts(byte algorithm, short setUps, short operations) {
        require(setUps > 0 && operations >= 0);
        if (algorithm == Algorithms.GENERATE_KEY_PAIR || algorithm == Algorithms.WRITE_EEPROM) {
            require(operations <= MOST_WRITES);
        }
    }

    /** Whether an algorithm takes an input of this length. Cards differ in what they would say to a wrong one. */
    private static boolean inputFits(byte algorithm, byte[] input, short start, short length) {
        if (length > LONGEST) {
            return false;
        }
        switch (algorithm) {
            case Algorithms.TRIPLE_DES_ENCRYPT:
                // The padding adds at least a byte, and the cipher text has to fit the response.
                return length < LONGEST;
            case Algorithms.TRIPLE_DES_DECRYPT:
                return length > 0 && (short) (length & 7) == 0;
            case Algorithms.AES_128_ENCRYPT:
            case Algorithms.AES_256_ENCRYPT:
                return length > 0 && (short) (length & 15) == 0;
            case Algorithms.RSA_2048_DECRYPT:
                return length == (short) 256;
            case Algorithms.RSA_1024_DECRYPT:
                return length == (short) 128;
            case Algorithms.ECDH_SHA_1:
            case Algorithms.ECDH_PLAIN:
                return length == Curve.POINT && input[start] == Curve.UNCOMPRESSED;
            case Algorithms.RANDOM:
                return length > 0;
            default:
                return true;
        }
    }

    /** A time for EEPROM must not pass for one of RAM: a card that had none left says 6A81. */
    private void requireRam() {
        if (JCSystem.isTransient(result) == JCSystem.NOT_A_TRANSIENT_OBJECT) {
            ISOException.throwIt(ISO7816.SW_FUNC_NOT_SUPPORTED);
        }
    }

    private static void require(boolean condition) {
        if (!condition) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
    }
}
