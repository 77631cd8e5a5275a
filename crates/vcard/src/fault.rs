//! What goes wrong with a card on purpose, so that whoever talks to it can show that he copes.

use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;

/// A fault, at the command of this number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InjectedFault {
    /// Counted from 1, over resets.
    pub at: u64,
    /// What goes wrong at that command.
    pub kind: FaultKind,
}

/// The kinds of faults that a profile can inject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// From then on every command takes so many times as long.
    Slow {
        /// The factor, more than 1.
        times: f64,
    },
    /// The command is never answered. The connection is closed after a while, or pcscd would wait
    /// for ever.
    Mute {
        /// How long after the command the connection is closed.
        closes_after: Nanos,
    },
    /// The card is pulled out half-way through the command.
    Removed,
    /// The command is carried out, but the answer is this word alone.
    WrongStatus(StatusWord),
    /// The card asks for more time so often without need.
    WaitingTimeExtension {
        /// How many requests for more time are sent.
        count: u32,
    },
}

/// No answer came, and none will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The card says nothing any more.
    Mute {
        /// When the connection is to be closed.
        closes_after: Nanos,
    },
    /// The card was pulled out.
    Removed {
        /// So long after the command came.
        after: Nanos,
    },
}
