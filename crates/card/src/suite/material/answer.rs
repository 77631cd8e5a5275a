//! Judges of answers, by the names that suites give them.

use p256::ecdh::diffie_hellman;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::{PublicKey, SecretKey};
use rsa::{Pkcs1v15Sign, RsaPublicKey};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use tapstone_apdu::tlv;
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};
use x509_cert::spki::{DecodePublicKey, SubjectPublicKeyInfoOwned};

use super::ciphers::{aes, triple_des_m2};
use super::{Material, keys};
use crate::suite::file::AnswerText;
use crate::suite::point::Point;

/// What the right answer of an operation is, and how it is told.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The bytes that were sent.
    Input,
    /// What the input was made from.
    PlainText,
    /// No bytes at all.
    Empty,
    /// Any bytes, of this length.
    Length(usize),
    /// As many bytes as were sent.
    LengthOfInput,
    /// Bytes with this SHA-256.
    HasDigest(Vec<u8>),
    /// The SHA-1 of what was sent.
    Sha1,
    /// The SHA-256 of what was sent.
    Sha256,
    /// The input encrypted by two-key Triple DES, ISO 9797 method 2 padding.
    TripleDes(Vec<u8>),
    /// The input encrypted by AES in CBC mode.
    Aes(Vec<u8>),
    /// A signature of the input: RSA, PKCS#1 v1.5 with SHA-1.
    RsaSha1(Box<RsaPublicKey>),
    /// A signature of the input: ECDSA P-256 with SHA-256, DER.
    EcdsaSha256(Box<SecretKey>),
    /// The x-coordinate shared with the input.
    EcdhX(Box<SecretKey>),
    /// The SHA-1 of the x-coordinate shared with the input.
    EcdhSha1(Box<SecretKey>),
    /// A point on P-256, uncompressed.
    P256Point,
    /// The x-coordinate shared with the key of the certificate that a step saved under this name, in
    /// a dynamic authentication template.
    PivAgreement(String),
    /// A signature by the key of the certificate that a step saved under this name, in a dynamic
    /// authentication template.
    PivSignature(String),
}

/// One answer with all that it is judged by.
#[derive(Clone, Copy, Debug)]
pub struct SeenAnswer<'a> {
    /// What was sent and what it was made from.
    pub material: &'a Material,
    /// Where the case stands in what its test varies.
    pub point: Point,
    /// The response data, without the status word.
    pub output: &'a [u8],
    /// What the worker saved while it made ready.
    pub saved: &'a [(String, Vec<u8>)],
}

impl Answer {
    /// The judge that a suite names.
    ///
    /// # Errors
    /// In words: an unknown judge, or a key that is not there.
    pub fn from_text(
        text: &AnswerText,
        value: impl Fn(&str) -> Option<Vec<u8>> + Copy,
    ) -> Result<Self, String> {
        let key = || text.key.as_deref().ok_or_else(|| "key is missing".to_owned());
        let p256 = || keys::p256(key()?, value).map(Box::new);
        Ok(match text.is.as_str() {
            "input" => Self::Input,
            "plain-text" => Self::PlainText,
            "empty" => Self::Empty,
            "length" => Self::Length(text.bytes.ok_or("bytes is missing")? as usize),
            "length-of-input" => Self::LengthOfInput,
            "digest" => {
                let digest = text.digest.as_deref().ok_or("digest is missing")?;
                let digest = hex::decode(digest).map_err(|why| format!("digest: {why}"))?;
                Self::HasDigest(digest)
            }
            "sha1" => Self::Sha1,
            "sha256" => Self::Sha256,
            "3des-m2" => Self::TripleDes(keys::symmetric(key()?, &[16], value)?),
            "aes-cbc" => Self::Aes(keys::symmetric(key()?, &[16, 32], value)?),
            "rsa-sha1" => Self::RsaSha1(Box::new(keys::rsa(key()?, value)?.to_public_key())),
            "ecdsa-sha256" => Self::EcdsaSha256(p256()?),
            "ecdh-x" => Self::EcdhX(p256()?),
            "ecdh-sha1" => Self::EcdhSha1(p256()?),
            "p256-point" => Self::P256Point,
            "piv-agreement" => Self::PivAgreement(key()?.to_owned()),
            "piv-signature" => Self::PivSignature(key()?.to_owned()),
            other => {
                return Err(format!(
                    "\"{other}\" is no judge: input, plain-text, empty, length, length-of-input, \
                     digest, sha1, sha256, 3des-m2, aes-cbc, rsa-sha1, ecdsa-sha256, ecdh-x, \
                     ecdh-sha1, p256-point, piv-signature, piv-agreement"
                ));
            }
        })
    }

    /// Whether the answer is right; `None` when it cannot be told. After no operations on the card
    /// there is no answer.
    #[must_use]
    pub fn judge(&self, seen: SeenAnswer<'_>) -> Option<bool> {
        if seen.point.operations == 0 {
            return Some(seen.output.is_empty());
        }
        let Material { input, plain } = seen.material;
        let output = seen.output;
        Some(match self {
            Self::Input => output == input,
            Self::PlainText => output == plain,
            Self::Empty => output.is_empty(),
            Self::Length(bytes) => output.len() == *bytes,
            Self::LengthOfInput => output.len() == input.len(),
            Self::HasDigest(digest) => Sha256::digest(output)[..] == digest[..],
            Self::Sha1 => output == &Sha1::digest(input)[..],
            Self::Sha256 => output == &Sha256::digest(input)[..],
            Self::TripleDes(key) => output == triple_des_m2(key, input),
            Self::Aes(key) => output == aes(key, input),
            Self::RsaSha1(key) => {
                let scheme = Pkcs1v15Sign::new::<Sha1>();
                key.verify(scheme, &Sha1::digest(input), output).is_ok()
            }
            Self::EcdsaSha256(key) => ecdsa(key, input, output),
            Self::EcdhX(key) => shared(key, input).is_some_and(|x| output == x),
            Self::EcdhSha1(key) => {
                shared(key, input).is_some_and(|x| output == &Sha1::digest(x)[..])
            }
            Self::P256Point => {
                output.first() == Some(&4) && PublicKey::from_sec1_bytes(output).is_ok()
            }
            Self::PivAgreement(name) => {
                let (_, object) = seen.saved.iter().find(|(saved, _)| saved == name)?;
                piv_agreement(public_key(object)?, plain, output)
            }
            Self::PivSignature(name) => {
                // A key may be there without its certificate.
                let (_, object) = seen.saved.iter().find(|(saved, _)| saved == name)?;
                piv_signature(public_key(object)?, plain, output)
            }
        })
    }
}

fn ecdsa(key: &SecretKey, message: &[u8], signature: &[u8]) -> bool {
    let key = p256::ecdsa::VerifyingKey::from(key.public_key());
    let signature = p256::ecdsa::DerSignature::from_bytes(signature);
    signature.is_ok_and(|signature| key.verify(message, &signature).is_ok())
}

fn shared(key: &SecretKey, point: &[u8]) -> Option<Vec<u8>> {
    let point = PublicKey::from_sec1_bytes(point).ok()?;
    let secret = diffie_hellman(key.to_nonzero_scalar(), point.as_affine());
    Some(secret.raw_secret_bytes().to_vec())
}

/// The public key of a certificate object: 53, in it 70 (SP 800-73-5 part 1, appendix A).
fn public_key(object: &[u8]) -> Option<SubjectPublicKeyInfoOwned> {
    let parts = tlv::elements(tlv::only(0x53, object)?)?;
    let (_, certificate) = parts.into_iter().find(|(tag, _)| *tag == 0x70)?;
    let certificate = Certificate::from_der(certificate).ok()?;
    Some(certificate.tbs_certificate.subject_public_key_info)
}

/// A response to GENERAL AUTHENTICATE: 7C, in it 82.
fn response(template: &[u8]) -> Option<&[u8]> {
    let parts = tlv::elements(tlv::only(0x7C, template)?)?;
    parts.into_iter().find(|(tag, _)| *tag == 0x82).map(|(_, response)| response)
}

/// Whether the response is what this private value shares with the certificate's key.
fn piv_agreement(key: SubjectPublicKeyInfoOwned, private: &[u8], template: &[u8]) -> bool {
    let agreed = || {
        let key = key.to_der().ok()?;
        let response = response(template)?;
        if let Ok(key) = PublicKey::from_public_key_der(&key) {
            let own = SecretKey::from_slice(private).ok()?;
            let secret = diffie_hellman(own.to_nonzero_scalar(), key.as_affine());
            return Some(response == &secret.raw_secret_bytes()[..]);
        }
        let key = p384::PublicKey::from_public_key_der(&key).ok()?;
        let own = p384::SecretKey::from_slice(private).ok()?;
        let secret = p384::ecdh::diffie_hellman(own.to_nonzero_scalar(), key.as_affine());
        Some(response == &secret.raw_secret_bytes()[..])
    };
    agreed().unwrap_or(false)
}

/// Whether the response is a signature of `digest` by the certificate's key.
fn piv_signature(key: SubjectPublicKeyInfoOwned, digest: &[u8], template: &[u8]) -> bool {
    let verified = || {
        let key = key.to_der().ok()?;
        let signature = response(template)?;
        if let Ok(key) = RsaPublicKey::from_public_key_der(&key) {
            return Some(key.verify(Pkcs1v15Sign::new::<Sha256>(), digest, signature).is_ok());
        }
        if let Ok(key) = p256::ecdsa::VerifyingKey::from_public_key_der(&key) {
            let signature = p256::ecdsa::DerSignature::from_bytes(signature).ok()?;
            return Some(key.verify_prehash(digest, &signature).is_ok());
        }
        let key = p384::ecdsa::VerifyingKey::from_public_key_der(&key).ok()?;
        let signature = p384::ecdsa::DerSignature::from_bytes(signature).ok()?;
        Some(key.verify_prehash(digest, &signature).is_ok())
    };
    verified().unwrap_or(false)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
