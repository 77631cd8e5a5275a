package tapstone.bench;

import com.google.gson.GsonBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes vectors/: what every program that answers these commands must answer. The responses come from
 * COMMANDS.md and from the JDK's cryptography, never from the applet.
 */
final class Vectors {

    private Vectors() {
    }

    public static void main(String[] arguments) throws IOException {
        for (Map.Entry<String, String> file : files().entrySet()) {
            Files.writeString(TestKeys.VECTORS.resolve(file.getKey()), file.getValue());
        }
    }

    /** The scripts by the name of their file. */
    static Map<String, Script> scripts() {
        Map<String, Script> scripts = new LinkedHashMap<>();
        scripts.put("buffers.json", BufferVectors.script());
        scripts.put("refused.json", RefusedVectors.script());
        scripts.put("decrypt.json", DecryptVectors.script());
        scripts.put("programs.json", ProgramVectors.script());
        scripts.put("machine.json", MachineVectors.script());
        scripts.put("repeat.json", RepeatVectors.script());
        return scripts;
    }

    /** What each file holds. */
    static Map<String, String> files() {
        Map<String, String> files = new LinkedHashMap<>();
        scripts().forEach((name, script) -> files.put(name, script.json()));
        files.put("jcop-programs.json", jcopPrograms());
        return files;
    }

    /** The programs alone, for a host that composes images itself. */
    private static String jcopPrograms() {
        Map<String, Map<String, Object>> programs = new LinkedHashMap<>();
        byte[] nothing = new byte[0];
        programs.put("blank", program(Programs.blank(), Programs.BLANK_SEALED, Programs.BLANK_INSTRUCTIONS, nothing));
        programs.put("vm", program(Programs.vm(), Programs.VM_SEALED, Programs.VM_INSTRUCTIONS, Programs.vmOutput()));
        return new GsonBuilder().setPrettyPrinting().create().toJson(programs) + "\n";
    }

    private static Map<String, Object> program(byte[] program, int sealed, int instructions, byte[] output) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("program", Bytes.hex(program));
        fields.put("sealed_bytes_of_body", sealed);
        fields.put("instructions", instructions);
        fields.put("output", Bytes.hex(output));
        return fields;
    }
}
