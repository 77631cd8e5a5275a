//! Hash functions: what a mechanism calls them, and how long their output is.

use cryptoki_sys as sys;
use serde::{Deserialize, Serialize};

use super::mechanism::{CKM_SHA_1, CKM_SHA256, CKM_SHA384, CKM_SHA512, Mechanism};

/// A hash function (FIPS 180-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// SHA-1, only inside OAEP, where its weakness to collisions does no harm.
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-384 (FIPS 180-4).
    Sha384,
    /// SHA-512 (FIPS 180-4).
    Sha512,
}

impl Hash {
    /// The length of a digest, in bytes.
    #[must_use]
    pub const fn output_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The mechanism that computes it (`CK_RSA_PKCS_PSS_PARAMS.hashAlg`).
    #[must_use]
    pub const fn mechanism(self) -> Mechanism {
        match self {
            Self::Sha1 => CKM_SHA_1,
            Self::Sha256 => CKM_SHA256,
            Self::Sha384 => CKM_SHA384,
            Self::Sha512 => CKM_SHA512,
        }
    }

    /// The mask generation function over it (`CK_RSA_PKCS_PSS_PARAMS.mgf`).
    #[must_use]
    pub const fn mgf(self) -> sys::CK_RSA_PKCS_MGF_TYPE {
        match self {
            Self::Sha1 => sys::CKG_MGF1_SHA1,
            Self::Sha256 => sys::CKG_MGF1_SHA256,
            Self::Sha384 => sys::CKG_MGF1_SHA384,
            Self::Sha512 => sys::CKG_MGF1_SHA512,
        }
    }

    /// Reads a name of the catalogue: `sha256`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sha1" => Self::Sha1,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// The name in the catalogue: `sha256`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}
