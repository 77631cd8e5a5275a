package tapstone.bench;

import java.util.Arrays;
import java.util.HexFormat;

/** What a card answered: data and status word. */
record Response(byte[] data, int status) {

    static Response of(byte[] bytes) {
        int data = bytes.length - 2;
        int status = (bytes[data] & 0xFF) << 8 | bytes[data + 1] & 0xFF;
        return new Response(Arrays.copyOf(bytes, data), status);
    }

    @Override
    public String toString() {
        return HexFormat.of().withUpperCase().formatHex(data) + " " + String.format("%04X", status);
    }
}
