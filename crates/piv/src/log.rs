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

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(cla: u8, ins: u8, time: u64) -> ApduExchange {
        ApduExchange {
            step: DialogueStep::Select,
            header: [cla, ins, 0, 0],
            sent: 5,
            received: 258,
            status: 0x9000,
            time: Nanos(time),
        }
    }

    /// GET RESPONSE is C0, and a chained command has bit 5 of CLA (ISO/IEC 7816-4, 5.1.1).
    #[test]
    fn transfers_are_known_by_their_headers() {
        for (cla, ins, is_transfer) in [
            (0x00, 0xC0, true),
            (0x10, 0x87, true),
            (0x1C, 0xDB, true),
            (0x00, 0x87, false),
            (0x0C, 0xCB, false),
        ] {
            assert_eq!(exchange(cla, ins, 1).is_transfer(), is_transfer, "{cla:02X} {ins:02X}");
        }
        assert_eq!(exchange(0, 0xCB, 1).bytes(), 263);
    }

    #[test]
    fn times_are_summed_by_step_and_for_the_card() {
        let mut log = DialogueLog::with_room();
        assert!(log.steps.capacity() >= 16 && log.exchanges.capacity() >= 64);
        assert_eq!((log.step(DialogueStep::Validate), log.card()), (None, Nanos::ZERO));
        for (step, time) in [
            (DialogueStep::Connect, 1000),
            (DialogueStep::Validate, 30),
            (DialogueStep::Select, 7),
            (DialogueStep::Validate, 12),
        ] {
            log.steps.push((step, Nanos(time)));
        }
        log.exchanges = vec![exchange(0, 0xA4, 5), exchange(0, 0xCB, 600)];
        assert_eq!(log.step(DialogueStep::Validate), Some(Nanos(42)));
        assert_eq!(log.card(), Nanos(1605), "the connection, and both commands");
    }
}
