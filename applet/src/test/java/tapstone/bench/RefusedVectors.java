package tapstone.bench;

/** What is refused before anything is done: class, instruction, parameters, lengths, and in which order. */
final class RefusedVectors {

    private RefusedVectors() {
    }

    static Script script() {
        Script script = new Script();
        classes(script);
        parameters(script);
        buffers(script);
        keys(script);
        repeat(script);
        states(script);
        return script;
    }

    private static void classes(Script script) {
        for (int cla : new int[] {0x00, 0x81, 0x84, 0x90, 0xA0, 0xFF}) {
            script.refused("another class", Apdu.bytes(cla, 0x12, 0, 0, new byte[0], true), 0x6E00);
        }
        for (int ins : new int[] {0x00, 0x10, 0x13, 0x25, 0x27, 0x32, 0x41, 0x53, 0x61, 0xFF}) {
            script.refused("another instruction", Apdu.silent(ins, 0, 0), 0x6D00);
        }
        script.refused("class before instruction", Apdu.bytes(0x81, 0xFF, 0, 0, new byte[0], false), 0x6E00);
        script.refused("instruction before parameters", Apdu.silent(0xFF, 1, 1), 0x6D00);
    }

    private static void parameters(Script script) {
        script.step("a buffer", Apdu.allocate(8), Bytes.bytes(0));
        for (int ins : new int[] {0x12, 0x26, 0x51, 0x52}) {
            script.refused("P1 is not 0", Apdu.silent(ins, 1, 0), 0x6A86);
            script.refused("P2 is not 0", Apdu.silent(ins, 0, 1), 0x6A86);
        }
        script.refused("RELEASE, P2 is not 0", Apdu.silent(0x21, 0, 1), 0x6A86);
        script.refused("LENGTH, P2 is not 0", Apdu.silent(0x22, 0, 1), 0x6A86);
        script.refused("CLEAR KEY, P2 is not 0", Apdu.silent(0x31, 1, 1), 0x6A86);
        script.step("nothing was flushed or released", Apdu.length(0), Bytes.number(8));
    }

    private static void buffers(Script script) {
        for (int id : new int[] {1, 3, 4, 0x80, 0xFF}) {
            script.refused("RELEASE, no such buffer", Apdu.release(id), 0x6A82);
            script.refused("LENGTH, no such buffer", Apdu.length(id), 0x6A82);
            script.refused("READ, no such buffer", Apdu.read(id, 0), 0x6A82);
            script.refused("WRITE, no such buffer", Apdu.write(id, 0, Bytes.bytes(1)), 0x6A82);
            script.refused("DECRYPT, no such buffer", Apdu.decrypt(id, 1), 0x6A82);
            script.refused("LOAD, no such buffer", Apdu.load(id, 0), 0x6A82);
        }
        script.refused("RELEASE, P1 before P2", Apdu.silent(0x21, 1, 1), 0x6A82);
        script.refused("WRITE, buffer before length", Apdu.silent(0x24, 1, 0), 0x6A82);
        script.refused("WRITE, length before chunk", Apdu.silent(0x24, 0, 0xFF), 0x6700);
    }

    private static void keys(Script script) {
        byte[] part = new byte[16];
        for (int key : new int[] {0, 7, 0x80, 0xFF}) {
            script.refused("PUT KEY PART, no such key", Apdu.putKeyPart(key, 0, part), 0x6A88);
            script.refused("CLEAR KEY, no such key", Apdu.clearKey(key), 0x6A88);
        }
        int[] parts = {1, 5, 5, 1, 1, 1};
        for (int key = 1; key <= 6; key++) {
            int length = TestKeys.parts(key).get(0).length;
            script.refused("no such part", Apdu.putKeyPart(key, parts[key - 1], new byte[length]), 0x6A86);
            script.refused("no such part", Apdu.putKeyPart(key, 0xFF, new byte[length]), 0x6A86);
            script.refused("a part too short", Apdu.putKeyPart(key, 0, new byte[length - 1]), 0x6700);
            script.refused("a part too long", Apdu.putKeyPart(key, 0, new byte[length + 1]), 0x6700);
            script.refused("no part", Apdu.silent(0x30, key, 0), 0x6700);
        }
        script.refused("part before length", Apdu.putKeyPart(1, 1, Bytes.bytes(1)), 0x6A86);
        script.step("a key that was never there is cleared", Apdu.clearKey(1));
        for (int key : new int[] {0, 4, 5, 6, 7, 0xFF}) {
            script.refused("DECRYPT, not with this key", Apdu.decrypt(0, key), 0x6A88);
        }
        for (int key : new int[] {4, 5, 6, 7, 0xFF}) {
            script.refused("LOAD, not with this key", Apdu.load(0, key), 0x6A88);
        }
        for (int key = 1; key <= 3; key++) {
            script.refused("DECRYPT, no key yet", Apdu.decrypt(0, key), 0x6985);
            script.refused("LOAD, no key yet", Apdu.load(0, key), 0x6985);
        }
    }

    private static void repeat(Script script) {
        script.refused("REPEAT, no such algorithm", Apdu.repeat(0x11, 0, 1, 1), 0x6A86);
        script.refused("REPEAT, no such algorithm", Apdu.repeat(0xFF, 0, 1, 1), 0x6A86);
        script.refused("REPEAT, no such buffer", Apdu.repeat(0, 1, 1, 1), 0x6A82);
        script.refused("REPEAT, algorithm before buffer", Apdu.repeat(0x11, 1, 1, 1), 0x6A86);
        script.refused("REPEAT, no counts", Apdu.answered(0x60, 0, 0xFF), 0x6700);
        script.refused("REPEAT, three bytes of counts", counts(3), 0x6700);
        script.refused("REPEAT, five bytes of counts", counts(5), 0x6700);
        script.refused("REPEAT, no set-up", Apdu.repeat(0, 0xFF, 0, 1), 0x6A80);
        script.refused("REPEAT, 8000 set-ups", Apdu.repeat(0, 0xFF, 0x8000, 1), 0x6A80);
        script.refused("REPEAT, 8000 operations", Apdu.repeat(0, 0xFF, 1, 0x8000), 0x6A80);
        script.refused("REPEAT, 1,001 generated keys", Apdu.repeat(0x0D, 0xFF, 1, 1001), 0x6A80);
        script.refused("REPEAT, 1,001 writes to EEPROM", Apdu.repeat(0x10, 0xFF, 1, 1001), 0x6A80);
        for (int algorithm : new int[] {1, 2, 3, 4, 7, 8, 9, 0x0A, 0x0B, 0x0C}) {
            script.refused("REPEAT, no key yet", Apdu.repeat(algorithm, 0xFF, 1, 0), 0x6985);
        }
        script.refused("REPEAT, counts before key", Apdu.repeat(1, 0xFF, 0, 0), 0x6A80);
    }

    private static byte[] counts(int length) {
        return Bytes.join(Apdu.silent(0x60, 0, 0xFF), Bytes.bytes(length), new byte[length], Bytes.bytes(0));
    }

    private static void states(Script script) {
        script.refused("RUN, nothing loaded", Apdu.run(), 0x6985);
        script.refused("UNBIND, nothing loaded", Apdu.unbind(), 0x6985);
    }
}
