//! Makes one input, and with it what is right for it.

use aws_lc_rs::hmac;

use super::agreement::{self, AgreementParty};
use super::cipher::{self, gcm_iv};
use super::error::MaterialError;
use super::input::Input;
use super::key::KeyMaterial;
use super::secret::SecretBytes;
use super::seeded::{Purpose, Seeded};
use super::signature::{digest_info, hashed};
use super::{key_wrap, rsa};
use crate::catalogue::{Hash, InputKind, KeySpec, Parameters, Shape, Variant, find_label};

/// An input, and what is right for it if that can be known.
pub(super) type Pair = (Input, Option<SecretBytes>);

/// Makes the inputs of a ring, one after the other, from one stream of the seed.
pub(super) struct InputMaker<'a> {
    variant: &'a Variant,
    key: &'a KeyMaterial,
    seeded: Seeded,
}

impl<'a> InputMaker<'a> {
    pub(super) fn new(variant: &'a Variant, key: &'a KeyMaterial, seed: u64) -> Self {
        Self { variant, key, seeded: Seeded::new(seed, Purpose::Inputs) }
    }

    /// Entry number `index` of the ring.
    pub(super) fn make(&mut self, index: usize) -> Result<Pair, MaterialError> {
        match self.variant.shape {
            Shape::Sign => self.for_signing(),
            Shape::Encrypt => self.for_encryption(),
            Shape::Decrypt => self.for_decryption(index),
            Shape::Digest => self.for_digest(),
            Shape::Derive => self.for_agreement(),
            Shape::Wrap => Ok(self.for_wrapping()),
            Shape::Unwrap => self.for_unwrapping(),
            Shape::Encapsulate => self.for_encapsulation(),
            Shape::Decapsulate => self.for_decapsulation(),
            Shape::FindObjects => Ok(self.for_search(index)),
            Shape::GenerateKey
            | Shape::GenerateKeyPair
            | Shape::Random
            | Shape::OpenSession
            | Shape::Login => Ok((Input::default(), None)),
        }
    }

    /// Expected: the digest where there is one, the message where it is signed itself, the code
    /// itself for message authentication.
    fn for_signing(&mut self) -> Result<Pair, MaterialError> {
        if let InputKind::Digest | InputKind::DigestInfo = self.variant.input {
            let hash = self.hash()?;
            let digest = self.seeded.bytes(hash.output_bytes());
            let message = match self.variant.input {
                InputKind::DigestInfo => digest_info(hash, &digest),
                _ => digest.clone(),
            };
            return Ok((without_iv(message), Some(digest.into())));
        }
        let message = self.message();
        let expected = match (self.variant.key, self.variant.hash) {
            (KeySpec::Hmac { hash }, _) => {
                self.known_secret()?.map(|key| authentication_code(hash, key, &message))
            }
            (_, Some(hash)) => Some(hashed(hash, &message).into()),
            (_, None) => Some(message.as_slice().into()),
        };
        Ok((without_iv(message), expected))
    }

    /// Expected: the cipher text, or for GCM the plain text, because each operation has its own IV.
    fn for_encryption(&mut self) -> Result<Pair, MaterialError> {
        let message = self.message();
        let iv = self.iv();
        let expected = match (self.known_secret()?, self.variant.parameters) {
            (None, _) => None,
            (Some(_), Parameters::Gcm { .. }) => Some(message.as_slice().into()),
            (Some(key), _) => Some(self.encrypted(key, &iv, &message)?.into()),
        };
        Ok((Input { message, iv }, expected))
    }

    /// Expected: the plain text.
    fn for_decryption(&mut self, index: usize) -> Result<Pair, MaterialError> {
        let plain = self.message();
        if let KeySpec::Rsa { .. } = self.variant.key {
            let (n, e) = self.key.expect_rsa(self.variant)?;
            let cipher_text = rsa::encrypt(n, e, self.variant.parameters, &plain, &mut self.seeded)
                .map_err(|_| self.failed("RSA encryption"))?;
            return Ok((without_iv(cipher_text), Some(plain.into())));
        }
        let key = self.key.expect_secret(self.variant)?;
        let iv = match self.variant.parameters {
            // No worker has this number, so no IV is used twice even where directions are mixed.
            Parameters::Gcm { .. } => gcm_iv(u32::MAX, index as u64).to_vec(),
            _ => self.iv(),
        };
        let message = self.encrypted(key, &iv, &plain)?;
        Ok((Input { message, iv }, Some(plain.into())))
    }

    fn for_digest(&mut self) -> Result<Pair, MaterialError> {
        let message = self.message();
        let digest = hashed(self.hash()?, &message);
        Ok((without_iv(message), Some(digest.into())))
    }

    /// Expected: the shared secret.
    fn for_agreement(&mut self) -> Result<Pair, MaterialError> {
        let KeySpec::Ec { curve } = self.variant.key else { return Err(self.failed("ECDH")) };
        let point = self.key.expect_public(self.variant)?;
        let peer = agreement::peer(curve, point, &mut self.seeded);
        Ok(peer.map_err(|_| self.failed("ECDH"))?.into())
    }

    /// Expected: the value to wrap.
    fn for_wrapping(&mut self) -> Pair {
        let value = self.message();
        (without_iv(value.clone()), Some(value.into()))
    }

    /// Expected: the value that was wrapped.
    fn for_unwrapping(&mut self) -> Result<Pair, MaterialError> {
        let kek = self.key.expect_secret(self.variant)?;
        let value = self.message();
        let mechanism = self.variant.mechanism.ok_or_else(|| self.failed("key wrapping"))?;
        let wrapped = key_wrap::wrap(mechanism, kek, &value);
        let wrapped = wrapped.map_err(|_| self.failed("key wrapping"))?;
        Ok((without_iv(wrapped), Some(value.into())))
    }

    /// Expected: the private half of the key that the token encapsulates to.
    fn for_encapsulation(&self) -> Result<Pair, MaterialError> {
        let KeySpec::MlKem { set } = self.variant.key else { return Err(self.failed("ML-KEM")) };
        Ok(agreement::recipient(set).map_err(|_| self.failed("ML-KEM key generation"))?.into())
    }

    /// Expected: the shared secret.
    fn for_decapsulation(&self) -> Result<Pair, MaterialError> {
        let KeySpec::MlKem { set } = self.variant.key else { return Err(self.failed("ML-KEM")) };
        let public = self.key.expect_public(self.variant)?;
        let exchange = agreement::encapsulate(set, public);
        Ok(exchange.map_err(|_| self.failed("ML-KEM encapsulation"))?.into())
    }

    /// Expected: the label of what was found. Labels are spread over all objects, because a token
    /// that walks its list finds the first ones sooner.
    fn for_search(&self, index: usize) -> Pair {
        let count = match self.variant.parameters {
            Parameters::Objects { count } => count,
            _ => 1,
        };
        // 37 shares no factor with a round number of objects, so every object has its turn.
        let label = find_label((index as u32).wrapping_mul(37) % count);
        (without_iv(label.clone().into_bytes()), Some(label.into_bytes().into()))
    }

    fn message(&mut self) -> Vec<u8> {
        self.seeded.bytes(self.variant.message_bytes)
    }

    fn iv(&mut self) -> Vec<u8> {
        match self.variant.parameters {
            Parameters::Iv { bytes } => self.seeded.bytes(bytes),
            // Twelve random bytes, then a 32-bit counter from 1 (RFC 3686, section 4): the same
            // for tokens that count 32 bits and for those that count 128.
            Parameters::Counter { .. } => [self.seeded.bytes(12), vec![0, 0, 0, 1]].concat(),
            _ => Vec::new(),
        }
    }

    fn encrypted(&self, key: &[u8], iv: &[u8], plain: &[u8]) -> Result<Vec<u8>, MaterialError> {
        cipher::encrypt(self.variant, key, iv, plain).map_err(|_| self.failed("encryption"))
    }

    /// The value of the secret key, if it is known.
    fn known_secret(&self) -> Result<Option<&[u8]>, MaterialError> {
        match self.key {
            KeyMaterial::None => Ok(None),
            key => key.expect_secret(self.variant).map(Some),
        }
    }

    fn hash(&self) -> Result<Hash, MaterialError> {
        self.variant.hash.ok_or_else(|| self.failed("choosing a hash function"))
    }

    fn failed(&self, step: &'static str) -> MaterialError {
        MaterialError::Software { operation: self.variant.name.clone(), step }
    }
}

impl From<AgreementParty> for Pair {
    fn from(exchange: AgreementParty) -> Self {
        (without_iv(exchange.public), Some(exchange.secret))
    }
}

fn without_iv(message: Vec<u8>) -> Input {
    Input { message, iv: Vec::new() }
}

fn authentication_code(hash: Hash, key: &[u8], message: &[u8]) -> SecretBytes {
    let algorithm = match hash {
        Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha384 => hmac::HMAC_SHA384,
        Hash::Sha512 => hmac::HMAC_SHA512,
    };
    hmac::sign(&hmac::Key::new(algorithm, key), message).as_ref().into()
}
