//! The ciphers and hashes of the benchmark applet, each a call into a library.

use cbc::cipher::block_padding::{Iso7816, NoPadding};
use cbc::cipher::generic_array::GenericArray;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use tapstone_apdu::StatusWord;

/// Bytes of a block of DES.
pub(super) const DES_BLOCK: usize = 8;
/// Bytes of a block of AES.
pub(super) const AES_BLOCK: usize = 16;

/// Two-key Triple DES, CBC with a zero IV, ISO 9797-1 padding method 2 (which ISO 7816-4 took).
pub(super) fn tdes_encrypt(key: &[u8; 16], plain: &[u8]) -> Vec<u8> {
    let cipher = cbc::Encryptor::<des::TdesEde2>::new(key.into(), &GenericArray::default());
    cipher.encrypt_padded_vec_mut::<Iso7816>(plain)
}

/// The reverse; a length or padding that cannot be is refused.
pub(super) fn tdes_decrypt(key: &[u8; 16], sealed: &[u8]) -> Result<Vec<u8>, StatusWord> {
    if sealed.is_empty() || !sealed.len().is_multiple_of(DES_BLOCK) {
        return Err(StatusWord::WRONG_DATA);
    }
    let cipher = cbc::Decryptor::<des::TdesEde2>::new(key.into(), &GenericArray::default());
    cipher.decrypt_padded_vec_mut::<Iso7816>(sealed).map_err(|_| StatusWord::WRONG_DATA)
}

/// AES-128 in CBC mode with a zero IV and no padding; `plain` is whole blocks.
pub(super) fn aes128_encrypt(key: &[u8; 16], plain: &[u8]) -> Vec<u8> {
    let cipher = cbc::Encryptor::<aes::Aes128>::new(key.into(), &GenericArray::default());
    cipher.encrypt_padded_vec_mut::<NoPadding>(plain)
}

/// The same with AES-256.
pub(super) fn aes256_encrypt(key: &[u8; 32], plain: &[u8]) -> Vec<u8> {
    let cipher = cbc::Encryptor::<aes::Aes256>::new(key.into(), &GenericArray::default());
    cipher.encrypt_padded_vec_mut::<NoPadding>(plain)
}

/// How many 64-byte blocks SHA-1 and SHA-256 work through: the message, a byte and a length of
/// eight (FIPS 180-4, 5.1.1).
pub(super) const fn blocks_of_sha(bytes: usize) -> u32 {
    (bytes + 9).div_ceil(64) as u32
}
