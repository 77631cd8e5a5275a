package tapstone.bench;

import java.util.Arrays;

/** Keys in parts, and DECRYPT. */
final class DecryptVectors {

    private static final int TRIPLE_DES = 1;
    private static final int RSA_2048 = 2;
    private static final int RSA_1024 = 3;

    private DecryptVectors() {
    }

    static Script script() {
        Script script = new Script();
        tripleDes(script);
        tripleDesRefused(script);
        rsa(script, RSA_2048, TestKeys.RSA_2048);
        rsa(script, RSA_1024, TestKeys.RSA_1024);
        room(script);
        return script;
    }

    /** The study's sizes, 24 and 120 bytes of cipher text, and the shortest and longest ones. */
    private static void tripleDes(Script script) {
        script.key(TRIPLE_DES);
        for (int length : new int[] {0, 7, 8, 22, 119, 600}) {
            byte[] plain = Bytes.pattern(100 + length, length);
            script.buffer(0, Judge.tripleDesM2(TestKeys.TRIPLE_DES, plain));
            script.step("decrypt to " + length + " bytes", Apdu.decrypt(0, TRIPLE_DES), Bytes.bytes(1));
            script.release(0).content(1, plain).release(1);
        }
        script.step("another key in its place", Apdu.putKeyPart(TRIPLE_DES, 0, Bytes.pattern(5, 16)));
        script.buffer(0, Judge.tripleDesM2(Bytes.pattern(5, 16), Bytes.pattern(6, 22)));
        script.step("decrypt", Apdu.decrypt(0, TRIPLE_DES), Bytes.bytes(1));
        script.content(1, Bytes.pattern(6, 22)).release(1);
        script.step("clear", Apdu.clearKey(TRIPLE_DES));
        script.refused("cleared", Apdu.decrypt(0, TRIPLE_DES), 0x6985);
        script.release(0);
    }

    private static void tripleDesRefused(Script script) {
        script.key(TRIPLE_DES);
        byte[] unpadded = Judge.tripleDes(TestKeys.TRIPLE_DES, Bytes.bytes(1, 2, 3, 4, 5, 6, 7, 8));
        script.buffer(0, unpadded);
        script.refused("no padding", Apdu.decrypt(0, TRIPLE_DES), 0x6A80);
        script.release(0);
        script.buffer(0, Judge.tripleDes(TestKeys.TRIPLE_DES, new byte[8]));
        script.refused("a padding of zeros only", Apdu.decrypt(0, TRIPLE_DES), 0x6A80);
        script.release(0);
        for (int length : new int[] {0, 7, 9, 23}) {
            script.buffer(0, Bytes.pattern(7, length));
            script.refused(length + " bytes are no blocks", Apdu.decrypt(0, TRIPLE_DES), 0x6A80);
            script.release(0);
        }
    }

    private static void rsa(Script script, int key, TestKeys.Rsa pair) {
        byte[] plain = Bytes.pattern(8, 100);
        script.buffer(0, Judge.rsaEncrypt(pair, plain, 9));
        for (int part = 0; part < 5; part++) {
            script.refused("not complete", Apdu.decrypt(0, key), 0x6985);
            script.step("part " + part, Apdu.putKeyPart(key, part, pair.parts().get(part)));
        }
        script.step("decrypt to 100 bytes", Apdu.decrypt(0, key), Bytes.bytes(1));
        script.content(1, plain).release(0).release(1);
        for (int length : new int[] {0, 1, pair.bytes() - 11}) {
            script.buffer(0, Judge.rsaEncrypt(pair, Bytes.pattern(10, length), 11));
            script.step("decrypt to " + length + " bytes", Apdu.decrypt(0, key), Bytes.bytes(1));
            script.content(1, Bytes.pattern(10, length)).release(0).release(1);
        }
        byte[] signatureBlock = new byte[pair.bytes()];
        Arrays.fill(signatureBlock, (byte) 0xFF);
        signatureBlock[0] = 0;
        signatureBlock[1] = 1;
        signatureBlock[pair.bytes() - 4] = 0;
        script.buffer(0, Judge.rsaRaw(pair, signatureBlock));
        script.refused("the padding of a signature", Apdu.decrypt(0, key), 0x6A80);
        script.release(0);
        for (int length : new int[] {0, pair.bytes() - 1, pair.bytes() + 1}) {
            script.buffer(0, Bytes.pattern(12, length));
            script.refused(length + " bytes are no block", Apdu.decrypt(0, key), 0x6A80);
            script.release(0);
        }
        script.step("clear", Apdu.clearKey(key));
        script.step("one part of a cleared key", Apdu.putKeyPart(key, 4, pair.parts().get(4)));
        script.buffer(0, Judge.rsaEncrypt(pair, plain, 13));
        script.refused("not complete", Apdu.decrypt(0, key), 0x6985);
        script.release(0);
    }

    /** Room is looked for as long as the cipher text, and kept as long as the plain text. */
    private static void room(Script script) {
        byte[] plain = Bytes.pattern(14, 639);
        byte[] cipherText = Judge.tripleDesM2(TestKeys.TRIPLE_DES, plain);
        script.buffer(0, cipherText);
        script.step("exactly enough room", Apdu.decrypt(0, TRIPLE_DES), Bytes.bytes(1));
        script.content(1, plain);
        script.buffer(2, Bytes.bytes(0xA5)).content(1, plain).content(2, Bytes.bytes(0xA5));
        script.release(1);
        script.refused("a byte too little", Apdu.decrypt(0, TRIPLE_DES), 0x6A84);
        script.release(0).release(2);
        byte[] small = Judge.tripleDesM2(TestKeys.TRIPLE_DES, Bytes.pattern(15, 3));
        for (int id = 0; id < 4; id++) {
            script.buffer(id, small);
        }
        script.refused("no id left", Apdu.decrypt(3, TRIPLE_DES), 0x6A84);
        script.step("flush", Apdu.flush());
    }
}
