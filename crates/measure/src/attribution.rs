//! What limits a rate: the device, this machine, other programs, a lock or a connection of each
//! process, the network, or the search for the limit itself.
//!
//! A cause is right if removing it would raise the rate by [`WORTH`]; it is the device only if no
//! other removal would. So each cause has to be shown or excluded by evidence, and where evidence
//! is missing or contradicts itself the answer is [`LimitCause::Unknown`]. One level of concurrency
//! never shows that it is the device: only more threads and more processes that bring nothing do.

mod search;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::search::Gain;
pub use self::search::{SearchEnd, SearchEvidence, attribute_process, attribute_search};
use crate::contention::Contention;
use crate::interval::Estimate;
use crate::units::Nanos;

/// A cause is worth naming if the rate would be higher by this factor without it.
pub const WORTH: f64 = 1.1;

/// The share of a worker's cycle whose removal makes it shorter by [`WORTH`].
pub const SHARE: f64 = 1.0 - 1.0 / WORTH;

/// A rate that a doubling of the workers raised by this factor will be raised by the next one, too,
/// whatever else slows the workers down.
pub const STEEP: f64 = 1.5;

/// A client that used this much of the processors that it could have is the limit itself.
pub const CLIENT_BUSY: f64 = 0.9;

/// A share of waiting threads rests on at least so many samples.
pub const FEWEST_SAMPLES: u64 = 30;

/// What limits a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitCause {
    /// The device: nothing else that was tried or seen would raise the rate.
    Device,
    /// This machine: the measuring processes used up its processors.
    Client,
    /// Other programs on this machine, or its hypervisor, which took processors away.
    OtherPrograms,
    /// A lock that the threads of a process share; other processes have their own.
    ProcessLock,
    /// A connection, or an engine, that the threads of a process share.
    ProcessConnection,
    /// One of these two: samples do not separate them.
    ProcessLockOrConnection,
    /// The way to the device: its round trips are a large part of each call.
    Network,
    /// The search's own end: the rate was still growing.
    SearchCap,
    /// The user or a signal ended the search.
    Interruption,
    /// The evidence does not say.
    #[default]
    Unknown,
}

/// A cause and its evidence in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// What limits the rate.
    pub cause: LimitCause,
    /// Why that is said, in a sentence for the user.
    pub why: String,
}

/// What was seen of one level of concurrency, over all of its passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelEvidence {
    /// Threads of all processes together.
    pub workers: u32,
    /// The processors that they could have had: those of the machines, or their quota.
    pub cores: f64,
    /// The processors that the measuring processes used on average, threads of the library included.
    pub used_cores: f64,
    /// The processors that Tapstone itself used besides.
    pub own_cores: f64,
    /// The mean latency of its operations; `None` where none was completed.
    pub latency: Option<Nanos>,
    /// What the system says of the threads and their machine.
    pub contention: Contention,
}

impl Attribution {
    /// The evidence does not say, for this reason.
    #[must_use]
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { cause: LimitCause::Unknown, why: why.into() }
    }
}

impl LevelEvidence {
    /// The processors that other programs used or the hypervisor took away, on average.
    #[must_use]
    pub fn other_cores(&self) -> Option<f64> {
        let machine = self.contention.machine?;
        let others = machine.busy_cores() - self.used_cores - self.own_cores;
        Some(others.max(0.0) + machine.steal_cores())
    }

    /// The share of the workers' time in which they were kept from a processor.
    #[must_use]
    pub fn kept_waiting(&self) -> Option<f64> {
        self.contention.threads.map(|threads| threads.runnable_share())
    }

    /// The threads were kept from processors for so long that the rate suffered.
    fn is_starved(&self) -> bool {
        self.kept_waiting().is_some_and(|share| share >= SHARE)
    }

    /// What others use is worth having.
    fn has_neighbours(&self) -> bool {
        let worth = |others: f64| others >= (WORTH - 1.0) * self.used_cores.max(1.0);
        self.other_cores().is_some_and(worth)
    }

    /// No processor was left.
    fn is_machine_full(&self) -> bool {
        self.used_cores + self.other_cores().unwrap_or(0.0) >= CLIENT_BUSY * self.cores
    }

    /// The workers were on a processor, or ready for one, nearly all the time: they wait for no
    /// device.
    fn is_computing(&self) -> bool {
        let threads = self.contention.threads;
        let share = threads.map(|threads| threads.running_share() + threads.runnable_share());
        self.is_client_busy() || share.is_some_and(|share| share >= CLIENT_BUSY)
    }

    /// The measuring processes used what they could have.
    fn is_client_busy(&self) -> bool {
        let could_have = self.cores.min(f64::from(self.workers));
        could_have > 0.0 && self.used_cores >= CLIENT_BUSY * could_have
    }

    fn other_programs(&self) -> Attribution {
        Attribution {
            cause: LimitCause::OtherPrograms,
            why: format!(
                "other programs used {:.1} of {:.1} processors, and workers that were ready to run \
                 waited for one {:.0} % of the time",
                self.other_cores().unwrap_or(0.0),
                self.cores,
                100.0 * self.kept_waiting().unwrap_or(0.0)
            ),
        }
    }

    fn client(&self) -> Attribution {
        Attribution {
            cause: LimitCause::Client,
            why: format!(
                "the measuring processes used {:.1} of the {:.1} processors that they could have",
                self.used_cores,
                self.cores.min(f64::from(self.workers))
            ),
        }
    }

    /// The processor as the limit, or as what keeps it from being known.
    fn processor_limit(&self) -> Option<Attribution> {
        if self.is_starved() && self.has_neighbours() {
            return Some(self.other_programs());
        }
        if self.is_client_busy() {
            return Some(self.client());
        }
        self.is_starved().then(|| {
            Attribution::unknown(format!(
                "workers that were ready to run waited for a processor {:.0} % of the time, and who \
                 had it is not known",
                100.0 * self.kept_waiting().unwrap_or(0.0)
            ))
        })
    }

    /// What the threads of one process share, where more processes help.
    fn shared_in_process(&self, gain: Estimate) -> Attribution {
        let helps = format!(
            "more threads in one process bring less than 5 %, a second process {}",
            Gain(gain)
        );
        let lock_share = self.contention.waits.lock_share(FEWEST_SAMPLES);
        // Of n threads that queue for one lock, all but its holder wait for it.
        let queue = 1.0 - 1.0 / f64::from(self.workers.max(2));
        let (cause, why) = match lock_share {
            Some(share) if share >= queue / 2.0 => (
                LimitCause::ProcessLock,
                format!("{:.0} % of the waiting threads wait for a lock", 100.0 * share),
            ),
            Some(share) if share <= 0.1 => (
                LimitCause::ProcessConnection,
                "its threads wait for answers and not for a lock".into(),
            ),
            _ => (
                LimitCause::ProcessLockOrConnection,
                "samples of what its threads wait for do not separate the two".into(),
            ),
        };
        Attribution { cause, why: format!("{helps}; {why}") }
    }
}

/// What limits a case that was measured at one level of concurrency.
///
/// Never the device: that more workers would bring nothing is not known from one level.
#[must_use]
pub fn attribute_case(level: &LevelEvidence) -> Attribution {
    level.processor_limit().unwrap_or_else(|| {
        Attribution::unknown("one level of concurrency does not say it; --find-limit tries more")
    })
}
