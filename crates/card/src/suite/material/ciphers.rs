//! The block ciphers of the suites: CBC with a zero IV, as Java Card's ciphers start.

use aes::{Aes128, Aes256};
use cbc::Encryptor;
use cbc::cipher::block_padding::{Iso7816, NoPadding};
use cbc::cipher::{BlockEncryptMut, KeyIvInit};
use des::TdesEde2;

/// Two-key Triple DES with ISO 9797-1 padding method 2 (a bit, then zeros), which is that of
/// ISO 7816-4. The key has 16 bytes.
pub(super) fn triple_des_m2(key: &[u8], plain: &[u8]) -> Vec<u8> {
    Encryptor::<TdesEde2>::new_from_slices(key, &[0; 8])
        .expect("the key's length was checked")
        .encrypt_padded_vec_mut::<Iso7816>(plain)
}

/// AES-128 or AES-256 without padding, by the key's length; the text is in whole blocks.
pub(super) fn aes(key: &[u8], plain: &[u8]) -> Vec<u8> {
    let iv = [0; 16];
    match key.len() {
        16 => Encryptor::<Aes128>::new_from_slices(key, &iv)
            .expect("the key's length was checked")
            .encrypt_padded_vec_mut::<NoPadding>(plain),
        _ => Encryptor::<Aes256>::new_from_slices(key, &iv)
            .expect("the key's length was checked")
            .encrypt_padded_vec_mut::<NoPadding>(plain),
    }
}
