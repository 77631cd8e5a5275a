//! The key that an operation needs: kind and size, and how a token is asked for one.

use std::fmt;

use cryptoki_sys as sys;
use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::mechanism as ckm;
use super::mechanism::Mechanism;
use super::slh_dsa::SlhDsa;

/// The key under which an operation runs, or the key that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySpec {
    /// No key: digests, random numbers, sessions.
    None,
    /// An RSA key pair; the public exponent is 65537.
    Rsa {
        /// Length of the modulus.
        bits: u32,
    },
    /// A key pair on one of the NIST curves (`CKK_EC`).
    Ec {
        /// The curve that the key pair is on.
        curve: Curve,
    },
    /// An Ed25519 key pair (`CKK_EC_EDWARDS`).
    Ed25519,
    /// An AES key (CKK_AES).
    Aes {
        /// Length of the key.
        bits: u32,
    },
    /// A three-key triple DES key of 24 bytes, parity included.
    Des3,
    /// A generic secret as long as the digest of its hash function (RFC 2104, section 3).
    Hmac {
        /// The hash function of the HMAC.
        hash: Hash,
    },
    /// An ML-DSA key pair (FIPS 204).
    MlDsa {
        /// The parameter set (FIPS 204).
        set: MlDsa,
    },
    /// An ML-KEM key pair (FIPS 203).
    MlKem {
        /// The parameter set (FIPS 203).
        set: MlKem,
    },
    /// An SLH-DSA key pair (FIPS 205).
    SlhDsa {
        /// The parameter set (FIPS 205).
        set: SlhDsa,
    },
}

impl KeySpec {
    /// The length of the key in bits as claims count it: RSA modulus, order of the curve, secret.
    /// Triple DES counts 168 (NIST SP 800-67r2, section 3.1); post-quantum keys have no such number.
    #[must_use]
    pub const fn bits(self) -> Option<u32> {
        match self {
            Self::None | Self::MlDsa { .. } | Self::MlKem { .. } | Self::SlhDsa { .. } => None,
            Self::Rsa { bits } | Self::Aes { bits } => Some(bits),
            Self::Ec { curve } => Some(curve.bits()),
            Self::Ed25519 => Some(256),
            Self::Des3 => Some(168),
            Self::Hmac { hash } => Some(8 * hash.output_bytes() as u32),
        }
    }

    /// The length of a secret key's `CKA_VALUE` in bytes; `None` for pairs.
    #[must_use]
    pub const fn secret_bytes(self) -> Option<usize> {
        match self {
            Self::Aes { bits } => Some(bits as usize / 8),
            Self::Des3 => Some(24),
            Self::Hmac { hash } => Some(hash.output_bytes()),
            _ => None,
        }
    }

    /// The mechanism for `C_GenerateKey` or `C_GenerateKeyPair`.
    #[must_use]
    pub const fn generation(self) -> Option<Mechanism> {
        Some(match self {
            Self::None => return None,
            Self::Rsa { .. } => ckm::CKM_RSA_PKCS_KEY_PAIR_GEN,
            Self::Ec { .. } => ckm::CKM_EC_KEY_PAIR_GEN,
            Self::Ed25519 => ckm::CKM_EC_EDWARDS_KEY_PAIR_GEN,
            Self::Aes { .. } => ckm::CKM_AES_KEY_GEN,
            Self::Des3 => ckm::CKM_DES3_KEY_GEN,
            Self::Hmac { .. } => ckm::CKM_GENERIC_SECRET_KEY_GEN,
            Self::MlDsa { .. } => ckm::CKM_ML_DSA_KEY_PAIR_GEN,
            Self::MlKem { .. } => ckm::CKM_ML_KEM_KEY_PAIR_GEN,
            Self::SlhDsa { .. } => ckm::CKM_SLH_DSA_KEY_PAIR_GEN,
        })
    }

    /// `CKA_KEY_TYPE`.
    #[must_use]
    pub const fn key_type(self) -> Option<sys::CK_KEY_TYPE> {
        Some(match self {
            Self::None => return None,
            Self::Rsa { .. } => sys::CKK_RSA,
            Self::Ec { .. } => sys::CKK_EC,
            Self::Ed25519 => sys::CKK_EC_EDWARDS,
            Self::Aes { .. } => sys::CKK_AES,
            Self::Des3 => sys::CKK_DES3,
            Self::Hmac { .. } => sys::CKK_GENERIC_SECRET,
            Self::MlDsa { .. } => sys::CKK_ML_DSA,
            Self::MlKem { .. } => sys::CKK_ML_KEM,
            Self::SlhDsa { .. } => sys::CKK_SLH_DSA,
        })
    }

    /// `CKA_PARAMETER_SET` of the post-quantum keys (PKCS#11 3.2).
    #[must_use]
    pub const fn parameter_set(self) -> Option<sys::CK_ULONG> {
        Some(match self {
            Self::MlDsa { set: MlDsa::MlDsa44 } => sys::CKP_ML_DSA_44,
            Self::MlDsa { set: MlDsa::MlDsa65 } => sys::CKP_ML_DSA_65,
            Self::MlDsa { set: MlDsa::MlDsa87 } => sys::CKP_ML_DSA_87,
            Self::MlKem { set: MlKem::MlKem512 } => sys::CKP_ML_KEM_512,
            Self::MlKem { set: MlKem::MlKem768 } => sys::CKP_ML_KEM_768,
            Self::MlKem { set: MlKem::MlKem1024 } => sys::CKP_ML_KEM_1024,
            Self::SlhDsa { set } => set.parameter_set(),
            _ => return None,
        })
    }

    /// `CKA_EC_PARAMS` in DER, in the order to try: PKCS#11 3.0 allows an OID or a curve name
    /// for Ed25519, and tokens accept one or the other.
    #[must_use]
    pub const fn ec_params(self) -> &'static [&'static [u8]] {
        match self {
            Self::Ec { curve } => curve.ec_params(),
            // RFC 8410, section 3 (1.3.101.112), then PrintableString "edwards25519".
            Self::Ed25519 => &[&[0x06, 0x03, 0x2B, 0x65, 0x70], b"\x13\x0cedwards25519"],
            _ => &[],
        }
    }

    /// Reads `rsa2048`, `p256`, `hmac-sha256`, `ml-dsa-65` as the catalogue writes them.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(bits) = name.strip_prefix("rsa") {
            return Some(Self::Rsa { bits: bits.parse().ok()? });
        }
        if let Some(bits) = name.strip_prefix("aes") {
            return Some(Self::Aes { bits: bits.parse().ok()? });
        }
        if let Some(hash) = name.strip_prefix("hmac-") {
            return Some(Self::Hmac { hash: Hash::named(hash)? });
        }
        if let Some(set) = name.strip_prefix("slh-dsa-") {
            return Some(Self::SlhDsa { set: SlhDsa::named(set)? });
        }
        Some(match name {
            "p256" => Self::Ec { curve: Curve::P256 },
            "p384" => Self::Ec { curve: Curve::P384 },
            "p521" => Self::Ec { curve: Curve::P521 },
            "ed25519" => Self::Ed25519,
            "3des" => Self::Des3,
            "ml-dsa-44" => Self::MlDsa { set: MlDsa::MlDsa44 },
            "ml-dsa-65" => Self::MlDsa { set: MlDsa::MlDsa65 },
            "ml-dsa-87" => Self::MlDsa { set: MlDsa::MlDsa87 },
            "ml-kem-512" => Self::MlKem { set: MlKem::MlKem512 },
            "ml-kem-768" => Self::MlKem { set: MlKem::MlKem768 },
            "ml-kem-1024" => Self::MlKem { set: MlKem::MlKem1024 },
            _ => return None,
        })
    }
}

/// In words, with an article: `an RSA key of 2048 bits`, `a P-256 key`.
impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no key"),
            Self::Rsa { bits } => write!(f, "an RSA key of {bits} bits"),
            Self::Ec { curve } => write!(f, "a P-{} key", curve.bits()),
            Self::Ed25519 => f.write_str("an Ed25519 key"),
            Self::Aes { bits } => write!(f, "an AES key of {bits} bits"),
            Self::Des3 => f.write_str("a triple DES key of 24 bytes"),
            Self::Hmac { hash } => {
                write!(f, "a generic secret of {} bytes", hash.output_bytes())
            }
            Self::MlDsa { set } => write!(f, "a key of parameter set {set:?}"),
            Self::MlKem { set } => write!(f, "a key of parameter set {set:?}"),
            Self::SlhDsa { set } => write!(f, "a key of parameter set {set:?}"),
        }
    }
}

/// A NIST curve (SP 800-186, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// P-256, secp256r1.
    P256,
    /// P-384, secp384r1.
    P384,
    /// P-521, secp521r1.
    P521,
}

impl Curve {
    /// The length of the order, in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::P256 => 256,
            Self::P384 => 384,
            Self::P521 => 521,
        }
    }

    /// The length of a coordinate, a private key, or an ECDH secret, in bytes.
    #[must_use]
    pub const fn field_bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The hash function of matching strength (RFC 5656, section 6.2.1).
    #[must_use]
    pub const fn hash(self) -> Hash {
        match self {
            Self::P256 => Hash::Sha256,
            Self::P384 => Hash::Sha384,
            Self::P521 => Hash::Sha512,
        }
    }

    /// The named-curve OID in DER (RFC 5480, section 2.1.1.1).
    const fn ec_params(self) -> &'static [&'static [u8]] {
        match self {
            Self::P256 => &[&[0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]],
            Self::P384 => &[&[0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]],
            Self::P521 => &[&[0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23]],
        }
    }
}

/// An ML-DSA parameter set (FIPS 204, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum MlDsa {
    MlDsa44,
    MlDsa65,
    MlDsa87,
}

impl MlDsa {
    /// The length of a signature, in bytes (FIPS 204, table 2).
    #[must_use]
    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 2420,
            Self::MlDsa65 => 3309,
            Self::MlDsa87 => 4627,
        }
    }

    /// The length of a public key, in bytes (FIPS 204, table 2).
    #[must_use]
    pub const fn public_key_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 1312,
            Self::MlDsa65 => 1952,
            Self::MlDsa87 => 2592,
        }
    }
}

/// An ML-KEM parameter set (FIPS 203, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum MlKem {
    MlKem512,
    MlKem768,
    MlKem1024,
}

impl MlKem {
    /// The length of the shared secret of every parameter set, in bytes (FIPS 203, table 3).
    pub const SECRET_BYTES: usize = 32;

    /// The length of a cipher text, in bytes (FIPS 203, table 3).
    #[must_use]
    pub const fn cipher_text_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 768,
            Self::MlKem768 => 1088,
            Self::MlKem1024 => 1568,
        }
    }

    /// The length of an encapsulation key, in bytes (FIPS 203, table 3).
    #[must_use]
    pub const fn public_key_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 800,
            Self::MlKem768 => 1184,
            Self::MlKem1024 => 1568,
        }
    }
}
