//! The ring of inputs for an operation, made before the clock starts: what the token gets, and
//! apart from it what only the verifier may know.

use serde::{Deserialize, Serialize};

use super::error::MaterialError;
use super::input::Input;
use super::input_maker::InputMaker;
use super::key::KeyMaterial;
use super::secret::SecretBytes;
use crate::catalogue::{InputKind, Parameters, Shape, Variant};

/// What all messages of a ring may take together, in bytes.
const RING_BYTES: usize = 4 << 20;

/// How many inputs become objects on the token at most; tokens have little room.
const RING_OBJECTS: usize = 4;

/// Prepared inputs, in two halves for two processes.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// For the worker, which loads the module.
    pub for_token: ForToken,
    /// For the process that verifies, which does not.
    pub for_verifier: ForVerifier,
}

/// What the token is handed. Operation number `n` takes entry `n` modulo the length of the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForToken {
    /// The inputs in the order of their use; there is at least one.
    pub ring: Vec<Input>,
}

/// What is right. It holds plain texts and private keys, and must not reach the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForVerifier {
    /// One per entry of the ring; empty if nothing can be known.
    pub(super) expected: Vec<SecretBytes>,
}

impl Inputs {
    /// Makes up to `ring` inputs for `variant` from `seed`: fewer if they would take more than
    /// 4 MiB together or need more than four objects on the token, and at least two unless one
    /// was asked for. They are neither all zero nor all the same.
    ///
    /// The seed settles everything except for ML-KEM, whose randomness aws-lc draws itself.
    ///
    /// # Errors
    /// The inputs have to be made under a key of which nothing is known, or the key is not one
    /// for this operation.
    pub fn prepare(
        variant: &Variant,
        key: &KeyMaterial,
        seed: u64,
        ring: usize,
    ) -> Result<Self, MaterialError> {
        let mut maker = InputMaker::new(variant, key, seed);
        let mut inputs = Self {
            for_token: ForToken { ring: Vec::new() },
            for_verifier: ForVerifier { expected: Vec::new() },
        };
        for index in 0..entries(variant, ring) {
            let (input, expected) = maker.make(index)?;
            inputs.for_token.ring.push(input);
            inputs.for_verifier.expected.extend(expected);
        }
        Ok(inputs)
    }
}

impl ForToken {
    /// The input of operation number `operation`.
    #[must_use]
    pub fn input(&self, operation: u64) -> &Input {
        &self.ring[(operation % self.ring.len() as u64) as usize]
    }
}

impl ForVerifier {
    /// For wrapping, when the token refused to import the prepared keys and made one itself, whose
    /// value could be read: that value is what every result must hold.
    #[must_use]
    pub fn all_expect(value: SecretBytes) -> Self {
        Self { expected: vec![value] }
    }
}

fn entries(variant: &Variant, asked: usize) -> usize {
    let asked = asked.max(1);
    match (variant.input, variant.parameters) {
        (InputKind::None, _) => 1,
        (InputKind::KeyToWrap, _) => asked.min(RING_OBJECTS),
        (InputKind::PeerPublicKey, _) if variant.shape == Shape::Encapsulate => {
            asked.min(RING_OBJECTS)
        }
        (InputKind::Label, Parameters::Objects { count }) => asked.min(count as usize),
        _ => asked.min((RING_BYTES / variant.message_bytes.max(1)).max(2)),
    }
}
