package tapstone.bench;

import java.io.IOException;
import java.io.InputStream;
import java.util.LinkedHashSet;
import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.LocalVariableNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;

/**
 * What the converter of a Java Card SDK and a card without int would refuse (Java Card 2.2.1 Virtual Machine
 * Specification, 2.2), found in class files: members outside a list of the API, types that a card does not
 * have, byte code for them, arithmetic that would come out differently in two bytes, and memory that is
 * allocated after installation. No substitute for a converter; one that runs with every test.
 */
final class Converter {

    private static final String OWN = "tapstone/bench/";
    /** Where allocation is meant: at installation, and once for a pair of keys. */
    private static final Set<String> ALLOCATING =
            Set.of("<init>", "<clinit>", "install", "Memory.bytes", "Memory.shorts", "Engines.keyPair");

    private final Set<String> api;
    private final Set<String> used = new LinkedHashSet<>();
    private final Set<String> offences = new LinkedHashSet<>();
    private String place;

    Converter(Set<String> api) {
        this.api = api;
    }

    Set<String> offences() {
        return offences;
    }

    /** The members of the API that the classes use. */
    Set<String> used() {
        return used;
    }

    void check(InputStream classFile) throws IOException {
        ClassNode node = new ClassNode();
        new ClassReader(classFile).accept(node, 0);
        String name = node.name.substring(node.name.lastIndexOf('/') + 1);
        place = name;
        requireType(Type.getObjectType(node.superName));
        for (String each : node.interfaces) {
            requireType(Type.getObjectType(each));
        }
        for (FieldNode field : node.fields) {
            place = name + "." + field.name;
            requireType(Type.getType(field.desc));
        }
        for (MethodNode method : node.methods) {
            place = name + "." + method.name;
            checkMethod(node, method);
        }
    }

    private void checkMethod(ClassNode owner, MethodNode method) {
        requireTypes(method.desc);
        if (method.localVariables == null && method.maxLocals > 0) {
            offence("no types of local variables: compile with -g");
        } else if (method.localVariables != null) {
            method.localVariables.forEach((LocalVariableNode local) -> requireType(Type.getType(local.desc)));
        }
        method.tryCatchBlocks.stream().filter(block -> block.type != null)
                .forEach(block -> requireType(Type.getObjectType(block.type)));
        for (AbstractInsnNode instruction : method.instructions) {
            checkOpcode(instruction.getOpcode());
            checkOperand(owner, instruction);
        }
        try {
            new Analyzer<>(new TwoByteArithmetic(this::offence)).analyze(owner.name, method);
        } catch (AnalyzerException e) {
            throw new AssertionError(place, e);
        }
    }

    private void checkOpcode(int opcode) {
        if (TwoByteArithmetic.isWideOpcode(opcode)) {
            offence("byte code " + opcode + " is for a type that cards do not have");
        }
        switch (opcode) {
            case Opcodes.IINC -> offence("an int is counted");
            case Opcodes.INVOKEDYNAMIC -> offence("invokedynamic");
            case Opcodes.MULTIANEWARRAY -> offence("an array of arrays");
            case Opcodes.MONITORENTER -> offence("synchronized");
            case Opcodes.NEW, Opcodes.NEWARRAY, Opcodes.ANEWARRAY -> checkAllocation();
            default -> { }
        }
    }

    private void checkAllocation() {
        String method = place.substring(place.indexOf('.') + 1);
        if (!ALLOCATING.contains(place) && !ALLOCATING.contains(method)) {
            offence("allocates");
        }
    }

    private void checkOperand(ClassNode owner, AbstractInsnNode instruction) {
        if (instruction instanceof MethodInsnNode call) {
            requireMember(declaring(owner, call), call.name + call.desc);
            requireTypes(call.desc);
        } else if (instruction instanceof FieldInsnNode field) {
            requireMember(field.owner, field.name);
            requireType(Type.getType(field.desc));
        } else if (instruction instanceof TypeInsnNode type) {
            requireType(Type.getObjectType(type.desc));
            if (type.getOpcode() == Opcodes.ANEWARRAY && type.desc.startsWith("[")) {
                offence("an array of arrays");
            }
        } else if (instruction instanceof LdcInsnNode constant && !(constant.cst instanceof Integer)) {
            offence("a constant of type " + constant.cst.getClass().getSimpleName());
        } else if (instruction instanceof IntInsnNode array && array.getOpcode() == Opcodes.NEWARRAY
                && array.operand != Opcodes.T_BYTE && array.operand != Opcodes.T_SHORT
                && array.operand != Opcodes.T_BOOLEAN) {
            offence("an array of a type that cards do not have");
        }
    }

    /** javac names the class that a method is called on, even where that class inherits it. */
    private static String declaring(ClassNode owner, MethodInsnNode call) {
        boolean inherited = call.owner.equals(owner.name)
                && owner.methods.stream().noneMatch(own -> own.name.equals(call.name) && own.desc.equals(call.desc));
        return inherited ? owner.superName : call.owner;
    }

    private void requireTypes(String methodDescriptor) {
        requireType(Type.getReturnType(methodDescriptor));
        for (Type type : Type.getArgumentTypes(methodDescriptor)) {
            requireType(type);
        }
    }

    private void requireType(Type type) {
        switch (type.getSort()) {
            case Type.VOID, Type.BOOLEAN, Type.BYTE, Type.SHORT -> { }
            case Type.ARRAY -> {
                if (type.getDimensions() > 1) {
                    offence("an array of arrays");
                }
                requireType(type.getElementType());
            }
            case Type.OBJECT -> requireMember(type.getInternalName(), "");
            default -> offence("type " + type.getClassName());
        }
    }

    /** A member of one of the applet's own classes, or of the list; an empty name is the class itself. */
    private void requireMember(String owner, String member) {
        if (owner.startsWith(OWN) || owner.startsWith("[")) {
            return;
        }
        String entry = (owner + " " + member).trim();
        if (api.contains(entry)) {
            used.add(entry);
        } else {
            offence("not of Java Card 2.2.1: " + entry);
        }
    }

    private void offence(String what) {
        offences.add(place + ": " + what);
    }
}
