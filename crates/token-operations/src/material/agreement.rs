//! The other side of key agreement and encapsulation: peers that exist in software only.

use aws_lc_rs::agreement::{
    self, ECDH_P256, ECDH_P384, ECDH_P521, ParsedPublicKey, PrivateKey, UnparsedPublicKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{
    self, Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_512, ML_KEM_768, ML_KEM_1024,
};

use super::secret::SecretBytes;
use super::seeded::{Purpose, Seeded};
use crate::catalogue::{Curve, MlKem};

/// What one party makes public, and what stays with software.
pub(super) struct AgreementParty {
    /// A point, a cipher text, or an encapsulation key.
    pub(super) public: Vec<u8>,
    /// The shared secret; for [`recipient`] the decapsulation key.
    pub(super) secret: SecretBytes,
}

/// A new peer of the token's key on `curve`: its point, and the secret that both share.
/// The peer's private key is forgotten here.
pub(super) fn peer(
    curve: Curve,
    token_point: &[u8],
    seeded: &mut Seeded,
) -> Result<AgreementParty, Unspecified> {
    let algorithm = ecdh(curve);
    let private = private_key(curve, seeded);
    let token = UnparsedPublicKey::new(algorithm, token_point);
    let secret = agreement::agree(&private, token, Unspecified, |secret| Ok(secret.into()))?;
    Ok(AgreementParty { public: private.compute_public_key()?.as_ref().to_vec(), secret })
}

/// The public point of a party on `curve`, uncompressed (SEC 1, 2.3.3), whose private key is
/// forgotten. `None` where no such point can be made.
#[must_use]
pub fn peer_point(curve: Curve, seed: u64) -> Option<Vec<u8>> {
    let private = private_key(curve, &mut Seeded::new(seed, Purpose::Inputs));
    Some(private.compute_public_key().ok()?.as_ref().to_vec())
}

/// A private key from the seed: numbers are drawn until one is below the order of the curve
/// (FIPS 186-5, appendix A.2.2). P-521 uses one bit of its first byte.
fn private_key(curve: Curve, seeded: &mut Seeded) -> PrivateKey {
    let unused_bits = 8 * curve.field_bytes() as u32 - curve.bits();
    loop {
        let mut scalar = seeded.bytes(curve.field_bytes());
        scalar[0] &= 0xFF >> unused_bits;
        if let Ok(private) = PrivateKey::from_private_key(ecdh(curve), &scalar) {
            return private;
        }
    }
}

/// A secret encapsulated to the token's key: the cipher text, and the secret.
///
/// aws-lc draws the randomness, not the seed: only the cipher text in the record repeats it.
pub(super) fn encapsulate(set: MlKem, token_key: &[u8]) -> Result<AgreementParty, Unspecified> {
    let key = EncapsulationKey::new(ml_kem(set), token_key).map_err(|_| Unspecified)?;
    let (cipher_text, secret) = key.encapsulate()?;
    Ok(AgreementParty { public: cipher_text.as_ref().to_vec(), secret: secret.as_ref().into() })
}

/// A key pair for the token to encapsulate to: the encapsulation key, and its other half.
pub(super) fn recipient(set: MlKem) -> Result<AgreementParty, Unspecified> {
    let pair = DecapsulationKey::generate(ml_kem(set))?;
    let public = pair.encapsulation_key()?.key_bytes()?.as_ref().to_vec();
    Ok(AgreementParty { public, secret: pair.key_bytes()?.as_ref().into() })
}

/// The half of a [`recipient`] that opens what the token encapsulated.
pub(super) struct Recipient(DecapsulationKey);

impl Recipient {
    pub(super) fn new(set: MlKem, key: &SecretBytes) -> Result<Self, Unspecified> {
        let key = DecapsulationKey::new(ml_kem(set), key.expose()).map_err(|_| Unspecified)?;
        Ok(Self(key))
    }

    /// Does `cipher_text` decapsulate to `secret`?
    pub(super) fn opens_to(&self, cipher_text: &[u8], secret: &[u8]) -> bool {
        let found = self.0.decapsulate(Ciphertext::from(cipher_text));
        found.is_ok_and(|found| found.as_ref() == secret)
    }
}

/// Is `point` on the curve, and not at infinity?
pub(super) fn is_on_curve(curve: Curve, point: &[u8]) -> bool {
    ParsedPublicKey::try_from(UnparsedPublicKey::new(ecdh(curve), point)).is_ok()
}

fn ecdh(curve: Curve) -> &'static agreement::Algorithm {
    match curve {
        Curve::P256 => &ECDH_P256,
        Curve::P384 => &ECDH_P384,
        Curve::P521 => &ECDH_P521,
    }
}

fn ml_kem(set: MlKem) -> &'static kem::Algorithm {
    match set {
        MlKem::MlKem512 => &ML_KEM_512,
        MlKem::MlKem768 => &ML_KEM_768,
        MlKem::MlKem1024 => &ML_KEM_1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::material::seeded::Purpose;

    #[test]
    fn a_seed_gives_the_same_peer() {
        for curve in [Curve::P256, Curve::P384, Curve::P521] {
            let token = private_key(curve, &mut Seeded::new(1, Purpose::Inputs));
            let point = token.compute_public_key().unwrap();
            let peer = |seed| {
                peer(curve, point.as_ref(), &mut Seeded::new(seed, Purpose::Inputs)).unwrap()
            };
            assert_eq!(peer(2).public, peer(2).public);
            assert_ne!(peer(2).public, peer(3).public);
            assert_eq!(peer(2).secret.expose().len(), curve.field_bytes());
        }
    }
}
