//! Symmetric encryption in software: what a token's cipher text must be, and cipher texts for a
//! token to decrypt.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{self, EncryptingKey, EncryptionContext, PaddedBlockEncryptingKey};
use aws_lc_rs::error::Unspecified;

use crate::catalogue::{KeySpec, mechanism as ckm};
use crate::catalogue::{Parameters, Variant};

/// The IV of operation number `operation` of worker `worker` under GCM: both numbers, big-endian.
/// It never repeats under a key (NIST SP 800-38D, section 8.2.1, deterministic construction).
#[must_use]
pub fn gcm_iv(worker: u32, operation: u64) -> [u8; 12] {
    let mut iv = [0; 12];
    iv[..4].copy_from_slice(&worker.to_be_bytes());
    iv[4..].copy_from_slice(&operation.to_be_bytes());
    iv
}

/// Encrypts as `variant` does, GCM included; the tag follows the cipher text.
pub(super) fn encrypt(
    variant: &Variant,
    key: &[u8],
    iv: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>, Unspecified> {
    let mut buffer = plain.to_vec();
    if let Parameters::Gcm { .. } = variant.parameters {
        let nonce = Nonce::try_assume_unique_for_key(iv)?;
        gcm_key(key)?.seal_in_place_append_tag(nonce, Aad::empty(), &mut buffer)?;
        return Ok(buffer);
    }
    let algorithm = algorithm(variant.key).ok_or(Unspecified)?;
    let key = cipher::UnboundCipherKey::new(algorithm, key)?;
    let context = context(iv)?;
    match variant.mechanism.ok_or(Unspecified)? {
        ckm::CKM_AES_CBC | ckm::CKM_DES3_CBC => {
            EncryptingKey::cbc(key)?.less_safe_encrypt(&mut buffer, context)?
        }
        ckm::CKM_AES_CBC_PAD | ckm::CKM_DES3_CBC_PAD => {
            PaddedBlockEncryptingKey::cbc_pkcs7(key)?.less_safe_encrypt(&mut buffer, context)?
        }
        ckm::CKM_AES_CTR => EncryptingKey::ctr(key)?.less_safe_encrypt(&mut buffer, context)?,
        _ => return Err(Unspecified),
    };
    Ok(buffer)
}

/// A GCM key, scheduled once for many cipher texts.
pub(super) fn gcm_key(key: &[u8]) -> Result<LessSafeKey, Unspecified> {
    let algorithm = match key.len() {
        16 => &aead::AES_128_GCM,
        32 => &aead::AES_256_GCM,
        _ => return Err(Unspecified),
    };
    Ok(LessSafeKey::new(UnboundKey::new(algorithm, key)?))
}

/// Does `sealed` (cipher text, then tag) open to `plain`?
pub(super) fn opens_to(key: &LessSafeKey, iv: &[u8], sealed: &[u8], plain: &[u8]) -> bool {
    let mut buffer = sealed.to_vec();
    let nonce = Nonce::try_assume_unique_for_key(iv);
    nonce
        .and_then(|nonce| key.open_in_place(nonce, Aad::empty(), &mut buffer))
        .is_ok_and(|opened| opened == plain)
}

#[allow(deprecated)] // Triple DES is measured because tokens still do it.
fn algorithm(key: KeySpec) -> Option<&'static cipher::Algorithm> {
    Some(match key {
        KeySpec::Aes { bits: 128 } => &cipher::AES_128,
        KeySpec::Aes { bits: 256 } => &cipher::AES_256,
        KeySpec::Des3 => &cipher::DES_EDE3_FOR_LEGACY_USE_ONLY,
        _ => return None,
    })
}

fn context(iv: &[u8]) -> Result<EncryptionContext, Unspecified> {
    if let Ok(iv) = <&[u8; 16]>::try_from(iv) {
        return Ok(EncryptionContext::Iv128(iv.into()));
    }
    let iv = <&[u8; 8]>::try_from(iv).map_err(|_| Unspecified)?;
    Ok(EncryptionContext::Iv64(iv.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    fn encrypted(name: &str, key: &str, iv: &str, plain: &str) -> String {
        let variant = &Catalogue::builtin().select(name).unwrap()[0];
        let bytes = |text: &str| hex::decode(text).unwrap();
        hex::encode(encrypt(variant, &bytes(key), &bytes(iv), &bytes(plain)).unwrap())
    }

    const KEY_128: &str = "2b7e151628aed2a6abf7158809cf4f3c";
    const BLOCK: &str = "6bc1bee22e409f96e93d7e117393172a";

    /// NIST SP 800-38A, appendix F.2.1: CBC-AES128.Encrypt, first block.
    #[test]
    fn cbc_as_nist_has_it() {
        let iv = "000102030405060708090a0b0c0d0e0f";
        let expected = "7649abac8119b246cee98e9b12e9197d";
        assert_eq!(encrypted("aes128-cbc.encrypt", KEY_128, iv, BLOCK), expected);
        // A whole block of padding follows a whole block.
        let padded = encrypted("aes128-cbc.encrypt.pad", KEY_128, iv, BLOCK);
        assert_eq!((padded.len(), &padded[..32]), (64, expected));
    }

    /// NIST SP 800-38A, appendix F.5.1: CTR-AES128.Encrypt, first block.
    #[test]
    fn ctr_as_nist_has_it() {
        let counter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
        let expected = "874d6191b620e3261bef6864990db6ce";
        assert_eq!(encrypted("aes128-ctr.encrypt", KEY_128, counter, BLOCK), expected);
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 2 and 14.
    #[test]
    fn gcm_as_its_authors_have_it() {
        let zeros = "00".repeat(16);
        let iv = "00".repeat(12);
        assert_eq!(
            encrypted("aes128-gcm.encrypt", &zeros, &iv, &zeros),
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"
        );
        assert_eq!(
            encrypted("aes256-gcm.encrypt", &"00".repeat(32), &iv, &zeros),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
        );
    }

    /// NIST SP 800-67r1, appendix B.1, first block: ECB there, which a zero IV makes of CBC.
    #[test]
    fn triple_des_as_nist_has_it() {
        let key = "0123456789abcdef23456789abcdef01456789abcdef0123";
        let iv = "00".repeat(8);
        let block = "5468652071756663";
        assert_eq!(encrypted("3des-cbc.encrypt", key, &iv, block), "a826fd8ce53b855f");
    }

    #[test]
    fn an_iv_holds_worker_and_operation() {
        assert_eq!(hex::encode(gcm_iv(3, 0x1_0000_0002)), "000000030000000100000002");
    }
}
