//! The private keys: RSA and the two curves of SP 800-78-5, on the RustCrypto libraries.

use std::fmt;

use p256::elliptic_curve::ecdh::diffie_hellman;
use p256::elliptic_curve::sec1::FromEncodedPoint;
use pkcs8::der::zeroize::Zeroizing;
use pkcs8::spki::SubjectPublicKeyInfoOwned;
use pkcs8::{AssociatedOid, DecodePrivateKey, EncodePrivateKey, PrivateKeyInfo};
use rsa::hazmat::rsa_decrypt_and_check;
use rsa::rand_core::OsRng;
use rsa::signature::hazmat::RandomizedPrehashSigner;
use rsa::traits::PublicKeyParts;
use rsa::{BigUint, RsaPrivateKey};
use serde::Deserialize;

use super::work;

/// What a key computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PivAlgorithm {
    /// RSA with a modulus of 2048 bits.
    Rsa2048,
    /// RSA with a modulus of 3072 bits.
    Rsa3072,
    /// ECDSA or ECDH on P-256 (SP 800-78-5).
    P256,
    /// ECDSA or ECDH on P-384 (SP 800-78-5).
    P384,
}

impl PivAlgorithm {
    /// Its identifier in P1 of GENERAL AUTHENTICATE (SP 800-78-5, section 6).
    #[must_use]
    pub const fn identifier(self) -> u8 {
        match self {
            Self::Rsa2048 => 0x07,
            Self::Rsa3072 => 0x05,
            Self::P256 => 0x11,
            Self::P384 => 0x14,
        }
    }

    /// The length of a modulus, or of a coordinate, in bytes.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Rsa2048 => 256,
            Self::Rsa3072 => 384,
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    pub(super) const fn is_rsa(self) -> bool {
        matches!(self, Self::Rsa2048 | Self::Rsa3072)
    }

    /// The work of answering a challenge: a private-key operation or a signature.
    pub(super) const fn response_work(self) -> &'static str {
        match self {
            Self::Rsa2048 => work::RSA2048_PRIVATE,
            Self::Rsa3072 => work::RSA3072_PRIVATE,
            Self::P256 => work::P256_SIGN,
            Self::P384 => work::P384_SIGN,
        }
    }

    /// The work of agreeing on a secret; RSA does not.
    pub(super) const fn agreement_work(self) -> Option<&'static str> {
        match self {
            Self::P256 => Some(work::P256_ECDH),
            Self::P384 => Some(work::P384_ECDH),
            Self::Rsa2048 | Self::Rsa3072 => None,
        }
    }
}

/// As users write it.
impl fmt::Display for PivAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa2048 => "rsa2048",
            Self::Rsa3072 => "rsa3072",
            Self::P256 => "p256",
            Self::P384 => "p384",
        })
    }
}

/// A private key. The libraries wipe it when it is dropped.
pub(super) enum PrivateKey {
    Rsa(PivAlgorithm, Box<RsaPrivateKey>),
    P256(p256::SecretKey),
    P384(p384::SecretKey),
}

impl PrivateKey {
    /// Makes one; RSA takes a while.
    pub(super) fn generate(algorithm: PivAlgorithm) -> Result<Self, rsa::Error> {
        Ok(match algorithm {
            PivAlgorithm::Rsa2048 | PivAlgorithm::Rsa3072 => {
                let bits = algorithm.bytes() * 8;
                Self::Rsa(algorithm, Box::new(RsaPrivateKey::new(&mut OsRng, bits)?))
            }
            PivAlgorithm::P256 => Self::P256(p256::SecretKey::random(&mut OsRng)),
            PivAlgorithm::P384 => Self::P384(p384::SecretKey::random(&mut OsRng)),
        })
    }

    /// Reads PKCS #8, unencrypted, DER.
    pub(super) fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let said = |error: pkcs8::Error| error.to_string();
        let info = PrivateKeyInfo::try_from(der).map_err(said)?;
        if info.algorithm.oid == rsa::pkcs1::ALGORITHM_OID {
            let key = RsaPrivateKey::try_from(info).map_err(said)?;
            let algorithm = match key.n().bits() {
                2048 => PivAlgorithm::Rsa2048,
                3072 => PivAlgorithm::Rsa3072,
                bits => return Err(format!("RSA with {bits} bits; PIV has 2048 and 3072")),
            };
            return Ok(Self::Rsa(algorithm, Box::new(key)));
        }
        match info.algorithm.parameters_oid() {
            Ok(p256::NistP256::OID) => {
                p256::SecretKey::from_pkcs8_der(der).map(Self::P256).map_err(said)
            }
            Ok(p384::NistP384::OID) => {
                p384::SecretKey::from_pkcs8_der(der).map(Self::P384).map_err(said)
            }
            _ => Err(format!("algorithm {}; PIV has RSA, P-256 and P-384", info.algorithm.oid)),
        }
    }

    /// PKCS #8, unencrypted, DER.
    pub(super) fn to_pkcs8(&self) -> pkcs8::Result<Zeroizing<Vec<u8>>> {
        let document = match self {
            Self::Rsa(_, key) => key.to_pkcs8_der(),
            Self::P256(key) => key.to_pkcs8_der(),
            Self::P384(key) => key.to_pkcs8_der(),
        }?;
        Ok(document.to_bytes())
    }

    pub(super) fn algorithm(&self) -> PivAlgorithm {
        match self {
            Self::Rsa(algorithm, _) => *algorithm,
            Self::P256(_) => PivAlgorithm::P256,
            Self::P384(_) => PivAlgorithm::P384,
        }
    }

    /// The public key as certificates hold it.
    pub(super) fn public_key_info(&self) -> pkcs8::spki::Result<SubjectPublicKeyInfoOwned> {
        match self {
            Self::Rsa(_, key) => SubjectPublicKeyInfoOwned::from_key(key.to_public_key()),
            Self::P256(key) => SubjectPublicKeyInfoOwned::from_key(key.public_key()),
            Self::P384(key) => SubjectPublicKeyInfoOwned::from_key(key.public_key()),
        }
    }

    /// Answers a challenge: RSA raises a block of the modulus' length to the private exponent,
    /// ECDSA signs a hash of at most the field's length. `None`: the challenge is not such a thing.
    pub(super) fn respond(&self, challenge: &[u8]) -> Option<Vec<u8>> {
        let length = self.algorithm().bytes();
        match self {
            Self::Rsa(_, key) => {
                if challenge.len() != length {
                    return None;
                }
                let block = BigUint::from_bytes_be(challenge);
                if block >= *key.n() {
                    return None;
                }
                let result = rsa_decrypt_and_check(&**key, Some(&mut OsRng), &block).ok()?;
                Some(left_padded(&result.to_bytes_be(), length))
            }
            Self::P256(key) => {
                let hash = hash(challenge, length)?;
                let key = p256::ecdsa::SigningKey::from(key);
                let signature: p256::ecdsa::Signature =
                    key.sign_prehash_with_rng(&mut OsRng, &hash).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            }
            Self::P384(key) => {
                let hash = hash(challenge, length)?;
                let key = p384::ecdsa::SigningKey::from(key);
                let signature: p384::ecdsa::Signature =
                    key.sign_prehash_with_rng(&mut OsRng, &hash).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            }
        }
    }

    /// ECDH with an uncompressed point: the shared x-coordinate (SP 800-56A, 5.7.1.2). `None`: the
    /// bytes are no such point, or the key is RSA.
    pub(super) fn agree(&self, point: &[u8]) -> Option<Vec<u8>> {
        let uncompressed = point.len() == 1 + 2 * self.algorithm().bytes() && point[0] == 0x04;
        if !uncompressed {
            return None;
        }
        match self {
            Self::Rsa(..) => None,
            Self::P256(key) => {
                let point = p256::EncodedPoint::from_bytes(point).ok()?;
                let other = p256::PublicKey::from_encoded_point(&point).into_option()?;
                let shared = diffie_hellman(key.to_nonzero_scalar(), other.as_affine());
                Some(shared.raw_secret_bytes().to_vec())
            }
            Self::P384(key) => {
                let point = p384::EncodedPoint::from_bytes(point).ok()?;
                let other = p384::PublicKey::from_encoded_point(&point).into_option()?;
                let shared = diffie_hellman(key.to_nonzero_scalar(), other.as_affine());
                Some(shared.raw_secret_bytes().to_vec())
            }
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({}, …)", self.algorithm())
    }
}

/// A hash as long as the field: a shorter one is a smaller number (FIPS 186-5, 6.4.1), a longer one
/// would have to be cut by whoever made it.
fn hash(challenge: &[u8], length: usize) -> Option<Vec<u8>> {
    (1..=length).contains(&challenge.len()).then(|| left_padded(challenge, length))
}

fn left_padded(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut padded = vec![0; length.saturating_sub(bytes.len())];
    padded.extend(bytes);
    padded
}
