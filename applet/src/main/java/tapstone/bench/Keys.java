package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.security.AESKey;
import javacard.security.DESKey;
import javacard.security.ECPrivateKey;
import javacard.security.Key;
import javacard.security.KeyBuilder;
import javacard.security.RSAPrivateCrtKey;

/**
 * The keys of the host, loaded in parts.
 *
 * <p>They protect nothing. A key object is made when its first part arrives and then kept, so a card that
 * lacks a type refuses that key (6A81) and still installs the applet.
 */
final class Keys {

    static final byte TRIPLE_DES = (byte) 1;
    static final byte RSA_2048 = (byte) 2;
    static final byte RSA_1024 = (byte) 3;
    static final byte AES_128 = (byte) 4;
    static final byte AES_256 = (byte) 5;
    static final byte EC_P256 = (byte) 6;

    private static final byte LAST = EC_P256;
    private static final byte RSA_PARTS = (byte) 5;
    /** "Referenced data not found" (ISO 7816-4); the interface ISO7816 does not name it. */
    private static final short SW_NO_SUCH_KEY = (short) 0x6A88;

    private final Key[] keys = new Key[(short) (LAST + 1)];

    /** Turns P1 or P2 into the id of a key of the table, complete or not, or answers 6A88. */
    byte known(byte parameter) {
        if (parameter < TRIPLE_DES || parameter > LAST) {
            ISOException.throwIt(SW_NO_SUCH_KEY);
        }
        return parameter;
    }

    /** The same for a key that DECRYPT and LOAD can use. */
    byte decrypting(byte parameter) {
        if (known(parameter) > RSA_1024) {
            ISOException.throwIt(SW_NO_SUCH_KEY);
        }
        return parameter;
    }

    /** Answers 6985 unless all parts of the key are there. */
    void requireComplete(byte id) {
        if (keys[id] == null || !keys[id].isInitialized()) {
            ISOException.throwIt(ISO7816.SW_CONDITIONS_NOT_SATISFIED);
        }
    }

    /** A key that {@link #requireComplete} has found. */
    Key key(byte id) {
        return keys[id];
    }

    void clear(byte id) {
        if (keys[id] != null) {
            keys[id].clearKey();
        }
    }

    /** How many bytes a part has, or 6A86 when the key has no such part. */
    short partLength(byte id, byte part) {
        byte parts = isRsa(id) ? RSA_PARTS : (byte) 1;
        if (part < 0 || part >= parts) {
            ISOException.throwIt(ISO7816.SW_INCORRECT_P1P2);
        }
        switch (id) {
            case RSA_2048:
                return (short) 128;
            case RSA_1024:
                return (short) 64;
            case AES_256:
            case EC_P256:
                return (short) 32;
            default:
                return (short) 16;
        }
    }

    /** Stores a part of the length that {@link #partLength} asks for. */
    void put(byte id, byte part, byte[] data, short offset) {
        if (keys[id] == null) {
            keys[id] = build(id);
        }
        Key key = keys[id];
        switch (id) {
            case TRIPLE_DES:
                ((DESKey) key).setKey(data, offset);
                break;
            case AES_128:
            case AES_256:
                ((AESKey) key).setKey(data, offset);
                break;
            case EC_P256:
                Curve.setParameters((ECPrivateKey) key);
                ((ECPrivateKey) key).setS(data, offset, partLength(id, part));
                break;
            default:
                putRsa((RSAPrivateCrtKey) key, part, data, offset, partLength(id, part));
        }
    }

    private static boolean isRsa(byte id) {
        return id == RSA_2048 || id == RSA_1024;
    }

    private static void putRsa(RSAPrivateCrtKey key, byte part, byte[] data, short offset, short length) {
        switch (part) {
            case 0:
                key.setP(data, offset, length);
                break;
            case 1:
                key.setQ(data, offset, length);
                break;
            case 2:
                key.setPQ(data, offset, length);
                break;
            case 3:
                key.setDP1(data, offset, length);
                break;
            default:
                key.setDQ1(data, offset, length);
        }
    }

    private static Key build(byte id) {
        switch (id) {
            case TRIPLE_DES:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_DES, KeyBuilder.LENGTH_DES3_2KEY, false);
            case RSA_2048:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_RSA_CRT_PRIVATE, KeyBuilder.LENGTH_RSA_2048, false);
            case RSA_1024:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_RSA_CRT_PRIVATE, KeyBuilder.LENGTH_RSA_1024, false);
            case AES_128:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_AES, KeyBuilder.LENGTH_AES_128, false);
            case AES_256:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_AES, KeyBuilder.LENGTH_AES_256, false);
            default:
                return KeyBuilder.buildKey(KeyBuilder.TYPE_EC_FP_PRIVATE, Curve.BITS, false);
        }
    }
}
