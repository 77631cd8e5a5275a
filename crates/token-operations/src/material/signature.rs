//! Checking of signatures under a public key that is parsed once.

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::signature::{
    self as sig, ParsedPublicKey, RsaParameters, RsaPublicKeyComponents, VerificationAlgorithm,
};
use rsa::RsaPublicKey;

use super::error::MaterialError;
use super::key::KeyMaterial;
use super::rsa as rsa_software;
use super::slh_dsa::SlhDsaKey;
use crate::catalogue::{Curve, Hash, KeySpec, MlDsa, Parameters, Variant};

/// The shortest modulus whose PSS signatures aws-lc checks, in bits.
const AWS_LC_PSS_BITS: u32 = 2048;

/// A public key, ready to check many signatures.
pub(super) enum SignatureKey {
    /// RSA and ECDSA: what was signed is given as its digest.
    OverDigest { key: ParsedPublicKey, hash: Hash },
    /// Ed25519 and ML-DSA sign the message itself.
    OverMessage(ParsedPublicKey),
    /// PSS under a modulus that is too short for aws-lc.
    ShortPss(RsaPublicKey),
    /// SLH-DSA, which signs the message itself.
    SlhDsa(SlhDsaKey),
}

impl SignatureKey {
    pub(super) fn new(variant: &Variant, key: &KeyMaterial) -> Result<Self, MaterialError> {
        if let KeySpec::Rsa { bits } = variant.key {
            return Self::rsa(variant, bits, key);
        }
        let public = key.expect_public(variant)?;
        if let KeySpec::SlhDsa { set } = variant.key {
            return Ok(Self::SlhDsa(SlhDsaKey { set, value: public.to_vec() }));
        }
        let algorithm: &'static dyn VerificationAlgorithm = match variant.key {
            KeySpec::Ec { curve: Curve::P256 } => &sig::ECDSA_P256_SHA256_FIXED,
            KeySpec::Ec { curve: Curve::P384 } => &sig::ECDSA_P384_SHA384_FIXED,
            KeySpec::Ec { curve: Curve::P521 } => &sig::ECDSA_P521_SHA512_FIXED,
            KeySpec::Ed25519 => &sig::ED25519,
            KeySpec::MlDsa { set: MlDsa::MlDsa44 } => &sig::ML_DSA_44,
            KeySpec::MlDsa { set: MlDsa::MlDsa65 } => &sig::ML_DSA_65,
            KeySpec::MlDsa { set: MlDsa::MlDsa87 } => &sig::ML_DSA_87,
            _ => return Err(refused(variant)),
        };
        let parsed = ParsedPublicKey::new(algorithm, public).map_err(|_| refused(variant))?;
        Ok(match (variant.key, variant.hash) {
            (KeySpec::Ec { curve }, Some(hash)) if hash == curve.hash() => {
                Self::OverDigest { key: parsed, hash }
            }
            (KeySpec::Ec { .. }, _) => return Err(refused(variant)),
            _ => Self::OverMessage(parsed),
        })
    }

    fn rsa(variant: &Variant, bits: u32, key: &KeyMaterial) -> Result<Self, MaterialError> {
        let (n, e) = key.expect_rsa(variant)?;
        let algorithm: &'static RsaParameters = match (variant.parameters, variant.hash) {
            (Parameters::Pss { .. }, Some(Hash::Sha256)) if bits < AWS_LC_PSS_BITS => {
                let key = rsa_software::public_key(n, e).map_err(|_| refused(variant))?;
                return Ok(Self::ShortPss(key));
            }
            (Parameters::Pss { .. }, Some(Hash::Sha256)) => &sig::RSA_PSS_2048_8192_SHA256,
            (Parameters::None, Some(Hash::Sha256)) => {
                &sig::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY
            }
            _ => return Err(refused(variant)),
        };
        let parsed = RsaPublicKeyComponents { n, e }.to_parsed_public_key(algorithm);
        Ok(Self::OverDigest { key: parsed.map_err(|_| refused(variant))?, hash: Hash::Sha256 })
    }

    /// Is `signature` one over `signed`, the digest or the message?
    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::OverDigest { key, hash } => {
                let digest = Digest::import_less_safe(signed, digest_algorithm(*hash));
                digest.and_then(|digest| key.verify_digest_sig(&digest, signature)).is_ok()
            }
            Self::OverMessage(key) => key.verify_sig(signed, signature).is_ok(),
            Self::SlhDsa(key) => key.verifies(signed, signature),
            Self::ShortPss(key) => rsa_software::verifies_pss_sha256(key, signed, signature),
        }
    }
}

/// The digest of `message`.
pub(super) fn hashed(hash: Hash, message: &[u8]) -> Vec<u8> {
    digest::digest(digest_algorithm(hash), message).as_ref().to_vec()
}

/// `digest` as PKCS#1 v1.5 signs it: the DER prefixes of RFC 8017, section 9.2, note 1.
pub(super) fn digest_info(hash: Hash, digest: &[u8]) -> Vec<u8> {
    let prefix: &[u8] = match hash {
        Hash::Sha1 => b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
        Hash::Sha256 => {
            b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
        }
        Hash::Sha384 => {
            b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x05\x00\x04\x30"
        }
        Hash::Sha512 => {
            b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40"
        }
    };
    [prefix, digest].concat()
}

pub(super) fn digest_algorithm(hash: Hash) -> &'static digest::Algorithm {
    match hash {
        Hash::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => &digest::SHA256,
        Hash::Sha384 => &digest::SHA384,
        Hash::Sha512 => &digest::SHA512,
    }
}

fn refused(variant: &Variant) -> MaterialError {
    MaterialError::WrongKey { operation: variant.name.clone(), expected: variant.key }
}

#[cfg(test)]
mod tests {
    use rsa::Pkcs1v15Sign;
    use rsa::sha2::{Sha256, Sha384, Sha512};

    use super::*;

    /// The prefixes, as the `rsa` crate builds them from the object identifiers.
    #[test]
    fn a_digest_info_is_a_prefix_and_the_digest() {
        let cases = [
            (Hash::Sha1, Pkcs1v15Sign::new::<sha1::Sha1>()),
            (Hash::Sha256, Pkcs1v15Sign::new::<Sha256>()),
            (Hash::Sha384, Pkcs1v15Sign::new::<Sha384>()),
            (Hash::Sha512, Pkcs1v15Sign::new::<Sha512>()),
        ];
        for (hash, scheme) in cases {
            let digest = hashed(hash, b"message");
            assert_eq!(digest_info(hash, &digest), [&scheme.prefix, &digest[..]].concat());
        }
    }
}
