//! Everything that software does so that a token's results can be trusted: inputs before the
//! clock starts, and checks after it has stopped.
//!
//! The process that calls this never loads a PKCS#11 module. It prepares [`Inputs`] from a seed,
//! sends one half to the worker, and judges the worker's [`Output`]s with a [`Verifier`] that has
//! the other half. Nothing here knows a private key of the token.
#![forbid(unsafe_code)]

mod agreement;
mod cipher;
mod error;
mod input;
mod input_maker;
mod inputs;
mod key;
mod key_wrap;
mod merkle;
mod result;
mod rsa;
mod secret;
mod seeded;
mod signature;
mod slh_dsa;
mod verification;
mod verifier;

pub use agreement::peer_point;
pub use cipher::gcm_iv;
pub use error::MaterialError;
pub use input::Input;
pub use inputs::{ForToken, ForVerifier, Inputs};
pub use key::KeyMaterial;
pub use merkle::{HashTree, Sha256Hash, draw, root_by_path};
pub use result::ResultToJudge;
pub use secret::SecretBytes;
pub use verification::{By, Effort, OperationId, Verification, verify_all};
pub use verifier::{Output, Verdict, Verifier};

#[cfg(test)]
mod tests;
