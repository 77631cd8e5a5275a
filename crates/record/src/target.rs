//! What was measured, identified well enough to measure it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was measured. Parts that it does not have are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Which kind of thing it is.
    pub kind: TargetKind,
    /// Set when it was no real device. Whoever shows a figure of this record says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Emulated>,
    /// The PKCS#11 module of a token, as a file and in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// What the PKCS#11 module says of itself (C_GetInfo).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// The PKCS#11 tokens, in the order in which work was given to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// The smart-card reader of a card, as PC/SC names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Reader>,
    /// The smart card, by its ATR and the application on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
    /// The daemon between client and reader, usually pcscd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<Daemon>,
    /// The program that was run under observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

impl Target {
    /// A target of which only the kind is known yet.
    #[must_use]
    pub const fn new(kind: TargetKind) -> Self {
        Self {
            kind,
            emulated: None,
            module: None,
            library: None,
            tokens: Vec::new(),
            reader: None,
            card: None,
            daemon: None,
            program: None,
        }
    }
}

/// Which kind of thing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A PKCS#11 token: an HSM, a card behind middleware, a software token.
    Token,
    /// A smart card, by APDUs.
    Card,
    /// The PC/SC service itself.
    Pcsc,
    /// A card at a door: a whole access-control transaction.
    Door,
    /// A program under observation.
    Command,
}

impl TargetKind {
    /// The kind in a word, as records and files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Card => "card",
            Self::Pcsc => "pcsc",
            Self::Door => "door",
            Self::Command => "command",
        }
    }
}

/// What stood in for a real device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Emulated {
    /// The name of the timing profile.
    pub profile: String,
    /// The SHA-256 of the profile's file, in hexadecimal.
    pub sha256: String,
}

/// A PKCS#11 module on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Its path, as it was loaded.
    pub path: String,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// What a PKCS#11 module says of itself (CK_INFO).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Library {
    /// libraryDescription, without its padding.
    pub description: String,
    /// libraryVersion of CK_INFO, as `major.minor` (PKCS#11 v3.1, 3.1).
    pub version: String,
    /// manufacturerID, without its padding.
    pub manufacturer: String,
    /// cryptokiVersion of CK_INFO, as `major.minor` (PKCS#11 v3.1, 3.1).
    pub cryptoki_version: String,
}

/// A PKCS#11 token (CK_TOKEN_INFO) and the slot that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// The slot that it is in.
    pub slot: Slot,
    /// label, without its padding.
    pub label: String,
    /// manufacturerID, without its padding.
    pub manufacturer: String,
    /// model, without its padding.
    pub model: String,
    /// serialNumber, without its padding.
    pub serial: String,
    /// firmwareVersion of CK_TOKEN_INFO, as `major.minor` (PKCS#11 v3.1, 3.2).
    pub firmware_version: String,
    /// hardwareVersion of CK_TOKEN_INFO, as `major.minor` (PKCS#11 v3.1, 3.2).
    pub hardware_version: String,
    /// flags, by the names of the specification, for example `CKF_LOGIN_REQUIRED`.
    pub flags: Vec<String>,
}

/// A PKCS#11 slot (CK_SLOT_INFO).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// Its CK_SLOT_ID, which may change from one start of the module to the next.
    pub id: u64,
    /// slotDescription, without its padding.
    pub description: String,
}

/// A smart-card reader, as PC/SC knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reader {
    /// The reader's name in PC/SC.
    pub name: String,
    /// The driver's version, where the service tells (SCARD_ATTR_VENDOR_IFD_VERSION).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
}

/// A smart card, by what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Card {
    /// Its answer to reset, in hexadecimal.
    pub atr: String,
    /// The protocol that was agreed on: `T=0`, `T=1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What the card is, as far as it was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The daemon between client and reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Daemon {
    /// Its name, usually `pcscd`.
    pub name: String,
    /// The version of the process that answered, as its own file prints it.
    pub version: String,
}

/// A program that was run under observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its path, as it was run.
    pub path: String,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_called_as_the_record_spells_it() {
        for kind in [
            TargetKind::Token,
            TargetKind::Card,
            TargetKind::Pcsc,
            TargetKind::Door,
            TargetKind::Command,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
