//! What software knows of the token's key: its public half, or the value of a session key.

use serde::{Deserialize, Serialize};

use super::error::MaterialError;
use super::secret::SecretBytes;
use crate::catalogue::{KeySpec, Variant};

/// A key as software sees it. Private halves never leave the token, so there is none here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyMaterial {
    /// Nothing is known, or there is no key.
    None,
    /// `CKA_MODULUS` and `CKA_PUBLIC_EXPONENT`, big-endian, without leading zeros.
    Rsa {
        /// The modulus, big-endian without leading zeros.
        modulus: Vec<u8>,
        /// The public exponent, big-endian without leading zeros.
        exponent: Vec<u8>,
    },
    /// A public key as bytes of the length that its kind has: an uncompressed point (SEC 1,
    /// section 2.3.3), an Ed25519 key (RFC 8032), or a key of FIPS 203, 204 or
    /// 205.
    Public {
        /// The kind of key that the bytes are.
        spec: KeySpec,
        /// The bytes of the public key.
        value: Vec<u8>,
    },
    /// The value of a symmetric session key that may be read, or that was imported.
    Secret(SecretBytes),
}

impl KeyMaterial {
    /// An RSA public key from its attributes; leading zeros are dropped.
    #[must_use]
    pub fn rsa(modulus: &[u8], exponent: &[u8]) -> Self {
        Self::Rsa { modulus: trimmed(modulus).to_vec(), exponent: trimmed(exponent).to_vec() }
    }

    /// Any other public key, from `CKA_EC_POINT` or `CKA_VALUE`.
    ///
    /// PKCS#11 wants `CKA_EC_POINT` in a DER OCTET STRING, but tokens also return it bare; the
    /// length tells which.
    ///
    /// # Errors
    /// The length is neither, or the kind of key has no such attribute.
    pub fn public(spec: KeySpec, attribute: &[u8]) -> Result<Self, MaterialError> {
        let wrong = || MaterialError::NotAPublicKey { expected: spec, bytes: attribute.len() };
        let length = public_key_bytes(spec).ok_or_else(wrong)?;
        let value = match attribute.len() {
            bytes if bytes == length => attribute,
            _ => octet_string(attribute).filter(|inner| inner.len() == length).ok_or_else(wrong)?,
        };
        if matches!(spec, KeySpec::Ec { .. }) && value[0] != UNCOMPRESSED {
            return Err(wrong());
        }
        Ok(Self::Public { spec, value: value.to_vec() })
    }

    /// The value of a symmetric key.
    #[must_use]
    pub fn secret(value: &[u8]) -> Self {
        Self::Secret(value.into())
    }

    /// The modulus and the exponent, if this is an RSA key for `variant`.
    pub(super) fn expect_rsa(&self, variant: &Variant) -> Result<(&[u8], &[u8]), MaterialError> {
        match (self, variant.key) {
            (Self::None, _) => Err(unknown(variant)),
            (Self::Rsa { modulus, exponent }, KeySpec::Rsa { bits })
                if bit_length(modulus) == u64::from(bits) =>
            {
                Ok((modulus, exponent))
            }
            _ => Err(wrong(variant)),
        }
    }

    /// The public key, if it is of the kind that `variant` takes.
    pub(super) fn expect_public(&self, variant: &Variant) -> Result<&[u8], MaterialError> {
        match self {
            Self::None => Err(unknown(variant)),
            Self::Public { spec, value } if *spec == variant.key => Ok(value),
            _ => Err(wrong(variant)),
        }
    }

    /// The value of the secret key, if it is as long as `variant` takes.
    pub(super) fn expect_secret(&self, variant: &Variant) -> Result<&[u8], MaterialError> {
        match self {
            Self::None => Err(unknown(variant)),
            Self::Secret(value) if Some(value.expose().len()) == variant.key.secret_bytes() => {
                Ok(value.expose())
            }
            _ => Err(wrong(variant)),
        }
    }
}

/// The length in bits of a big-endian number without leading zeros.
pub(super) fn bit_length(number: &[u8]) -> u64 {
    let leading = number.first().map_or(0, |first| u64::from(first.leading_zeros()));
    8 * number.len() as u64 - leading
}

/// First byte of an uncompressed point (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 0x04;

fn public_key_bytes(spec: KeySpec) -> Option<usize> {
    match spec {
        KeySpec::Ec { curve } => Some(1 + 2 * curve.field_bytes()),
        KeySpec::Ed25519 => Some(32),
        KeySpec::MlDsa { set } => Some(set.public_key_bytes()),
        KeySpec::MlKem { set } => Some(set.public_key_bytes()),
        KeySpec::SlhDsa { set } => Some(set.public_key_bytes()),
        _ => None,
    }
}

/// The content of a DER OCTET STRING that fills `der` (X.690, section 8.1.3: short form of the
/// length up to 127 bytes, then 81 and one byte; no point needs more).
fn octet_string(der: &[u8]) -> Option<&[u8]> {
    let (length, content) = match der {
        [0x04, 0x81, length, content @ ..] if *length >= 0x80 => (*length, content),
        [0x04, length, content @ ..] if *length < 0x80 => (*length, content),
        _ => return None,
    };
    (content.len() == usize::from(length)).then_some(content)
}

fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

fn unknown(variant: &Variant) -> MaterialError {
    MaterialError::KeyUnknown { operation: variant.name.clone() }
}

fn wrong(variant: &Variant) -> MaterialError {
    MaterialError::WrongKey { operation: variant.name.clone(), expected: variant.key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Curve;

    fn point(curve: Curve) -> Vec<u8> {
        let mut point = vec![7; 1 + 2 * curve.field_bytes()];
        point[0] = UNCOMPRESSED;
        point
    }

    #[test]
    fn a_point_may_come_bare_or_in_an_octet_string() {
        let cases: [(Curve, &[u8]); 3] = [
            (Curve::P256, &[0x04, 65]),
            (Curve::P384, &[0x04, 97]),
            (Curve::P521, &[0x04, 0x81, 133]),
        ];
        for (curve, header) in cases {
            let spec = KeySpec::Ec { curve };
            let bare = point(curve);
            let wrapped = [header, &bare].concat();
            let expected = KeyMaterial::Public { spec, value: bare.clone() };
            assert_eq!(KeyMaterial::public(spec, &bare).unwrap(), expected);
            assert_eq!(KeyMaterial::public(spec, &wrapped).unwrap(), expected);
        }
    }

    #[test]
    fn other_attributes_are_refused() {
        let spec = KeySpec::Ec { curve: Curve::P256 };
        let mut compressed = point(Curve::P256);
        compressed[0] = 0x02;
        for attribute in [&[][..], &[0x04; 64], &[0x04, 0x41], &compressed] {
            assert!(KeyMaterial::public(spec, attribute).is_err(), "{attribute:?}");
        }
    }

    #[test]
    fn leading_zeros_are_not_part_of_a_modulus() {
        let key = KeyMaterial::rsa(&[0, 0x80, 1], &[0, 1, 0, 1]);
        assert_eq!(key, KeyMaterial::Rsa { modulus: vec![0x80, 1], exponent: vec![1, 0, 1] });
        assert_eq!(bit_length(&[0x80, 1]), 16);
        assert_eq!(bit_length(&[0x01, 0]), 9);
    }
}
