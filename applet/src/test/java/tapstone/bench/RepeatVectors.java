package tapstone.bench;

/** REPEAT of every deterministic algorithm: 1 and 3 set-ups, 0, 1 and 3 operations, and inputs that do not fit. */
final class RepeatVectors {

    private RepeatVectors() {
    }

    static Script script() {
        Script script = new Script();
        for (int key = 1; key <= 6; key++) {
            script.key(key);
        }
        symmetric(script);
        digests(script);
        rsa(script);
        curve(script);
        memory(script);
        cleared(script);
        return script;
    }

    private static void symmetric(Script script) {
        byte[] key = TestKeys.TRIPLE_DES;
        repeats(script, "nothing", 0x00, Bytes.pattern(50, 16), new byte[0]);
        for (int length : new int[] {0, 22, 119, 255}) {
            byte[] plain = Bytes.pattern(51, length);
            repeats(script, "Triple DES, encrypt " + length, 0x01, plain, Judge.tripleDesM2(key, plain));
            repeats(script, "Triple DES, decrypt to " + length, 0x02, Judge.tripleDesM2(key, plain), plain);
        }
        wrong(script, "a cipher text of 264 bytes", 0x01, new byte[256]);
        wrong(script, "no blocks", 0x02, new byte[0]);
        wrong(script, "no blocks", 0x02, new byte[23]);
        script.buffer(0, Judge.tripleDes(key, new byte[16]));
        script.refused("a wrong padding", Apdu.repeat(0x02, 0, 1, 1), 0x6A80);
        script.step("a wrong padding that no operation sees", Apdu.repeat(0x02, 0, 1, 0)).release(0);
        for (int length : new int[] {16, 128, 256}) {
            byte[] plain = Bytes.pattern(52, length);
            repeats(script, "AES-128, " + length, 0x03, plain, Judge.aes(TestKeys.AES_128, plain));
            repeats(script, "AES-256, " + length, 0x04, plain, Judge.aes(TestKeys.AES_256, plain));
        }
        for (int length : new int[] {0, 15, 17, 272}) {
            wrong(script, length + " bytes are no blocks or too many", 0x03, new byte[length]);
            wrong(script, length + " bytes are no blocks or too many", 0x04, new byte[length]);
        }
    }

    private static void digests(Script script) {
        for (int length : new int[] {0, 3, 64, 256}) {
            byte[] data = Bytes.pattern(53, length);
            repeats(script, "SHA-1 of " + length, 0x05, data, Judge.digest("SHA-1", data));
            repeats(script, "SHA-256 of " + length, 0x06, data, Judge.digest("SHA-256", data));
        }
        script.step("no input", Apdu.repeat(0x05, Apdu.NO_INPUT, 1, 1), Judge.digest("SHA-1", new byte[0]));
        wrong(script, "more than 256 bytes", 0x05, new byte[257]);
    }

    private static void rsa(Script script) {
        byte[] plain = Bytes.pattern(54, 100);
        repeats(script, "RSA 2048", 0x07, Judge.rsaEncrypt(TestKeys.RSA_2048, plain, 55), plain);
        repeats(script, "RSA 1024", 0x08, Judge.rsaEncrypt(TestKeys.RSA_1024, plain, 56), plain);
        wrong(script, "no block", 0x07, new byte[128]);
        wrong(script, "no block", 0x08, new byte[256]);
        for (int length : new int[] {0, 32, 256}) {
            byte[] message = Bytes.pattern(57, length);
            repeats(script, "RSA 2048, sign " + length, 0x09, message,
                    Judge.rsaSignSha1(TestKeys.RSA_2048, message));
        }
    }

    private static void curve(Script script) {
        byte[] shared = Judge.ecdh(TestKeys.P256.s(), TestKeys.P256_PEER.w());
        repeats(script, "ECDH and SHA-1", 0x0B, TestKeys.P256_PEER.w(), Judge.digest("SHA-1", shared));
        repeats(script, "ECDH", 0x0C, TestKeys.P256_PEER.w(), shared);
        byte[] compressed = TestKeys.P256_PEER.w().clone();
        compressed[0] = 2;
        for (int algorithm : new int[] {0x0B, 0x0C}) {
            wrong(script, "not the mark of an uncompressed point", algorithm, compressed);
            wrong(script, "not the length of a point", algorithm, new byte[64]);
            wrong(script, "no point", algorithm, new byte[0]);
        }
        script.step("ECDSA, set-up alone", Apdu.repeat(0x0A, Apdu.NO_INPUT, 3, 0));
        script.step("key pair, no operation", Apdu.repeat(0x0D, Apdu.NO_INPUT, 3, 0));
        wrong(script, "no random bytes", 0x0E, new byte[0]);
        wrong(script, "more random bytes than fit", 0x0E, new byte[257]);
    }

    private static void memory(Script script) {
        for (int length : new int[] {0, 1, 256}) {
            byte[] data = Bytes.pattern(58, length);
            repeats(script, "RAM, " + length, 0x0F, data, data);
            repeats(script, "EEPROM, " + length, 0x10, data, data);
        }
        wrong(script, "more than 256 bytes", 0x0F, new byte[257]);
        wrong(script, "more than 256 bytes", 0x10, new byte[257]);
    }

    /** A key that was cleared is gone, alone, and can be loaded again. */
    private static void cleared(Script script) {
        int[] algorithms = {1, 7, 8, 3, 4, 0x0C};
        for (int key = 1; key <= 6; key++) {
            script.step("clear", Apdu.clearKey(key));
            script.refused("cleared", Apdu.repeat(algorithms[key - 1], Apdu.NO_INPUT, 1, 0), 0x6985);
        }
        for (int key = 1; key <= 6; key++) {
            script.key(key);
        }
        byte[] block = Bytes.pattern(59, 16);
        repeats(script, "Triple DES again", 0x01, block, Judge.tripleDesM2(TestKeys.TRIPLE_DES, block));
        repeats(script, "AES-128 again", 0x03, block, Judge.aes(TestKeys.AES_128, block));
        repeats(script, "AES-256 again", 0x04, block, Judge.aes(TestKeys.AES_256, block));
        repeats(script, "RSA 2048 again", 0x07, Judge.rsaEncrypt(TestKeys.RSA_2048, block, 60), block);
        repeats(script, "RSA 1024 again", 0x08, Judge.rsaEncrypt(TestKeys.RSA_1024, block, 61), block);
        repeats(script, "ECDH again", 0x0C, TestKeys.P256_PEER.w(),
                Judge.ecdh(TestKeys.P256.s(), TestKeys.P256_PEER.w()));
    }

    private static void repeats(Script script, String note, int algorithm, byte[] input, byte[] result) {
        script.buffer(0, input);
        for (int setUps : new int[] {1, 3}) {
            for (int operations : new int[] {0, 1, 3}) {
                String counted = note + ": " + setUps + " set-ups, " + operations + " operations";
                byte[] expected = operations == 0 ? new byte[0] : result;
                script.step(counted, Apdu.repeat(algorithm, 0, setUps, operations), expected);
            }
        }
        script.content(0, input).release(0);
    }

    /** An input that does not fit is refused whether or not an operation would use it. */
    private static void wrong(Script script, String note, int algorithm, byte[] input) {
        script.buffer(0, input);
        script.refused(note, Apdu.repeat(algorithm, 0, 1, 0), 0x6A80);
        script.refused(note, Apdu.repeat(algorithm, 0, 1, 1), 0x6A80).release(0);
    }
}
