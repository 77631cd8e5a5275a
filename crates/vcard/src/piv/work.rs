//! What the PIV applet says it computed: the names by which a timing profile charges for it.
//!
//! | name | done once for |
//! | --- | --- |
//! | `object.read` | a GET DATA that found the object and may read it |
//! | `pin.verify` | each comparison of a PIN or PUK with the stored one |
//! | `pin.write` | each PIN or PUK that is replaced |
//! | `rsa2048.private`, `rsa3072.private` | a private-key operation on one block |
//! | `p256.sign`, `p384.sign` | an ECDSA signature of a hash that was given |
//! | `p256.ecdh`, `p384.ecdh` | a shared secret |
//! | `random` | a challenge from the card |
//!
//! Commands that are refused before they compute anything say nothing.

/// A data object is read.
pub const OBJECT_READ: &str = "object.read";
/// A PIN or PUK is compared with the stored one.
pub const PIN_VERIFY: &str = "pin.verify";
/// A PIN or PUK is replaced.
pub const PIN_WRITE: &str = "pin.write";
/// RSA 2048, private-key operation.
pub const RSA2048_PRIVATE: &str = "rsa2048.private";
/// RSA 3072, private-key operation.
pub const RSA3072_PRIVATE: &str = "rsa3072.private";
/// One signature by ECDSA on P-256.
pub const P256_SIGN: &str = "p256.sign";
/// One signature by ECDSA on P-384.
pub const P384_SIGN: &str = "p384.sign";
/// One key agreement by ECDH on P-256.
pub const P256_ECDH: &str = "p256.ecdh";
/// One key agreement by ECDH on P-384.
pub const P384_ECDH: &str = "p384.ecdh";
/// One random challenge from the card.
pub const RANDOM: &str = "random";
