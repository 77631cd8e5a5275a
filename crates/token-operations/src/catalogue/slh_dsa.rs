//! The parameter sets of SLH-DSA: what they are called, and how long keys and signatures are.

use cryptoki_sys as sys;
use serde::{Deserialize, Serialize};

/// An SLH-DSA parameter set (FIPS 205, table 2): the hash function, the security strength in
/// bits, and `s` for short signatures or `f` for fast signing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum SlhDsa {
    Sha2_128s,
    Sha2_128f,
    Sha2_192s,
    Sha2_192f,
    Sha2_256s,
    Sha2_256f,
    Shake128s,
    Shake128f,
    Shake192s,
    Shake192f,
    Shake256s,
    Shake256f,
}

impl SlhDsa {
    /// The length of a signature, in bytes (FIPS 205, table 2).
    #[must_use]
    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::Sha2_128s | Self::Shake128s => 7_856,
            Self::Sha2_128f | Self::Shake128f => 17_088,
            Self::Sha2_192s | Self::Shake192s => 16_224,
            Self::Sha2_192f | Self::Shake192f => 35_664,
            Self::Sha2_256s | Self::Shake256s => 29_792,
            Self::Sha2_256f | Self::Shake256f => 49_856,
        }
    }

    /// The length of a public key, in bytes (FIPS 205, table 2).
    #[must_use]
    pub const fn public_key_bytes(self) -> usize {
        match self {
            Self::Sha2_128s | Self::Sha2_128f | Self::Shake128s | Self::Shake128f => 32,
            Self::Sha2_192s | Self::Sha2_192f | Self::Shake192s | Self::Shake192f => 48,
            Self::Sha2_256s | Self::Sha2_256f | Self::Shake256s | Self::Shake256f => 64,
        }
    }

    /// `CKA_PARAMETER_SET` (PKCS#11 3.2, `CK_SLH_DSA_PARAMETER_SET_TYPE`).
    pub(super) const fn parameter_set(self) -> sys::CK_ULONG {
        match self {
            Self::Sha2_128s => sys::CKP_SLH_DSA_SHA2_128S,
            Self::Sha2_128f => sys::CKP_SLH_DSA_SHA2_128F,
            Self::Sha2_192s => sys::CKP_SLH_DSA_SHA2_192S,
            Self::Sha2_192f => sys::CKP_SLH_DSA_SHA2_192F,
            Self::Sha2_256s => sys::CKP_SLH_DSA_SHA2_256S,
            Self::Sha2_256f => sys::CKP_SLH_DSA_SHA2_256F,
            Self::Shake128s => sys::CKP_SLH_DSA_SHAKE_128S,
            Self::Shake128f => sys::CKP_SLH_DSA_SHAKE_128F,
            Self::Shake192s => sys::CKP_SLH_DSA_SHAKE_192S,
            Self::Shake192f => sys::CKP_SLH_DSA_SHAKE_192F,
            Self::Shake256s => sys::CKP_SLH_DSA_SHAKE_256S,
            Self::Shake256f => sys::CKP_SLH_DSA_SHAKE_256F,
        }
    }

    /// Reads `sha2-128s`, the parameter set's name without `SLH-DSA-`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sha2-128s" => Self::Sha2_128s,
            "sha2-128f" => Self::Sha2_128f,
            "sha2-192s" => Self::Sha2_192s,
            "sha2-192f" => Self::Sha2_192f,
            "sha2-256s" => Self::Sha2_256s,
            "sha2-256f" => Self::Sha2_256f,
            "shake-128s" => Self::Shake128s,
            "shake-128f" => Self::Shake128f,
            "shake-192s" => Self::Shake192s,
            "shake-192f" => Self::Shake192f,
            "shake-256s" => Self::Shake256s,
            "shake-256f" => Self::Shake256f,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_set_has_the_number_of_the_standard() {
        // PKCS#11 3.2, section 6.69.2: the numbers as literals, apart from cryptoki-sys.
        let numbers = [
            ("sha2-128s", 1),
            ("shake-128s", 2),
            ("sha2-128f", 3),
            ("shake-128f", 4),
            ("sha2-192s", 5),
            ("shake-192s", 6),
            ("sha2-192f", 7),
            ("shake-192f", 8),
            ("sha2-256s", 9),
            ("shake-256s", 10),
            ("sha2-256f", 11),
            ("shake-256f", 12),
        ];
        for (name, number) in numbers {
            assert_eq!(SlhDsa::named(name).unwrap().parameter_set(), number, "{name}");
        }
    }
}
