package tapstone.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.licel.jcardsim.base.TransientMemory;
import java.io.IOException;
import java.io.InputStream;
import javacard.framework.Applet;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Cards that lack an algorithm. jCardSim has them all, so the applet is loaded with the algorithm's number
 * changed, in the one method that asks for it, to one that no card has; all else is the applet as it is.
 */
class MissingAlgorithmTest {

    private static final int NO_SUCH_NUMBER = 0x7F;

    @ParameterizedTest
    @CsvSource({
        "tripleDes, 1, 1, 0", "tripleDes, 2, 1, 8", "aes, 3, 4, 16", "aes, 4, 5, 16", "sha1, 5, 0, 1",
        "sha256, 6, 0, 1", "rsa, 7, 2, 256", "rsa, 8, 3, 128", "rsaSha1, 9, 2, 1", "ecdsaSha256, 10, 6, 1",
        "ecdhSha1, 11, 6, 65", "ecdhPlain, 12, 6, 65", "random, 14, 0, 1"})
    void isRefusedAndNothingElse(String engine, int algorithm, int key, int inputLength) throws Exception {
        Card card = cardWithout("tapstone.bench.Engines", engine);
        byte[] input = new byte[inputLength];
        if (inputLength > 0) {
            input[0] = 4;
        }
        if (key != 0) {
            TestKeys.load(card, key);
        }
        int buffer = card.buffer(input);
        assertEquals(0x6A81, card.send(Apdu.repeat(algorithm, buffer, 1, 1)).status());
        assertEquals(0x9000, card.send(Apdu.repeat(0, buffer, 1, 1)).status());
        int other = algorithm == 6 ? 5 : 6;
        assertEquals(0x9000, card.send(Apdu.repeat(other, Apdu.NO_INPUT, 1, 1)).status());
    }

    /** Such a key never becomes complete, and clearing it is no error. */
    @ParameterizedTest
    @CsvSource({"1, 1", "2, 7", "3, 8", "4, 3", "5, 4", "6, 10"})
    void soIsAKeyTypeThatIsMissing(int key, int algorithm) throws Exception {
        Card card = cardWithout("tapstone.bench.Keys", "build");
        byte[] part = TestKeys.parts(key).get(0);
        assertEquals(0x6A81, card.send(Apdu.putKeyPart(key, 0, part)).status());
        assertEquals(0x6985, card.send(Apdu.repeat(algorithm, Apdu.NO_INPUT, 1, 0)).status());
        assertEquals(0x9000, card.send(Apdu.clearKey(key)).status());
        assertEquals(0x9000, card.send(Apdu.repeat(0x05, Apdu.NO_INPUT, 1, 1)).status());
    }

    /** DECRYPT and LOAD need the same engines. */
    @ParameterizedTest
    @CsvSource({"tripleDes, 1, 24", "rsa, 2, 256", "rsa, 3, 128"})
    void decryptSaysSoToo(String engine, int key, int inputLength) throws Exception {
        Card card = cardWithout("tapstone.bench.Engines", engine);
        TestKeys.load(card, key);
        assertEquals(0x6A81, card.send(Apdu.decrypt(card.buffer(new byte[inputLength]), key)).status());
    }

    private static Card cardWithout(String className, String method) throws ClassNotFoundException {
        ClassLoader loader = new ChangedApplet(className, method);
        Class<? extends Applet> applet =
                loader.loadClass(BenchmarkApplet.class.getName()).asSubclass(Applet.class);
        Card card = new Card(applet, new TransientMemory());
        card.select();
        return card;
    }

    /** Loads the applet's classes anew, one of them with a method changed. */
    private static final class ChangedApplet extends ClassLoader {

        private final String className;
        private final String method;

        ChangedApplet(String className, String method) {
            super(MissingAlgorithmTest.class.getClassLoader());
            this.className = className;
            this.method = method;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("tapstone.bench.")) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            return loaded != null ? loaded : define(name);
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream file = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] code = file.readAllBytes();
                if (name.equals(className)) {
                    code = changed(code);
                }
                return defineClass(name, code, 0, code.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }

        private byte[] changed(byte[] code) {
            ClassNode node = new ClassNode();
            new ClassReader(code).accept(node, 0);
            int changes = 0;
            for (MethodNode candidate : node.methods) {
                if (candidate.name.equals(method)) {
                    changes += changeNumbers(candidate);
                }
            }
            if (changes == 0) {
                throw new AssertionError(className + "." + method + " asks for nothing by number");
            }
            ClassWriter writer = new ClassWriter(0);
            node.accept(writer);
            return writer.toByteArray();
        }

        /** Changes the first argument of each getInstance and buildKey. */
        private static int changeNumbers(MethodNode method) {
            int changes = 0;
            AbstractInsnNode firstArgument = null;
            for (AbstractInsnNode instruction : method.instructions.toArray()) {
                if (firstArgument == null && isNumber(instruction)) {
                    firstArgument = instruction;
                } else if (instruction instanceof MethodInsnNode) {
                    if (firstArgument != null) {
                        method.instructions.set(firstArgument, new IntInsnNode(Opcodes.BIPUSH, NO_SUCH_NUMBER));
                        changes++;
                    }
                    firstArgument = null;
                }
            }
            return changes;
        }

        private static boolean isNumber(AbstractInsnNode instruction) {
            int opcode = instruction.getOpcode();
            return instruction instanceof IntInsnNode || instruction instanceof LdcInsnNode
                    || instruction instanceof InsnNode && opcode >= Opcodes.ICONST_M1 && opcode <= Opcodes.ICONST_5;
        }
    }
}
