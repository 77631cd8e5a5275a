//! What agents and coordinators say to each other.
//!
//! Discovery and claims are JSON, which another version can read far enough to know that it is
//! another. Everything of a run is postcard in packets, between two programs of the same version.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapstone_record::Environment;
use tapstone_text::Foreign;
use tapstone_token::controller::{Lost, TokenTarget};
use tapstone_token::module::LibraryInfo;
use tapstone_token::protocol::{Report, Task};

/// Changes with every change of what is said here.
pub(crate) const PROTOCOL: u32 = 1;

/// This program's version; only equal ones work together.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The NATS subject on which a coordinator asks which agents there are.
pub(crate) const DISCOVER: &str = "tapstone.discover";

/// Between two signs of life of either side.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// After so long without one, the other side is given up.
pub const LEASE: Duration = Duration::from_secs(10);

/// Where an agent hears claims.
pub(crate) fn claim_subject(agent: AgentId) -> String {
    format!("tapstone.agent.{agent}.claim")
}

/// Where an agent answers with its clock.
pub(crate) fn clock_subject(agent: AgentId) -> String {
    format!("tapstone.agent.{agent}.clock")
}

/// Where an agent hears packets.
pub(crate) fn run_subject(agent: AgentId) -> String {
    format!("tapstone.agent.{agent}.run")
}

/// Where a coordinator hears the packets of its run.
pub(crate) fn coordinator_subject(run: u64) -> String {
    format!("tapstone.run.{run:016x}")
}

/// What another machine says, as it may be printed: nothing in it acts on a terminal.
pub(crate) fn printable(text: &str) -> String {
    Foreign::with_lines(text).to_string()
}

/// An agent, from its start to its end. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentId(pub u64);

impl std::fmt::Display for AgentId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What every agent of every version says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calling {
    /// Which agent it is.
    pub agent: AgentId,
    /// The name of the machine, or what its configuration says.
    pub name: String,
    /// Changes with every change of what is said.
    pub protocol: u32,
    /// The version of its program.
    pub version: String,
}

impl Calling {
    /// It and this program understand each other.
    pub(crate) fn is_ours(&self) -> bool {
        self.protocol == PROTOCOL && self.version == VERSION
    }
}

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
    /// Changes with every change of what is said.
    pub(crate) protocol: u32,
    /// The version of its program.
    pub(crate) version: String,
    /// The number of the run; every packet of it repeats it.
    pub(crate) run: u64,
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
    /// It is of this version.
    OtherVersion(String),
    /// Something else is in the way.
    Refused(String),
}

/// One packet of a run, in either direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// The run; packets of others are dropped.
    pub(crate) run: u64,
    /// The agent that sends it or is to have it.
    pub(crate) agent: AgentId,
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
