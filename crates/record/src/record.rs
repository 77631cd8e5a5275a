//! The document as a whole: one per run, whichever verb ran.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::case_result::CaseResult;
use crate::claim::Claim;
use crate::comparison::{Comparison, SideBySide};
use crate::cost::Cost;
use crate::door::{ModelPrediction, Queue, WhatIf};
use crate::environment::Environment;
use crate::finding::{Finding, Trial};
use crate::host::Host;
use crate::knee::Knee;
use crate::target::Target;
use crate::trace::{Apdu, Call, CommandTime, Layer, ProcessTime, SystemCall, WasteSearch};
use crate::within::RateWithin;

/// One run of Tapstone: what was run, on what, and what came out.
///
/// Moments (`…_ns`) count nanoseconds from `started_at` unless a field says otherwise. Parts that
/// a verb does not make are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The version of this format.
    pub schema: SchemaName,
    /// The program that wrote the record.
    pub tool: Tool,
    /// The command line, program name first. PINs and other secrets have been removed from it.
    pub command: Vec<String>,
    /// When the run started, in UTC: the origin of the moments in this record.
    pub started_at: Timestamp,
    /// Set when the figures were made by another program and read from its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The machine that the client ran on.
    pub environment: Environment,
    /// What was measured: a token, a card, a program or a door.
    pub target: Target,
    /// The machines that the load came from, when it came from several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// One row for each operation and load that was measured.
    pub results: Vec<CaseResult>,
    /// How the rate grew with concurrency, and where it stopped growing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
    /// The highest rate whose latency stays within a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_within: Option<RateWithin>,
    /// The time of card operations taken apart: per command, per byte, per computation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// A transaction split into its parts, held against a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Which changes to a transaction reach a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// People at a door, simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// What a model says of the authentications that were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_predictions: Vec<ModelPrediction>,
    /// Two things measured against one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Several devices beside one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<SideBySide>,
    /// What a traced command took, with whatever observing it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_time: Option<CommandTime>,
    /// The processes of a traced command, the one that worked most in front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
    /// Where the time of a traced program went: the time of each thread by the layer that owns it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// The calls of a traced program, by module and function. Each is also a row of `results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The commands that a traced program sent to the card. Their data is never recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apdus: Vec<Apdu>,
    /// The system calls of a traced program, where they were observed: the most frequent kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_calls: Vec<SystemCall>,
    /// Events that a trace had no room for; more than 0 makes its counts lower bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// What waste was looked for in a traced program, and what of it could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<WasteSearch>,
    /// Waste that a trace shows, each with its evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Fixes that were tried on the unmodified program, and what they gained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// Claims, of a data sheet for example, held against the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The Parquet file with every single operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<DataFile>,
    /// The file with every event of a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<DataFile>,
    /// What a reader of the whole record should know, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Record {
    /// A record without results, for a run that is about to start.
    #[must_use]
    pub fn new(
        tool: Tool,
        started_at: Timestamp,
        environment: Environment,
        target: Target,
    ) -> Self {
        Self {
            schema: SchemaName::V2,
            tool,
            command: Vec::new(),
            started_at,
            imported: None,
            environment,
            target,
            hosts: Vec::new(),
            results: Vec::new(),
            knee: None,
            rate_within: None,
            costs: Vec::new(),
            budget: None,
            what_if: None,
            queue: None,
            model_predictions: Vec::new(),
            comparison: None,
            side_by_side: None,
            command_time: None,
            processes: Vec::new(),
            layers: Vec::new(),
            calls: Vec::new(),
            apdus: Vec::new(),
            system_calls: Vec::new(),
            dropped: None,
            search: None,
            findings: Vec::new(),
            trials: Vec::new(),
            claims: Vec::new(),
            samples: None,
            events: None,
            warnings: Vec::new(),
        }
    }
}

/// The name and version of the format. New parts keep it; a part that goes or changes its meaning
/// raises it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaName {
    /// What is written. Version 1 is read, too, and becomes this one.
    #[default]
    #[serde(rename = "tapstone.record/2")]
    V2,
}

impl SchemaName {
    /// As it stands in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "tapstone.record/2",
        }
    }
}

/// The program that wrote the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// The name of the program that made the record: `tapstone`.
    pub name: String,
    /// The version of the program that made the record.
    pub version: String,
}

/// The file of another program that figures were read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// The name of the format that was imported: `jcalgtest`.
    pub format: String,
    /// The file, as it was named.
    pub file: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// The program that made it, with its version, as far as the file tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// Lines that could not be read, and are not in the record.
    pub lines_skipped: u64,
}

/// A larger file that belongs to the record and lies beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataFile {
    /// Its path, relative to the folder of the record.
    pub file: String,
    /// How many samples or events it holds.
    pub count: u64,
}
