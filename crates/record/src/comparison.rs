//! Two things measured against one another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::compare;
use tapstone_measure::units::Nanos;

use crate::figures::{Estimate, Fraction, Provenance, Variation};
use crate::load::Concurrency;

/// A baseline and a candidate, and what changed from one to the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// How the two were measured.
    pub pairing: Pairing,
    /// What is compared with.
    pub baseline: Side,
    /// The side that is judged.
    pub candidate: Side,
    /// One for each operation that both have.
    pub cases: Vec<ComparedCase>,
    /// Of two traces, one run each: calls by module and function, without a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallChange>,
    /// The change that counts as a failure, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// Operations of the baseline that the candidate has no comparable figure of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_in_baseline: Vec<String>,
    /// Operations that both tried and that cannot be compared, each with why: in the candidate they
    /// failed, in part or altogether, gave wrong results, or are not offered any more; or a figure of
    /// either side has an interval that reaches down to zero. No threshold holds for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
    /// Operations of the candidate that the baseline has no comparable figure of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_in_candidate: Vec<String>,
    /// What to know before believing it, as sentences: where the two environments differ, what
    /// was emulated or published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// An operation that two sides tried and that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// The operation, under the name that both sides have for it.
    pub operation: String,
    /// What became of it, in words, with the code where there is one.
    pub why: String,
}

/// Several devices, each measured in a run of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The devices, in the order of the figures of each case.
    pub sides: Vec<Side>,
    /// One for each operation that at least two of them have.
    pub cases: Vec<SideBySideCase>,
}

/// One operation on several devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySideCase {
    /// The operation, under the name that all sides have for it.
    pub operation: String,
    /// The length of the message in bytes, where the operation has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// How many worked at a time.
    pub concurrency: Concurrency,
    /// What the figures are, and with it their unit.
    pub quantity: Quantity,
    /// A figure for each device, null where it has none.
    pub figures: Vec<Option<Estimate>>,
    /// How much longer one operation takes than on the fastest device, as a part of that: 0 is the
    /// fastest, 0.94 takes 94 % longer.
    pub excess: Vec<Option<Fraction>>,
    /// Where each figure came from, null where there is none. Absent: not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance: Vec<Option<Provenance>>,
}

/// One function of one module in two traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallChange {
    /// The function, as its specification spells it.
    pub function: String,
    /// The file name of the library that was called.
    pub module: String,
    /// Its calls in the baseline; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<CallFigures>,
    /// Its calls in the candidate; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CallFigures>,
}

/// All calls of a function in one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFigures {
    /// How often it was called.
    pub count: u64,
    /// From entry to return, in nanoseconds, all calls together.
    #[schemars(with = "u64")]
    pub total_ns: Nanos,
    /// The part of it that no inner call owns, in nanoseconds.
    #[schemars(with = "u64")]
    pub self_ns: Nanos,
}

/// How two things were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// In turns, in one run: drift of the machine meets both.
    Interleaved,
    /// In two runs, each with its record: drift between them is part of the difference.
    Records,
    /// The candidate in a run of its own, the baseline published by others, without an interval.
    Published,
}

/// One of the two things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// What it is called in tables.
    pub name: String,
    /// The command, the path of the record, or who published the figures.
    pub source: String,
    /// The SHA-256 of the record's file, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The profile, when it was no real device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
    /// The program that made the figures, when it was not Tapstone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

/// One operation on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCase {
    /// The operation, under the name that both sides have for it.
    pub operation: String,
    /// Which item of a published baseline: a card, a device, a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The length of the input in bytes, where both sides tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// How many workers the candidate had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// What is compared, and with it the unit of both figures.
    pub quantity: Quantity,
    /// The baseline's figure, in the unit of the quantity.
    pub baseline: Estimate,
    /// Where the baseline's figure came from. Absent: measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_provenance: Option<Provenance>,
    /// The candidate's figure, in the unit of the quantity.
    pub candidate: Estimate,
    /// Where the candidate's figure came from. Absent: measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_provenance: Option<Provenance>,
    /// Candidate over baseline, a number without a unit, with its 95 % interval.
    pub ratio: Estimate,
    /// How many rounds the ratio rests on; null when the two were not measured in rounds.
    pub rounds: Option<u32>,
    /// Which variation the interval of the ratio holds; null where a side does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
    /// What the interval of the ratio says.
    pub verdict: Change,
    /// What the interval says of the threshold, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Judgement>,
    /// When the threshold, or without one the verdict, is undecided: about how many more samples
    /// on each measured side would decide it with a probability of 90 %, if the estimates are the
    /// truth. Absent when no number would (`no_number`), or when that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_samples: Option<u64>,
    /// When it is undecided and no number of samples would decide it: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_number: Option<NoNumber>,
}

/// Why no number of samples would decide a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoNumber {
    /// The estimate lies on the limit, or so near that more than a million times the samples were
    /// needed.
    OnTheLimit,
    /// The samples depend on one another, so that their number says nothing.
    Unreliable,
    /// Neither side has an interval that more samples would narrow.
    NothingToRepeat,
}

/// What an interval says of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Surely not exceeded: the whole interval keeps it.
    Held,
    /// Surely exceeded: the whole interval lies beyond it.
    Exceeded,
    /// The interval reaches across it.
    Undecided,
}

/// What is compared, and with it the unit of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Operations per second: a ratio above 1 is faster.
    Throughput,
    /// Mean latency in nanoseconds: a ratio above 1 is slower.
    Latency,
    /// Wall time of a whole program in nanoseconds: a ratio above 1 is slower.
    WallTime,
    /// Processor time of a whole program and of the processes that it waited for, in nanoseconds: a
    /// ratio above 1 is slower.
    CpuTime,
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

impl From<compare::PairedVerdict> for Change {
    fn from(verdict: compare::PairedVerdict) -> Self {
        match verdict {
            compare::PairedVerdict::Faster => Self::Faster,
            compare::PairedVerdict::Slower => Self::Slower,
            compare::PairedVerdict::Inconclusive(_) => Self::Inconclusive,
        }
    }
}

/// The change that counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// Slower by more than this part of the baseline fails; the whole interval must lie beyond it.
    pub fail_above: Fraction,
    /// Whether a row failed.
    pub exceeded: bool,
}
