//! Public keys: signatures of certificates, and of challenges.

use aws_lc_rs::rand;
use aws_lc_rs::signature::{self, ParsedPublicKey, VerificationAlgorithm};
use der::Encode;
use der::asn1::ObjectIdentifier;
use pkcs1::RsaPssParams;
use sha2::{Digest, Sha256, Sha384, Sha512};
use tapstone_apdu::tlv;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::denial::Denial;

/// PKCS #1 (RFC 8017, appendix C).
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const RSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const RSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
/// ecdsa-with-SHA2 (RFC 5758, 3.2).
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ECDSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");
/// id-ecPublicKey and the curves (RFC 5480, 2.1.1).
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
/// SHA-2 under NIST's arc of hash algorithms.
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

/// DigestInfo of SHA-256 up to the digest itself (RFC 8017, 9.2, note 1).
const SHA256_INFO: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0D, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];

/// A public key of a kind that PIV has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    /// RSAPublicKey (RFC 8017, A.1.1), or a point of the curve (SEC 1, 2.3.3).
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Rsa {
        /// The length of the modulus in bytes.
        bytes: usize,
    },
    P256,
    P384,
}

/// How strong a key is, as far as SP 800-78-5 draws lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyStrength {
    Rsa {
        bits: usize,
    },
    /// P-256 or P-384.
    Curve,
}

impl KeyStrength {
    pub(crate) const fn is_rsa(self) -> bool {
        matches!(self, Self::Rsa { .. })
    }
}

/// How the bytes that RSA signs are made of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    Pkcs1,
    Pss,
}

/// A hash function of SP 800-78-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashFunction {
    Sha256,
    Sha384,
    Sha512,
}

impl HashFunction {
    pub(crate) fn by_oid(oid: &ObjectIdentifier) -> Option<Self> {
        match *oid {
            SHA256 => Some(Self::Sha256),
            SHA384 => Some(Self::Sha384),
            SHA512 => Some(Self::Sha512),
            _ => None,
        }
    }

    pub(crate) fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }

    const fn bytes(self) -> u8 {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// A signature that does not hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadSignature {
    /// It is not this key's over these bytes.
    Wrong,
    /// This algorithm is not known, or not taken: SHA-1 is not.
    Algorithm(String),
}

impl PublicKey {
    pub(crate) fn from_spki(info: &SubjectPublicKeyInfoOwned) -> Result<Self, String> {
        let bytes = info.subject_public_key.raw_bytes().to_vec();
        let kind = match info.algorithm.oid {
            RSA_ENCRYPTION => {
                let key = pkcs1::RsaPublicKey::try_from(&bytes[..]);
                let key = key.map_err(|error| format!("unreadable ({error})"))?;
                KeyKind::Rsa { bytes: key.modulus.as_bytes().len() }
            }
            EC_PUBLIC_KEY => {
                let curve = info.algorithm.parameters.as_ref();
                match curve.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok()) {
                    Some(P256) => KeyKind::P256,
                    Some(P384) => KeyKind::P384,
                    Some(other) => return Err(format!("curve {other}")),
                    None => return Err("unnamed curve".to_owned()),
                }
            }
            other => return Err(other.to_string()),
        };
        let key = Self { kind, bytes };
        // What can be no key is none. How strong it is, is for the profile to judge; the signature
        // of an RSA key below 2048 bits never holds.
        let algorithm = key.algorithm(HashFunction::Sha256, Padding::Pkcs1);
        match ParsedPublicKey::new(algorithm, &key.bytes) {
            Ok(_) => Ok(key),
            Err(_) => Err(format!("{}: no key that can be used", key.name())),
        }
    }

    /// The key's algorithm and size: `RSA 2048`, `P-256`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.kind {
            KeyKind::Rsa { bytes } => format!("RSA {}", bytes * 8),
            KeyKind::P256 => "P-256".to_owned(),
            KeyKind::P384 => "P-384".to_owned(),
        }
    }

    pub(crate) const fn strength(&self) -> KeyStrength {
        match self.kind {
            KeyKind::Rsa { bytes } => KeyStrength::Rsa { bits: bytes * 8 },
            KeyKind::P256 | KeyKind::P384 => KeyStrength::Curve,
        }
    }

    /// Checks a signature by the algorithm that stands beside it. `hash` is the one named apart
    /// from it, as in CMS.
    pub(crate) fn verify(
        &self,
        algorithm: &AlgorithmIdentifierOwned,
        hash: Option<HashFunction>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), BadSignature> {
        let unknown = || BadSignature::Algorithm(algorithm.oid.to_string());
        let (padding, hash) = match algorithm.oid {
            RSA_ENCRYPTION => (Padding::Pkcs1, hash.ok_or_else(unknown)?),
            RSA_SHA256 | ECDSA_SHA256 => (Padding::Pkcs1, HashFunction::Sha256),
            RSA_SHA384 | ECDSA_SHA384 => (Padding::Pkcs1, HashFunction::Sha384),
            RSA_SHA512 | ECDSA_SHA512 => (Padding::Pkcs1, HashFunction::Sha512),
            RSA_PSS => (Padding::Pss, pss(algorithm).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        };
        let for_curves = matches!(algorithm.oid, ECDSA_SHA256 | ECDSA_SHA384 | ECDSA_SHA512);
        if for_curves == matches!(self.kind, KeyKind::Rsa { .. }) {
            return Err(BadSignature::Wrong);
        }
        match self.holds(hash, padding, message, signature) {
            true => Ok(()),
            false => Err(BadSignature::Wrong),
        }
    }

    fn holds(
        &self,
        hash: HashFunction,
        padding: Padding,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let key = ParsedPublicKey::new(self.algorithm(hash, padding), &self.bytes);
        key.is_ok_and(|key| key.verify_sig(message, signature).is_ok())
    }

    /// Padding is RSA's alone.
    fn algorithm(
        &self,
        hash: HashFunction,
        padding: Padding,
    ) -> &'static dyn VerificationAlgorithm {
        match (self.kind, padding, hash) {
            (KeyKind::Rsa { .. }, Padding::Pkcs1, HashFunction::Sha256) => {
                &signature::RSA_PKCS1_2048_8192_SHA256
            }
            (KeyKind::Rsa { .. }, Padding::Pkcs1, HashFunction::Sha384) => {
                &signature::RSA_PKCS1_2048_8192_SHA384
            }
            (KeyKind::Rsa { .. }, Padding::Pkcs1, HashFunction::Sha512) => {
                &signature::RSA_PKCS1_2048_8192_SHA512
            }
            (KeyKind::Rsa { .. }, Padding::Pss, HashFunction::Sha256) => {
                &signature::RSA_PSS_2048_8192_SHA256
            }
            (KeyKind::Rsa { .. }, Padding::Pss, HashFunction::Sha384) => {
                &signature::RSA_PSS_2048_8192_SHA384
            }
            (KeyKind::Rsa { .. }, Padding::Pss, HashFunction::Sha512) => {
                &signature::RSA_PSS_2048_8192_SHA512
            }
            (KeyKind::P256, _, HashFunction::Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
            (KeyKind::P256, _, HashFunction::Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
            (KeyKind::P256, _, HashFunction::Sha512) => &signature::ECDSA_P256_SHA512_ASN1,
            (KeyKind::P384, _, HashFunction::Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
            (KeyKind::P384, _, HashFunction::Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
            (KeyKind::P384, _, HashFunction::Sha512) => &signature::ECDSA_P384_SHA512_ASN1,
        }
    }
}

/// The hash function; none where the salt is not as long as its digests, as FIPS 186-5 (5.4 g)
/// lets it be shorter and nobody does.
fn pss(algorithm: &AlgorithmIdentifierOwned) -> Option<HashFunction> {
    let der = algorithm.parameters.as_ref()?.to_der().ok()?;
    let parameters = RsaPssParams::try_from(&der[..]).ok()?;
    HashFunction::by_oid(&parameters.hash.oid).filter(|hash| hash.bytes() == parameters.salt_len)
}

/// A fresh random challenge, as GENERAL AUTHENTICATE wants it (SP 800-73-5 part 2, appendix A).
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The card signs its digest.
    random: [u8; 32],
    hash: HashFunction,
    /// P1: SP 800-78-5, table 9.
    pub(crate) algorithm: u8,
    /// The dynamic authentication template.
    pub(crate) template: Vec<u8>,
}

impl Challenge {
    /// For this key.
    ///
    /// # Errors
    /// When PIV has no algorithm for such a key.
    pub fn new(key: &PublicKey) -> Result<Self, Denial> {
        let (algorithm, hash) = match key.kind {
            KeyKind::Rsa { bytes: 256 } => (0x07, HashFunction::Sha256),
            KeyKind::Rsa { bytes: 384 } => (0x05, HashFunction::Sha256),
            KeyKind::Rsa { .. } => return Err(Denial::Algorithm { algorithm: key.name() }),
            KeyKind::P256 => (0x11, HashFunction::Sha256),
            KeyKind::P384 => (0x14, HashFunction::Sha384),
        };
        let mut random = [0; 32];
        rand::fill(&mut random).expect("the system has random numbers");
        let digest = hash.digest(&random);
        let challenge = match key.kind {
            KeyKind::Rsa { bytes } => padded(&digest, bytes),
            KeyKind::P256 | KeyKind::P384 => digest,
        };
        let parts = [tlv::element(0x82, &[]), tlv::element(0x81, &challenge)].concat();
        Ok(Self { random, hash, algorithm, template: tlv::element(0x7C, &parts) })
    }

    /// Whether this is the key's signature of it.
    #[must_use]
    pub fn is_answered_by(&self, key: &PublicKey, signature: &[u8]) -> bool {
        key.holds(self.hash, Padding::Pkcs1, &self.random, signature)
    }
}

/// EMSA-PKCS1-v1_5 (RFC 8017, 9.2): the card only computes.
fn padded(digest: &[u8], length: usize) -> Vec<u8> {
    let filler = length - 3 - SHA256_INFO.len() - digest.len();
    let mut block = vec![0xFF; length];
    block[..2].copy_from_slice(&[0, 1]);
    block[2 + filler] = 0;
    block[3 + filler..length - digest.len()].copy_from_slice(&SHA256_INFO);
    block[length - digest.len()..].copy_from_slice(digest);
    block
}

#[cfg(test)]
mod tests {
    use der::Any;
    use der::asn1::Null;
    use rsa::pkcs1v15::Pkcs1v15Sign;
    use rsa::pss::get_default_pss_signature_algo_id;
    use rsa::rand_core::OsRng;
    use rsa::traits::SignatureScheme;
    use rsa::{BigUint, Pss, RsaPrivateKey, RsaPublicKey};

    use super::*;

    const MESSAGE: &[u8] = b"what is signed";

    fn parsed(key: &RsaPublicKey) -> Result<PublicKey, String> {
        PublicKey::from_spki(&SubjectPublicKeyInfoOwned::from_key(key.clone()).unwrap())
    }

    fn identifier(oid: ObjectIdentifier) -> AlgorithmIdentifierOwned {
        AlgorithmIdentifierOwned { oid, parameters: Some(Any::encode_from(&Null).unwrap()) }
    }

    /// Signatures by another implementation, each under the name of each of the algorithms: only
    /// its own name holds.
    #[test]
    fn rsa_signatures_hold_under_their_own_algorithm_alone() {
        let own = RsaPrivateKey::new(&mut OsRng, 2048).unwrap();
        let key = parsed(&own.to_public_key()).unwrap();
        let digests = [
            Sha256::digest(MESSAGE).to_vec(),
            Sha384::digest(MESSAGE).to_vec(),
            Sha512::digest(MESSAGE).to_vec(),
        ];
        let plain = [
            Pkcs1v15Sign::new::<Sha256>(),
            Pkcs1v15Sign::new::<Sha384>(),
            Pkcs1v15Sign::new::<Sha512>(),
        ];
        let masked = [Pss::new::<Sha256>(), Pss::new::<Sha384>(), Pss::new::<Sha512>()];
        let mut signatures: Vec<Vec<u8>> = Vec::new();
        for (scheme, digest) in plain.into_iter().zip(&digests) {
            signatures.push(scheme.sign(Some(&mut OsRng), &own, digest).unwrap());
        }
        for (scheme, digest) in masked.into_iter().zip(&digests) {
            signatures.push(scheme.sign(Some(&mut OsRng), &own, digest).unwrap());
        }
        let names = [
            identifier(RSA_SHA256),
            identifier(RSA_SHA384),
            identifier(RSA_SHA512),
            get_default_pss_signature_algo_id::<Sha256>().unwrap(),
            get_default_pss_signature_algo_id::<Sha384>().unwrap(),
            get_default_pss_signature_algo_id::<Sha512>().unwrap(),
        ];
        for (by, name) in names.iter().enumerate() {
            for (of, signature) in signatures.iter().enumerate() {
                let holds = key.verify(name, None, MESSAGE, signature);
                let wanted = if by == of { Ok(()) } else { Err(BadSignature::Wrong) };
                assert_eq!(holds, wanted, "signature {of} under name {by}");
            }
        }
        // CMS names the hash function apart (RFC 3370, 3.2).
        let apart = identifier(RSA_ENCRYPTION);
        for (of, hash) in [SHA256, SHA384, SHA512].iter().enumerate() {
            let hash = HashFunction::by_oid(hash);
            assert_eq!(key.verify(&apart, hash, MESSAGE, &signatures[of]), Ok(()));
            let other = key.verify(&apart, hash, MESSAGE, &signatures[(of + 1) % 3]);
            assert_eq!(other, Err(BadSignature::Wrong));
        }
        let unnamed = key.verify(&apart, None, MESSAGE, &signatures[0]);
        assert_eq!(unnamed, Err(BadSignature::Algorithm("1.2.840.113549.1.1.1".to_owned())));
        // sha1WithRSAEncryption.
        let old = identifier(ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"));
        let refused = key.verify(&old, None, MESSAGE, &signatures[0]);
        assert_eq!(refused, Err(BadSignature::Algorithm("1.2.840.113549.1.1.5".to_owned())));
    }

    /// RFC 4055, 3.1: the salt's length stands in the parameters. A salt of 20 bytes, the default
    /// there, is shorter than the digest.
    #[test]
    fn a_salt_is_as_long_as_the_digest() {
        let with_salt = |salt| {
            let parameters = RsaPssParams::new::<Sha256>(salt);
            let parameters = Some(Any::encode_from(&parameters).unwrap());
            pss(&AlgorithmIdentifierOwned { oid: RSA_PSS, parameters })
        };
        assert_eq!(with_salt(32), Some(HashFunction::Sha256));
        for salt in [0, 20, 31, 33] {
            assert_eq!(with_salt(salt), None, "{salt}");
        }
        assert_eq!(pss(&AlgorithmIdentifierOwned { oid: RSA_PSS, parameters: None }), None);
    }

    /// A certificate may have a key of 1024 bits; nothing that it signs is believed.
    #[test]
    fn no_signature_of_a_weak_key_holds() {
        for (bits, holds) in [(1024, false), (2048, true)] {
            let own = RsaPrivateKey::new(&mut OsRng, bits).unwrap();
            let key = parsed(&own.to_public_key()).unwrap();
            let digest = Sha256::digest(MESSAGE);
            let signature = Pkcs1v15Sign::new::<Sha256>().sign(Some(&mut OsRng), &own, &digest);
            let signature = signature.unwrap();
            let said = key.verify(&identifier(RSA_SHA256), None, MESSAGE, &signature);
            assert_eq!(said.is_ok(), holds, "{bits}");
        }
    }

    /// SP 800-78-5, table 3, and a key that is too short for it.
    #[test]
    fn keys_are_named_by_algorithm_and_size() {
        let of_bits = |bytes: usize| {
            let modulus = BigUint::from_bytes_be(&vec![0xFF; bytes]);
            parsed(&RsaPublicKey::new_unchecked(modulus, 65_537_u32.into()))
        };
        for (bytes, name) in
            [(128, "RSA 1024"), (256, "RSA 2048"), (384, "RSA 3072"), (512, "RSA 4096")]
        {
            let key = of_bits(bytes).unwrap();
            assert_eq!(key.name(), name);
            assert_eq!(key.strength(), KeyStrength::Rsa { bits: bytes * 8 });
        }
        let curve = p256::SecretKey::random(&mut OsRng).public_key();
        let curve = SubjectPublicKeyInfoOwned::from_key(curve).unwrap();
        assert_eq!(PublicKey::from_spki(&curve).unwrap().name(), "P-256");
        let curve = p384::SecretKey::random(&mut OsRng).public_key();
        let curve = SubjectPublicKeyInfoOwned::from_key(curve).unwrap();
        let key = PublicKey::from_spki(&curve).unwrap();
        assert_eq!((key.name().as_str(), key.strength()), ("P-384", KeyStrength::Curve));
    }
}
