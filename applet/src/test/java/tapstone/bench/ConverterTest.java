package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The applet is made of nothing that Java Card 2.2.1 does not have. */
class ConverterTest {

    private static final Path CLASSES = Path.of("target/classes/tapstone/bench");
    private static final Path SOURCES = Path.of("src/main/java/tapstone/bench");
    private static final Path API = Path.of("src/test/resources/java-card-2.2.1.txt");
    /** A constant by its class: javac copies its value, so that class files do not show it. */
    private static final Pattern CONSTANT = Pattern.compile("\\b([A-Z]\\w+)\\.([A-Z][A-Z0-9_]+)\\b");

    @Test
    void theAppletsClassesPass() throws IOException {
        Converter converter = new Converter(api());
        List<Path> classes = files(CLASSES, ".class");
        assertEquals(10, classes.size(), "classes of the applet");
        for (Path file : classes) {
            try (InputStream in = Files.newInputStream(file)) {
                converter.check(in);
            }
        }
        assertEquals(Set.of(), converter.offences());
        Set<String> listed = new TreeSet<>(api());
        listed.removeAll(converter.used());
        listed.removeIf(entry -> entry.startsWith("constant "));
        assertEquals(Set.of(), listed, "listed and not used");
    }

    @Test
    void theConstantsAreOfThatVersion() throws IOException {
        Set<String> own = files(SOURCES, ".java").stream()
                .map(file -> file.getFileName().toString().replace(".java", ""))
                .collect(Collectors.toSet());
        Set<String> used = new TreeSet<>();
        for (Path file : files(SOURCES, ".java")) {
            CONSTANT.matcher(withoutComments(Files.readString(file))).results()
                    .filter((MatchResult match) -> !own.contains(match.group(1)))
                    .forEach(match -> used.add("constant " + match.group(1) + "." + match.group(2)));
        }
        Set<String> listed = new TreeSet<>(api());
        listed.removeIf(entry -> !entry.startsWith("constant "));
        assertEquals(listed, used);
    }

    /** Each kind of offence is found where it is, so that finding none means something. */
    @ParameterizedTest
    @CsvSource({
        "longField, type long", "intArray, type int", "table, an array of arrays",
        "returnsInt, type int", "text, a constant of type String", "counts, an int is counted",
        "newer, not of Java Card 2.2.1: javacard/security/MessageDigest getInitializedMessageDigestInstance(BZ)"
            + "Ljavacard/security/InitializedMessageDigest;",
        "outside, not of Java Card 2.2.1: java/lang/Math abs(I)I",
        "inherited, not of Java Card 2.2.1: java/lang/Object hashCode()I",
        "compares, a value that may not fit two bytes is used without a cast",
        "indexes, a value that may not fit two bytes is used without a cast",
        "shifts, a value that may not fit two bytes is used without a cast",
        "chooses, a value that may not fit two bytes is used without a cast",
        "large, a value that may not fit two bytes is used without a cast",
        "allocates, allocates", "concatenates, invokedynamic", "locks, synchronized",
        "characters, an array of a type that cards do not have"})
    void offencesAreFound(String member, String offence) throws IOException {
        Converter converter = new Converter(api());
        try (InputStream in = Offences.class.getResourceAsStream("Offences.class")) {
            converter.check(in);
        }
        String expected = "Offences." + member + ": " + offence;
        assertTrue(converter.offences().contains(expected), expected + " is not in " + converter.offences());
        assertTrue(converter.offences().stream().noneMatch(found -> found.startsWith("Offences.innocent")));
    }

    private static Set<String> api() throws IOException {
        return Files.readAllLines(API).stream().filter(line -> !line.isBlank() && !line.startsWith("#"))
                .collect(Collectors.toSet());
    }

    private static List<Path> files(Path folder, String suffix) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(suffix)).toList();
        }
    }

    private static String withoutComments(String source) {
        return source.replaceAll("(?s)/\\*.*?\\*/", "").replaceAll("//.*", "");
    }
}
