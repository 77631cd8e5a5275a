package tapstone.bench;

import java.io.ByteArrayOutputStream;
import java.util.HexFormat;
import java.util.Random;

/** Byte strings for tests. */
final class Bytes {

    private Bytes() {
    }

    /** Bytes that look random and are the same on every machine: java.util.Random is specified to the bit. */
    static byte[] pattern(long seed, int length) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    /** Two bytes, big-endian. */
    static byte[] number(int value) {
        return new byte[] {(byte) (value >> 8), (byte) value};
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().withUpperCase().formatHex(bytes);
    }

    static byte[] bytes(int... values) {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (byte) values[i];
        }
        return bytes;
    }
}
