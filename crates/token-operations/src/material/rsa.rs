//! RSA with the public key: encryption for a token to decrypt, and PSS for short keys.
//!
//! Encryption draws its padding from the recorded seed, which only the `rsa` crate allows.
//! Signatures are checked by aws-lc wherever it accepts the key (see `signature`).
//! There is no private-key operation here, so timing is of no concern.

use rsa::sha2::Sha256;
use rsa::{BigUint, Oaep, Pkcs1v15Encrypt, Pss, RsaPublicKey};
use sha1::Sha1;

use super::seeded::Seeded;
use crate::catalogue::{Hash, Parameters};

/// The longest modulus that is accepted, in bits.
const MAX_MODULUS_BITS: usize = 8192;

/// Encrypts a short secret to the key: OAEP if the parameters say so, PKCS#1 v1.5 otherwise.
pub(super) fn encrypt(
    modulus: &[u8],
    exponent: &[u8],
    parameters: Parameters,
    plain: &[u8],
    seeded: &mut Seeded,
) -> rsa::Result<Vec<u8>> {
    let key = public_key(modulus, exponent)?;
    match parameters {
        Parameters::Oaep { hash: Hash::Sha1 } => {
            key.encrypt(seeded.generator(), Oaep::new::<Sha1>(), plain)
        }
        Parameters::Oaep { hash: Hash::Sha256 } => {
            key.encrypt(seeded.generator(), Oaep::new::<Sha256>(), plain)
        }
        Parameters::None => key.encrypt(seeded.generator(), Pkcs1v15Encrypt, plain),
        _ => Err(rsa::Error::InvalidPaddingScheme),
    }
}

/// Is `signature` a PSS signature with SHA-256 over `digest`, with a salt of 32 bytes?
pub(super) fn verifies_pss_sha256(key: &RsaPublicKey, digest: &[u8], signature: &[u8]) -> bool {
    let scheme = Pss::new_with_salt::<Sha256>(Hash::Sha256.output_bytes());
    key.verify(scheme, digest, signature).is_ok()
}

/// The key, from big-endian numbers.
pub(super) fn public_key(modulus: &[u8], exponent: &[u8]) -> rsa::Result<RsaPublicKey> {
    let number = BigUint::from_bytes_be;
    RsaPublicKey::new_with_max_size(number(modulus), number(exponent), MAX_MODULUS_BITS)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_SHA256};
    use rsa::pkcs1::DecodeRsaPublicKey as _;

    use super::*;
    use crate::material::signature::hashed;

    /// The path for short keys, on a key that aws-lc can sign with.
    #[test]
    fn pss_as_aws_lc_signs_it() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let mut signature = vec![0; 256];
        let random = aws_lc_rs::rand::SystemRandom::new();
        pair.sign(&RSA_PSS_SHA256, &random, b"message", &mut signature).unwrap();
        let key = RsaPublicKey::from_pkcs1_der(pair.public_key().as_ref()).unwrap();
        let digest = hashed(Hash::Sha256, b"message");
        assert!(verifies_pss_sha256(&key, &digest, &signature));
        signature[100] ^= 1;
        assert!(!verifies_pss_sha256(&key, &digest, &signature));
    }
}
