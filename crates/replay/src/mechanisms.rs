//! The mechanisms that are replayed: what kind of key they take, and which parameters.

use cryptoki_sys::*;
use tapstone_token_operations::catalogue::{Curve, Hash, KeySpec};

use crate::steps::{MechanismUse, ReplayParameters};

/// What kind of key a mechanism takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFamily {
    /// None: a digest.
    None,
    Rsa,
    Ec,
    Edwards,
    Aes,
    Hmac(Hash),
}

#[derive(Clone, Copy)]
enum ParameterRule {
    None,
    /// PSS over a digest of this length, or over the input.
    Pss(Option<Hash>),
    Oaep,
    Iv,
    Counter,
    Gcm,
    /// Not without the point of another party.
    Ecdh,
}

/// A mechanism that is known.
#[derive(Clone, Copy)]
pub(crate) struct KnownMechanism {
    number: u64,
    pub(crate) family: KeyFamily,
    rule: ParameterRule,
}

const fn known(
    number: CK_MECHANISM_TYPE,
    family: KeyFamily,
    rule: ParameterRule,
) -> KnownMechanism {
    KnownMechanism { number: number as u64, family, rule }
}

const TABLE: [KnownMechanism; 38] = {
    use Hash::{Sha1, Sha256, Sha384, Sha512};
    use KeyFamily::{Aes, Ec, Edwards, Hmac, None as NoKey, Rsa};
    use ParameterRule::{Counter, Ecdh, Gcm, Iv, None as Nothing, Oaep, Pss};
    [
        known(CKM_RSA_PKCS, Rsa, Nothing),
        known(CKM_RSA_X_509, Rsa, Nothing),
        known(CKM_SHA1_RSA_PKCS, Rsa, Nothing),
        known(CKM_SHA256_RSA_PKCS, Rsa, Nothing),
        known(CKM_SHA384_RSA_PKCS, Rsa, Nothing),
        known(CKM_SHA512_RSA_PKCS, Rsa, Nothing),
        known(CKM_RSA_PKCS_OAEP, Rsa, Oaep),
        known(CKM_RSA_PKCS_PSS, Rsa, Pss(None)),
        known(CKM_SHA1_RSA_PKCS_PSS, Rsa, Pss(Some(Sha1))),
        known(CKM_SHA256_RSA_PKCS_PSS, Rsa, Pss(Some(Sha256))),
        known(CKM_SHA384_RSA_PKCS_PSS, Rsa, Pss(Some(Sha384))),
        known(CKM_SHA512_RSA_PKCS_PSS, Rsa, Pss(Some(Sha512))),
        known(CKM_ECDSA, Ec, Nothing),
        known(CKM_ECDSA_SHA1, Ec, Nothing),
        known(CKM_ECDSA_SHA256, Ec, Nothing),
        known(CKM_ECDSA_SHA384, Ec, Nothing),
        known(CKM_ECDSA_SHA512, Ec, Nothing),
        known(CKM_EDDSA, Edwards, Nothing),
        known(CKM_AES_ECB, Aes, Nothing),
        known(CKM_AES_CBC, Aes, Iv),
        known(CKM_AES_CBC_PAD, Aes, Iv),
        known(CKM_AES_CTR, Aes, Counter),
        known(CKM_AES_GCM, Aes, Gcm),
        known(CKM_AES_KEY_WRAP, Aes, Nothing),
        known(CKM_AES_KEY_WRAP_PAD, Aes, Nothing),
        known(CKM_ECDH1_DERIVE, Ec, Ecdh),
        known(CKM_ECDH1_COFACTOR_DERIVE, Ec, Ecdh),
        known(CKM_SHA_1_HMAC, Hmac(Sha1), Nothing),
        known(CKM_SHA256_HMAC, Hmac(Sha256), Nothing),
        known(CKM_SHA384_HMAC, Hmac(Sha384), Nothing),
        known(CKM_SHA512_HMAC, Hmac(Sha512), Nothing),
        known(CKM_MD5, NoKey, Nothing),
        known(CKM_SHA_1, NoKey, Nothing),
        known(CKM_SHA224, NoKey, Nothing),
        known(CKM_SHA256, NoKey, Nothing),
        known(CKM_SHA384, NoKey, Nothing),
        known(CKM_SHA512, NoKey, Nothing),
        known(CKM_SHA3_256, NoKey, Nothing),
    ]
};

/// A mechanism that is replayed; `None` for others.
pub(crate) fn known_mechanism(number: u64) -> Option<KnownMechanism> {
    TABLE.into_iter().find(|known| known.number == number)
}

impl KnownMechanism {
    /// With the usual parameters, for an input of so many bytes.
    pub(crate) fn with_parameters(self, input_bytes: u32) -> MechanismUse {
        let parameters = match self.rule {
            ParameterRule::None | ParameterRule::Ecdh => ReplayParameters::None,
            ParameterRule::Pss(hash) => {
                ReplayParameters::Pss { hash: hash.unwrap_or_else(|| hash_of_length(input_bytes)) }
            }
            ParameterRule::Oaep => ReplayParameters::Oaep,
            ParameterRule::Iv => ReplayParameters::Iv,
            ParameterRule::Counter => ReplayParameters::Counter,
            ParameterRule::Gcm => ReplayParameters::Gcm,
        };
        MechanismUse { number: self.number, parameters }
    }

    /// Whether two parties agree on a key by it.
    pub(crate) fn is_agreement(self) -> bool {
        matches!(self.rule, ParameterRule::Ecdh)
    }

    /// See [`is_raw_rsa`].
    pub(crate) fn is_raw_rsa(self) -> bool {
        is_raw_rsa(self.number)
    }
}

/// A mechanism that takes a number below the modulus, and no less padding.
pub(crate) fn is_raw_rsa(number: u64) -> bool {
    number == CKM_RSA_X_509 as u64
}

fn hash_of_length(bytes: u32) -> Hash {
    [Hash::Sha1, Hash::Sha384, Hash::Sha512]
        .into_iter()
        .find(|hash| hash.output_bytes() == bytes as usize)
        .unwrap_or(Hash::Sha256)
}

/// The key of a family, where the length of a signature or a cipher text tells it.
pub(crate) fn key_of_length(family: KeyFamily, bytes: u32) -> Option<KeySpec> {
    match family {
        KeyFamily::Rsa => {
            let is_usual = (64..=2_048).contains(&bytes) && bytes.is_multiple_of(8);
            is_usual.then(|| KeySpec::Rsa { bits: 8 * bytes })
        }
        KeyFamily::Ec => {
            let curves = [Curve::P256, Curve::P384, Curve::P521];
            let fits = |curve: &Curve| 2 * curve.field_bytes() == bytes as usize;
            curves.into_iter().find(fits).map(|curve| KeySpec::Ec { curve })
        }
        KeyFamily::Edwards => (bytes == 64).then_some(KeySpec::Ed25519),
        KeyFamily::Hmac(hash) => Some(KeySpec::Hmac { hash }),
        KeyFamily::None | KeyFamily::Aes => None,
    }
}
