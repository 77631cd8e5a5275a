package tapstone.bench;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/** The published test keys of vectors/test-keys.json. They protect nothing. */
final class TestKeys {

    /** An RSA key: the five parts in the order of PUT KEY PART, and its public half. */
    record Rsa(List<byte[]> parts, BigInteger n, BigInteger e) {

        int bytes() {
            return n.bitLength() / 8;
        }
    }

    /** An EC key on P-256: the secret scalar and the uncompressed point. */
    record Ec(byte[] s, byte[] w) {
    }

    static final Path VECTORS = Path.of("vectors");

    private static final JsonObject FILE = read(VECTORS.resolve("test-keys.json"));

    static final byte[] TRIPLE_DES = hex(FILE, "triple_des");
    static final byte[] AES_128 = hex(FILE, "aes_128");
    static final byte[] AES_256 = hex(FILE, "aes_256");
    static final Rsa RSA_2048 = rsa("rsa_2048");
    static final Rsa RSA_1024 = rsa("rsa_1024");
    static final Ec P256 = ec("p256");
    static final Ec P256_PEER = ec("p256_peer");

    private TestKeys() {
    }

    /** The parts of a key by its id. */
    static List<byte[]> parts(int key) {
        return switch (key) {
            case 1 -> List.of(TRIPLE_DES);
            case 2 -> RSA_2048.parts();
            case 3 -> RSA_1024.parts();
            case 4 -> List.of(AES_128);
            case 5 -> List.of(AES_256);
            case 6 -> List.of(P256.s());
            default -> throw new IllegalArgumentException("key " + key);
        };
    }

    /** Loads a key into a card, part by part. */
    static void load(Card card, int key) {
        List<byte[]> parts = parts(key);
        for (int part = 0; part < parts.size(); part++) {
            card.expect(Apdu.putKeyPart(key, part, parts.get(part)));
        }
    }

    private static Rsa rsa(String name) {
        JsonObject key = FILE.getAsJsonObject(name);
        List<byte[]> parts = Stream.of("p", "q", "pq", "dp1", "dq1").map(part -> hex(key, part)).toList();
        return new Rsa(parts, new BigInteger(1, hex(key, "n")), new BigInteger(1, hex(key, "e")));
    }

    private static Ec ec(String name) {
        JsonObject key = FILE.getAsJsonObject(name);
        return new Ec(hex(key, "s"), hex(key, "w"));
    }

    private static byte[] hex(JsonObject object, String name) {
        return HexFormat.of().parseHex(object.get(name).getAsString());
    }

    private static JsonObject read(Path path) {
        try {
            return JsonParser.parseString(Files.readString(path)).getAsJsonObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
