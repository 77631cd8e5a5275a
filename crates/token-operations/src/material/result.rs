//! Is one result right, whatever the message was? For operations that are in no catalogue, such as
//! those of a recorded program.

use aws_lc_rs::cipher::{self, EncryptingKey, EncryptionContext, PaddedBlockEncryptingKey};
use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{self as sig, ParsedPublicKey};
use cryptoki_sys::*;
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::{BigUint, Pkcs1v15Sign, Pss, RsaPublicKey};
use sha1::Sha1;

use super::cipher::gcm_key;
use super::key::KeyMaterial;
use super::rsa::public_key;
use super::signature::{digest_algorithm, digest_info, hashed};
use super::verifier::Verdict;
use crate::catalogue::{Curve, Hash, KeySpec};

/// What was done, and with what.
#[derive(Clone, Copy, Debug)]
pub struct ResultToJudge<'a> {
    /// The number of the mechanism (`CKM_…`).
    pub mechanism: u64,
    /// Of PSS: the hash of the salt and of MGF1.
    pub pss: Option<Hash>,
    /// What is known of the key.
    pub key: &'a KeyMaterial,
    /// The IV or the first counter block, where the mechanism takes one.
    pub iv: [u8; 16],
    /// What the token was given.
    pub message: &'a [u8],
    /// What the token gave for it.
    pub result: &'a [u8],
}

impl ResultToJudge<'_> {
    /// Is it a signature, or an authentication code, of the message?
    #[must_use]
    pub fn as_signature(&self) -> Verdict {
        let is_right = match self.key {
            KeyMaterial::None => return Verdict::NotPossible,
            KeyMaterial::Rsa { modulus, exponent } => self.is_rsa_signature(modulus, exponent),
            KeyMaterial::Public { spec, value } => self.is_curve_signature(*spec, value),
            KeyMaterial::Secret(value) => self.is_authentication_code(value.expose()),
        };
        verdict(is_right)
    }

    /// Is it the cipher text of the message? Of RSA only who has the private key can tell.
    #[must_use]
    pub fn as_cipher_text(&self) -> Verdict {
        let KeyMaterial::Secret(key) = self.key else { return Verdict::NotPossible };
        let expected = self.cipher_text(key.expose());
        verdict(expected.ok().map(|expected| expected == self.result))
    }

    /// Is it the digest of the message?
    #[must_use]
    pub fn as_digest(&self) -> Verdict {
        let algorithm = match self.mechanism as CK_MECHANISM_TYPE {
            CKM_SHA_1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            CKM_SHA224 => &digest::SHA224,
            CKM_SHA256 => &digest::SHA256,
            CKM_SHA384 => &digest::SHA384,
            CKM_SHA512 => &digest::SHA512,
            CKM_SHA3_256 => &digest::SHA3_256,
            _ => return Verdict::NotPossible,
        };
        verdict(Some(digest::digest(algorithm, self.message).as_ref() == self.result))
    }

    /// Does the public key make the message of it again? Of bare RSA alone, where that is what a
    /// signature is, too.
    #[must_use]
    pub fn as_decrypted_number(&self) -> Verdict {
        match self.mechanism as CK_MECHANISM_TYPE {
            CKM_RSA_X_509 => self.as_signature(),
            _ => Verdict::NotPossible,
        }
    }

    /// Whether a result of this function can be judged, were it there.
    #[must_use]
    pub fn can_be_judged(&self, function: &str) -> bool {
        match function {
            "C_Digest" => self.as_digest() != Verdict::NotPossible,
            "C_Encrypt" => matches!(self.key, KeyMaterial::Secret(_)),
            "C_Decrypt" | "C_Verify" => true,
            _ => *self.key != KeyMaterial::None,
        }
    }

    /// `None`: a mechanism or a key that is not known.
    fn is_rsa_signature(&self, modulus: &[u8], exponent: &[u8]) -> Option<bool> {
        let mechanism = self.mechanism as CK_MECHANISM_TYPE;
        if mechanism == CKM_RSA_X_509 {
            let number = BigUint::from_bytes_be;
            let opened = number(self.result).modpow(&number(exponent), &number(modulus));
            return Some(opened == number(self.message));
        }
        let key = public_key(modulus, exponent).ok()?;
        if mechanism == CKM_RSA_PKCS {
            return Some(is_pkcs1(&key, self.message, self.result));
        }
        let padding = hash_of(mechanism);
        if let Some((hash, false)) = padding {
            let signed = digest_info(hash, &hashed(hash, self.message));
            return Some(is_pkcs1(&key, &signed, self.result));
        }
        let (hash, digest) = match padding {
            Some((hash, _)) => (hash, hashed(hash, self.message)),
            None if mechanism == CKM_RSA_PKCS_PSS => (self.pss?, self.message.to_vec()),
            None => return None,
        };
        Some(is_pss(&key, hash, &digest, self.result))
    }

    fn is_curve_signature(&self, spec: KeySpec, point: &[u8]) -> Option<bool> {
        let KeySpec::Ec { curve } = spec else {
            let is_eddsa = self.mechanism as CK_MECHANISM_TYPE == CKM_EDDSA;
            let key = ParsedPublicKey::new(&sig::ED25519, point).ok()?;
            return is_eddsa.then(|| key.verify_sig(self.message, self.result).is_ok());
        };
        let digest = match self.mechanism as CK_MECHANISM_TYPE {
            CKM_ECDSA => self.message.to_vec(),
            CKM_ECDSA_SHA1 => hashed(Hash::Sha1, self.message),
            CKM_ECDSA_SHA256 => hashed(Hash::Sha256, self.message),
            CKM_ECDSA_SHA384 => hashed(Hash::Sha384, self.message),
            CKM_ECDSA_SHA512 => hashed(Hash::Sha512, self.message),
            _ => return None,
        };
        let algorithm = match curve {
            Curve::P256 => &sig::ECDSA_P256_SHA256_FIXED,
            Curve::P384 => &sig::ECDSA_P384_SHA384_FIXED,
            Curve::P521 => &sig::ECDSA_P521_SHA512_FIXED,
        };
        let key = ParsedPublicKey::new(algorithm, point).ok()?;
        let digest = digest_of_length(&digest, curve.hash().output_bytes());
        let digest = Digest::import_less_safe(&digest, digest_algorithm(curve.hash())).ok()?;
        Some(key.verify_digest_sig(&digest, self.result).is_ok())
    }

    fn is_authentication_code(&self, key: &[u8]) -> Option<bool> {
        let algorithm = match self.mechanism as CK_MECHANISM_TYPE {
            CKM_SHA_1_HMAC => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            CKM_SHA256_HMAC => hmac::HMAC_SHA256,
            CKM_SHA384_HMAC => hmac::HMAC_SHA384,
            CKM_SHA512_HMAC => hmac::HMAC_SHA512,
            _ => return None,
        };
        let key = hmac::Key::new(algorithm, key);
        Some(hmac::verify(&key, self.message, self.result).is_ok())
    }

    fn cipher_text(&self, key: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut buffer = self.message.to_vec();
        let mechanism = self.mechanism as CK_MECHANISM_TYPE;
        if mechanism == CKM_AES_GCM {
            let nonce = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(&self.iv[..12])?;
            let nothing = aws_lc_rs::aead::Aad::empty();
            gcm_key(key)?.seal_in_place_append_tag(nonce, nothing, &mut buffer)?;
            return Ok(buffer);
        }
        let algorithm = match key.len() {
            16 => &cipher::AES_128,
            32 => &cipher::AES_256,
            _ => return Err(Unspecified),
        };
        let key = cipher::UnboundCipherKey::new(algorithm, key)?;
        let context = EncryptionContext::Iv128((&self.iv).into());
        match mechanism {
            CKM_AES_CBC => EncryptingKey::cbc(key)?.less_safe_encrypt(&mut buffer, context)?,
            CKM_AES_CTR => EncryptingKey::ctr(key)?.less_safe_encrypt(&mut buffer, context)?,
            CKM_AES_CBC_PAD => {
                let key = PaddedBlockEncryptingKey::cbc_pkcs7(key)?;
                key.less_safe_encrypt(&mut buffer, context)?
            }
            CKM_AES_ECB => {
                EncryptingKey::ecb(key)?.less_safe_encrypt(&mut buffer, EncryptionContext::None)?
            }
            _ => return Err(Unspecified),
        };
        Ok(buffer)
    }
}

fn verdict(is_right: Option<bool>) -> Verdict {
    match is_right {
        None => Verdict::NotPossible,
        Some(true) => Verdict::Right,
        Some(false) => Verdict::Wrong,
    }
}

/// The hash of an RSA mechanism that computes it, and whether its padding is that of PSS.
fn hash_of(mechanism: CK_MECHANISM_TYPE) -> Option<(Hash, bool)> {
    Some(match mechanism {
        CKM_SHA1_RSA_PKCS => (Hash::Sha1, false),
        CKM_SHA256_RSA_PKCS => (Hash::Sha256, false),
        CKM_SHA384_RSA_PKCS => (Hash::Sha384, false),
        CKM_SHA512_RSA_PKCS => (Hash::Sha512, false),
        CKM_SHA1_RSA_PKCS_PSS => (Hash::Sha1, true),
        CKM_SHA256_RSA_PKCS_PSS => (Hash::Sha256, true),
        CKM_SHA384_RSA_PKCS_PSS => (Hash::Sha384, true),
        CKM_SHA512_RSA_PKCS_PSS => (Hash::Sha512, true),
        _ => return None,
    })
}

fn is_pkcs1(key: &RsaPublicKey, signed: &[u8], signature: &[u8]) -> bool {
    key.verify(Pkcs1v15Sign::new_unprefixed(), signed, signature).is_ok()
}

/// With a salt as long as the digest.
fn is_pss(key: &RsaPublicKey, hash: Hash, digest: &[u8], signature: &[u8]) -> bool {
    let salt = hash.output_bytes();
    let scheme = match hash {
        Hash::Sha1 => Pss::new_with_salt::<Sha1>(salt),
        Hash::Sha256 => Pss::new_with_salt::<Sha256>(salt),
        Hash::Sha384 => Pss::new_with_salt::<Sha384>(salt),
        Hash::Sha512 => Pss::new_with_salt::<Sha512>(salt),
    };
    key.verify(scheme, digest, signature).is_ok()
}

/// A digest of another length, as ECDSA takes it: its leftmost bytes, or as a number (FIPS 186-5,
/// section 6.4.1).
fn digest_of_length(digest: &[u8], bytes: usize) -> Vec<u8> {
    let mut fitting = vec![0; bytes.saturating_sub(digest.len())];
    fitting.extend_from_slice(&digest[..digest.len().min(bytes)]);
    fitting
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
    use aws_lc_rs::signature::{EcdsaKeyPair, KeyPair as _};
    use rsa::pkcs1::DecodeRsaPublicKey as _;
    use rsa::traits::PublicKeyParts as _;

    use super::*;

    fn judged<'a>(mechanism: u64, key: &'a KeyMaterial, result: &'a [u8]) -> ResultToJudge<'a> {
        let message = b"message".as_slice();
        ResultToJudge { mechanism, pss: None, key, iv: [7; 16], message, result }
    }

    #[test]
    fn rsa_signatures_of_another_library_are_right_and_a_changed_bit_is_not() {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let public = RsaPublicKey::from_pkcs1_der(pair.public_key().as_ref()).unwrap();
        let key = KeyMaterial::rsa(&public.n().to_bytes_be(), &public.e().to_bytes_be());
        for (mechanism, encoding) in [
            (CKM_SHA256_RSA_PKCS, &sig::RSA_PKCS1_SHA256 as &dyn sig::RsaEncoding),
            (CKM_SHA384_RSA_PKCS, &sig::RSA_PKCS1_SHA384),
            (CKM_SHA256_RSA_PKCS_PSS, &sig::RSA_PSS_SHA256),
            (CKM_SHA512_RSA_PKCS_PSS, &sig::RSA_PSS_SHA512),
        ] {
            let mut signature = vec![0; 256];
            pair.sign(encoding, &SystemRandom::new(), b"message", &mut signature).unwrap();
            let verdict = judged(mechanism as u64, &key, &signature).as_signature();
            assert_eq!(verdict, Verdict::Right, "{mechanism:#x}");
            signature[9] ^= 1;
            let verdict = judged(mechanism as u64, &key, &signature).as_signature();
            assert_eq!(verdict, Verdict::Wrong, "{mechanism:#x}");
        }
        let unknown = judged(0x4242, &key, &[]).as_signature();
        assert_eq!(unknown, Verdict::NotPossible);
    }

    #[test]
    fn curve_signatures_of_another_hash_are_wrong_and_digests_are_numbers() {
        let scheme = &sig::ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::generate(scheme).unwrap();
        let signature = pair.sign(&SystemRandom::new(), b"message").unwrap();
        let spec = KeySpec::Ec { curve: Curve::P256 };
        let key = KeyMaterial::public(spec, pair.public_key().as_ref()).unwrap();
        let right = judged(CKM_ECDSA_SHA256 as u64, &key, signature.as_ref());
        assert_eq!(right.as_signature(), Verdict::Right);
        let wrong = judged(CKM_ECDSA_SHA384 as u64, &key, signature.as_ref());
        assert_eq!(wrong.as_signature(), Verdict::Wrong);
        assert_eq!(digest_of_length(&[9; 48], 32), [9; 32]);
        assert_eq!(digest_of_length(&[1; 20], 32)[..13], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    /// NIST SP 800-38A, appendix F.1.1 and F.2.1; FIPS 180-4's example of SHA-256 is in aws-lc.
    #[test]
    fn cipher_texts_are_those_of_nist() {
        let bytes = |text: &str| hex::decode(text).unwrap();
        let key = KeyMaterial::secret(&bytes("2b7e151628aed2a6abf7158809cf4f3c"));
        let message = bytes("6bc1bee22e409f96e93d7e117393172a");
        let iv = std::array::from_fn(|at| at as u8);
        for (mechanism, expected) in [
            (CKM_AES_ECB, "3ad77bb40d7a3660a89ecaf32466ef97"),
            (CKM_AES_CBC, "7649abac8119b246cee98e9b12e9197d"),
        ] {
            let expected = bytes(expected);
            let judged = ResultToJudge {
                iv,
                message: &message,
                ..judged(mechanism as u64, &key, &expected)
            };
            assert_eq!(judged.as_cipher_text(), Verdict::Right);
            let other = ResultToJudge { message: &message[1..], ..judged };
            assert_ne!(other.as_cipher_text(), Verdict::Right);
        }
    }
}
