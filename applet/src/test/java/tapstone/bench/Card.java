package tapstone.bench;

import com.licel.jcardsim.base.Simulator;
import com.licel.jcardsim.base.SimulatorRuntime;
import com.licel.jcardsim.base.TransientMemory;
import com.licel.jcardsim.utils.AIDUtil;
import java.util.HexFormat;
import javacard.framework.AID;
import javacard.framework.Applet;
import javacard.framework.SystemException;

/** A Java Card runtime with the applet installed and nothing selected yet. */
final class Card {

    static final byte[] AID_BYTES = HexFormat.of().parseHex("F054415053544F4E4501");

    private final Simulator simulator;

    /** A card with RAM for everything. */
    Card() {
        this(BenchmarkApplet.class, new TransientMemory());
    }

    Card(Class<? extends Applet> applet, TransientMemory ram) {
        simulator = new Simulator(new SimulatorRuntime(ram));
        AID aid = AIDUtil.create(AID_BYTES);
        simulator.installApplet(aid, applet);
        simulator.reset();
    }

    /** A card with the applet selected. */
    static Card selected() {
        Card card = new Card();
        card.select();
        return card;
    }

    /** A card that has no RAM for the applet's own memory. What the runtime itself needs it still has. */
    static Card withoutRam() {
        TakenMemory ram = new TakenMemory();
        Card card = new Card(BenchmarkApplet.class, ram);
        ram.taken = false;
        return card;
    }

    private static final class TakenMemory extends TransientMemory {

        private boolean taken = true;

        @Override
        public byte[] makeByteArray(int length, byte event) {
            refuseWhenTaken();
            return super.makeByteArray(length, event);
        }

        @Override
        public short[] makeShortArray(short length, byte event) {
            refuseWhenTaken();
            return super.makeShortArray(length, event);
        }

        private void refuseWhenTaken() {
            if (taken) {
                throw new SystemException(SystemException.NO_TRANSIENT_SPACE);
            }
        }
    }

    void select() {
        Response response = send(Apdu.select(AID_BYTES));
        if (response.status() != 0x9000) {
            throw new AssertionError("SELECT answered " + response);
        }
    }

    /** What a reader does when it powers the card off and on. */
    void reset() {
        simulator.reset();
    }


    byte[] transmit(byte[] command) {
        return simulator.transmitCommand(command);
    }

    Response send(byte[] command) {
        return Response.of(transmit(command));
    }

    /** Sends a command that must be answered with 9000; the answer is its data. */
    byte[] expect(byte[] command) {
        Response response = send(command);
        if (response.status() != 0x9000) {
            throw new AssertionError(HexFormat.of().withUpperCase().formatHex(command) + " answered " + response);
        }
        return response.data();
    }

    /** Allocates a buffer and fills it; the answer is its id. */
    int buffer(byte[] content) {
        int id = expect(Apdu.allocate(content.length))[0];
        Apdu.writes(id, content).forEach(this::expect);
        return id;
    }

    /** Reads a whole buffer. */
    byte[] read(int id) {
        byte[] length = expect(Apdu.length(id));
        byte[] content = new byte[(length[0] & 0xFF) << 8 | length[1] & 0xFF];
        for (int chunk = 0; chunk * Apdu.CHUNK < content.length; chunk++) {
            byte[] part = expect(Apdu.read(id, chunk));
            System.arraycopy(part, 0, content, chunk * Apdu.CHUNK, part.length);
        }
        return content;
    }
}
