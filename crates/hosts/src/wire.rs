//! What agents and coordinators say to each other. All of it goes in signed envelopes.
//!
//! Questions and answers are JSON. Everything of a run is postcard in packets, between two programs
//! of the same version.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapstone_record::Environment;
use tapstone_text::Foreign;
use tapstone_token::controller::{Lost, TokenTarget};
use tapstone_token::module::LibraryInfo;
use tapstone_token::protocol::{Report, Task};

use crate::identity::Identity;

/// Changes with every change of what is said here.
pub(crate) const PROTOCOL: u32 = 3;

/// This program's version; only equal ones work together.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Between two signs of life of either side.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// After so long without one, the other side is given up.
pub const LEASE: Duration = Duration::from_secs(10);

/// Where an agent hears questions.
pub(crate) fn question_subject(agent: Identity) -> String {
    format!("tapstone.agent.{agent}.ask")
}

/// Where an agent hears packets.
pub(crate) fn run_subject(agent: Identity) -> String {
    format!("tapstone.agent.{agent}.run")
}

/// Where an agent hears whether it is there, which nobody has to answer: the server says so when
/// nobody listens.
pub(crate) fn presence_subject(agent: Identity) -> String {
    format!("tapstone.agent.{agent}.there")
}

/// Where a coordinator hears what an agent says of a run. An agent's last token is its own, so that
/// it can be kept from speaking for another.
pub(crate) fn coordinator_subject(coordinator: Identity, run: u64, agent: &str) -> String {
    format!("tapstone.coordinator.{coordinator}.{run:016x}.{agent}")
}

/// Where answers to somebody go.
pub(crate) fn inbox_prefix(identity: Identity) -> String {
    format!("_INBOX.{identity}")
}

/// What another machine says, as it may be printed: nothing in it acts on a terminal.
pub(crate) fn printable(text: &str) -> String {
    Foreign::with_lines(text).to_string()
}

/// The same on one line, so that it cannot look like somebody else's words.
pub(crate) fn printable_line(text: &str) -> String {
    Foreign::new(text.trim_end().replace('\n', "; ")).to_string()
}

/// An agent, as its coordinator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calling {
    /// Which agent it is.
    pub agent: Identity,
    /// What the coordinator's enrolment calls it.
    pub name: String,
    /// The version of its program.
    pub version: String,
}

/// What a coordinator asks an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// What do you offer?
    Facts,
    /// What does your clock say?
    Clock,
    /// Be mine for a run.
    Claim(Claim),
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// What the agent's machine and its policy offer.
    Facts {
        /// A claim has to repeat it.
        nonce: Nonce,
        /// [`Facts`].
        facts: Value,
    },
    /// Its CLOCK_MONOTONIC in nanoseconds.
    Clock(u64),
    /// What became of a claim.
    Claimed(Claimed),
    /// The question is of another version; the envelope says of which this is.
    OtherVersion,
}

/// An agent's nonce in hexadecimal. It is drawn when the agent starts, and anew with every claim
/// that it grants, so that no claim is good twice.
pub(crate) type Nonce = String;

/// What an agent says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The targets that the agent offers.
    pub targets: Vec<TargetFacts>,
    /// CPU, kernel and clock of the machine that the agent runs on.
    pub environment: Environment,
    /// Whose plan it runs; `None`: it is free.
    pub busy: Option<String>,
}

/// A target that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Its name, by which it is asked for.
    pub name: String,
    /// The module's path on the agent's machine.
    pub module: String,
    /// The SHA-256 of that file, in hexadecimal.
    pub sha256: String,
    /// The token: its label, or `slot 3`.
    pub token: String,
    /// The agent has a PIN for this target and logs in.
    pub logs_in: bool,
}

/// A coordinator wants an agent for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The agent's nonce, as it said last.
    pub(crate) nonce: Nonce,
    /// Who wants it, in words.
    pub(crate) coordinator: String,
    /// The name of the target in the agent's configuration.
    pub(crate) target: String,
    /// How long a call of the module may take, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// An agent's answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Claimed {
    /// It is the coordinator's until the run ends.
    Yes,
    /// It runs another's plan.
    Busy(String),
    /// It offers these targets only.
    NoTarget(Vec<String>),
    /// The claim was made with another nonce than this.
    OtherNonce(Nonce),
    /// Something else is in the way.
    Refused(String),
}

/// One packet of a run, in either direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// All chunks below this number have arrived.
    pub(crate) ack: u64,
    /// The content: a sign of life, a chunk, or the end of the run.
    pub(crate) body: Body,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Body {
    /// A sign of life.
    Beat,
    /// A chunk of the stream of messages.
    Chunk(MessageChunk),
    /// The run is over, for this reason.
    Bye(String),
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageChunk {
    /// Counts chunks in this direction, from 0.
    pub(crate) number: u64,
    /// It ends its message.
    pub(crate) last: bool,
    /// A part of the encoded message, at most 256 KiB.
    pub(crate) bytes: Vec<u8>,
}

/// From a coordinator to an agent. There is no path in it, no PIN and no command: what an agent
/// loads, and whom it logs in as, it reads from its own configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    /// Start a worker on the claimed target.
    Join {
        /// The coordinator's number for it.
        worker: u32,
    },
    /// Give it a task.
    Task {
        /// The coordinator's number for the worker.
        worker: u32,
        /// The task, its moments on the agent's clock.
        task: Task,
    },
    /// End it at once.
    Kill {
        /// The coordinator's number for the worker.
        worker: u32,
    },
}

/// From an agent to its coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// What became of a worker that was asked for.
    Joined {
        /// The coordinator's number for the worker.
        worker: u32,
        /// It has entered its token, or why it has not.
        joined: Result<Box<Entered>, Refusal>,
    },
    /// A worker's report, its moments on the agent's clock.
    Report {
        /// The coordinator's number for the worker.
        worker: u32,
        /// What the worker reports, its moments on the agent's clock.
        report: Box<Report>,
    },
    /// A worker is gone.
    Lost {
        /// The coordinator's number for the worker.
        worker: u32,
        /// How it was lost, as the agent noticed it.
        lost: Lost,
    },
}

/// A worker has entered its token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entered {
    /// The module, as it describes itself.
    pub(crate) library: LibraryInfo,
    /// The token that the worker entered.
    pub(crate) target: TokenTarget,
}

/// A worker could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Why, with a hint.
    pub(crate) text: String,
}
