package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The applet answers as vectors/ says, and vectors/ says what the specification and the JDK say. */
class VectorsTest {

    static Set<String> scripts() {
        return Vectors.scripts().keySet();
    }

    static Set<String> files() {
        return Vectors.files().keySet();
    }

    @ParameterizedTest
    @MethodSource("scripts")
    void theAppletAnswersThem(String file) {
        replay(file, new Card(), false);
    }

    /** On a card without RAM everything works too, but a time for RAM cannot be had. */
    @ParameterizedTest
    @MethodSource("scripts")
    void soDoesACardWithoutRam(String file) {
        replay(file, Card.withoutRam(), true);
    }

    /** To write them anew: mvn -q test-compile exec:java -Dexec.mainClass=tapstone.bench.Vectors */
    @ParameterizedTest
    @MethodSource("files")
    void theyAreUpToDate(String file) throws IOException {
        assertEquals(Vectors.files().get(file), Files.readString(TestKeys.VECTORS.resolve(file)), file);
    }

    private static void replay(String file, Card card, boolean withoutRam) {
        List<Script.Step> steps = Script.read(TestKeys.VECTORS.resolve(file));
        assertTrue(steps.size() > 1, file);
        for (int i = 0; i < steps.size(); i++) {
            Script.Step step = steps.get(i);
            String answer = Bytes.hex(card.transmit(HexFormat.of().parseHex(step.command())));
            boolean writesRam = step.command().startsWith("80600F") && !step.response().equals("6A80");
            String expected = withoutRam && writesRam ? "6A81" : step.response();
            assertEquals(expected, answer, file + ", step " + i + ", " + step.note() + ", " + step.command());
        }
    }
}
