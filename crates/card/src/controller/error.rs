//! What can stand in the way of measuring, in words that say what to do.

use std::io;

use tapstone_names::pcsc::{PcscFailure, PcscFunction};
use thiserror::Error;

use tapstone_worker::WorkerProtocol;

use crate::protocol::{CardProtocol, Fault};

/// A worker process that is no more.
pub type Lost = tapstone_worker::Lost<PcscFunction>;

/// Whether the call in flight waits for another program's transaction.
fn waits_for_others(lost: &Lost) -> bool {
    lost.call().copied().is_some_and(CardProtocol::waits_for_others)
}

/// Why nothing could be measured.
#[derive(Debug, Error)]
pub enum CardMeasureError {
    /// No worker process could be started.
    #[error("cannot start a worker process: {0}")]
    Spawn(io::Error),
    /// PC/SC's library is missing.
    #[error("{0}")]
    NoLibrary(String),
    /// A call of PC/SC failed.
    #[error("{0}{hint}", hint = hint(.0.code.hint()))]
    Pcsc(PcscFailure),
    /// There is no reader.
    #[error("no reader\nhint: plug one in; pcscd's log says whether it has a driver for it")]
    NoReader,
    /// No reader has this name.
    #[error("no reader \"{name}\"\nhint: the readers are: {}", .known.join(", "))]
    UnknownReader {
        /// What was asked for.
        name: String,
        /// The readers that there are.
        known: Vec<String>,
    },
    /// More than one reader will do.
    #[error("more than one reader will do\nhint: choose one with --reader: {}", .0.join(", "))]
    ManyReaders(Vec<String>),
    /// There is no card.
    #[error("no card in {}: SCARD_E_NO_SMARTCARD\nhint: put a card into the reader; `tapstone vcard piv` is a virtual one", .0.join(", "))]
    NoCard(Vec<String>),
    /// A worker could not be made ready.
    #[error("{0}{hint}", hint = hint(.0.hint()))]
    Fault(Fault),
    /// The user ended it before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A worker is no more.
    #[error("{0}{hint}", hint = lost_hint(.0))]
    Lost(Lost),
}

/// Not by `#[from]`: its text is in the error's own.
impl From<Lost> for CardMeasureError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

fn hint(hint: Option<&str>) -> String {
    hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default()
}

fn lost_hint(lost: &Lost) -> &'static str {
    match lost {
        Lost::Hung { call: Some(PcscFunction::Transmit), .. } => {
            "\nhint: the card does not answer; take it out and put it in again, or give it longer with --timeout"
        }
        Lost::Hung { .. } if waits_for_others(lost) => {
            "\nhint: another program keeps its transaction with the card: end it, or wait longer with --wait"
        }
        Lost::Hung { .. } => {
            "\nhint: is pcscd still alive? Restart it, or give it longer with --timeout"
        }
        Lost::Crashed { .. }
        | Lost::BeyondBuffer { .. }
        | Lost::Unreachable(_)
        | Lost::Garbled(_) => "",
    }
}
