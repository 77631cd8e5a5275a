//! One documented operation: everything that a worker and a verifier need to know, as data.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::error::{CatalogueError, MAX_MESSAGE_BYTES};
use super::hash::Hash;
use super::key::KeySpec;
use super::mechanism::Mechanism;

/// An operation with all its particulars settled. The name alone says what is measured, up to the
/// size of the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// The name, as `rsa2048.sign.pss`.
    pub name: String,
    /// Which interface calls make up one operation.
    pub shape: Shape,
    /// The mechanism; `None` for shapes that take none (random numbers, sessions, searches).
    pub mechanism: Option<Mechanism>,
    /// The parameters of the mechanism.
    pub parameters: Parameters,
    /// The hash function, whoever computes it.
    pub hash: Option<Hash>,
    /// The key under which it runs, or that it makes.
    pub key: KeySpec,
    /// What the token is handed.
    pub input: InputKind,
    /// The length of the message, in bytes: what is signed, encrypted, hashed or wrapped, or how
    /// many random bytes are asked for. For decryption it is the length of the plain text.
    /// Zero where there is none.
    pub message_bytes: usize,
    /// Which lengths are possible.
    pub sizes: SizeRule,
    /// What it does, in one line.
    pub description: String,
    /// Is it one of `suites/token-default.toml`?
    pub in_default_suite: bool,
}

impl Variant {
    /// The same operation on messages of this many bytes.
    ///
    /// # Errors
    /// The size of this operation is fixed, or this size is impossible for it.
    pub fn with_message_bytes(mut self, bytes: usize) -> Result<Self, CatalogueError> {
        self.sizes.check(&self.name, self.message_bytes, bytes)?;
        self.message_bytes = bytes;
        Ok(self)
    }

    /// The length of the key in bits, as claims count it (see [`KeySpec::bits`]).
    #[must_use]
    pub const fn key_bits(&self) -> Option<u32> {
        self.key.bits()
    }

    /// How many bytes a buffer needs so that one call is enough for any answer: modulus length
    /// for RSA, cipher text plus a block or a tag for AES in both directions.
    #[must_use]
    pub fn output_capacity_bytes(&self) -> usize {
        /// A block of padding or an authentication tag; also what AES key wrap adds at most.
        const BLOCK: usize = 16;
        match self.shape {
            Shape::Sign => self.signature_bytes(),
            Shape::Encrypt | Shape::Decrypt => match self.key {
                KeySpec::Rsa { bits } => bits as usize / 8,
                _ => self.message_bytes + BLOCK,
            },
            Shape::Digest => self.hash.map_or(0, Hash::output_bytes),
            Shape::Derive => match self.parameters {
                Parameters::Ecdh { secret_bytes } => secret_bytes,
                _ => 0,
            },
            Shape::Wrap | Shape::Unwrap => self.message_bytes + BLOCK,
            Shape::Random => self.message_bytes,
            Shape::Encapsulate | Shape::Decapsulate => match self.key {
                KeySpec::MlKem { set } => set.cipher_text_bytes(),
                _ => 0,
            },
            Shape::GenerateKey
            | Shape::GenerateKeyPair
            | Shape::FindObjects
            | Shape::OpenSession
            | Shape::Login => 0,
        }
    }

    /// The lengths that the output can have, in bytes, whatever its content; `None`: the operation
    /// writes none into a buffer.
    #[must_use]
    pub fn output_lengths(&self) -> Option<RangeInclusive<usize>> {
        let message = self.message_bytes;
        Some(match self.shape {
            Shape::Sign | Shape::Digest | Shape::Random | Shape::Encapsulate => {
                let exact = self.output_capacity_bytes();
                exact..=exact
            }
            Shape::Encrypt => {
                let exact = self.cipher_text_bytes();
                exact..=exact
            }
            Shape::Decrypt => message..=message,
            // The forms of AES key wrap add a half block or more (SP 800-38F), RSA fills its modulus.
            Shape::Wrap => message + 1..=self.output_capacity_bytes(),
            Shape::Derive
            | Shape::Unwrap
            | Shape::Decapsulate
            | Shape::GenerateKey
            | Shape::GenerateKeyPair
            | Shape::FindObjects
            | Shape::OpenSession
            | Shape::Login => return None,
        })
    }

    /// The length of the cipher text of a message.
    fn cipher_text_bytes(&self) -> usize {
        let message = self.message_bytes;
        let block = if self.key == KeySpec::Des3 { 8 } else { 16 };
        match (self.key, self.parameters) {
            (KeySpec::Rsa { bits }, _) => bits as usize / 8,
            (_, Parameters::Gcm { tag_bits, .. }) => message + tag_bits as usize / 8,
            // PKCS #7: one to `block` bytes are added.
            _ if self.mechanism.is_some_and(|mechanism| mechanism.name().ends_with("_CBC_PAD")) => {
                (message / block + 1) * block
            }
            _ => message,
        }
    }

    /// The length of a signature or of a message authentication code, in bytes.
    fn signature_bytes(&self) -> usize {
        match self.key {
            KeySpec::Rsa { bits } => bits as usize / 8,
            KeySpec::Ec { curve } => 2 * curve.field_bytes(),
            KeySpec::Ed25519 => 64,
            KeySpec::MlDsa { set } => set.signature_bytes(),
            KeySpec::SlhDsa { set } => set.signature_bytes(),
            KeySpec::Hmac { hash } => hash.output_bytes(),
            KeySpec::None | KeySpec::Aes { .. } | KeySpec::Des3 | KeySpec::MlKem { .. } => 0,
        }
    }
}

/// Which interface calls make up one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// `C_SignInit`, `C_Sign`; message authentication codes too.
    Sign,
    /// `C_EncryptInit`, `C_Encrypt`.
    Encrypt,
    /// `C_DecryptInit`, `C_Decrypt`.
    Decrypt,
    /// `C_DigestInit`, `C_Digest`.
    Digest,
    /// `C_DeriveKey`, and `C_DestroyObject` of the derived key.
    Derive,
    /// `C_WrapKey`.
    Wrap,
    /// `C_UnwrapKey`, and `C_DestroyObject` of the key.
    Unwrap,
    /// `C_GenerateKey`, and `C_DestroyObject`.
    GenerateKey,
    /// `C_GenerateKeyPair`, and `C_DestroyObject` of both halves.
    GenerateKeyPair,
    /// `C_GenerateRandom`.
    Random,
    /// `C_FindObjectsInit`, `C_FindObjects`, `C_FindObjectsFinal`.
    FindObjects,
    /// `C_OpenSession`, `C_CloseSession`.
    OpenSession,
    /// `C_Login`, `C_Logout`. Runs only when it is named: it touches the PIN counter.
    Login,
    /// `C_EncapsulateKey` (PKCS#11 3.2), and `C_DestroyObject` of the secret.
    Encapsulate,
    /// `C_DecapsulateKey` (PKCS#11 3.2), and `C_DestroyObject` of the secret.
    Decapsulate,
}

/// What goes into `CK_MECHANISM.pParameter`, apart from an IV, which comes with each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameters {
    /// The mechanism takes no parameter.
    None,
    /// `CK_RSA_PKCS_PSS_PARAMS`; MGF1 over the same hash function.
    Pss {
        /// The hash function, of the message and of MGF1.
        hash: Hash,
        /// Length of the salt.
        salt_bytes: usize,
    },
    /// `CK_RSA_PKCS_OAEP_PARAMS`; MGF1 over the same hash function, no label.
    Oaep {
        /// The hash function, of the label and of MGF1.
        hash: Hash,
    },
    /// The IV of the input, as it is.
    Iv {
        /// Length of the IV: one block.
        bytes: usize,
    },
    /// `CK_AES_CTR_PARAMS`; the IV of the input is the first counter block.
    Counter {
        /// `ulCounterBits`.
        bits: u32,
    },
    /// `CK_GCM_PARAMS`; no additional data.
    Gcm {
        /// Length of the IV.
        iv_bytes: usize,
        /// Length of the tag.
        tag_bits: u32,
    },
    /// `CK_ECDH1_DERIVE_PARAMS` with `CKD_NULL`; the input is the peer's point.
    Ecdh {
        /// `CKA_VALUE_LEN` of the derived `CKK_GENERIC_SECRET`: the whole shared secret, so that
        /// nobody has to ask at which end a token truncates.
        secret_bytes: usize,
    },
    /// A search among this many objects, whose labels [`find_label`] gives.
    Objects {
        /// How many objects there are.
        count: u32,
    },
}

/// The label of object number `index` among those that a search runs over.
#[must_use]
pub fn find_label(index: u32) -> String {
    format!("tapstone-find-{index:06}")
}

/// What the token is handed for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// The operation takes no input.
    None,
    /// Pseudo-random bytes of the chosen length.
    Message,
    /// A digest that the host has computed.
    Digest,
    /// A digest in a DER `DigestInfo` (RFC 8017, section 9.2).
    DigestInfo,
    /// A cipher text that software made under the token's key.
    CipherText,
    /// A public key whose private half only the verifier knows. For ECDH a point, for
    /// encapsulation a key that is imported before the run.
    PeerPublicKey,
    /// The value of a key to import before the run, and to wrap.
    KeyToWrap,
    /// A key that software wrapped under the token's key.
    WrappedKey,
    /// The label of an object.
    Label,
}

/// Which message lengths an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeRule {
    /// The one of the catalogue.
    Fixed,
    /// Any from one byte to [`MAX_MESSAGE_BYTES`].
    Free,
    /// A multiple of the block, because the mode does not pad.
    Blocks {
        /// Length of a block.
        bytes: usize,
    },
}

impl SizeRule {
    /// Is `asked` possible for `operation`, whose length in the catalogue is `standard`?
    fn check(self, operation: &str, standard: usize, asked: usize) -> Result<(), CatalogueError> {
        let operation = operation.to_owned();
        match self {
            Self::Fixed if asked != standard => {
                Err(CatalogueError::FixedSize { operation, bytes: standard })
            }
            Self::Fixed => Ok(()),
            _ if !(1..=MAX_MESSAGE_BYTES).contains(&asked) => {
                Err(CatalogueError::SizeOutOfRange { operation, bytes: asked })
            }
            Self::Blocks { bytes: block } if !asked.is_multiple_of(block) => {
                Err(CatalogueError::NotWholeBlocks { operation, bytes: asked, block })
            }
            Self::Free | Self::Blocks { .. } => Ok(()),
        }
    }
}
