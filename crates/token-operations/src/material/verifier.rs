//! Decides whether a result is right, one result at a time, without the token's help.

use aws_lc_rs::aead::LessSafeKey;
use serde::{Deserialize, Serialize};

use super::agreement::{Recipient, is_on_curve};
use super::cipher::{gcm_iv, gcm_key, opens_to};
use super::error::MaterialError;
use super::inputs::ForVerifier;
use super::key::{KeyMaterial, bit_length};
use super::key_wrap::Unwrapping;
use super::secret::SecretBytes;
use super::signature::SignatureKey;
use crate::catalogue::{KeySpec, MlKem, Parameters, Shape, Variant};

/// What came back from one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The worker that ran it.
    pub worker: u32,
    /// Its number at that worker, from 0: it tells which input was used.
    pub operation: u64,
    /// The IV, where the token wrote one of its own into the GCM parameters.
    pub iv: Option<Vec<u8>>,
    /// What the call returned. Where it returned only handles: the value read from the object
    /// afterwards, or nothing if it could not be read.
    /// - encapsulation: the cipher text, then the secret if it could be read
    /// - key pairs: `CKA_MODULUS`, `CKA_EC_POINT` or `CKA_VALUE` of the public key
    /// - a search: the label of the object that was found
    pub bytes: Vec<u8>,
}

/// The judgement over one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is what it must be. For random numbers and new keys: it has the right form.
    Right,
    /// The result is not the right one.
    Wrong,
    /// Software cannot tell: there is no result, or the key is not known.
    NotPossible,
}

/// Checks results of one operation under one key. Shared between threads.
pub struct Verifier {
    check: Check,
    expected: Vec<SecretBytes>,
}

enum Check {
    /// Sessions, logins, and keys of which nothing is known.
    Nothing,
    /// The result is the expected bytes.
    Same,
    /// The result is an object whose value, if it could be read, is the expected bytes.
    SameIfRead,
    /// A signature over the expected bytes.
    Signed(Box<SignatureKey>),
    /// GCM: opens to the expected bytes.
    Opens(Box<LessSafeKey>),
    /// Unwraps to the expected bytes.
    Unwraps(Unwrapping),
    /// Decapsulates to the secret that the token got.
    Decapsulates { set: MlKem, recipients: Vec<Recipient> },
    /// So many bytes, not all zero.
    RandomBytes { length: usize },
    /// A secret key of so many bytes, not all zero, if it could be read.
    NewSecret { length: usize },
    /// A well-formed public key, if it could be read.
    NewPublicKey(KeySpec),
}

impl Verifier {
    /// Prepares to check results of `variant` on the inputs that belong to `inputs`.
    ///
    /// # Errors
    /// The key is not one for this operation. A key of which nothing is known is no error: the
    /// verdict is then [`Verdict::NotPossible`].
    pub fn new(
        variant: &Variant,
        key: &KeyMaterial,
        inputs: ForVerifier,
    ) -> Result<Self, MaterialError> {
        Ok(Self { check: Check::new(variant, key, &inputs.expected)?, expected: inputs.expected })
    }

    /// Is this result right?
    #[must_use]
    pub fn check(&self, output: &Output) -> Verdict {
        let bytes = output.bytes.as_slice();
        let expected = || {
            let place = output.operation % self.expected.len() as u64;
            self.expected[place as usize].expose()
        };
        let right = match &self.check {
            Check::Nothing => return Verdict::NotPossible,
            Check::SameIfRead | Check::NewSecret { .. } | Check::NewPublicKey(_)
                if bytes.is_empty() =>
            {
                return Verdict::NotPossible;
            }
            Check::Same | Check::SameIfRead => bytes == expected(),
            Check::Signed(key) => key.verifies(expected(), bytes),
            Check::Opens(key) => match &output.iv {
                Some(iv) => opens_to(key, iv, bytes, expected()),
                None => opens_to(key, &gcm_iv(output.worker, output.operation), bytes, expected()),
            },
            Check::Unwraps(unwrapping) => unwrapping.unwraps_to(bytes, expected()),
            Check::Decapsulates { set, recipients } => {
                if bytes.len() == set.cipher_text_bytes() {
                    return Verdict::NotPossible;
                }
                let recipient = &recipients[(output.operation % recipients.len() as u64) as usize];
                let split = bytes.split_at_checked(set.cipher_text_bytes());
                split.is_some_and(|(text, secret)| recipient.opens_to(text, secret))
            }
            Check::RandomBytes { length } | Check::NewSecret { length } => {
                bytes.len() == *length && bytes.iter().any(|byte| *byte != 0)
            }
            Check::NewPublicKey(spec) => is_public_key(*spec, bytes),
        };
        if right { Verdict::Right } else { Verdict::Wrong }
    }

    /// Must no two results be the same? True for random numbers and new keys that are long
    /// enough: among 2^32 results of 16 bytes a repetition has a chance of 2^-65.
    pub(super) fn wants_distinct(&self, output: &Output) -> bool {
        const LONG_ENOUGH: usize = 16;
        let new = matches!(
            self.check,
            Check::RandomBytes { .. } | Check::NewSecret { .. } | Check::NewPublicKey(_)
        );
        new && output.bytes.len() >= LONG_ENOUGH
    }
}

impl Check {
    fn new(
        variant: &Variant,
        key: &KeyMaterial,
        expected: &[SecretBytes],
    ) -> Result<Self, MaterialError> {
        let failed = |step| MaterialError::Software { operation: variant.name.clone(), step };
        match variant.shape {
            Shape::OpenSession | Shape::Login => return Ok(Self::Nothing),
            Shape::Random => return Ok(Self::RandomBytes { length: variant.message_bytes }),
            Shape::GenerateKey => {
                let length = variant.key.secret_bytes().ok_or_else(|| failed("sizing the key"))?;
                return Ok(Self::NewSecret { length });
            }
            Shape::GenerateKeyPair => return Ok(Self::NewPublicKey(variant.key)),
            _ if expected.is_empty() => return Ok(Self::Nothing),
            _ => {}
        }
        Ok(match (variant.shape, variant.key, variant.parameters) {
            (Shape::Sign | Shape::Wrap, ..) if *key == KeyMaterial::None => Self::Nothing,
            (Shape::Sign, KeySpec::Hmac { .. }, _) => Self::Same,
            (Shape::Sign, ..) => Self::Signed(Box::new(SignatureKey::new(variant, key)?)),
            (Shape::Encrypt, _, Parameters::Gcm { .. }) => {
                let key = gcm_key(key.expect_secret(variant)?);
                Self::Opens(Box::new(key.map_err(|_| failed("reading the AES key"))?))
            }
            (Shape::Wrap, ..) => Self::Unwraps(Unwrapping {
                mechanism: variant.mechanism.ok_or_else(|| failed("key wrapping"))?,
                kek: key.expect_secret(variant)?.into(),
            }),
            (Shape::Encapsulate, KeySpec::MlKem { set }, _) => {
                let recipients = expected.iter().map(|key| Recipient::new(set, key));
                let recipients = recipients.collect::<Result<_, _>>();
                let recipients = recipients.map_err(|_| failed("reading the ML-KEM key"))?;
                Self::Decapsulates { set, recipients }
            }
            (Shape::Derive | Shape::Unwrap | Shape::Decapsulate, ..) => Self::SameIfRead,
            _ => Self::Same,
        })
    }
}

/// Has `bytes` the form of a public key? The length is right, an RSA modulus is odd and as long
/// as it says, a point lies on its curve. Whether the private half fits only a signature shows.
fn is_public_key(spec: KeySpec, bytes: &[u8]) -> bool {
    match (spec, KeyMaterial::public(spec, bytes)) {
        (KeySpec::Rsa { bits }, _) => match KeyMaterial::rsa(bytes, &[]) {
            KeyMaterial::Rsa { modulus, .. } => {
                bit_length(&modulus) == u64::from(bits)
                    && modulus.last().is_some_and(|n| n & 1 == 1)
            }
            _ => false,
        },
        (KeySpec::Ec { curve }, Ok(KeyMaterial::Public { value, .. })) => {
            is_on_curve(curve, &value)
        }
        (_, public) => public.is_ok(),
    }
}
