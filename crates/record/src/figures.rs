//! Figures: a value with its interval, and where it came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::interval;
use tapstone_measure::units::Nanos;

/// A length of time in seconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seconds(pub f64);

/// A part of a whole: 0.25 is a quarter. Never a percentage.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Fraction(pub f64);

/// A figure with its confidence interval, in the unit of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The best single value.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl From<interval::Estimate> for Estimate {
    fn from(interval::Estimate { estimate, low, high }: interval::Estimate) -> Self {
        Self { estimate, low, high }
    }
}

/// The ends of an interval without a best value, in the unit of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The lower end, in the unit of the field that holds the range.
    pub low: f64,
    /// The upper end, in the unit of the field that holds the range.
    pub high: f64,
}

/// A rate over a window, all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The best single value, in `unit`.
    pub estimate: f64,
    /// The lower end of the interval, in `unit`.
    pub low: f64,
    /// The upper end of the interval, in `unit`.
    pub high: f64,
    /// What is counted, and with it the unit of the three figures.
    pub unit: RateUnit,
    /// The time that the count was divided by.
    #[serde(default)]
    pub over: RateBasis,
}

impl Throughput {
    /// A rate in operations per second, over this basis of time.
    #[must_use]
    pub fn operations(rate: impl Into<Estimate>, over: RateBasis) -> Self {
        let Estimate { estimate, low, high } = rate.into();
        Self { estimate, low, high, unit: RateUnit::OperationsPerSecond, over }
    }
}

/// What a throughput counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RateUnit {
    /// Completed, successful operations per second.
    #[default]
    #[serde(rename = "operations/s")]
    OperationsPerSecond,
}

/// The time that a rate is taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateBasis {
    /// The whole window: completions inside it over its wall-clock length.
    #[default]
    Window,
    /// From the first to the last completion, less one operation: for windows with fewer than 30
    /// completions per worker, where the ends would count for too much.
    FirstToLast,
}

/// How long one operation took, in nanoseconds. A quantile without enough samples is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The mean in nanoseconds, from exact sums.
    pub mean: Option<Estimate>,
    /// The median, in nanoseconds.
    pub p50: Option<Estimate>,
    /// 90 % of the operations took at most this long, in nanoseconds.
    pub p90: Option<Estimate>,
    /// 95 % of the operations took at most this long, in nanoseconds.
    pub p95: Option<Estimate>,
    /// 99 % of the operations took at most this long, in nanoseconds.
    pub p99: Option<Estimate>,
    /// 99.9 % of the operations took at most this long, in nanoseconds.
    pub p99_9: Option<Estimate>,
    /// The shortest, in nanoseconds, exact.
    #[schemars(with = "u64")]
    pub min: Nanos,
    /// The longest, in nanoseconds, exact.
    #[schemars(with = "u64")]
    pub max: Nanos,
}

/// How the intervals of a case were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// How many independent values they rest on (batches of slices, or rounds).
    pub n: u64,
    /// In words, for example `batch means, Student's t`.
    pub method: String,
    /// The confidence level: 0.95.
    pub level: Fraction,
    /// False when the values are still correlated, so that the intervals are too narrow.
    #[serde(default = "yes")]
    pub reliable: bool,
    /// The lag-1 autocorrelation of the values, from -1 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
    /// Which variation they hold; absent where that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
}

/// Which variation an interval holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// That within one window: what differs from one window to the next is not in it.
    Window,
    /// That between rounds, each a fresh start with a window of its own.
    Rounds,
}

const fn yes() -> bool {
    true
}

/// Where a figure came from. All but `measured` is said wherever the figure is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Measured in this run, on the real thing.
    #[default]
    Measured,
    /// Transcribed from a published source.
    Published,
    /// Computed from other figures.
    Derived,
    /// Assumed: nobody measured it.
    Assumed,
    /// Played back from an earlier record.
    Replayed,
    /// Measured on an emulation of the thing.
    Emulated,
}
