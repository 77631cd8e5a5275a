package tapstone.bench;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.Socket;
import java.net.StandardSocketOptions;
import jdk.net.ExtendedSocketOptions;

/**
 * Puts a card with the applet into a reader of vsmartcard's vpcd, until the connection ends.
 *
 * <p>vpcd's protocol: each message is a length of two bytes, big-endian, and so many bytes. A message of one
 * byte to the card is an order (off, on, reset, ATR); any other is an APDU. Only the ATR and APDUs are
 * answered. jCardSim has a client of its own, which wants a configuration file, listens on a port, and does
 * not end with its connection.
 */
public final class VpcdRunner {

    private static final int POWER_OFF = 0;
    private static final int POWER_ON = 1;
    private static final int RESET = 2;
    private static final int GET_ATR = 4;

    /** T=1 with an IFSC of 254, as the cards of the JCOP study; the historical bytes say TAPSTONE. */
    private static final byte[] ATR = Bytes.bytes(0x3B, 0xF8, 0x13, 0x00, 0x00, 0x81, 0x31, 0xFE, 0x45,
            'T', 'A', 'P', 'S', 'T', 'O', 'N', 'E', 0xE6);

    private static final int ATTEMPTS = 100;
    private static final int BETWEEN_ATTEMPTS_MS = 100;

    private final Card card = new Card();
    private final Socket socket;

    private VpcdRunner(Socket socket) {
        this.socket = socket;
    }

    public static void main(String[] arguments) throws InterruptedException {
        if (arguments.length != 2) {
            fail("usage: VpcdRunner HOST PORT");
        }
        try {
            run(arguments[0], Integer.parseInt(arguments[1]));
        } catch (NumberFormatException e) {
            fail("PORT is a number, not " + arguments[1]);
        } catch (IOException e) {
            fail("vpcd at " + arguments[0] + ":" + arguments[1] + ": " + e.getMessage());
        }
    }

    private static void run(String host, int port) throws IOException, InterruptedException {
        try (Socket socket = connect(host, port)) {
            System.err.println("card inserted at " + host + ":" + port);
            new VpcdRunner(socket).serve();
        }
        System.err.println("card removed");
    }

    private static void fail(String what) {
        System.err.println(what);
        System.err.println("hint: Debian's vpcd listens on 127.0.0.1, ports 35963 and 35964, while pcscd runs");
        System.exit(2);
    }

    /** A reader that is only just starting is waited for, ten seconds at most. */
    private static Socket connect(String host, int port) throws IOException, InterruptedException {
        for (int attempt = 1; ; attempt++) {
            try {
                Socket socket = new Socket(host, port);
                socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
                return socket;
            } catch (ConnectException e) {
                if (attempt == ATTEMPTS) {
                    throw e;
                }
                Thread.sleep(BETWEEN_ATTEMPTS_MS);
            }
        }
    }

    private void serve() throws IOException {
        DataInputStream in = new DataInputStream(socket.getInputStream());
        OutputStream out = socket.getOutputStream();
        while (true) {
            byte[] message;
            try {
                message = receive(in);
            } catch (EOFException e) {
                return;
            }
            byte[] answer = message.length == 1 ? order(message[0]) : card.transmit(message);
            if (answer != null) {
                out.write(Bytes.join(Bytes.number(answer.length), answer));
            }
        }
    }

    /**
     * vpcd writes length and bytes apart and waits for the first to be acknowledged, so it is acknowledged at
     * once. Linux forgets the option now and then: it is set before each read.
     */
    private byte[] receive(DataInputStream in) throws IOException {
        acknowledgeAtOnce();
        int length = in.readUnsignedShort();
        acknowledgeAtOnce();
        return in.readNBytes(length);
    }

    private void acknowledgeAtOnce() throws IOException {
        if (socket.supportedOptions().contains(ExtendedSocketOptions.TCP_QUICKACK)) {
            socket.setOption(ExtendedSocketOptions.TCP_QUICKACK, true);
        }
    }

    private byte[] order(byte order) {
        switch (order) {
            case POWER_OFF, POWER_ON, RESET -> {
                card.reset();
                return null;
            }
            case GET_ATR -> {
                return ATR;
            }
            default -> {
                System.err.println("vpcd's order " + order + " is not known and was ignored");
                return null;
            }
        }
    }
}
