package tapstone.bench;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The commands of COMMANDS.md as bytes. Le is 00 wherever a response is due. */
final class Apdu {

    static final int CHUNK = 247;
    static final int NO_INPUT = 0xFF;

    private Apdu() {
    }

    static byte[] select(byte[] aid) {
        return bytes(0x00, 0xA4, 0x04, 0x00, aid, false);
    }

    static byte[] version() {
        return answered(0x12, 0, 0);
    }

    static byte[] allocate(int length) {
        return answered(0x20, length >> 8, length);
    }

    static byte[] release(int buffer) {
        return silent(0x21, buffer, 0);
    }

    static byte[] length(int buffer) {
        return answered(0x22, buffer, 0);
    }

    static byte[] read(int buffer, int chunk) {
        return answered(0x23, buffer, chunk);
    }

    static byte[] write(int buffer, int chunk, byte[] data) {
        return bytes(0x80, 0x24, buffer, chunk, data, false);
    }

    /** The WRITEs that fill a buffer, chunk by chunk. */
    static List<byte[]> writes(int buffer, byte[] content) {
        List<byte[]> commands = new ArrayList<>();
        for (int chunk = 0; chunk * CHUNK < content.length; chunk++) {
            int end = Math.min(content.length, (chunk + 1) * CHUNK);
            commands.add(write(buffer, chunk, Arrays.copyOfRange(content, chunk * CHUNK, end)));
        }
        return commands;
    }

    static byte[] flush() {
        return silent(0x26, 0, 0);
    }

    static byte[] putKeyPart(int key, int part, byte[] data) {
        return bytes(0x80, 0x30, key, part, data, false);
    }

    static byte[] clearKey(int key) {
        return silent(0x31, key, 0);
    }

    static byte[] decrypt(int buffer, int key) {
        return answered(0x40, buffer, key);
    }

    static byte[] load(int buffer, int key) {
        return answered(0x50, buffer, key);
    }

    static byte[] run() {
        return answered(0x51, 0, 0);
    }

    static byte[] unbind() {
        return answered(0x52, 0, 0);
    }

    static byte[] repeat(int algorithm, int input, int setUps, int operations) {
        byte[] counts = {(byte) (setUps >> 8), (byte) setUps, (byte) (operations >> 8), (byte) operations};
        return bytes(0x80, 0x60, algorithm, input, counts, true);
    }

    /** A command without data or response: ISO 7816-3 case 1. */
    static byte[] silent(int ins, int p1, int p2) {
        return bytes(0x80, ins, p1, p2, new byte[0], false);
    }

    /** A command without data that is answered: case 2. */
    static byte[] answered(int ins, int p1, int p2) {
        return bytes(0x80, ins, p1, p2, new byte[0], true);
    }

    static byte[] bytes(int cla, int ins, int p1, int p2, byte[] data, boolean answered) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int value : new int[] {cla, ins, p1, p2}) {
            out.write(value);
        }
        if (data.length > 0) {
            out.write(data.length);
            out.writeBytes(data);
        }
        if (answered) {
            out.write(0);
        }
        return out.toByteArray();
    }
}
