//! What an agent allows at most, as its configuration says it.

use serde::Deserialize;

/// How much load a coordinator may ask of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Measuring threads, all processes together.
    pub threads: u32,
    /// The number of worker processes.
    pub processes: u32,
    /// Operations a second that an open load may ask for, all processes together.
    pub rate: u32,
    /// How long a case may take, from the order to warm up to its end.
    pub seconds: u32,
    /// Operations that a counted case may ask for, all processes together.
    pub operations: u64,
}

impl Default for Limits {
    /// As many threads and processes as `--find-limit` tries by default, and an hour.
    fn default() -> Self {
        Self { threads: 256, processes: 64, rate: 100_000, seconds: 3_600, operations: 100_000_000 }
    }
}

/// What may be done with an existing key besides signing and encrypting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyOperation {
    /// `C_Decrypt`.
    Decrypt,
    /// `C_UnwrapKey`.
    Unwrap,
    /// `C_WrapKey`.
    Wrap,
    /// `C_DeriveKey`.
    Derive,
    /// `C_DecapsulateKey`.
    Decapsulate,
}

impl KeyOperation {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Decrypt => "decrypt",
            Self::Unwrap => "unwrap",
            Self::Wrap => "wrap",
            Self::Derive => "derive",
            Self::Decapsulate => "decapsulate",
        }
    }
}
