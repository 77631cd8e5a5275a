//! What the controller and a measuring process say to each other, as frames of [`tapstone_worker`].
//!
//! Operations on cards and on PC/SC are so few (a hundred thousand a second at most) that each
//! travels by itself; every figure is made from them by the controller.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::{PcscFailure, PcscFunction};
use tapstone_worker::WorkerProtocol;

use crate::pcsc::PcscOperation;
use crate::suite::job::SuiteJob;

/// From the controller to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Open PC/SC's library; the board names the call in flight if one never returns.
    Open {
        /// The path of the shared memory in which the worker notes its calls.
        board: PathBuf,
    },
    /// Look at the readers, and at these cards.
    Look(Cards),
    /// Get ready to measure.
    Prepare(Box<Job>),
    /// All workers are ready: measure from this moment on.
    Go {
        /// On this machine's CLOCK_MONOTONIC.
        at: Nanos,
    },
    /// Start no further operation.
    Close,
}

/// The protocol between the controller and workers that talk to PC/SC.
#[derive(Clone, Copy, Debug)]
pub enum CardProtocol {}

impl WorkerProtocol for CardProtocol {
    type Order = Order;
    type Task = Order;
    type Report = Report;
    type Call = PcscFunction;

    fn call_of_number(number: u8) -> Option<PcscFunction> {
        PcscFunction::from_number(number)
    }

    /// In these, pcsc-lite's client asks again and again while another program has a transaction
    /// with the card.
    fn waits_for_others(call: PcscFunction) -> bool {
        use PcscFunction::{BeginTransaction, Connect, GetAttrib, Reconnect, Status};
        matches!(call, BeginTransaction | Connect | GetAttrib | Reconnect | Status)
    }
}

/// Which cards are looked at: that powers them, and makes them say what they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cards {
    /// None; only whether there are any.
    None,
    /// The one in this reader.
    In(String),
    /// Every reader with a card in it.
    All,
}

/// What one worker is to measure, and on which card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The reader's name; empty where none is needed.
    pub reader: String,
    /// What is measured: calls of PC/SC, or a suite of APDUs.
    pub work: JobWork,
    /// Operations before the start that do not count, for so long; none in no time.
    pub warm_up: Nanos,
    /// How many operations; without it [`Order::Close`] ends them.
    pub count: Option<u64>,
    /// How long to wait for a reader that another program has for itself.
    pub wait: Duration,
}

/// The work of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum JobWork {
    /// One call of PC/SC, over and over.
    Pcsc {
        /// Which call of PC/SC is measured.
        operation: PcscOperation,
        /// How long a transaction is held, outside what is timed.
        hold: Duration,
    },
    /// The tests of a suite.
    Suite(Box<SuiteJob>),
}

/// From a worker to the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The library is open, or why it is not.
    Opened(Result<(), String>),
    /// The readers that there are, or the call that failed.
    Readers(Result<Vec<Reader>, PcscFailure>),
    /// Another program has the reader for itself; the worker waits.
    Waiting,
    /// The worker is ready to measure, or why it is not.
    Ready(Result<Ready, Fault>),
    /// Operations since the last report, in order.
    Samples(Vec<Sample>),
    /// The worker has ended its part; no more operations follow.
    Done(Done),
}

/// A reader and the card in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    /// Its name in PC/SC.
    pub name: String,
    /// There is a card in it.
    pub card_present: bool,
    /// Another program has it for itself.
    pub exclusive: bool,
    /// The card's answer to reset.
    pub atr: Option<Vec<u8>>,
    /// The protocol of the card in it: `T=0` or `T=1` (ISO/IEC 7816-3).
    pub protocol: Option<String>,
    /// The driver's version, where it tells.
    pub driver_version: Option<String>,
    /// What a virtual card says that it plays.
    pub emulated: Option<Emulated>,
}

/// What a virtual card says that it plays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulated {
    /// The name of the timing profile.
    pub profile: String,
    /// The SHA-256 of the profile's file, in hexadecimal.
    pub sha256: String,
}

/// A worker that is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Durations of the operations that do not count.
    pub warm_up: Vec<Nanos>,
    /// What the suite's preparation saved, for those who verify.
    pub saved: Vec<(String, Vec<u8>)>,
    /// Lanes that this card cannot do, and why.
    pub unsupported: Vec<(u16, Fault)>,
    /// How many lanes a round goes through.
    pub lanes: u16,
}

/// One operation as it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Which of the job's cases.
    pub lane: u16,
    /// The operation's number: the input follows from it.
    pub number: u64,
    /// On the machine's CLOCK_MONOTONIC.
    pub start: Nanos,
    /// From start to end.
    pub latency: Nanos,
    /// What went wrong; `None` of an operation that ended well.
    pub fault: Option<Fault>,
    /// The exchanges with the card, in order.
    pub exchanges: Vec<Exchange>,
    /// What is to be verified.
    pub output: Vec<u8>,
}

/// A command and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Which step of the test.
    pub step: u16,
    /// How long SCardTransmit took.
    pub time: Nanos,
    /// Bytes of the command.
    pub sent: u32,
    /// Bytes of the response, status word included.
    pub received: u32,
    /// It fetched more of the answer to the command before it: GET RESPONSE.
    pub fetched: bool,
}

/// Why a worker ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// It gave up after this.
    pub gave_up: Option<Fault>,
    /// Cleaning up failed: this is left.
    pub left: Option<Fault>,
}

/// What can go wrong in an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A call of PC/SC failed.
    Call {
        /// The function and what it returned.
        failure: PcscFailure,
        /// The step of the test that it was part of.
        step: Option<String>,
    },
    /// The card answered with another status word than the test expects.
    Status {
        /// The name of the step whose status word was not expected.
        step: String,
        /// The status word that the card gave.
        status: Word,
    },
    /// The card's answer is no response APDU, or not what the step needs.
    Garbage {
        /// The name of the step that the answer belongs to.
        step: String,
        /// What is wrong with it.
        why: String,
    },
    /// The card did not take the PIN. Nothing that holds a PIN may follow.
    Pin {
        /// The name of the step that gave the PIN.
        step: String,
        /// What the card said.
        status: Word,
    },
    /// The user ended it.
    Interrupted,
    /// Everything was carried out, and the answer is no.
    Decision {
        /// One word for a record.
        code: String,
        /// Why the answer is no, as a sentence.
        why: String,
    },
    /// The tool will not go on, for the card's sake.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// A status word on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word(pub u16);

impl From<StatusWord> for Word {
    fn from(status: StatusWord) -> Self {
        Self(status.0)
    }
}

impl From<PcscFailure> for Fault {
    fn from(failure: PcscFailure) -> Self {
        Self::Call { failure, step: None }
    }
}

impl Fault {
    /// The code, for a record: `SCARD_W_REMOVED_CARD`, `6A82`.
    #[must_use]
    pub fn code(&self) -> String {
        match self {
            Self::Call { failure, .. } => failure.code.to_string(),
            Self::Status { status, .. } | Self::Pin { status, .. } => {
                StatusWord(status.0).to_string()
            }
            Self::Decision { code, .. } => code.clone(),
            Self::Interrupted => "interrupted".to_owned(),
            Self::Garbage { .. } => "garbage".to_owned(),
            Self::Refused { .. } => "refused".to_owned(),
        }
    }

    /// The step or call that it happened in.
    #[must_use]
    pub fn step(&self) -> String {
        match self {
            Self::Call { failure, step: Some(step) } => format!("{} ({step})", failure.call),
            Self::Call { failure, step: None } => failure.call.to_string(),
            Self::Status { step, .. } | Self::Garbage { step, .. } | Self::Pin { step, .. } => {
                step.clone()
            }
            Self::Decision { .. } => "decision".to_owned(),
            Self::Interrupted | Self::Refused { .. } => "safety".to_owned(),
        }
    }

    /// Whether nothing more may follow: the card, or the way to it, is gone, or the PIN was wrong
    /// and another try would cost one more.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Status { .. } | Self::Decision { .. })
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Call { failure, .. } => failure.code.hint(),
            Self::Status { status, .. } => match status.0 {
                0x6982 => Some("the command needs a PIN first, or another one"),
                0x6983 => {
                    Some("the PIN is blocked: unblock it with the PUK, with the card's own tool")
                }
                0x6D00 | 0x6E00 | 0x6A81 => Some("the card does not have this function"),
                0x6A82 | 0x6999 => Some("is it the right card, and is the application on it?"),
                _ => None,
            },
            Self::Pin { .. } => Some("it is tried once: look at the PIN before you try again"),
            Self::Garbage { .. }
            | Self::Decision { .. }
            | Self::Interrupted
            | Self::Refused { .. } => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { failure, step: Some(step) } => write!(f, "{step}: {failure}"),
            Self::Call { failure, step: None } => write!(f, "{failure}"),
            Self::Status { step, status } => {
                let status = StatusWord(status.0);
                write!(f, "{step}: status word {status}, {}", status.meaning())
            }
            Self::Pin { step, status } => {
                let status = StatusWord(status.0);
                write!(f, "{step}: the card did not take the PIN: {status}, {}", status.meaning())?;
                match status.tries() {
                    Some(1) => write!(f, " (1 try left)"),
                    Some(tries) => write!(f, " ({tries} tries left)"),
                    None => Ok(()),
                }
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::Garbage { step, why } => write!(f, "{step}: {why}"),
            Self::Decision { why, .. } | Self::Refused { why } => f.write_str(why),
        }
    }
}
