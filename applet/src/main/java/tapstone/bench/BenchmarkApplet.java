package tapstone.bench;

import javacard.framework.APDU;
import javacard.framework.Applet;
import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.framework.Util;
import javacard.security.CryptoException;

/**
 * The commands of COMMANDS.md: takes them apart, checks them from left to right, and answers.
 *
 * <p>Nothing needs a PIN and nothing is protected: keys in here are for benchmarks.
 */
public final class BenchmarkApplet extends Applet {

    private static final byte CLA = (byte) 0x80;

    private static final byte INS_VERSION = 0x12;
    private static final byte INS_ALLOCATE = 0x20;
    private static final byte INS_RELEASE = 0x21;
    private static final byte INS_LENGTH = 0x22;
    private static final byte INS_READ = 0x23;
    private static final byte INS_WRITE = 0x24;
    private static final byte INS_FLUSH = 0x26;
    private static final byte INS_PUT_KEY_PART = 0x30;
    private static final byte INS_CLEAR_KEY = 0x31;
    private static final byte INS_DECRYPT = 0x40;
    private static final byte INS_LOAD = 0x50;
    private static final byte INS_RUN = 0x51;
    private static final byte INS_UNBIND = 0x52;
    private static final byte INS_REPEAT = 0x60;

    private static final short VERSION = (short) 0x0100;
    private static final byte LOADED = 0x01;
    private static final byte NO_INPUT = (byte) 0xFF;
    private static final short REPEAT_COUNTS = (short) 4;

    // In this order, so that where RAM is short, what is written most and what is timed as RAM still lies there.
    private final short[] registers = Machine.registers();
    private final Keys keys = new Keys();
    private final Engines engines = new Engines();
    private final Repeat repeat = new Repeat(keys, engines);
    private final Buffers buffers = new Buffers();
    private final Machine machine = new Machine(registers);
    private final ProgramImage images = new ProgramImage(keys, engines, machine);

    private BenchmarkApplet() {
    }

    /** Called by the card at installation. All memory is allocated here; keys and engines are when first used. */
    public static void install(byte[] parameters, short offset, byte length) {
        new BenchmarkApplet().register();
    }

    /** Begins empty also where working memory had to be EEPROM, which no card clears. */
    public boolean select() {
        flush();
        return true;
    }

    public void process(APDU apdu) {
        if (selectingApplet()) {
            return;
        }
        try {
            dispatch(apdu, apdu.getBuffer());
        } catch (CryptoException e) {
            ISOException.throwIt(statusOf(e));
        }
    }

    private static short statusOf(CryptoException e) {
        switch (e.getReason()) {
            case CryptoException.NO_SUCH_ALGORITHM:
                return ISO7816.SW_FUNC_NOT_SUPPORTED;
            case CryptoException.UNINITIALIZED_KEY:
                return ISO7816.SW_CONDITIONS_NOT_SATISFIED;
            default:
                return ISO7816.SW_WRONG_DATA;
        }
    }

    private void dispatch(APDU apdu, byte[] command) {
        if (command[ISO7816.OFFSET_CLA] != CLA) {
            ISOException.throwIt(ISO7816.SW_CLA_NOT_SUPPORTED);
        }
        byte p1 = command[ISO7816.OFFSET_P1];
        byte p2 = command[ISO7816.OFFSET_P2];
        switch (command[ISO7816.OFFSET_INS]) {
            case INS_VERSION:
                requireNoParameters(p1, p2);
                answerShort(apdu, VERSION);
                break;
            case INS_ALLOCATE:
                allocate(apdu, Util.makeShort(p1, p2));
                break;
            case INS_RELEASE:
                release(p1, p2);
                break;
            case INS_LENGTH:
                length(apdu, p1, p2);
                break;
            case INS_READ:
                read(apdu, buffers.existing(p1), p2);
                break;
            case INS_WRITE:
                write(apdu, buffers.existing(p1), p2);
                break;
            case INS_FLUSH:
                requireNoParameters(p1, p2);
                flush();
                break;
            case INS_PUT_KEY_PART:
                putKeyPart(apdu, keys.known(p1), p2);
                break;
            case INS_CLEAR_KEY:
                clearKey(p1, p2);
                break;
            case INS_DECRYPT:
                decrypt(apdu, buffers.existing(p1), keys.decrypting(p2));
                break;
            case INS_LOAD:
                load(apdu, p1, p2);
                break;
            case INS_RUN:
                requireNoParameters(p1, p2);
                answerShort(apdu, machine.run());
                break;
            case INS_UNBIND:
                requireNoParameters(p1, p2);
                unbind(apdu);
                break;
            case INS_REPEAT:
                repeat(apdu, p1, p2);
                break;
            default:
                ISOException.throwIt(ISO7816.SW_INS_NOT_SUPPORTED);
        }
    }

    private void flush() {
        buffers.releaseAll();
        machine.forget();
    }

    private void allocate(APDU apdu, short length) {
        answerByte(apdu, (byte) buffers.claim(buffers.gap(length), length));
    }

    private void length(APDU apdu, byte p1, byte p2) {
        short buffer = buffers.existing(p1);
        requireZero(p2);
        answerShort(apdu, buffers.length(buffer));
    }

    private void release(byte p1, byte p2) {
        short buffer = buffers.existing(p1);
        requireZero(p2);
        buffers.release(buffer);
        machine.forgetBuffer(buffer);
    }

    private void read(APDU apdu, short buffer, byte chunk) {
        short offset = buffers.chunkOffset(buffer, chunk);
        short length = (short) (buffers.length(buffer) - offset);
        if (length > Buffers.CHUNK) {
            length = Buffers.CHUNK;
        }
        answer(apdu, buffers.memory(), (short) (buffers.start(buffer) + offset), length);
    }

    /** Copies each piece as it comes in: a chunk may be longer than the card's APDU buffer. */
    private void write(APDU apdu, short buffer, byte chunk) {
        byte[] command = apdu.getBuffer();
        short left = (short) (command[ISO7816.OFFSET_LC] & 0xFF);
        if (left == 0 || left > Buffers.CHUNK) {
            ISOException.throwIt(ISO7816.SW_WRONG_LENGTH);
        }
        short offset = buffers.chunkOffset(buffer, chunk);
        if ((short) (offset + left) > buffers.length(buffer)) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
        short target = (short) (buffers.start(buffer) + offset);
        short piece = apdu.setIncomingAndReceive();
        while (left > 0) {
            Util.arrayCopyNonAtomic(command, ISO7816.OFFSET_CDATA, buffers.memory(), target, piece);
            target += piece;
            left -= piece;
            if (left > 0) {
                piece = apdu.receiveBytes(ISO7816.OFFSET_CDATA);
            }
        }
    }

    private void putKeyPart(APDU apdu, byte key, byte part) {
        receive(apdu, keys.partLength(key, part));
        keys.put(key, part, apdu.getBuffer(), ISO7816.OFFSET_CDATA);
    }

    private void clearKey(byte p1, byte p2) {
        byte key = keys.known(p1);
        requireZero(p2);
        keys.clear(key);
    }

    private void decrypt(APDU apdu, short buffer, byte key) {
        keys.requireComplete(key);
        short length = buffers.length(buffer);
        Engines.requireDecryptable(key, length);
        short gap = buffers.gap(length);
        byte[] memory = buffers.memory();
        short plain = engines.decrypt(keys, key, memory, buffers.start(buffer), length, memory, gap);
        answerByte(apdu, (byte) buffers.claim(gap, plain));
    }

    /** A LOAD that fails leaves nothing loaded, because its work goes on in the program's own memory. */
    private void load(APDU apdu, byte p1, byte key) {
        machine.forget();
        short buffer = buffers.existing(p1);
        if (key != 0) {
            keys.requireComplete(keys.decrypting(key));
        }
        images.load(buffers, buffer, key);
        answerByte(apdu, LOADED);
    }

    private void unbind(APDU apdu) {
        short buffer = machine.bufferOfOutput();
        short length = machine.outputLength();
        if (length > buffers.length(buffer)) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
        Util.arrayCopyNonAtomic(machine.output(), (short) 0, buffers.memory(), buffers.start(buffer), length);
        buffers.shorten(buffer, length);
        machine.forget();
        answerByte(apdu, (byte) buffer);
    }

    private void repeat(APDU apdu, byte algorithm, byte input) {
        repeat.requireAlgorithm(algorithm);
        short start = 0;
        short length = 0;
        if (input != NO_INPUT) {
            short buffer = buffers.existing(input);
            start = buffers.start(buffer);
            length = buffers.length(buffer);
        }
        receive(apdu, REPEAT_COUNTS);
        byte[] command = apdu.getBuffer();
        short setUps = Util.getShort(command, ISO7816.OFFSET_CDATA);
        short operations = Util.getShort(command, (short) (ISO7816.OFFSET_CDATA + 2));
        short answered = repeat.run(algorithm, setUps, operations, buffers.memory(), start, length);
        answer(apdu, repeat.result(), (short) 0, answered);
    }

    private static void requireNoParameters(byte p1, byte p2) {
        requireZero(p1);
        requireZero(p2);
    }

    private static void requireZero(byte parameter) {
        if (parameter != 0) {
            ISOException.throwIt(ISO7816.SW_INCORRECT_P1P2);
        }
    }

    /**
     * Receives data of exactly this length into the APDU buffer, or answers 6700. No command asks for more
     * than the 128 bytes that fit behind the header in every card's APDU buffer (133 bytes at least).
     */
    private static void receive(APDU apdu, short length) {
        byte[] command = apdu.getBuffer();
        if ((short) (command[ISO7816.OFFSET_LC] & 0xFF) != length) {
            ISOException.throwIt(ISO7816.SW_WRONG_LENGTH);
        }
        short received = apdu.setIncomingAndReceive();
        while (received < length) {
            received += apdu.receiveBytes((short) (ISO7816.OFFSET_CDATA + received));
        }
    }

    private static void answerByte(APDU apdu, byte value) {
        apdu.getBuffer()[0] = value;
        apdu.setOutgoingAndSend((short) 0, (short) 1);
    }

    private static void answerShort(APDU apdu, short value) {
        Util.setShort(apdu.getBuffer(), (short) 0, value);
        apdu.setOutgoingAndSend((short) 0, (short) 2);
    }

    /** Sends from where the bytes are, in as many blocks as they need. */
    private static void answer(APDU apdu, byte[] data, short start, short length) {
        if (length == 0) {
            return;
        }
        apdu.setOutgoing();
        apdu.setOutgoingLength(length);
        apdu.sendBytesLong(data, start, length);
    }
}
