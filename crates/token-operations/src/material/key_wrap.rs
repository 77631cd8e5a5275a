//! AES key wrapping in software (RFC 3394, RFC 5649, NIST SP 800-38F).

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::key_wrap::{AES_128, AES_256, AesKek, KeyWrap as _, KeyWrapPadded as _};

use super::secret::SecretBytes;
use crate::catalogue::Mechanism;
use crate::catalogue::mechanism as ckm;

/// Wraps `value` as `mechanism` does. `CKM_AES_KEY_WRAP_PAD` is taken as RFC 5649.
pub(super) fn wrap(mechanism: Mechanism, kek: &[u8], value: &[u8]) -> Result<Vec<u8>, Unspecified> {
    // RFC 5649 adds up to seven bytes of padding and eight of its own.
    let mut wrapped = vec![0; value.len().next_multiple_of(8) + 8];
    let length = match mechanism {
        ckm::CKM_AES_KEY_WRAP => aes_kek(kek)?.wrap(value, &mut wrapped)?.len(),
        ckm::CKM_AES_KEY_WRAP_PAD | ckm::CKM_AES_KEY_WRAP_KWP => {
            aes_kek(kek)?.wrap_with_padding(value, &mut wrapped)?.len()
        }
        _ => return Err(Unspecified),
    };
    wrapped.truncate(length);
    Ok(wrapped)
}

/// A key-encryption key that checks what a token wrapped under it.
#[derive(Debug)]
pub(super) struct Unwrapping {
    pub(super) mechanism: Mechanism,
    pub(super) kek: SecretBytes,
}

impl Unwrapping {
    /// Does `wrapped` hold exactly `value`?
    pub(super) fn unwraps_to(&self, wrapped: &[u8], value: &[u8]) -> bool {
        match self.mechanism {
            ckm::CKM_AES_KEY_WRAP => self.plain(wrapped).is_ok_and(|found| found == value),
            ckm::CKM_AES_KEY_WRAP_KWP => self.padded(wrapped).is_ok_and(|found| found == value),
            // Tokens disagree about CKM_AES_KEY_WRAP_PAD: RFC 5649 for most, for the others
            // PKCS#7 padding inside RFC 3394, which PKCS#11 3.1 named CKM_AES_KEY_WRAP_PKCS7.
            ckm::CKM_AES_KEY_WRAP_PAD => {
                self.padded(wrapped).is_ok_and(|found| found == value)
                    || self.plain(wrapped).is_ok_and(|found| found == pkcs7_padded(value))
            }
            _ => false,
        }
    }

    fn plain(&self, wrapped: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut value = vec![0; wrapped.len()];
        Ok(aes_kek(self.kek.expose())?.unwrap(wrapped, &mut value)?.to_vec())
    }

    fn padded(&self, wrapped: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut value = vec![0; wrapped.len()];
        Ok(aes_kek(self.kek.expose())?.unwrap_with_padding(wrapped, &mut value)?.to_vec())
    }
}

fn aes_kek(kek: &[u8]) -> Result<AesKek, Unspecified> {
    match kek.len() {
        16 => AesKek::new(&AES_128, kek),
        _ => AesKek::new(&AES_256, kek),
    }
}

/// Pads to the eight-byte blocks of RFC 3394 (RFC 5652, section 6.3).
fn pkcs7_padded(value: &[u8]) -> Vec<u8> {
    let padding = 8 - value.len() % 8;
    let mut padded = value.to_vec();
    padded.resize(value.len() + padding, padding as u8);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        hex::decode(text).unwrap()
    }

    /// RFC 3394, section 4.6: a 256-bit key under a 256-bit key.
    #[test]
    fn plain_wrapping_as_the_rfc_has_it() {
        let kek = bytes("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
        let value = bytes("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f");
        let wrapped = bytes(
            "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21",
        );
        assert_eq!(wrap(ckm::CKM_AES_KEY_WRAP, &kek, &value).unwrap(), wrapped);
        let unwrapping = Unwrapping { mechanism: ckm::CKM_AES_KEY_WRAP, kek: kek.into() };
        assert!(unwrapping.unwraps_to(&wrapped, &value));
        assert!(!unwrapping.unwraps_to(&wrapped, &value[1..]));
    }

    #[test]
    fn both_readings_of_wrap_pad_are_right() {
        let kek = vec![9; 16];
        let value = vec![7; 32];
        let mechanism = ckm::CKM_AES_KEY_WRAP_PAD;
        let unwrapping = Unwrapping { mechanism, kek: kek.clone().into() };
        let rfc_5649 = wrap(mechanism, &kek, &value).unwrap();
        let pkcs7 = wrap(ckm::CKM_AES_KEY_WRAP, &kek, &pkcs7_padded(&value)).unwrap();
        assert_eq!((rfc_5649.len(), pkcs7.len()), (40, 48));
        for mut wrapped in [rfc_5649, pkcs7] {
            assert!(unwrapping.unwraps_to(&wrapped, &value));
            wrapped[3] ^= 1;
            assert!(!unwrapping.unwraps_to(&wrapped, &value));
        }
    }
}
