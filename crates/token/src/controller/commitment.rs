//! What an agent and its coordinator have in common when results that were made on one machine are
//! judged on the other: where inputs come from, what a commitment covers, what may be shown.

use crate::catalogue::{KeySpec, Shape, Variant};
use crate::material::{KeyMaterial, Output, Sha256Hash};
use crate::protocol::Commitment;

/// Results of a lane that an agent shows at most, whatever is asked for.
pub(super) const MOST_SHOWN: usize = 32;

/// No longer result is shown, in bytes: what a host sends stays small.
const LONGEST_SHOWN: usize = 64 << 10;

/// Whether results of this operation say nothing that is not for everybody, and can be judged by the
/// public half of the key. The value of a secret key is never told, not even of one that the run
/// made: so nothing that is encrypted, wrapped or derived with it can be judged elsewhere.
pub(super) fn can_be_shown(variant: &Variant) -> bool {
    let is_pair = matches!(
        variant.key,
        KeySpec::Rsa { .. }
            | KeySpec::Ec { .. }
            | KeySpec::Ed25519
            | KeySpec::MlDsa { .. }
            | KeySpec::SlhDsa { .. }
    );
    let is_public = match variant.shape {
        Shape::Sign => is_pair,
        Shape::Decrypt => matches!(variant.key, KeySpec::Rsa { .. }),
        Shape::Digest | Shape::Random | Shape::GenerateKeyPair | Shape::FindObjects => true,
        _ => false,
    };
    is_public && variant.output_capacity_bytes() <= LONGEST_SHOWN
}

/// The seed of the inputs of a key, from what nobody else knew while it was used: so nobody chooses
/// what a key signs, nor searches for a seed that makes it.
pub(super) fn input_seed(nonce: &[u8; 32], seed: u64, first_worker: u32, key: u64) -> u64 {
    let hash = Sha256Hash::of_parts(&[
        b"tapstone inputs 2\0",
        nonce,
        &seed.to_le_bytes(),
        &first_worker.to_le_bytes(),
        &key.to_le_bytes(),
    ]);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// What all results of a key are bound to: the nonce of their inputs, the lane, and the key itself.
pub(super) fn key_hash(
    nonce: &[u8; 32],
    lane: usize,
    number: usize,
    material: &KeyMaterial,
) -> Sha256Hash {
    // Postcard writes the length of whatever has one, so no two keys are the same bytes.
    let material = postcard::to_stdvec(material).unwrap_or_default();
    Sha256Hash::of_parts(&[
        b"tapstone key 1\0",
        nonce,
        &(lane as u64).to_le_bytes(),
        &(number as u64).to_le_bytes(),
        &material,
    ])
}

/// The leaf of a result.
pub(super) fn leaf_of(key: &Sha256Hash, output: &Output) -> Sha256Hash {
    let iv = output.iv.as_deref().unwrap_or_default();
    Sha256Hash::of_leaf(&[
        key.as_bytes(),
        &output.worker.to_le_bytes(),
        &output.operation.to_le_bytes(),
        &[u8::from(output.iv.is_some())],
        &(iv.len() as u64).to_le_bytes(),
        iv,
        &output.bytes,
    ])
}

/// A key as it may be shown: without its value, should it have one.
pub(super) fn public_part(material: &KeyMaterial) -> KeyMaterial {
    match material {
        KeyMaterial::Rsa { .. } | KeyMaterial::Public { .. } => material.clone(),
        KeyMaterial::Secret(_) | KeyMaterial::None => KeyMaterial::None,
    }
}

impl Commitment {
    /// What of a lane's results may be asked for.
    pub(super) fn draw(self, most: usize) -> Vec<u64> {
        crate::material::draw(self.count, most.min(MOST_SHOWN) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn nothing_is_shown_that_takes_or_is_the_value_of_a_secret_key() {
        let shown = |name: &str| can_be_shown(&Catalogue::builtin().select(name).unwrap()[0]);
        for name in
            ["rsa2048.sign", "ecdsa-p256.sign", "sha256.digest", "random", "rsa2048.decrypt"]
        {
            assert!(shown(name), "{name}");
        }
        for variant in Catalogue::builtin().variants() {
            let secret = variant.key.secret_bytes().is_some();
            let makes_secret = matches!(
                variant.shape,
                Shape::GenerateKey | Shape::Derive | Shape::Unwrap | Shape::Decapsulate
            );
            assert!(!(secret || makes_secret) || !can_be_shown(variant), "{}", variant.name);
        }
        assert_eq!(public_part(&KeyMaterial::secret(&[7; 16])), KeyMaterial::None);
    }
}
