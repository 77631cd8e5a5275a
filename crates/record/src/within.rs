//! The highest offered rate whose latency stays within a bound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::{Nanos, PerSecond};

use crate::figures::{Estimate, Fraction, Seconds};

/// The search for the highest rate, offered in an open loop, at which a quantile of the latency
/// stays within a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateWithin {
    /// The operation that was measured.
    pub operation: String,
    /// The quantile that has to stay within the bound: 0.99 for p99.
    pub quantile: Fraction,
    /// The bound on it, from the intended start, in nanoseconds.
    #[schemars(with = "u64")]
    pub bound_ns: Nanos,
    /// How the requests of the open loop arrived.
    pub arrivals: ArrivalKind,
    /// How many requests could be under way at once: all threads of all processes.
    pub workers: u32,
    /// What the search found: a rate, a bound on it, or nothing that holds.
    pub outcome: RateWithinOutcome,
    /// The highest rate within the bound, per second, with its 95 % interval; null where none was
    /// found.
    pub rate: Option<Estimate>,
    /// A rate that lies within the bound, per second, where what lies beyond it is not known; null
    /// otherwise.
    #[schemars(with = "Option<f64>")]
    pub at_least: Option<PerSecond>,
    /// Why the search ended.
    pub stopped_by: RateWithinStop,
    /// The mean latency of one worker alone, in nanoseconds; null for a recorded load.
    #[schemars(with = "Option<u64>")]
    pub unloaded_ns: Option<Nanos>,
    /// How long the search was expected to take, in seconds, as was said before it.
    pub expected_seconds: Seconds,
    /// Every rate that was offered, in the order of the search.
    pub levels: Vec<OfferedLevel>,
    /// How much of a recorded load more such devices would carry; null for other loads, and where
    /// it cannot be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<DeviceCapacity>,
}

/// What so many devices would carry of a recorded load: predicted from the replays of a search, by
/// the queues that explain them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCapacity {
    /// The devices of the search, among which the clients were dealt.
    pub measured_devices: u32,
    /// The highest scale that was measured to lie within the bound; null where none was.
    pub measured_scale: Option<u32>,
    /// Servers of a device, by the queue with the fewest that explains the replays.
    pub servers: u32,
    /// And by the one with the most.
    pub servers_at_most: u32,
    /// How far the best of these queues is off the measured latencies at most: 0.03 for 3 %.
    pub error: Fraction,
    /// Nothing is predicted for servers that work a larger share of their time.
    pub most_utilisation: Fraction,
    /// By the number of devices.
    pub predicted: Vec<PredictedScale>,
}

/// What so many devices are predicted to carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedScale {
    /// Devices, each with a line of its own; a client keeps to one of them.
    pub devices: u32,
    /// The load so many times at least, by the queue that carries least; 0: that is not known.
    pub scale: u32,
    /// And by the one that carries most.
    pub scale_at_most: u32,
    /// No higher scale was looked at.
    pub is_capped: bool,
    /// Transactions per second at `scale`; null for 0, as what follows.
    #[schemars(with = "Option<f64>")]
    pub rate: Option<PerSecond>,
    /// The share of their time in which the servers work.
    pub utilisation: Option<Fraction>,
    /// The bound's quantile of transactions, in nanoseconds, with a 95 % interval over random
    /// starts of the clients; how well the queue is the device is not in it.
    pub latency_ns: Option<Estimate>,
}

/// How requests of an open loop arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalKind {
    /// The requests arrived at equal gaps.
    Constant,
    /// Independently of each other.
    Poisson,
    /// As those of a recorded load, so many times over.
    Recorded,
}

/// What a search for the highest rate within a bound found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateWithinOutcome {
    /// The search found the rate, with an interval.
    Rate,
    /// No rate lies within the bound.
    NoRate,
    /// A rate that lies within it, and not what is beyond.
    AtLeast,
    /// Nothing that was measured says where the limit is.
    Unknown,
}

/// Why a search for the highest rate within a bound ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateWithinStop {
    /// The search came to its own end.
    Done,
    /// The load generator's own delay exceeded a tenth of the bound.
    GeneratorLate,
    /// All workers were busy while the device could have taken more.
    GeneratorExhausted,
    /// The highest rate that is offered lies within the bound.
    RateCap,
    /// The most levels did not narrow it down.
    LevelCap,
    /// The time was up.
    Time,
    /// The user, or a signal, ended it.
    Interrupted,
    /// Operations failed, results were wrong, or a worker was lost.
    Failures,
    /// Other programs kept the workers from a processor.
    OtherPrograms,
}

/// One offered rate and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedLevel {
    /// The offered rate, per second.
    #[schemars(with = "f64")]
    pub offered_rate: PerSecond,
    /// Arrivals that were judged; those of the beginning are not.
    pub arrivals: u64,
    /// Those of them whose latency lies beyond the bound, or that never ended.
    pub beyond: u64,
    /// The quantile of the latency, from the intended start, in nanoseconds; null where so many
    /// had not ended that it is not known.
    #[schemars(with = "Option<u64>")]
    pub latency_ns: Option<Nanos>,
    /// The latency rose over the whole level, or the rate lies above what the device serves while
    /// requests wait: it did not keep up.
    pub backlog_grows: bool,
    /// What the load generator did.
    pub generator: GeneratorState,
    /// The same quantile of the generator's own delay, in nanoseconds; null where no request was
    /// begun on time because workers were busy.
    #[schemars(with = "Option<u64>")]
    pub generator_delay_ns: Option<Nanos>,
}

/// What the load generator did at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorState {
    /// It offered the rate, at the moments that were intended.
    Sound,
    /// Its own delay exceeded a tenth of the bound.
    Late,
    /// All of its workers were busy while the device could have taken more.
    Exhausted,
}
