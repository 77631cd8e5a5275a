//! Two things measured against one another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::{Estimate, Fraction};

/// A baseline and a candidate, and what changed from one to the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// How the two were measured.
    pub pairing: Pairing,
    /// What is compared with.
    pub baseline: Side,
    /// What is compared.
    pub candidate: Side,
    /// One row for each operation that both have.
    pub rows: Vec<ComparisonRow>,
    /// The change that counts as a failure, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
}

/// How two things were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// In turns, in one run: drift of the machine meets both.
    Interleaved,
    /// In two runs, each with its record: drift between them is part of the difference.
    Records,
}

/// One of the two things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// What it is called in tables.
    pub name: String,
    /// The command, or the path of the record.
    pub source: String,
}

/// One operation on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonRow {
    /// The operation.
    pub operation: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The baseline's figure, in the unit of the quantity.
    pub baseline: Estimate,
    /// The candidate's figure, in the unit of the quantity.
    pub candidate: Estimate,
    /// Candidate over baseline.
    pub ratio: Estimate,
    /// How many rounds the ratio rests on; null when the two were not measured in rounds.
    pub rounds: Option<u32>,
    /// What the interval of the ratio says.
    pub verdict: Change,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Operations per second: a ratio above 1 is faster.
    Throughput,
    /// Mean latency in nanoseconds: a ratio above 1 is slower.
    Latency,
    /// Wall time of a whole program in nanoseconds: a ratio above 1 is slower.
    WallTime,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The candidate is faster: the whole interval says so.
    Faster,
    /// The candidate is slower: the whole interval says so.
    Slower,
    /// The interval has room for both.
    Inconclusive,
}

/// The change that counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// Slower by more than this part of the baseline fails; the whole interval must lie beyond it.
    pub fail_above: Fraction,
    /// Whether a row failed.
    pub exceeded: bool,
}
