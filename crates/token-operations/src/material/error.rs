//! Why software could not prepare an input or check a result.

use crate::catalogue::KeySpec;

/// Software could not do its part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaterialError {
    /// The inputs are made under the token's key, and nothing is known of it.
    #[error(
        "{operation}: its inputs are made in software, which does not know the key\n\
         hint: make the session key extractable or import it; for a pair, give the public key"
    )]
    KeyUnknown {
        /// The name of the operation.
        operation: String,
    },
    /// The key is not of the kind or the length that the operation takes.
    #[error(
        "{operation}: the key is not what it takes ({expected})\n\
         hint: give a key made for this operation"
    )]
    WrongKey {
        /// The name of the operation.
        operation: String,
        /// The kind and length of key that it takes.
        expected: KeySpec,
    },
    /// The attribute that the token gave for a public key is not one.
    #[error(
        "the token's public key is not one for {expected}: {bytes} bytes\n\
         hint: expected CKA_EC_POINT (raw or in an OCTET STRING) for curves, CKA_VALUE otherwise"
    )]
    NotAPublicKey {
        /// What it was said to be.
        expected: KeySpec,
        /// How long it is.
        bytes: usize,
    },
    /// A step that should have worked did not.
    #[error(
        "{operation}: {step} failed in software\n\
         hint: is the key valid, with the sizes that the operation names?"
    )]
    Software {
        /// The name of the operation.
        operation: String,
        /// The step that failed, in words.
        step: &'static str,
    },
}
