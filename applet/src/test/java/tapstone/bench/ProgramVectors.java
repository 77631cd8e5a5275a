package tapstone.bench;

import java.util.Arrays;

/** The six images of the study, the life of a program, and images that are wrong. */
final class ProgramVectors {

    private static final int PLAIN = 0;
    private static final int TRIPLE_DES = 1;
    private static final int RSA_2048 = 2;
    private static final int RSA_1024 = 3;

    private ProgramVectors() {
    }

    static Script script() {
        Script script = new Script();
        script.key(TRIPLE_DES).key(RSA_2048).key(RSA_1024);
        study(script);
        life(script);
        malformed(script);
        malformedSeals(script);
        sizes(script);
        return script;
    }

    private static void study(Script script) {
        byte[] blank = Programs.blank();
        byte[] vm = Programs.vm();
        blank(script, Programs.plain(blank), PLAIN);
        blank(script, Programs.sealedTripleDes(blank, Programs.BLANK_SEALED), TRIPLE_DES);
        blank(script, Programs.sealedRsa(TestKeys.RSA_2048, blank, Programs.BLANK_SEALED), RSA_2048);
        blank(script, Programs.sealedRsa(TestKeys.RSA_1024, blank, Programs.BLANK_SEALED), RSA_1024);
        vm(script, Programs.plain(vm), PLAIN);
        vm(script, Programs.sealedTripleDes(vm, Programs.VM_SEALED), TRIPLE_DES);
        vm(script, Programs.sealedRsa(TestKeys.RSA_2048, vm, Programs.VM_SEALED), RSA_2048);
    }

    private static void blank(Script script, byte[] image, int key) {
        script.buffer(0, image);
        script.step("load blank", Apdu.load(0, key), Bytes.bytes(1));
        script.content(0, image);
        script.step("run blank", Apdu.run(), Bytes.number(Programs.BLANK_INSTRUCTIONS));
        script.step("unbind", Apdu.unbind(), Bytes.bytes(0));
        script.content(0, new byte[0]).release(0);
    }

    private static void vm(Script script, byte[] image, int key) {
        script.buffer(0, Math.max(Programs.VM_OUTPUT_BYTES, image.length), image);
        script.step("load vm", Apdu.load(0, key), Bytes.bytes(1));
        script.step("run vm", Apdu.run(), Bytes.number(Programs.VM_INSTRUCTIONS));
        script.step("unbind", Apdu.unbind(), Bytes.bytes(0));
        script.content(0, Programs.vmOutput()).release(0);
    }

    private static void life(Script script) {
        byte[] image = Programs.plain(Programs.vm());
        script.buffer(0, 16, Bytes.pattern(40, 16)).buffer(1, 480, image);
        script.step("load", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.refused("unbind before run", Apdu.unbind(), 0x6985);
        script.step("run", Apdu.run(), Bytes.number(Programs.VM_INSTRUCTIONS));
        script.refused("run again before unbind", Apdu.run(), 0x6985);
        script.step("unbind to its own buffer", Apdu.unbind(), Bytes.bytes(1));
        script.refused("unbind again", Apdu.unbind(), 0x6985);
        script.refused("run after unbind", Apdu.run(), 0x6985);
        script.content(0, Bytes.pattern(40, 16)).content(1, Programs.vmOutput()).release(1);

        script.buffer(1, image).step("load from a short buffer", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.step("run", Apdu.run(), Bytes.number(Programs.VM_INSTRUCTIONS));
        script.refused("the output does not fit", Apdu.unbind(), 0x6A80);
        script.refused("still run", Apdu.run(), 0x6985);
        script.content(1, image);
        script.step("load again instead", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.release(1).refused("its buffer is released", Apdu.run(), 0x6985);

        script.buffer(1, image).step("load", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.release(0).step("another buffer is released", Apdu.run(), Bytes.number(Programs.VM_INSTRUCTIONS));
        script.step("load", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.refused("a LOAD that fails", Apdu.load(3, PLAIN), 0x6A82);
        script.refused("leaves nothing loaded", Apdu.run(), 0x6985);
        script.step("load", Apdu.load(1, PLAIN), Bytes.bytes(1));
        script.step("flush", Apdu.flush()).refused("forgets the program", Apdu.run(), 0x6985);

        byte[] blank = Programs.plain(Programs.blank());
        script.buffer(0, 1280, blank).step("load from all of the memory", Apdu.load(0, PLAIN), Bytes.bytes(1));
        script.step("run", Apdu.run(), Bytes.number(3)).step("unbind", Apdu.unbind(), Bytes.bytes(0));
        script.step("the memory behind the output is free", Apdu.allocate(1280), Bytes.bytes(1));
        script.step("flush", Apdu.flush());
    }

    private static void malformed(Script script) {
        byte[] image = Programs.plain(Programs.blank());
        wrong(script, "empty", new byte[0], PLAIN);
        wrong(script, "shorter than a header", Arrays.copyOf(image, 5), PLAIN);
        wrong(script, "a header alone", Programs.header(0, 0), PLAIN);
        wrong(script, "another magic", changed(image, 0), PLAIN);
        wrong(script, "another magic", changed(image, 1), PLAIN);
        wrong(script, "cut at the end", Arrays.copyOf(image, image.length - 1), PLAIN);
        wrong(script, "a wrong digest", changed(image, 6), PLAIN);
        wrong(script, "a wrong program", changed(image, 295), PLAIN);
        wrong(script, "a clear length of 8000", Bytes.join(Programs.header(0, 0x8000), new byte[30]), PLAIN);
        wrong(script, "a sealed length of FFFF", Bytes.join(Programs.header(0xFFFF, 1), new byte[30]), PLAIN);
        wrong(script, "shorter than a digest", Bytes.join(Programs.header(0, 19), new byte[19]), PLAIN);
        wrong(script, "plain, and a key given", image, TRIPLE_DES);
        byte[] sealed = Programs.sealedTripleDes(Programs.blank(), Programs.BLANK_SEALED);
        wrong(script, "sealed, and no key given", sealed, PLAIN);
        wrong(script, "sealed under another key", sealed, RSA_2048);
        wrong(script, "a changed seal", changed(sealed, 77), TRIPLE_DES);
        wrong(script, "a changed clear part", changed(sealed, 317), TRIPLE_DES);
        byte[] rsa = Programs.sealedRsa(TestKeys.RSA_2048, Programs.blank(), Programs.BLANK_SEALED);
        wrong(script, "a changed seal", changed(rsa, 261), RSA_2048);
        wrong(script, "sealed under another key", rsa, RSA_1024);
    }

    /** Seals that open, with something wrong inside. */
    private static void malformedSeals(Script script) {
        byte[] body = Programs.body(Programs.blank());
        byte[] head = Programs.head(body, 50);
        head[69] ^= 1;
        wrong(script, "a wrong digest in the seal", Programs.image(seal(head), body, 50), TRIPLE_DES);
        byte[] shortHead = Programs.head(body, 19);
        wrong(script, "a seal over less than a digest", Programs.image(seal(shortHead), body, 19), TRIPLE_DES);
        wrong(script, "a seal over nothing", Programs.image(seal(new byte[0]), body, 0), TRIPLE_DES);
        byte[] other = Programs.body(Bytes.pattern(41, 270));
        wrong(script, "a seal of another program", Programs.image(seal(Programs.head(other, 50)), body, 50),
                TRIPLE_DES);
        byte[] longBody = Programs.body(Bytes.pattern(42, 500));
        wrong(script, "a seal of more than 512 bytes", Programs.image(seal(Programs.head(longBody, 492)), longBody,
                492), TRIPLE_DES);
    }

    private static void sizes(Script script) {
        byte[] longest = Bytes.pattern(43, 512);
        longest[0] = Programs.HALT;
        runs(script, "512 bytes", Programs.plain(longest), PLAIN);
        runs(script, "512 bytes, sealed as far as can be", Programs.sealedTripleDes(longest, 491), TRIPLE_DES);
        byte[] small = Bytes.bytes(Programs.HALT);
        runs(script, "one byte", Programs.plain(small), PLAIN);
        runs(script, "one byte, the digest sealed", Programs.sealedTripleDes(small, 20), TRIPLE_DES);
        runs(script, "one byte, all of it sealed", Programs.sealedTripleDes(small, 21), TRIPLE_DES);
        wrong(script, "513 bytes", Programs.plain(Bytes.pattern(44, 513)), PLAIN);
        wrong(script, "513 bytes, sealed", Programs.sealedTripleDes(Bytes.pattern(44, 513), 50), TRIPLE_DES);
        script.buffer(0, Programs.plain(new byte[0])).step("no byte", Apdu.load(0, PLAIN), Bytes.bytes(1));
        script.refused("nothing to run", Apdu.run(), 0x6A80).release(0);
    }

    private static void runs(Script script, String note, byte[] image, int key) {
        script.buffer(0, image).step(note, Apdu.load(0, key), Bytes.bytes(1));
        script.step("run", Apdu.run(), Bytes.number(1)).step("unbind", Apdu.unbind(), Bytes.bytes(0)).release(0);
    }

    private static void wrong(Script script, String note, byte[] image, int key) {
        script.buffer(0, image).refused(note, Apdu.load(0, key), 0x6A80);
        script.refused("nothing loaded", Apdu.run(), 0x6985).release(0);
    }

    private static byte[] seal(byte[] head) {
        return Judge.tripleDesM2(TestKeys.TRIPLE_DES, head);
    }

    private static byte[] changed(byte[] image, int at) {
        byte[] changed = image.clone();
        changed[at] ^= 1;
        return changed;
    }
}
