//! Who can tell whether a result is right: software that the device has no part in, or, where only
//! the token has the key, the token itself.

use crate::catalogue::{InputKind, KeySpec, Shape, Variant};
use crate::material::{
    By, Effort, ForToken, Inputs, KeyMaterial, MaterialError, Output, Verifier, verify_all,
};
use crate::protocol::Ring;

/// Judges the results under one key.
pub(super) enum Judge {
    Software(Box<Verifier>),
    /// Each result comes back as the message that the token says it belongs to.
    Token(ForToken),
}

/// What one key's results came to.
pub(super) struct KeyTally {
    pub(super) checked: u64,
    pub(super) wrong: u64,
    pub(super) by: By,
}

/// The inputs for one key, and who judges what becomes of them.
pub(super) fn inputs(
    variant: &Variant,
    material: &KeyMaterial,
    seed: u64,
    ring: usize,
) -> Result<(Ring, Judge), MaterialError> {
    if *material == KeyMaterial::None && token_can_tell(variant) {
        // Messages, which the token encrypts itself where it is to decrypt.
        let messages = match variant.shape {
            Shape::Decrypt => {
                Variant { shape: Shape::Encrypt, input: InputKind::Message, ..variant.clone() }
            }
            _ => variant.clone(),
        };
        let inputs = Inputs::prepare(&messages, material, seed, ring)?.for_token;
        let judge = Judge::Token(inputs.clone());
        return Ok((Ring { inputs, by_token: true }, judge));
    }
    let inputs = Inputs::prepare(variant, material, seed, ring)?;
    let verifier = Verifier::new(variant, material, inputs.for_verifier)?;
    let ring = Ring { inputs: inputs.for_token, by_token: false };
    Ok((ring, Judge::Software(Box::new(verifier))))
}

/// A secret key can undo or confirm what it did.
fn token_can_tell(variant: &Variant) -> bool {
    let secret = matches!(variant.key, KeySpec::Aes { .. } | KeySpec::Des3 | KeySpec::Hmac { .. });
    secret && matches!(variant.shape, Shape::Encrypt | Shape::Decrypt | Shape::Sign)
}

impl Judge {
    /// Judges results, as many as the effort allows.
    pub(super) fn judge(&self, outputs: &[Output], effort: Effort) -> KeyTally {
        match self {
            Self::Software(verifier) => {
                let verification = verify_all(verifier, outputs, effort);
                let checked = verification.checked;
                let wrong = verification.wrong;
                KeyTally { checked, wrong, by: verification.by }
            }
            // The token has done the work already.
            Self::Token(inputs) => {
                let wrong = outputs
                    .iter()
                    .filter(|output| output.bytes != inputs.input(output.operation).message)
                    .count() as u64;
                let by = if outputs.is_empty() { By::None } else { By::Token };
                KeyTally { checked: outputs.len() as u64, wrong, by }
            }
        }
    }
}
