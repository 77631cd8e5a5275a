//! Mechanisms by the names that PKCS#11 gives them: one table ties each `CKM_…` name to its
//! number in `cryptoki-sys`. Files and records hold the name, `C_SignInit` gets the number.

use std::fmt;

use cryptoki_sys as sys;
use cryptoki_sys::CK_MECHANISM_TYPE;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A mechanism of the table: it has a name and a number (PKCS#11 3.2, section 6).
///
/// Serialises as its name, because numbers are hard to read and vendors disagree about some.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mechanism {
    name: &'static str,
    number: CK_MECHANISM_TYPE,
}

/// A mechanism name that the table does not hold.
#[derive(Debug, thiserror::Error)]
#[error("no mechanism is called {0:?}\nhint: names are spelled as in PKCS#11 3.2, `CKM_RSA_PKCS`")]
pub struct UnknownMechanism(String);

impl Mechanism {
    /// The mechanism of this name (`CKM_RSA_PKCS`).
    ///
    /// # Errors
    /// The name is not in the table.
    pub fn named(name: &str) -> Result<Self, UnknownMechanism> {
        let found = TABLE.iter().find(|mechanism| mechanism.name == name);
        found.copied().ok_or_else(|| UnknownMechanism(name.to_owned()))
    }

    /// The name, `CKM_…`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The number that goes into `CK_MECHANISM.mechanism`.
    #[must_use]
    pub const fn number(self) -> CK_MECHANISM_TYPE {
        self.number
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#06x})", self.name, self.number)
    }
}

impl Serialize for Mechanism {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Mechanism {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

/// One constant per name, and the table of all of them.
macro_rules! mechanisms {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`")]
            pub const $name: Mechanism =
                Mechanism { name: stringify!($name), number: sys::$name };
        )*
        const TABLE: &[Mechanism] = &[$($name),*];
    };
}

mechanisms! {
    CKM_RSA_PKCS_KEY_PAIR_GEN
    CKM_RSA_PKCS
    CKM_RSA_PKCS_OAEP
    CKM_RSA_PKCS_PSS
    CKM_SHA256_RSA_PKCS
    CKM_SHA256_RSA_PKCS_PSS
    CKM_EC_KEY_PAIR_GEN
    CKM_ECDSA
    CKM_ECDSA_SHA256
    CKM_ECDSA_SHA384
    CKM_ECDSA_SHA512
    CKM_ECDH1_DERIVE
    CKM_EC_EDWARDS_KEY_PAIR_GEN
    CKM_EDDSA
    CKM_ML_DSA_KEY_PAIR_GEN
    CKM_ML_DSA
    CKM_ML_KEM_KEY_PAIR_GEN
    CKM_ML_KEM
    CKM_SLH_DSA_KEY_PAIR_GEN
    CKM_SLH_DSA
    CKM_AES_KEY_GEN
    CKM_AES_CBC
    CKM_AES_CBC_PAD
    CKM_AES_CTR
    CKM_AES_GCM
    CKM_AES_KEY_WRAP
    CKM_AES_KEY_WRAP_PAD
    CKM_AES_KEY_WRAP_KWP
    CKM_DES3_KEY_GEN
    CKM_DES3_CBC
    CKM_DES3_CBC_PAD
    CKM_GENERIC_SECRET_KEY_GEN
    CKM_SHA_1
    CKM_SHA256
    CKM_SHA384
    CKM_SHA512
    CKM_SHA256_HMAC
    CKM_SHA384_HMAC
    CKM_SHA512_HMAC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_the_number_of_the_standard() {
        // PKCS#11 3.2, appendix B: the numbers as literals, apart from cryptoki-sys.
        let cases = [("CKM_RSA_PKCS", 0x01), ("CKM_ML_DSA", 0x1D), ("CKM_AES_GCM", 0x1087)];
        for (name, number) in cases {
            assert_eq!(Mechanism::named(name).unwrap().number(), number, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_named_in_the_error() {
        let error = Mechanism::named("CKM_MAGIC").unwrap_err().to_string();
        assert!(error.contains("CKM_MAGIC") && error.contains("hint:"), "{error}");
    }
}
