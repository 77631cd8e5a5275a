//! What the lab and the process that talks to the card say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;
use tapstone_piv::{AuthenticationMechanism as Mechanism, Dialogue, Time};
use tapstone_token::pin::Pin;

/// From the lab to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Open PC/SC's library; the board names a call that never returns.
    Open { board: PathBuf, setup: Box<Setup> },
    /// Carry out one authentication, at this moment or now.
    Run { mechanism: Mechanism, at: Option<Time> },
}

/// Everything that a door knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) reader: String,
    pub(super) certificates: Vec<Vec<u8>>,
    pub(super) crls: Option<Vec<Vec<u8>>>,
    pub(super) policy: Option<String>,
    pub(super) age_limit: Nanos,
    pub(super) module_time: Nanos,
    pub(super) pin: Option<Pin>,
    /// How long to wait for a reader that another program has, or for a card.
    pub(super) wait: Nanos,
}

/// From the worker to the lab.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The library is open, or why it is not.
    Opened(Result<(), String>),
    /// The worker waits, for this reason.
    Waiting(String),
    /// An authentication is over.
    Ran(Box<Ran>),
}

/// One authentication.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    /// When it began, on this machine's CLOCK_MONOTONIC.
    pub(super) start: Nanos,
    /// From the first command, or the connection, to the decision.
    pub(super) latency: Nanos,
    pub(super) dialogue: Dialogue,
    /// The card did not come back: nothing more is to be hoped for.
    pub(super) gave_up: bool,
}
