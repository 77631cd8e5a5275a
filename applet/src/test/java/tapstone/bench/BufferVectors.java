package tapstone.bench;

/** VERSION and the buffers: ids, places, lengths, chunks. */
final class BufferVectors {

    private BufferVectors() {
    }

    static Script script() {
        Script script = new Script();
        script.step("version 1.0", Apdu.version(), Bytes.bytes(1, 0));
        posted(script);
        chunks(script);
        ids(script);
        gaps(script);
        empty(script);
        return script;
    }

    /** The study's post_buffer: 490 bytes in two chunks. */
    private static void posted(Script script) {
        byte[] content = Bytes.pattern(1, 490);
        script.buffer(0, content).content(0, content).release(0);
        script.refused("released", Apdu.length(0), 0x6A82);
    }

    private static void chunks(Script script) {
        byte[] content = Bytes.pattern(2, 247);
        script.buffer(0, content).content(0, content);
        script.step("chunk at the very end", Apdu.read(0, 1));
        script.refused("chunk behind the end", Apdu.read(0, 2), 0x6A80);
        script.refused("chunk far behind the end", Apdu.read(0, 0xFF), 0x6A80);
        script.refused("write behind the end", Apdu.write(0, 1, Bytes.bytes(1)), 0x6A80);
        script.refused("write far behind the end", Apdu.write(0, 0xFF, Bytes.bytes(1)), 0x6A80);
        script.refused("write nothing", Apdu.silent(0x24, 0, 0), 0x6700);
        script.refused("write more than a chunk", Apdu.write(0, 0, new byte[248]), 0x6700);
        script.step("write a part of a chunk", Apdu.write(0, 0, Bytes.bytes(0xAA, 0xBB)));
        byte[] changed = content.clone();
        changed[0] = (byte) 0xAA;
        changed[1] = (byte) 0xBB;
        script.content(0, changed).release(0);
        script.buffer(0, 250, content);
        script.refused("write over the end", Apdu.write(0, 1, new byte[4]), 0x6A80);
        script.step("write up to the end", Apdu.write(0, 1, Bytes.bytes(1, 2, 3)));
        script.content(0, Bytes.join(content, Bytes.bytes(1, 2, 3))).release(0);
    }

    private static void ids(Script script) {
        for (int id = 0; id < 4; id++) {
            script.buffer(id, Bytes.pattern(10 + id, 8));
        }
        script.refused("a fifth buffer", Apdu.allocate(1), 0x6A84);
        script.refused("a fifth, empty one", Apdu.allocate(0), 0x6A84);
        script.release(2).release(1);
        script.buffer(1, Bytes.pattern(20, 8)).buffer(2, Bytes.pattern(21, 8));
        script.content(0, Bytes.pattern(10, 8)).content(1, Bytes.pattern(20, 8));
        script.content(2, Bytes.pattern(21, 8)).content(3, Bytes.pattern(13, 8));
        script.step("flush", Apdu.flush());
        script.refused("flushed", Apdu.length(0), 0x6A82);
        script.refused("flushed", Apdu.length(3), 0x6A82);
    }

    /** What fits where: 1,280 bytes, the first gap that is long enough. */
    private static void gaps(Script script) {
        script.refused("more than the memory", Apdu.allocate(1281), 0x6A84);
        script.refused("a length of 8000", Apdu.allocate(0x8000), 0x6A84);
        script.refused("a length of FFFF", Apdu.allocate(0xFFFF), 0x6A84);
        script.step("all of the memory", Apdu.allocate(1280), Bytes.bytes(0));
        script.refused("nothing left", Apdu.allocate(1), 0x6A84);
        script.release(0);
        byte[] first = Bytes.pattern(30, 400);
        byte[] last = Bytes.pattern(32, 480);
        script.buffer(0, first).buffer(1, Bytes.pattern(31, 400)).buffer(2, last);
        script.refused("nothing left", Apdu.allocate(1), 0x6A84);
        script.release(1);
        script.refused("longer than the gap", Apdu.allocate(401), 0x6A84);
        byte[] middle = Bytes.pattern(33, 150);
        byte[] rest = Bytes.pattern(34, 250);
        script.buffer(1, middle).buffer(3, rest);
        script.content(0, first).content(1, middle).content(2, last).content(3, rest);
        script.release(0).release(3);
        script.refused("400 and 250 free, not together", Apdu.allocate(401), 0x6A84);
        script.step("flush", Apdu.flush());
    }

    private static void empty(Script script) {
        script.step("an empty buffer", Apdu.allocate(0), Bytes.bytes(0));
        script.content(0, new byte[0]);
        script.refused("write into an empty buffer", Apdu.write(0, 0, Bytes.bytes(1)), 0x6A80);
        script.step("an empty buffer takes no room", Apdu.allocate(1280), Bytes.bytes(1));
        script.step("another where no room is", Apdu.allocate(0), Bytes.bytes(2));
        script.step("flush", Apdu.flush());
    }
}
