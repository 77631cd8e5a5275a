//! The keys: put in part by part, used when complete, kept until cleared.

use num_bigint_dig::ModInverse;
use rsa::traits::PublicKeyParts;
use rsa::{BigUint, Pkcs1v15Encrypt, RsaPrivateKey};
use tapstone_apdu::StatusWord;
use zeroize::Zeroizing;

use super::cipher::{self, DES_BLOCK};
use super::work;
use crate::applet::Reply;

/// The key loaded under each id.
#[derive(Default)]
pub(super) struct Keys {
    parts: [Vec<Option<Zeroizing<Vec<u8>>>>; 6],
    /// RSA keys made of their parts, at first use.
    rsa: [Option<RsaPrivateKey>; 2],
}

/// An id of the table in COMMANDS.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyId {
    Tdes = 1,
    Rsa2048,
    Rsa1024,
    Aes128,
    Aes256,
    P256,
}

/// What was decrypted, and what it took.
pub(super) struct OpenedKey {
    pub(super) plain: Vec<u8>,
    work: [(&'static str, u32); 2],
}

impl OpenedKey {
    /// The reply after this work.
    pub(super) fn charge(&self, reply: Reply) -> Reply {
        self.work.iter().fold(reply, |reply, &(name, count)| reply.after(name, count))
    }
}

impl KeyId {
    pub(super) fn find(number: u8) -> Result<Self, StatusWord> {
        let all =
            [Self::Tdes, Self::Rsa2048, Self::Rsa1024, Self::Aes128, Self::Aes256, Self::P256];
        all.into_iter().find(|&id| id as u8 == number).ok_or(StatusWord::REFERENCE_NOT_FOUND)
    }

    /// A key that DECRYPT and LOAD can use.
    pub(super) fn find_decrypting(number: u8) -> Result<Self, StatusWord> {
        match Self::find(number)? {
            id @ (Self::Tdes | Self::Rsa2048 | Self::Rsa1024) => Ok(id),
            _ => Err(StatusWord::REFERENCE_NOT_FOUND),
        }
    }

    /// The number of parts and the length of each.
    const fn shape(self) -> (usize, usize) {
        match self {
            Self::Tdes | Self::Aes128 => (1, 16),
            Self::Aes256 | Self::P256 => (1, 32),
            // P, Q, the inverse of q modulo p, DP1, DQ1.
            Self::Rsa2048 => (5, 128),
            Self::Rsa1024 => (5, 64),
        }
    }

    const fn place(self) -> usize {
        self as usize - 1
    }
}

impl Keys {
    pub(super) fn put_key(&mut self, id: KeyId, part: u8, bytes: &[u8]) -> Result<(), StatusWord> {
        let (count, length) = id.shape();
        let part = usize::from(part);
        if part >= count {
            return Err(StatusWord::WRONG_PARAMETERS);
        }
        if bytes.len() != length {
            return Err(StatusWord::WRONG_LENGTH);
        }
        let parts = &mut self.parts[id.place()];
        parts.resize(count, None);
        parts[part] = Some(Zeroizing::new(bytes.to_vec()));
        self.forget_made(id);
        Ok(())
    }

    pub(super) fn clear(&mut self, id: KeyId) {
        self.parts[id.place()].clear();
        self.forget_made(id);
    }

    /// The key is complete.
    pub(super) fn require(&self, id: KeyId) -> Result<(), StatusWord> {
        let parts = &self.parts[id.place()];
        let complete = !parts.is_empty() && parts.iter().all(Option::is_some);
        if complete { Ok(()) } else { Err(StatusWord::CONDITIONS_NOT_SATISFIED) }
    }

    /// The key of one part, of so many bytes.
    pub(super) fn bytes<const N: usize>(&self, id: KeyId) -> Result<&[u8; N], StatusWord> {
        self.require(id)?;
        let part = self.parts[id.place()].first().and_then(Option::as_ref);
        part.and_then(|part| part.as_slice().try_into().ok())
            .ok_or(StatusWord::CONDITIONS_NOT_SATISFIED)
    }

    /// The RSA key; parts that are no key are wrong data.
    pub(super) fn rsa(&mut self, id: KeyId) -> Result<&RsaPrivateKey, StatusWord> {
        self.require(id)?;
        let parts = &self.parts[id.place()];
        let number = |part: usize| {
            parts[part].as_ref().map(|part| BigUint::from_bytes_be(part)).unwrap_or_default()
        };
        let made = &mut self.rsa[usize::from(id == KeyId::Rsa1024)];
        if made.is_none() {
            *made = rsa_key(number(0), number(1), &number(3));
        }
        made.as_ref().ok_or(StatusWord::WRONG_DATA)
    }

    /// As DECRYPT and LOAD do it.
    pub(super) fn decrypt(&mut self, id: KeyId, sealed: &[u8]) -> Result<OpenedKey, StatusWord> {
        let (init, operation, count) = match id {
            KeyId::Rsa2048 => (work::RSA2048_INIT, work::RSA2048_PRIVATE, 1),
            KeyId::Rsa1024 => (work::RSA1024_INIT, work::RSA1024_PRIVATE, 1),
            _ => {
                let key = self.bytes(KeyId::Tdes)?;
                let plain = cipher::tdes_decrypt(key, sealed)?;
                let blocks = (sealed.len() / DES_BLOCK) as u32;
                return Ok(OpenedKey {
                    plain,
                    work: [(work::TDES_INIT, 1), (work::TDES_BLOCK, blocks)],
                });
            }
        };
        let plain = rsa_decrypt(self.rsa(id)?, sealed)?;
        Ok(OpenedKey { plain, work: [(init, 1), (operation, count)] })
    }

    fn forget_made(&mut self, id: KeyId) {
        match id {
            KeyId::Rsa2048 => self.rsa[0] = None,
            KeyId::Rsa1024 => self.rsa[1] = None,
            _ => {}
        }
    }
}

/// PKCS #1 v1.5 (RFC 8017, 7.2.2).
pub(super) fn rsa_decrypt(key: &RsaPrivateKey, sealed: &[u8]) -> Result<Vec<u8>, StatusWord> {
    if sealed.len() != key.size() {
        return Err(StatusWord::WRONG_DATA);
    }
    // Without blinding: these keys protect nothing.
    key.decrypt(Pkcs1v15Encrypt, sealed).map_err(|_| StatusWord::WRONG_DATA)
}

/// The public exponent is the inverse of DP1 modulo p - 1 (RFC 8017, 3.2).
fn rsa_key(p: BigUint, q: BigUint, dp: &BigUint) -> Option<RsaPrivateKey> {
    let one = BigUint::from(1_u8);
    if p <= one || q <= one {
        return None;
    }
    let exponent = dp.mod_inverse(&p - &one)?.to_biguint()?;
    RsaPrivateKey::from_p_q(p, q, exponent).ok()
}
