package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.framework.Util;

/**
 * Opens the image of a program and puts the program into the machine: COMMANDS.md, "Programs".
 *
 * <p>An image is a header, then a sealed part, then a clear part. Their bodies in a row are the digest of
 * the program and the program. Everything wrong in an image is 6A80.
 */
final class ProgramImage {

    private static final short MAGIC = (short) 0x5450;
    private static final short HEADER = (short) 6;
    private static final short DIGEST = (short) 20;

    private final Keys keys;
    private final Engines engines;
    private final Machine machine;
    private final byte[] digest = Memory.bytes(DIGEST);

    ProgramImage(Keys keys, Engines engines, Machine machine) {
        this.keys = keys;
        this.engines = engines;
        this.machine = machine;
    }

    /** Loads the image in a buffer. Key 0 says that nothing is sealed. Bytes behind the image do not matter. */
    void load(Buffers buffers, short buffer, byte key) {
        byte[] image = buffers.memory();
        short start = buffers.start(buffer);
        short length = buffers.length(buffer);
        require(length >= HEADER && Util.getShort(image, start) == MAGIC);
        short sealed = Util.getShort(image, (short) (start + 2));
        short clear = Util.getShort(image, (short) (start + 4));
        length -= HEADER;
        start += HEADER;
        require(sealed >= 0 && sealed <= length);
        require(clear >= 0 && clear <= (short) (length - sealed));
        require((sealed == 0) == (key == 0));

        short program = key == 0
                ? assemble(image, start, DIGEST, image, (short) (start + DIGEST), (short) (clear - DIGEST))
                : assemble(machine.output(), (short) 0, unseal(image, start, sealed, key),
                        image, (short) (start + sealed), clear);
        machine.loaded(program, buffer);
    }

    /**
     * Decrypts the sealed part into the output memory, which nobody uses while nothing is loaded, and checks
     * the digest at its end. The answer is the length of the body's sealed bytes.
     */
    private short unseal(byte[] image, short start, short length, byte key) {
        require(length <= Machine.MEMORY);
        byte[] opened = machine.output();
        short body = engines.decrypt(keys, key, image, start, length, opened, (short) 0);
        body -= DIGEST;
        require(body >= DIGEST);
        requireDigest(opened, (short) 0, body, opened, body);
        return body;
    }

    /**
     * Copies a program from its two places: the rest of a head that begins with the program's digest, then a
     * tail. The answer is the program's length.
     */
    private short assemble(byte[] head, short headStart, short headLength, byte[] tail, short tailStart,
            short tailLength) {
        require(tailLength >= 0);
        short first = (short) (headLength - DIGEST);
        short length = (short) (first + tailLength);
        require(length <= Machine.MEMORY);
        byte[] program = machine.program();
        Util.arrayCopyNonAtomic(head, (short) (headStart + DIGEST), program, (short) 0, first);
        Util.arrayCopyNonAtomic(tail, tailStart, program, first, tailLength);
        requireDigest(program, (short) 0, length, head, headStart);
        return length;
    }

    private void requireDigest(byte[] data, short start, short length, byte[] expected, short expectedStart) {
        engines.sha1().doFinal(data, start, length, digest, (short) 0);
        require(Util.arrayCompare(digest, (short) 0, expected, expectedStart, DIGEST) == 0);
    }

    private static void require(boolean condition) {
        if (!condition) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
    }
}
