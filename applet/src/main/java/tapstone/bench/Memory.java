package tapstone.bench;

import javacard.framework.JCSystem;
import javacard.framework.SystemException;

/**
 * Where working memory comes from: RAM while there is any, EEPROM after that.
 *
 * <p>The published cards differ in how much RAM they leave to applets. A card that has too little still
 * runs every command, only slower and with wear, which is better than refusing to install. What is
 * wanted in RAM most is therefore to be allocated first.
 */
final class Memory {

    private Memory() {
    }

    /** Allocates bytes that are cleared when the applet is deselected, if the card has room for them. */
    static byte[] bytes(short length) {
        try {
            return JCSystem.makeTransientByteArray(length, JCSystem.CLEAR_ON_DESELECT);
        } catch (SystemException e) {
            judge(e);
            return new byte[length];
        }
    }

    /** The same for numbers of two bytes. */
    static short[] shorts(short length) {
        try {
            return JCSystem.makeTransientShortArray(length, JCSystem.CLEAR_ON_DESELECT);
        } catch (SystemException e) {
            judge(e);
            return new short[length];
        }
    }

    /** Only a lack of RAM has another way out. */
    private static void judge(SystemException e) {
        if (e.getReason() != SystemException.NO_TRANSIENT_SPACE) {
            throw e;
        }
    }
}
