//! A case taken apart: over time, by call, by who did the work, and where it stood still.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::{Nanos, PerSecond};

use crate::figures::Fraction;

/// A slice of the window. Slices follow one another without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// When it starts, in nanoseconds since the window opened.
    #[schemars(with = "u64")]
    pub start_ns: Nanos,
    /// When it ends, in nanoseconds since the window opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub end_ns: Option<Nanos>,
    /// Operations that ended well in it.
    pub completed: u64,
    /// Operations that failed in it.
    pub failed: u64,
    /// The median latency, in nanoseconds; null without enough samples.
    #[schemars(with = "Option<u64>")]
    pub p50_ns: Option<Nanos>,
    /// The 99 % quantile of the latency, in nanoseconds; null without enough samples.
    #[schemars(with = "Option<u64>")]
    pub p99_ns: Option<Nanos>,
}

/// One of the calls that an operation consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// The interface call, for example `C_SignInit`.
    pub call: String,
    /// Its mean time per operation, in nanoseconds.
    pub mean_ns: f64,
    /// Its part of the time in all calls of the operation.
    pub share: Fraction,
    /// The middle one of the times that were seen, in nanoseconds, where they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<f64>,
    /// The time that 95 in 100 of those seen do not exceed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ns: Option<f64>,
}

impl Phase {
    /// A phase whose mean alone is known, in nanoseconds; no quantiles.
    #[must_use]
    pub const fn new(call: String, mean_ns: f64, share: Fraction) -> Self {
        Self { call, mean_ns, share, p50_ns: None, p95_ns: None }
    }
}

/// Times that were got by subtracting a baseline: how the figures of others are often made.
///
/// A difference may be negative, and is then no time. It is kept here so that nothing is lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subtraction {
    /// How many operations one measurement consists of.
    pub operations_each: u64,
    /// The measurements of everything but the operation, in nanoseconds.
    pub baseline_ns: Vec<i64>,
    /// What was subtracted, in nanoseconds. A source may leave out some of `baseline_ns`.
    pub subtracted_ns: i64,
    /// Each measurement of `operations_each` operations less `subtracted_ns`, in nanoseconds.
    pub differences_ns: Vec<i64>,
    /// The source's own mean of one operation, in nanoseconds. `latency_ns.mean` is made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_mean_ns: Option<i64>,
    /// What `latency_ns` subtracts, in nanoseconds: the median of `baseline_ns` without its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_median_ns: Option<i64>,
}

/// What one of several parties did of the case's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// What the party is. Shares of one kind add up to the case.
    pub kind: ShareKind,
    /// Which one: a token's label, a process id, a host name, a thread's number.
    pub name: String,
    /// Operations that it completed.
    pub completed: u64,
    /// Operations that it completed per second of the window.
    #[schemars(with = "f64")]
    pub rate: PerSecond,
    /// Its part of all completed operations.
    pub share: Fraction,
    /// How long its operations took on average, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// The longest of them, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub longest_ns: Option<Nanos>,
    /// Of a host: the processor time that its workers used, as a part of what they could have used.
    /// From 0.9 on the host is its own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_utilisation: Option<Fraction>,
}

/// By what the work of a case is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareKind {
    /// By the token that did it.
    Token,
    /// By the process that asked for it.
    Process,
    /// By the host that asked for it.
    Host,
    /// By the thread that asked for it.
    Thread,
}

/// A stretch in which nothing completed and calls failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// When it began, in nanoseconds since the window opened.
    #[schemars(with = "u64")]
    pub start_ns: Nanos,
    /// How long it lasted, in nanoseconds.
    #[schemars(with = "u64")]
    pub length_ns: Nanos,
    /// The return code of the failures, by its name.
    pub code: String,
}
