//! What the controller and the process that talks to the card say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::PcscFunction;
use tapstone_pin::Pin;
use tapstone_piv::{AuthenticationMechanism, Dialogue, Time};
use tapstone_worker::WorkerProtocol;

use crate::files::TrustFiles;

/// From the controller to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DoorOrder {
    /// Open PC/SC's library; the board names a call that never returns.
    Open { board: PathBuf, setup: Box<DoorSetup> },
    /// Carry out one authentication, at this moment or now.
    Authenticate { mechanism: AuthenticationMechanism, at: Option<Time> },
}

/// The protocol between the controller and the process that talks to the card.
pub(crate) enum DoorProtocol {}

impl WorkerProtocol for DoorProtocol {
    type Order = DoorOrder;
    type Task = DoorOrder;
    type Report = DoorReport;
    type Call = PcscFunction;

    fn call_of_number(number: u8) -> Option<PcscFunction> {
        PcscFunction::from_number(number)
    }

    fn waits_for_others(call: PcscFunction) -> bool {
        matches!(call, PcscFunction::BeginTransaction | PcscFunction::Connect)
    }
}

/// Everything that a door knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DoorSetup {
    /// The reader's name in PC/SC.
    pub reader: String,
    /// Whom the door believes.
    pub trust: TrustFiles,
    /// The policies that are asked for.
    pub policy: PolicyChoice,
    /// How old a check made beforehand may be.
    pub age_limit: Nanos,
    /// How long path validation takes at least: another module's time, replayed.
    pub module_time: Nanos,
    /// For mechanisms that need it.
    pub pin: Option<Pin>,
    /// How long to wait for a reader that another program has, or for a card.
    pub wait: Nanos,
}

/// The policies that are asked for, as they travel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyChoice {
    /// Those of the Common Policy and of PIV-I.
    #[default]
    Usual,
    /// Any policy will do, and none too.
    Any,
    /// This one, an object identifier in dotted decimals.
    One(String),
}

/// From the worker to the controller.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DoorReport {
    /// The library is open, or why it is not.
    Opened(Result<(), String>),
    /// The worker waits, for this reason.
    Waiting(String),
    /// An authentication is over.
    Authenticated(Box<Authentication>),
}

/// One authentication of a card, with its steps and its decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Authentication {
    /// When it began, on this machine's CLOCK_MONOTONIC.
    pub start: Nanos,
    /// From the first command, or the connection, to the decision.
    pub latency: Nanos,
    /// What was said, and what was decided.
    pub dialogue: Dialogue,
    /// The card did not come back: nothing more is to be hoped for.
    pub gave_up: bool,
}
