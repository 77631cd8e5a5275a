package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;

/**
 * The four buffers of a host, in one stretch of RAM.
 *
 * <p>Buffers are ranges of one array, because an array made at run time stays for the life of a Java Card
 * applet. Each id has two cells in a table: where the buffer starts, and its length plus one, so that a
 * table which the card has cleared says that every id is free.
 */
final class Buffers {

    /** A T=1 block of 254 bytes less seven. */
    static final short CHUNK = (short) 247;

    private static final short MEMORY = (short) 1280;
    private static final short COUNT = (short) 4;
    /** The last chunk that can start inside the memory; later ones would overflow two bytes. */
    private static final short LAST_CHUNK = (short) (MEMORY / CHUNK);

    private final short[] starts = Memory.shorts(COUNT);
    private final short[] lengthsPlusOne = Memory.shorts(COUNT);
    private final byte[] memory = Memory.bytes(MEMORY);

    /** The memory that {@link #start} points into. */
    byte[] memory() {
        return memory;
    }

    /** Turns P1 or P2 into the id of a buffer that exists, or answers 6A82. */
    short existing(byte parameter) {
        short id = (short) (parameter & 0xFF);
        if (id >= COUNT || lengthsPlusOne[id] == 0) {
            ISOException.throwIt(ISO7816.SW_FILE_NOT_FOUND);
        }
        return id;
    }

    short start(short id) {
        return starts[id];
    }

    short length(short id) {
        return (short) (lengthsPlusOne[id] - 1);
    }

    /**
     * Finds the first gap of a length, or answers 6A84. The gap is not taken yet, so that a decryption can
     * go there first and take only what the plain text needs.
     */
    short gap(short length) {
        freeId();
        if (length < 0) {
            ISOException.throwIt(ISO7816.SW_FILE_FULL);
        }
        short start = 0;
        while (length <= (short) (MEMORY - start)) {
            short next = endOfBufferIn(start, (short) (start + length));
            if (next == start) {
                return start;
            }
            start = next;
        }
        ISOException.throwIt(ISO7816.SW_FILE_FULL);
        return start;
    }

    /** Takes a range of a gap as a new buffer; the answer is its id. */
    short claim(short start, short length) {
        short id = freeId();
        starts[id] = start;
        lengthsPlusOne[id] = (short) (length + 1);
        return id;
    }

    /** Cuts a buffer at its end; the bytes behind are free again. */
    void shorten(short id, short length) {
        lengthsPlusOne[id] = (short) (length + 1);
    }

    void release(short id) {
        lengthsPlusOne[id] = 0;
    }

    void releaseAll() {
        for (short id = 0; id < COUNT; id++) {
            release(id);
        }
    }

    /** Where chunk P2 begins, counted from the buffer's start, or 6A80 when that is behind its end. */
    short chunkOffset(short id, byte parameter) {
        short chunk = (short) (parameter & 0xFF);
        if (chunk > LAST_CHUNK || (short) (chunk * CHUNK) > length(id)) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
        return (short) (chunk * CHUNK);
    }

    /** The lowest free id, or 6A84. */
    private short freeId() {
        for (short id = 0; id < COUNT; id++) {
            if (lengthsPlusOne[id] == 0) {
                return id;
            }
        }
        ISOException.throwIt(ISO7816.SW_FILE_FULL);
        return 0;
    }

    /** The end of some buffer that has bytes in the range, or the range's start when there is none. */
    private short endOfBufferIn(short start, short end) {
        for (short id = 0; id < COUNT; id++) {
            short bufferEnd = (short) (starts[id] + lengthsPlusOne[id] - 1);
            boolean hasBytes = lengthsPlusOne[id] > 1;
            if (hasBytes && starts[id] < end && start < bufferEnd) {
                return bufferEnd;
            }
        }
        return start;
    }
}
