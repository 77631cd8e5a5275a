package tapstone.bench;

import java.math.BigInteger;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.security.spec.EllipticCurve;
import java.security.spec.RSAPrivateCrtKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.Arrays;
import java.util.List;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * What is right: the JDK's own cryptography, by provider, which shares no code with jCardSim (that stands on
 * Bouncy Castle).
 */
final class Judge {

    /** A computation that fails only when the JDK lacks an algorithm. */
    private interface Computation<T> {
        T compute() throws GeneralSecurityException;
    }

    private Judge() {
    }

    /** Two-key Triple DES in CBC mode with a zero IV, no padding. */
    static byte[] tripleDes(byte[] key, byte[] padded) {
        byte[] threeKeys = Arrays.copyOf(key, 24);
        System.arraycopy(key, 0, threeKeys, 16, 8);
        return cbc("DESede", threeKeys, 8, padded);
    }

    /** The same with padding method 2 of ISO 9797. */
    static byte[] tripleDesM2(byte[] key, byte[] plain) {
        byte[] padded = Arrays.copyOf(plain, plain.length / 8 * 8 + 8);
        padded[plain.length] = (byte) 0x80;
        return tripleDes(key, padded);
    }

    static byte[] aes(byte[] key, byte[] plain) {
        return cbc("AES", key, 16, plain);
    }

    static byte[] digest(String algorithm, byte[] data) {
        return run(() -> MessageDigest.getInstance(algorithm, "SUN").digest(data));
    }

    /** PKCS#1 v1.5 encryption (RFC 8017, 7.2.1) with padding from a seed, so that vectors do not change. */
    static byte[] rsaEncrypt(TestKeys.Rsa key, byte[] plain, long seed) {
        byte[] block = Bytes.pattern(seed, key.bytes());
        for (int i = 0; i < block.length; i++) {
            block[i] = block[i] == 0 ? 1 : block[i];
        }
        block[0] = 0;
        block[1] = 2;
        block[block.length - plain.length - 1] = 0;
        System.arraycopy(plain, 0, block, block.length - plain.length, plain.length);
        return rsaRaw(key, block);
    }

    /** The bare public operation. */
    static byte[] rsaRaw(TestKeys.Rsa key, byte[] block) {
        return run(() -> {
            PublicKey open = KeyFactory.getInstance("RSA", "SunRsaSign")
                    .generatePublic(new RSAPublicKeySpec(key.n(), key.e()));
            Cipher cipher = Cipher.getInstance("RSA/ECB/NoPadding", "SunJCE");
            cipher.init(Cipher.ENCRYPT_MODE, open);
            return cipher.doFinal(block);
        });
    }

    static byte[] rsaSignSha1(TestKeys.Rsa key, byte[] message) {
        return run(() -> {
            Signature signature = Signature.getInstance("SHA1withRSA", "SunRsaSign");
            signature.initSign(rsaPrivate(key));
            signature.update(message);
            return signature.sign();
        });
    }

    static boolean ecdsaVerifies(byte[] point, byte[] message, byte[] der) {
        return run(() -> {
            Signature signature = Signature.getInstance("SHA256withECDSA", "SunEC");
            signature.initVerify(ecPublic(point));
            signature.update(message);
            return signature.verify(der);
        });
    }

    /** The x-coordinate of the shared point. */
    static byte[] ecdh(byte[] s, byte[] point) {
        return run(() -> {
            KeyAgreement agreement = KeyAgreement.getInstance("ECDH", "SunEC");
            agreement.init(KeyFactory.getInstance("EC", "SunEC")
                    .generatePrivate(new ECPrivateKeySpec(new BigInteger(1, s), p256())));
            agreement.doPhase(ecPublic(point), true);
            return agreement.generateSecret();
        });
    }

    /** Whether an uncompressed point satisfies the equation of P-256. */
    static boolean onCurve(byte[] point) {
        EllipticCurve curve = p256().getCurve();
        BigInteger p = ((ECFieldFp) curve.getField()).getP();
        ECPoint w = point(point);
        BigInteger x = w.getAffineX();
        BigInteger right = x.pow(3).add(curve.getA().multiply(x)).add(curve.getB()).mod(p);
        boolean inField = x.compareTo(p) < 0 && w.getAffineY().compareTo(p) < 0;
        return inField && w.getAffineY().pow(2).mod(p).equals(right);
    }

    private static byte[] cbc(String algorithm, byte[] key, int block, byte[] plain) {
        return run(() -> {
            Cipher cipher = Cipher.getInstance(algorithm + "/CBC/NoPadding", "SunJCE");
            cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, algorithm),
                    new IvParameterSpec(new byte[block]));
            return cipher.doFinal(plain);
        });
    }

    private static PrivateKey rsaPrivate(TestKeys.Rsa key) throws GeneralSecurityException {
        List<BigInteger> parts = key.parts().stream().map(part -> new BigInteger(1, part)).toList();
        BigInteger p = parts.get(0);
        BigInteger q = parts.get(1);
        BigInteger phi = p.subtract(BigInteger.ONE).multiply(q.subtract(BigInteger.ONE));
        return KeyFactory.getInstance("RSA", "SunRsaSign").generatePrivate(new RSAPrivateCrtKeySpec(
                key.n(), key.e(), key.e().modInverse(phi), p, q, parts.get(3), parts.get(4), parts.get(2)));
    }

    private static ECPublicKey ecPublic(byte[] point) throws GeneralSecurityException {
        return (ECPublicKey) KeyFactory.getInstance("EC", "SunEC")
                .generatePublic(new ECPublicKeySpec(point(point), p256()));
    }

    private static ECPoint point(byte[] uncompressed) {
        if (uncompressed.length != 65 || uncompressed[0] != 4) {
            throw new AssertionError("not an uncompressed point of P-256");
        }
        return new ECPoint(new BigInteger(1, Arrays.copyOfRange(uncompressed, 1, 33)),
                new BigInteger(1, Arrays.copyOfRange(uncompressed, 33, 65)));
    }

    private static ECParameterSpec p256() {
        return run(() -> {
            AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC", "SunEC");
            parameters.init(new ECGenParameterSpec("secp256r1"));
            return parameters.getParameterSpec(ECParameterSpec.class);
        });
    }

    private static <T> T run(Computation<T> computation) {
        try {
            return computation.compute();
        } catch (GeneralSecurityException e) {
            throw new AssertionError(e);
        }
    }
}
