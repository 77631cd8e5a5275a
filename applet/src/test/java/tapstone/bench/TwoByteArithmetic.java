package tapstone.bench;

import java.util.List;
import java.util.function.Consumer;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.BasicInterpreter;
import org.objectweb.asm.tree.analysis.BasicValue;

/**
 * Follows values through a method and reports where one that may not fit two bytes is used.
 *
 * <p>javac computes in four bytes, a card without int in two. Sums, products and left shifts agree in their
 * low bits, so they may be added up and then cast; where an overflow would show (a comparison, an index, a
 * division, a right shift), the value must be cast first. That is the converter's rule for intermediate
 * values of type int.
 */
final class TwoByteArithmetic extends BasicInterpreter {

    /** A value of javac's four bytes that was not cast yet. Identity matters: equal types are not enough. */
    private static final BasicValue WIDE = new BasicValue(Type.INT_TYPE) {
        @Override
        public boolean equals(Object other) {
            return this == other;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(this);
        }
    };

    private final Consumer<String> report;

    TwoByteArithmetic(Consumer<String> report) {
        super(ASM9);
        this.report = report;
    }

    /** Byte code for long, float, double, char, and arrays of int. */
    static boolean isWideOpcode(int opcode) {
        return switch (opcode) {
            case Opcodes.LADD, Opcodes.FADD, Opcodes.DADD, Opcodes.LSUB, Opcodes.FSUB, Opcodes.DSUB, Opcodes.LMUL,
                    Opcodes.FMUL, Opcodes.DMUL, Opcodes.LDIV, Opcodes.FDIV, Opcodes.DDIV, Opcodes.LREM,
                    Opcodes.FREM, Opcodes.DREM, Opcodes.LNEG, Opcodes.FNEG, Opcodes.DNEG, Opcodes.LSHL,
                    Opcodes.LSHR, Opcodes.LUSHR, Opcodes.LAND, Opcodes.LOR, Opcodes.LXOR, Opcodes.LCMP,
                    Opcodes.FCMPL, Opcodes.FCMPG, Opcodes.DCMPL, Opcodes.DCMPG -> true;
            case Opcodes.LCONST_0, Opcodes.LCONST_1, Opcodes.FCONST_0, Opcodes.FCONST_1, Opcodes.FCONST_2,
                    Opcodes.DCONST_0, Opcodes.DCONST_1, Opcodes.LLOAD, Opcodes.FLOAD, Opcodes.DLOAD,
                    Opcodes.LSTORE, Opcodes.FSTORE, Opcodes.DSTORE, Opcodes.LRETURN, Opcodes.FRETURN,
                    Opcodes.DRETURN -> true;
            case Opcodes.IALOAD, Opcodes.LALOAD, Opcodes.FALOAD, Opcodes.DALOAD, Opcodes.CALOAD, Opcodes.IASTORE,
                    Opcodes.LASTORE, Opcodes.FASTORE, Opcodes.DASTORE, Opcodes.CASTORE -> true;
            case Opcodes.I2C -> true;
            default -> opcode >= Opcodes.I2L && opcode <= Opcodes.D2F;
        };
    }

    @Override
    public BasicValue newOperation(AbstractInsnNode instruction) throws AnalyzerException {
        if (instruction instanceof LdcInsnNode constant && constant.cst instanceof Integer number
                && number != number.shortValue()) {
            return WIDE;
        }
        return super.newOperation(instruction);
    }

    @Override
    public BasicValue copyOperation(AbstractInsnNode instruction, BasicValue value) throws AnalyzerException {
        if (instruction.getOpcode() == Opcodes.ISTORE) {
            narrow(value);
        }
        return super.copyOperation(instruction, value);
    }

    @Override
    public BasicValue unaryOperation(AbstractInsnNode instruction, BasicValue value) throws AnalyzerException {
        return switch (instruction.getOpcode()) {
            case Opcodes.I2B, Opcodes.I2S -> BasicValue.INT_VALUE;
            case Opcodes.INEG -> WIDE;
            default -> {
                narrow(value);
                yield super.unaryOperation(instruction, value);
            }
        };
    }

    @Override
    public BasicValue binaryOperation(AbstractInsnNode instruction, BasicValue first, BasicValue second)
            throws AnalyzerException {
        switch (instruction.getOpcode()) {
            case Opcodes.IADD, Opcodes.ISUB, Opcodes.IMUL, Opcodes.ISHL:
                return WIDE;
            case Opcodes.IAND, Opcodes.IOR, Opcodes.IXOR:
                return first == WIDE || second == WIDE ? WIDE : BasicValue.INT_VALUE;
            case Opcodes.IUSHR:
                narrow(first);
                narrow(second);
                return WIDE;
            default:
                narrow(first);
                narrow(second);
                return super.binaryOperation(instruction, first, second);
        }
    }

    @Override
    public BasicValue ternaryOperation(AbstractInsnNode instruction, BasicValue array, BasicValue index,
            BasicValue value) throws AnalyzerException {
        narrow(index);
        narrow(value);
        return super.ternaryOperation(instruction, array, index, value);
    }

    @Override
    public BasicValue naryOperation(AbstractInsnNode instruction, List<? extends BasicValue> values)
            throws AnalyzerException {
        values.forEach(this::narrow);
        return super.naryOperation(instruction, values);
    }

    @Override
    public BasicValue merge(BasicValue first, BasicValue second) {
        if (first == WIDE && second.equals(BasicValue.INT_VALUE) || second == WIDE && first.equals(WIDE)
                || second == WIDE && first.equals(BasicValue.INT_VALUE)) {
            return WIDE;
        }
        return super.merge(first, second);
    }

    private void narrow(BasicValue value) {
        if (value == WIDE) {
            report.accept("a value that may not fit two bytes is used without a cast");
        }
    }
}
