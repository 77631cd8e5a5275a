//! A suite as a worker gets it: steps to send, inputs to send with them, and no expected results.

use serde::{Deserialize, Serialize};
use tapstone_firewall::Declared;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The tests of a suite, laid out in lanes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SuiteJob {
    /// Sent once, before anything is measured: the application is selected, keys are loaded.
    pub prepare: Vec<Step>,
    /// Sent once, whatever happened, when all is over.
    pub clean_up: Vec<Step>,
    /// The cases. A round goes through all of them.
    pub lanes: Vec<JobCase>,
    /// Decides in which order each round does, and how far apart rounds are.
    pub seed: u64,
    /// Values that steps can name, in bytes.
    pub values: Vec<(String, Vec<u8>)>,
    /// The PIN that was given, padded as the steps want it; sent as `{pin}`.
    pub pin: Option<Secret>,
    /// The user allows what the suite says that it writes.
    pub allow_writes: bool,
}

/// A case: a test at one point of what it varies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobCase {
    /// Sent before each operation, not timed.
    pub before: Vec<Step>,
    /// The operation: timed from the first command to the last response.
    pub measure: Vec<Step>,
    /// Sent after each operation, not timed.
    pub after: Vec<Step>,
    /// The card is let go with SCARD_UNPOWER_CARD before each operation, and the connection that
    /// follows is the operation's first step.
    pub cold: bool,
    /// Inputs that operations take in turn; never empty.
    pub inputs: Vec<Vec<u8>>,
    /// Set-ups on the card in one operation.
    pub set_ups: u16,
    /// Operations on the card in one operation.
    pub operations: u16,
}

impl JobCase {
    /// Steps that come before those of the suite: connecting to a cold card, and taking it.
    #[must_use]
    pub const fn steps_before(&self) -> u16 {
        if self.cold { 2 } else { 0 }
    }
}

/// One command, or several that carry one piece of data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name in results and errors.
    pub name: String,
    /// CLA, INS, P1, P2.
    pub header: Vec<Piece>,
    /// The command data field, in pieces.
    pub data: Vec<Piece>,
    /// How many bytes of response data are expected at most.
    pub expected: Option<u32>,
    /// Send with extended length fields (ISO/IEC 7816-4, 5.2).
    pub extended: bool,
    /// What becomes of data that is longer than one command.
    pub split: Split,
    /// Send again, for the next chunk, until a response is shorter than this.
    pub read: Option<u16>,
    /// Status words that are well.
    pub expect: Vec<u16>,
    /// Keep the response data under this name.
    pub save: Option<String>,
    /// The response data is what is verified.
    pub output: bool,
    /// What the suite says that it does to the card.
    pub declared: DeclaredEffect,
}

/// What a suite says of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeclaredEffect {
    /// Nothing: what its standard says of the command decides.
    #[default]
    Nothing,
    /// It reads, where no standard says otherwise.
    Reads,
    /// It writes: it, or what it belongs to, says what.
    Writes,
}

impl From<DeclaredEffect> for Declared {
    fn from(effect: DeclaredEffect) -> Self {
        match effect {
            DeclaredEffect::Nothing => Self::Nothing,
            DeclaredEffect::Reads => Self::Reads,
            DeclaredEffect::Writes => Self::Writes,
        }
    }
}

/// What becomes of data that is longer than one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Split {
    /// The command is sent whole.
    #[default]
    None,
    /// Commands of this many bytes, each with its number as `{chunk}`.
    Chunks(u16),
    /// Command chaining (ISO 7816-4, 5.3.3).
    Chain,
}

/// A part of a header or a data field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// These bytes, the same each time.
    Bytes(Vec<u8>),
    /// A named value as it is.
    Value(String),
    /// A number of so many bytes, big-endian.
    Number {
        /// The name of the value that stands here.
        name: String,
        /// Its width in bytes.
        width: u8,
    },
}

/// Bytes that are never shown, and wiped when dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// These bytes, filled up with FF to so many.
    #[must_use]
    pub fn padded(bytes: &[u8], length: usize) -> Self {
        let mut all = Vec::with_capacity(bytes.len().max(length));
        all.extend_from_slice(bytes);
        all.resize(bytes.len().max(length), 0xFF);
        Self(all)
    }

    /// For the one command that needs it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}
