//! Keys of a suite, from its values. They are for benchmarks and protect nothing.

use p256::SecretKey;
use rsa::{BigUint, RsaPrivateKey};

/// The public exponent of every RSA key in a suite: F4.
const EXPONENT: u32 = 65_537;

/// `KEY_p` and `KEY_q`, the primes.
pub(super) fn rsa(
    name: &str,
    value: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<RsaPrivateKey, String> {
    let prime = |part: &str| {
        let name = format!("{name}_{part}");
        let bytes = value(&name).ok_or_else(|| format!("values has no {name}"))?;
        Ok::<_, String>(BigUint::from_bytes_be(&bytes))
    };
    RsaPrivateKey::from_p_q(prime("p")?, prime("q")?, EXPONENT.into())
        .map_err(|why| format!("{name} is no RSA key: {why}"))
}

/// The private value of a P-256 key, 32 bytes.
pub(super) fn p256(
    name: &str,
    value: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<SecretKey, String> {
    let bytes = value(name).ok_or_else(|| format!("values has no {name}"))?;
    SecretKey::from_slice(&bytes).map_err(|_| format!("{name} is no private key of P-256"))
}

/// A symmetric key of one of these lengths in bytes.
pub(super) fn symmetric(
    name: &str,
    lengths: &[usize],
    value: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    let bytes = value(name).ok_or_else(|| format!("values has no {name}"))?;
    if lengths.contains(&bytes.len()) {
        return Ok(bytes);
    }
    Err(format!("{name} has {} bytes, not one of {lengths:?}", bytes.len()))
}
