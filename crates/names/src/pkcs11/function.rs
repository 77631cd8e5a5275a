//! The functions of PKCS #11 that Tapstone calls, by name: what a failed, hung or crashed worker
//! was doing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Rv;

macro_rules! calls {
    ($($name:ident),* $(,)?) => {
        /// A function of PKCS #11, or something else that can hang or crash in a module's code.
        #[expect(non_camel_case_types, reason = "spelled as the standard spells them")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Pkcs11Function {
            $(#[allow(missing_docs)] $name,)*
        }

        impl Pkcs11Function {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

calls! {
    dlopen,
    C_GetInterfaceList, C_GetInterface, C_GetFunctionList, C_Initialize, C_Finalize, C_GetInfo,
    C_GetSlotList, C_GetSlotInfo, C_GetTokenInfo, C_GetMechanismList, C_GetMechanismInfo,
    C_OpenSession, C_CloseSession, C_Login, C_Logout, C_SessionCancel, C_GetSessionInfo,
    C_CreateObject, C_DestroyObject, C_GetAttributeValue,
    C_FindObjectsInit, C_FindObjects, C_FindObjectsFinal,
    C_EncryptInit, C_Encrypt, C_DecryptInit, C_Decrypt, C_DigestInit, C_Digest,
    C_SignInit, C_Sign, C_VerifyInit, C_Verify, C_GenerateKey, C_GenerateKeyPair, C_WrapKey, C_UnwrapKey, C_DeriveKey,
    C_GenerateRandom, C_EncapsulateKey, C_DecapsulateKey,
    C_SeedRandom, C_EncryptUpdate, C_EncryptFinal, C_DigestUpdate, C_DigestFinal, C_SignUpdate,
    C_SignFinal, C_DecryptUpdate, C_DecryptFinal, C_VerifyUpdate, C_VerifyFinal,
}

impl Pkcs11Function {
    /// The call with this number, as a worker's board keeps it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The call of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }

    /// Whether it makes objects or removes one: token objects outlive whoever called it.
    #[must_use]
    pub const fn makes_or_removes_objects(self) -> bool {
        matches!(
            self,
            Self::C_CreateObject
                | Self::C_DestroyObject
                | Self::C_GenerateKey
                | Self::C_GenerateKeyPair
                | Self::C_UnwrapKey
                | Self::C_DeriveKey
                | Self::C_EncapsulateKey
                | Self::C_DecapsulateKey
        )
    }
}

impl fmt::Display for Pkcs11Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A call that did not return `CKR_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{call}: {code}")]
pub struct Pkcs11Failure {
    /// The function that was called.
    pub call: Pkcs11Function,
    /// The code that it returned.
    pub code: Rv,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        for (number, call) in Pkcs11Function::ALL.iter().enumerate() {
            assert_eq!(Pkcs11Function::from_number(number as u8), Some(*call));
            assert_eq!(Pkcs11Function::named(call.name()), Some(*call));
        }
        assert_eq!(Pkcs11Function::from_number(255), None);
        assert_eq!(Pkcs11Function::C_SignInit.name(), "C_SignInit");
        assert_eq!(format!("{:>8}", Pkcs11Function::C_Sign), "  C_Sign");
    }
}
