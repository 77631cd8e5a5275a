//! Checking of SLH-DSA signatures (FIPS 205), which aws-lc does not do.

use fips205::traits::{SerDes as _, Verifier as _};

use crate::catalogue::SlhDsa;

/// A public key, ready to check many signatures.
pub(super) struct SlhDsaKey {
    pub(super) set: SlhDsa,
    /// As long as [`SlhDsa::public_key_bytes`] says.
    pub(super) value: Vec<u8>,
}

/// Calls the module of the parameter set; what is not as long as it wants is no signature.
macro_rules! verify_with {
    ($module:ident, $key:expr, $message:expr, $signature:expr) => {{
        let key = $key.try_into().ok().map(fips205::$module::PublicKey::try_from_bytes);
        match (key, $signature.try_into()) {
            (Some(Ok(key)), Ok(signature)) => key.verify($message, signature, NO_CONTEXT),
            _ => false,
        }
    }};
}

/// The context of `CKM_SLH_DSA` without parameters (PKCS#11 3.2, section 6.69.5).
const NO_CONTEXT: &[u8] = &[];

impl SlhDsaKey {
    /// Is `signature` a pure one over `message` (FIPS 205, algorithm 24)?
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = self.value.as_slice();
        match self.set {
            SlhDsa::Sha2_128s => verify_with!(slh_dsa_sha2_128s, key, message, signature),
            SlhDsa::Sha2_128f => verify_with!(slh_dsa_sha2_128f, key, message, signature),
            SlhDsa::Sha2_192s => verify_with!(slh_dsa_sha2_192s, key, message, signature),
            SlhDsa::Sha2_192f => verify_with!(slh_dsa_sha2_192f, key, message, signature),
            SlhDsa::Sha2_256s => verify_with!(slh_dsa_sha2_256s, key, message, signature),
            SlhDsa::Sha2_256f => verify_with!(slh_dsa_sha2_256f, key, message, signature),
            SlhDsa::Shake128s => verify_with!(slh_dsa_shake_128s, key, message, signature),
            SlhDsa::Shake128f => verify_with!(slh_dsa_shake_128f, key, message, signature),
            SlhDsa::Shake192s => verify_with!(slh_dsa_shake_192s, key, message, signature),
            SlhDsa::Shake192f => verify_with!(slh_dsa_shake_192f, key, message, signature),
            SlhDsa::Shake256s => verify_with!(slh_dsa_shake_256s, key, message, signature),
            SlhDsa::Shake256f => verify_with!(slh_dsa_shake_256f, key, message, signature),
        }
    }
}
