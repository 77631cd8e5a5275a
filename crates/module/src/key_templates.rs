//! Attribute templates of the keys that a measurement makes (PKCS #11 3.2, 4.8 to 4.10).

use cryptoki_sys::*;

use crate::Template;
use tapstone_token_operations::catalogue::KeySpec;

/// What the keys of an operation are allowed to do, as the `CKA_…` flags that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// Of a private or secret key.
    pub used_half: CK_ATTRIBUTE_TYPE,
    /// Of the public half; a secret key has both.
    pub other_half: CK_ATTRIBUTE_TYPE,
}

/// Who may see a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAccess {
    /// Its value can be read: `CKA_SENSITIVE` is false and `CKA_EXTRACTABLE` true.
    pub readable: bool,
    /// `CKA_PRIVATE`: only after a login.
    pub private: bool,
}

/// A secret key for an operation; both directions, as an application's key has them.
pub fn secret_key(key: KeySpec, usage: KeyUsage, access: KeyAccess) -> Template {
    let mut template = Template::new()
        .number(CKA_CLASS, CKO_SECRET_KEY)
        .number(CKA_KEY_TYPE, key.key_type().unwrap_or(CKK_GENERIC_SECRET))
        .flag(CKA_PRIVATE, access.private)
        .flag(CKA_SENSITIVE, !access.readable)
        .flag(CKA_EXTRACTABLE, access.readable)
        .flag(usage.used_half, true)
        .flag(usage.other_half, true);
    // The length of a DES key is fixed, and some tokens refuse to be told (PKCS #11 3.2, 6.15).
    if let (Some(bytes), false) = (key.secret_bytes(), key == KeySpec::Des3) {
        template = template.number(CKA_VALUE_LEN, bytes as CK_ULONG);
    }
    template
}

/// The private half of a pair for an operation. It is never readable.
pub fn private_half(usage: KeyUsage, access: KeyAccess) -> Template {
    Template::new()
        .flag(CKA_PRIVATE, access.private)
        .flag(CKA_SENSITIVE, true)
        .flag(CKA_EXTRACTABLE, false)
        .flag(usage.used_half, true)
}

/// The public half, in each way to name what is wanted: tokens differ in how they want an Edwards
/// curve to be named.
pub fn public_halves(key: KeySpec, usage: KeyUsage) -> Vec<Template> {
    // A public EC key derives nothing; some tokens refuse the flag.
    let base = || match usage.other_half {
        CKA_DERIVE => Template::new(),
        usage => Template::new().flag(usage, true),
    };
    match key {
        KeySpec::Rsa { bits } => vec![
            base()
                .number(CKA_MODULUS_BITS, bits as CK_ULONG)
                .bytes(CKA_PUBLIC_EXPONENT, &[0x01, 0x00, 0x01]),
        ],
        key => match key.parameter_set() {
            Some(set) => vec![base().number(CKA_PARAMETER_SET, set)],
            None => {
                key.ec_params().iter().map(|params| base().bytes(CKA_EC_PARAMS, params)).collect()
            }
        },
    }
}
