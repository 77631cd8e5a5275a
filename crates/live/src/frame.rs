//! What is told of a run while it goes on.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tapstone_measure::units::{Nanos, PerSecond};

/// One line of the socket, as JSON: `{"figures": {"case": "rsa2048.sign", …}}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveFrame {
    /// A case is prepared or ended, in words.
    Stage {
        /// The name of the case.
        case: String,
        /// What is being done.
        text: String,
    },
    /// How a case stands.
    Figures(Figures),
    /// The run is over: its record, as it is written to a file. The last frame.
    Record(Box<RawValue>),
}

/// How a case stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The name of the case.
    pub case: String,
    /// The level of a search or the round: `4 threads, pass 2`.
    pub level: Option<String>,
    /// Since its window opened.
    pub elapsed_ns: Nanos,
    /// Operations that have completed in it so far.
    pub completed: u64,
    /// Operations that have failed in it so far.
    pub failed: u64,
    /// Completed a second, so far.
    pub rate: PerSecond,
    /// The median latency so far.
    pub p50_ns: Option<Nanos>,
    /// The latency that 99 % did not exceed so far.
    pub p99_ns: Option<Nanos>,
    /// Frames before this one that found no room on the way.
    #[serde(default)]
    pub missed: u64,
}
