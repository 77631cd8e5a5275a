//! Where the time of a dialogue went.

use std::fmt;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

/// A part of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DialogueStep {
    /// The card is powered and connected to.
    Connect,
    /// SELECT of the PIV application.
    Select,
    /// GET DATA of a certificate.
    ReadCertificate,
    /// GET DATA of the CHUID, or of its start.
    ReadChuid,
    /// VERIFY of the PIN.
    Pin,
    /// GENERAL AUTHENTICATE with a fresh challenge, and the check of the signature.
    Challenge,
    /// Path validation and revocation.
    Validate,
}

impl DialogueStep {
    /// As cases are called: `read-certificate`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Select => "select",
            Self::ReadCertificate => "read-certificate",
            Self::ReadChuid => "read-chuid",
            Self::Pin => "pin",
            Self::Challenge => "challenge",
            Self::Validate => "validate",
        }
    }
}

impl fmt::Display for DialogueStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A command and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApduExchange {
    /// What it was part of.
    pub step: DialogueStep,
    /// CLA, INS, P1, P2.
    pub header: [u8; 4],
    /// Bytes of the command.
    pub sent: u32,
    /// Bytes of the response, status word included.
    pub received: u32,
    /// The status word: SW1 in the high byte, SW2 in the low byte.
    pub status: u16,
    /// How long the card's answer took.
    pub time: Nanos,
}

impl ApduExchange {
    /// It only moved bytes: GET RESPONSE, or a command with more of its chain to come.
    #[must_use]
    pub const fn is_transfer(&self) -> bool {
        self.header[1] == 0xC0 || self.header[0] & 0x10 != 0
    }

    /// Bytes of command and response together.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.sent + self.received
    }
}

/// Where the time of a dialogue went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogueLog {
    /// Steps in the order of their ends. With `overlap` they lie beside each other.
    pub steps: Vec<(DialogueStep, Nanos)>,
    /// All command APDUs, in the order in which they were sent.
    pub exchanges: Vec<ApduExchange>,
    /// Of the validation, what was waited in place of a slower module.
    pub replayed: Nanos,
    /// What nothing fresh says whether it is revoked, in sentences.
    pub unchecked: Vec<String>,
    /// What was fetched to find a path, in sentences.
    pub fetched: Vec<String>,
}

impl DialogueLog {
    /// Room for a dialogue, so that nothing is allocated while it is timed.
    pub(crate) fn with_room() -> Self {
        Self {
            steps: Vec::with_capacity(16),
            exchanges: Vec::with_capacity(64),
            replayed: Nanos::ZERO,
            unchecked: Vec::new(),
            fetched: Vec::new(),
        }
    }

    /// The time of a step; `None` when the dialogue did not have it.
    #[must_use]
    pub fn step(&self, step: DialogueStep) -> Option<Nanos> {
        let mut times = self.steps.iter().filter(|(of, _)| *of == step).map(|(_, time)| *time);
        times.next().map(|first| times.fold(first, |sum, time| sum + time))
    }

    /// The time in the card and on the way to it.
    #[must_use]
    pub fn card(&self) -> Nanos {
        let connect = self.step(DialogueStep::Connect).unwrap_or_default();
        connect + self.exchanges.iter().map(|exchange| exchange.time).sum()
    }
}
