package tapstone.bench;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.reflect.TypeToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Commands in a row with the only right response to each, from a newly installed applet on. */
final class Script {

    /** One command. The response is data and status word, in hex like the command. */
    record Step(String note, String command, String response) {
    }

    private static final Gson GSON = new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

    private final List<Step> steps = new ArrayList<>();

    Script() {
        step("select", Apdu.select(Card.AID_BYTES));
    }

    List<Step> steps() {
        return steps;
    }

    static List<Step> read(Path path) {
        try {
            return GSON.fromJson(Files.readString(path), new TypeToken<List<Step>>() { }.getType());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    String json() {
        return GSON.toJson(steps) + "\n";
    }

    /** A command that is answered with data and 9000. */
    Script step(String note, byte[] command, byte[] data) {
        return add(note, command, data, 0x9000);
    }

    /** A command that is answered with 9000 alone. */
    Script step(String note, byte[] command) {
        return add(note, command, new byte[0], 0x9000);
    }

    /** A command that is refused. */
    Script refused(String note, byte[] command, int status) {
        return add(note, command, new byte[0], status);
    }

    /** Allocates the buffer that must get this id, and fills its beginning. */
    Script buffer(int id, int length, byte[] content) {
        step("allocate " + length, Apdu.allocate(length), Bytes.bytes(id));
        for (byte[] write : Apdu.writes(id, content)) {
            step("write", write);
        }
        return this;
    }

    Script buffer(int id, byte[] content) {
        return buffer(id, content.length, content);
    }

    /** Reads the length and all the chunks of a buffer. */
    Script content(int id, byte[] content) {
        step("length", Apdu.length(id), Bytes.number(content.length));
        int chunk = 0;
        do {
            int start = chunk * Apdu.CHUNK;
            int end = Math.min(content.length, start + Apdu.CHUNK);
            step("read chunk " + chunk, Apdu.read(id, chunk), Arrays.copyOfRange(content, start, end));
            chunk++;
        } while (chunk * Apdu.CHUNK < content.length);
        return this;
    }

    Script release(int id) {
        return step("release", Apdu.release(id));
    }

    /** Loads all parts of a test key. */
    Script key(int key) {
        List<byte[]> parts = TestKeys.parts(key);
        for (int part = 0; part < parts.size(); part++) {
            step("key " + key + ", part " + part, Apdu.putKeyPart(key, part, parts.get(part)));
        }
        return this;
    }

    private Script add(String note, byte[] command, byte[] data, int status) {
        steps.add(new Step(note, Bytes.hex(command), Bytes.hex(Bytes.join(data, Bytes.number(status)))));
        return this;
    }
}
