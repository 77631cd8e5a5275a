package tapstone.bench;

import javacard.framework.Util;
import javacard.security.ECPublicKey;
import javacard.security.PrivateKey;
import javacard.security.Signature;
import javacardx.crypto.Cipher;

/**
 * One set-up and one operation of each algorithm of REPEAT, and nothing else: what is in here is what is
 * measured. Keys and inputs were checked before.
 */
final class Algorithms {

    static final byte NONE = 0x00;
    static final byte TRIPLE_DES_ENCRYPT = 0x01;
    static final byte TRIPLE_DES_DECRYPT = 0x02;
    static final byte AES_128_ENCRYPT = 0x03;
    static final byte AES_256_ENCRYPT = 0x04;
    static final byte SHA_1 = 0x05;
    static final byte SHA_256 = 0x06;
    static final byte RSA_2048_DECRYPT = 0x07;
    static final byte RSA_1024_DECRYPT = 0x08;
    static final byte RSA_2048_SIGN = 0x09;
    static final byte ECDSA_SIGN = 0x0A;
    static final byte ECDH_SHA_1 = 0x0B;
    static final byte ECDH_PLAIN = 0x0C;
    static final byte GENERATE_KEY_PAIR = 0x0D;
    static final byte RANDOM = 0x0E;
    static final byte WRITE_RAM = 0x0F;
    static final byte WRITE_EEPROM = 0x10;
    static final byte LAST = WRITE_EEPROM;

    private final Keys keys;
    private final Engines engines;
    private final byte[] result;
    /** The cells that WRITE_EEPROM wears out: always the same ones, and only these. */
    private final byte[] cells;

    Algorithms(Keys keys, Engines engines, byte[] result) {
        this.keys = keys;
        this.engines = engines;
        this.result = result;
        this.cells = new byte[(short) result.length];
    }

    /** The key that an algorithm needs, 0 for none. */
    static byte keyOf(byte algorithm) {
        switch (algorithm) {
            case TRIPLE_DES_ENCRYPT:
            case TRIPLE_DES_DECRYPT:
                return Keys.TRIPLE_DES;
            case AES_128_ENCRYPT:
                return Keys.AES_128;
            case AES_256_ENCRYPT:
                return Keys.AES_256;
            case RSA_2048_DECRYPT:
            case RSA_2048_SIGN:
                return Keys.RSA_2048;
            case RSA_1024_DECRYPT:
                return Keys.RSA_1024;
            case ECDSA_SIGN:
            case ECDH_SHA_1:
            case ECDH_PLAIN:
                return Keys.EC_P256;
            default:
                return 0;
        }
    }

    void setUp(byte algorithm, byte key) {
        switch (algorithm) {
            case TRIPLE_DES_ENCRYPT:
                engines.tripleDes().init(keys.key(key), Cipher.MODE_ENCRYPT);
                break;
            case TRIPLE_DES_DECRYPT:
                engines.tripleDes().init(keys.key(key), Cipher.MODE_DECRYPT);
                break;
            case AES_128_ENCRYPT:
            case AES_256_ENCRYPT:
                engines.aes().init(keys.key(key), Cipher.MODE_ENCRYPT);
                break;
            case SHA_1:
                engines.sha1().reset();
                break;
            case SHA_256:
                engines.sha256().reset();
                break;
            case RSA_2048_DECRYPT:
            case RSA_1024_DECRYPT:
                engines.rsa().init(keys.key(key), Cipher.MODE_DECRYPT);
                break;
            case RSA_2048_SIGN:
                engines.rsaSha1().init(keys.key(key), Signature.MODE_SIGN);
                break;
            case ECDSA_SIGN:
                engines.ecdsaSha256().init(keys.key(key), Signature.MODE_SIGN);
                break;
            case ECDH_SHA_1:
                engines.ecdhSha1().init((PrivateKey) keys.key(key));
                break;
            case ECDH_PLAIN:
                engines.ecdhPlain().init((PrivateKey) keys.key(key));
                break;
            default:
                break;
        }
    }

    /** Leaves the result at the beginning of the result's memory; the answer is its length. */
    short operate(byte algorithm, byte[] input, short start, short length) {
        switch (algorithm) {
            case TRIPLE_DES_ENCRYPT:
            case TRIPLE_DES_DECRYPT:
                return engines.tripleDes().doFinal(input, start, length, result, (short) 0);
            case AES_128_ENCRYPT:
            case AES_256_ENCRYPT:
                return engines.aes().doFinal(input, start, length, result, (short) 0);
            case SHA_1:
                return engines.sha1().doFinal(input, start, length, result, (short) 0);
            case SHA_256:
                return engines.sha256().doFinal(input, start, length, result, (short) 0);
            case RSA_2048_DECRYPT:
            case RSA_1024_DECRYPT:
                return engines.rsa().doFinal(input, start, length, result, (short) 0);
            case RSA_2048_SIGN:
                return engines.rsaSha1().sign(input, start, length, result, (short) 0);
            case ECDSA_SIGN:
                return engines.ecdsaSha256().sign(input, start, length, result, (short) 0);
            case ECDH_SHA_1:
                return engines.ecdhSha1().generateSecret(input, start, length, result, (short) 0);
            case ECDH_PLAIN:
                return engines.ecdhPlain().generateSecret(input, start, length, result, (short) 0);
            case GENERATE_KEY_PAIR:
                engines.keyPair().genKeyPair();
                return Curve.POINT;
            case RANDOM:
                engines.random().generateData(result, (short) 0, length);
                return length;
            case WRITE_RAM:
                Util.arrayCopyNonAtomic(input, start, result, (short) 0, length);
                return length;
            case WRITE_EEPROM:
                Util.arrayCopyNonAtomic(input, start, cells, (short) 0, length);
                return length;
            default:
                return 0;
        }
    }

    /** Fetches a result that an operation left somewhere else, once and after the last operation. */
    void collect(byte algorithm, short length) {
        if (algorithm == GENERATE_KEY_PAIR) {
            ((ECPublicKey) engines.keyPair().getPublic()).getW(result, (short) 0);
        } else if (algorithm == WRITE_EEPROM) {
            Util.arrayCopyNonAtomic(cells, (short) 0, result, (short) 0, length);
        }
    }
}
