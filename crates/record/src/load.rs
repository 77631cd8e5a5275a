//! How the work was offered: by how many, at which pace, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::{Nanos, PerSecond};

use crate::figures::Seconds;

/// How many workers shared the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Concurrency {
    /// Threads in each process.
    pub threads: u32,
    /// Processes on each host.
    pub processes: u32,
    /// How many hosts took part.
    pub hosts: u32,
}

impl Concurrency {
    /// One thread in one process on one host.
    pub const ONE: Self = Self { threads: 1, processes: 1, hosts: 1 };

    /// All threads of all processes on all hosts.
    #[must_use]
    pub fn workers(self) -> u64 {
        // Saturating: a record may have been written by hand.
        u64::from(self.threads)
            .saturating_mul(u64::from(self.processes))
            .saturating_mul(u64::from(self.hosts))
    }
}

/// What makes a worker start its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Which kind of loop: closed, or open with a schedule.
    pub kind: LoadKind,
    /// Open loop: operations that were to start per second, all workers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub rate_per_second: Option<PerSecond>,
}

impl Load {
    /// Each worker starts the next operation when the last has ended.
    pub const CLOSED: Self = Self { kind: LoadKind::Closed, rate_per_second: None };

    /// Operations start at this rate, whether or not the last has ended.
    #[must_use]
    pub const fn open(rate: PerSecond) -> Self {
        Self { kind: LoadKind::Open, rate_per_second: Some(rate) }
    }
}

/// What makes a worker start its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// The end of the last one: answers "how fast can it go".
    Closed,
    /// A schedule: answers "how long does a request wait at this rate". The latency counts from
    /// the intended start.
    Open,
}

/// The stretch of time that the figures of a case are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// When every worker had completed its first operation, in nanoseconds on
    /// the machine's CLOCK_MONOTONIC.
    #[schemars(with = "u64")]
    pub start_ns: Nanos,
    /// When it closed, in nanoseconds on the machine's CLOCK_MONOTONIC.
    #[schemars(with = "u64")]
    pub end_ns: Nanos,
    /// Its length in seconds of wall-clock time.
    pub seconds: Seconds,
}

/// What ran before the window and is in none of its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUp {
    /// How many operations, all workers together.
    pub operations: u64,
    /// How long, in seconds.
    pub seconds: Seconds,
    /// The latencies of the first calls (at most 16), in nanoseconds, in order.
    #[schemars(with = "Vec<u64>")]
    pub first_ns: Vec<Nanos>,
    /// The mean of `first_ns` over the median of the window: 3.1 means that the first calls took
    /// 3.1 times as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_median: Option<f64>,
}

/// How late the generator of an open loop itself was, in nanoseconds: start less intended start.
/// A quantile without enough samples is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulingDelay {
    /// The mean, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub mean: Option<Nanos>,
    /// The median, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub p50: Option<Nanos>,
    /// 90 % of the operations started at most this late, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub p90: Option<Nanos>,
    /// 95 % of the operations started at most this late, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub p95: Option<Nanos>,
    /// 99 % of the operations started at most this late, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub p99: Option<Nanos>,
    /// 99.9 % of the operations started at most this late, in nanoseconds.
    #[schemars(with = "Option<u64>")]
    pub p99_9: Option<Nanos>,
    /// The latest, in nanoseconds.
    #[schemars(with = "u64")]
    pub max: Nanos,
}

/// How the clock was read around an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockReadings {
    /// Once before and once after.
    #[default]
    Two,
    /// Once: the end of an operation is the start of the next. Cheaper, but the loop's own cost is
    /// then part of the latency, and the busy share is 1 by construction.
    Chained,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_all_threads_of_all_processes_of_all_hosts() {
        let workers =
            |threads, processes, hosts| Concurrency { threads, processes, hosts }.workers();
        assert_eq!((workers(4, 3, 2), workers(1, 1, 1)), (24, 1));
        assert_eq!(workers(u32::MAX, u32::MAX, u32::MAX), u64::MAX);
    }

    #[test]
    fn an_open_loop_has_a_rate_and_a_closed_one_has_none() {
        let open = Load::open(PerSecond(50.0));
        assert_eq!((open.kind, open.rate_per_second), (LoadKind::Open, Some(PerSecond(50.0))));
        assert_eq!((Load::CLOSED.kind, Load::CLOSED.rate_per_second), (LoadKind::Closed, None));
    }
}
