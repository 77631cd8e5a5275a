package tapstone.bench;

import javacard.framework.ISO7816;
import javacard.framework.ISOException;
import javacard.security.ECPrivateKey;
import javacard.security.ECPublicKey;
import javacard.security.KeyAgreement;
import javacard.security.KeyBuilder;
import javacard.security.KeyPair;
import javacard.security.MessageDigest;
import javacard.security.RandomData;
import javacard.security.Signature;
import javacardx.crypto.Cipher;

/**
 * The card's algorithms, each made when it is first asked for and then kept.
 *
 * <p>Made late, so that a card without one of them installs all the same; kept, because most cards never
 * collect garbage. A card that lacks one throws CryptoException.NO_SUCH_ALGORITHM, the applet's 6A81.
 */
final class Engines {

    // Newer than Java Card 2.2.1, hence by number: the values are those of the later API.
    /** MessageDigest.ALG_SHA_256 of Java Card 2.2.2. */
    private static final byte SHA_256 = (byte) 4;
    /** Signature.ALG_ECDSA_SHA_256 of Java Card 3.0.1. */
    private static final byte ECDSA_SHA_256 = (byte) 33;
    /** KeyAgreement.ALG_EC_SVDP_DH_PLAIN of Java Card 3.0.1. */
    private static final byte ECDH_PLAIN = (byte) 3;

    private Cipher tripleDes;
    private Cipher aes;
    private Cipher rsa;
    private MessageDigest sha1;
    private MessageDigest sha256;
    private Signature rsaSha1;
    private Signature ecdsaSha256;
    private KeyAgreement ecdhSha1;
    private KeyAgreement ecdhPlain;
    private KeyPair keyPair;
    private RandomData random;

    /** CBC with a zero IV (that is what init without one means) and padding method 2 of ISO 9797. */
    Cipher tripleDes() {
        if (tripleDes == null) {
            tripleDes = Cipher.getInstance(Cipher.ALG_DES_CBC_ISO9797_M2, false);
        }
        return tripleDes;
    }

    Cipher aes() {
        if (aes == null) {
            aes = Cipher.getInstance(Cipher.ALG_AES_BLOCK_128_CBC_NOPAD, false);
        }
        return aes;
    }

    Cipher rsa() {
        if (rsa == null) {
            rsa = Cipher.getInstance(Cipher.ALG_RSA_PKCS1, false);
        }
        return rsa;
    }

    MessageDigest sha1() {
        if (sha1 == null) {
            sha1 = MessageDigest.getInstance(MessageDigest.ALG_SHA, false);
        }
        return sha1;
    }

    MessageDigest sha256() {
        if (sha256 == null) {
            sha256 = MessageDigest.getInstance(SHA_256, false);
        }
        return sha256;
    }

    Signature rsaSha1() {
        if (rsaSha1 == null) {
            rsaSha1 = Signature.getInstance(Signature.ALG_RSA_SHA_PKCS1, false);
        }
        return rsaSha1;
    }

    Signature ecdsaSha256() {
        if (ecdsaSha256 == null) {
            ecdsaSha256 = Signature.getInstance(ECDSA_SHA_256, false);
        }
        return ecdsaSha256;
    }

    KeyAgreement ecdhSha1() {
        if (ecdhSha1 == null) {
            ecdhSha1 = KeyAgreement.getInstance(KeyAgreement.ALG_EC_SVDP_DH, false);
        }
        return ecdhSha1;
    }

    KeyAgreement ecdhPlain() {
        if (ecdhPlain == null) {
            ecdhPlain = KeyAgreement.getInstance(ECDH_PLAIN, false);
        }
        return ecdhPlain;
    }

    /** A pair of its own, apart from key 06: generation overwrites it in place. */
    KeyPair keyPair() {
        if (keyPair == null) {
            ECPublicKey open =
                    (ECPublicKey) KeyBuilder.buildKey(KeyBuilder.TYPE_EC_FP_PUBLIC, Curve.BITS, false);
            ECPrivateKey secret =
                    (ECPrivateKey) KeyBuilder.buildKey(KeyBuilder.TYPE_EC_FP_PRIVATE, Curve.BITS, false);
            Curve.setParameters(open);
            Curve.setParameters(secret);
            keyPair = new KeyPair(open, secret);
        }
        return keyPair;
    }

    RandomData random() {
        if (random == null) {
            random = RandomData.getInstance(RandomData.ALG_SECURE_RANDOM);
        }
        return random;
    }

    /**
     * Decrypts what DECRYPT and a sealed program are encrypted with; the answer is the plain text's length.
     * The room at the target must be as long as the input: some cards write padding there first.
     */
    short decrypt(Keys keys, byte key, byte[] input, short start, short length, byte[] output, short target) {
        requireDecryptable(key, length);
        Cipher cipher = key == Keys.TRIPLE_DES ? tripleDes() : rsa();
        cipher.init(keys.key(key), Cipher.MODE_DECRYPT);
        return cipher.doFinal(input, start, length, output, target);
    }

    /** Answers 6A80 unless a cipher text under this key can be so long. Cards differ in what they would say. */
    static void requireDecryptable(byte key, short length) {
        boolean fits;
        switch (key) {
            case Keys.RSA_2048:
                fits = length == (short) 256;
                break;
            case Keys.RSA_1024:
                fits = length == (short) 128;
                break;
            default:
                fits = length > 0 && (short) (length & 7) == 0;
        }
        if (!fits) {
            ISOException.throwIt(ISO7816.SW_WRONG_DATA);
        }
    }
}
