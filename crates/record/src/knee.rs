//! How the rate grows with concurrency, and where it stops growing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::PerSecond;

use crate::figures::{Estimate, Fraction};
use crate::limit::LimitEvidence;
use crate::load::Concurrency;

/// The search for the concurrency beyond which the rate no longer grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The operation that was measured.
    pub operation: String,
    /// The levels of concurrency that were measured, in rising order.
    pub levels: Vec<Level>,
    /// The smallest concurrency that gives 95 % of the plateau; null when no plateau was reached.
    pub concurrency: Option<Concurrency>,
    /// The largest measured concurrency below it that does not: the true knee lies between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Concurrency>,
    /// The rate that more concurrency does not raise, in operations per second; null when none was
    /// reached.
    pub plateau: Option<Estimate>,
    /// The law that the levels follow; absent with fewer than 6 levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ScalabilityLaw>,
    /// Why no higher level was tried.
    pub stopped_by: KneeStop,
    /// What limits the rate, from all levels together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitEvidence>,
    /// What limits the threads of one process, where more processes help and more threads do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_limit: Option<LimitEvidence>,
}

/// One level of concurrency, measured in several interleaved passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Threads in each process.
    pub threads: u32,
    /// Processes on each host.
    pub processes: u32,
    /// How many hosts took part in the level.
    pub hosts: u32,
    /// Its rate, in operations per second.
    pub rate: LevelRate,
    /// How many passes the rate rests on.
    pub passes: u32,
}

impl Level {
    /// The level's concurrency: threads, processes and hosts.
    #[must_use]
    pub const fn concurrency(&self) -> Concurrency {
        Concurrency { threads: self.threads, processes: self.processes, hosts: self.hosts }
    }

    /// The rate with its interval; `None`: there was one pass, which shows no spread.
    #[must_use]
    pub fn rate_with_interval(&self) -> Option<Estimate> {
        // A record of a version before this may give one pass an upper end beyond all rates.
        let LevelRate { estimate, low: Some(low), high: Some(high) } = self.rate else {
            return None;
        };
        (self.passes > 1).then_some(Estimate { estimate, low, high })
    }
}

/// A rate whose interval may not be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelRate {
    /// The mean over the passes.
    pub estimate: f64,
    /// The lower end of the interval; null: there was one pass, which shows no spread.
    pub low: Option<f64>,
    /// The upper end of the interval; null with `low`.
    pub high: Option<f64>,
}

impl LevelRate {
    /// The rate of one pass.
    #[must_use]
    pub const fn of_one_pass(estimate: f64) -> Self {
        Self { estimate, low: None, high: None }
    }
}

impl From<Estimate> for LevelRate {
    fn from(Estimate { estimate, low, high }: Estimate) -> Self {
        Self { estimate, low: Some(low), high: Some(high) }
    }
}

/// The Universal Scalability Law (Gunther): with n workers the rate is
/// `lambda n / (1 + sigma (n - 1) + kappa n (n - 1))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalabilityLaw {
    /// The rate of one worker, in operations per second.
    pub lambda: f64,
    /// Contention: the part of the work that cannot be shared.
    pub sigma: f64,
    /// Coherency: what each pair of workers costs one another.
    pub kappa: f64,
    /// The number of workers with the highest predicted rate; null when it only ever grows.
    pub peak_concurrency: Option<f64>,
    /// That rate, or the limit that a rate which only ever grows comes close to, in operations per
    /// second; null when there is none.
    #[schemars(with = "Option<f64>")]
    pub peak_rate: Option<PerSecond>,
    /// The largest distance between a level and the law, as a part of the level's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<Fraction>,
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KneeStop {
    /// Twice running, doubling raised the rate by less than 5 %.
    Plateau,
    /// The token gave out no more sessions (CKR_SESSION_COUNT).
    SessionCount,
    /// The time was up.
    Time,
    /// The highest concurrency asked for was reached.
    Limit,
    /// The user, or a signal, ended the search.
    Interrupted,
    /// Operations failed, or results were wrong.
    Failures,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_has_no_interval_whatever_an_older_record_says() {
        let level = |passes, rate| Level { threads: 2, processes: 1, hosts: 1, rate, passes };
        let rate = LevelRate { estimate: 9.0, low: Some(8.0), high: Some(11.0) };
        let whole = Estimate { estimate: 9.0, low: 8.0, high: 11.0 };
        let found = [0, 1, 2, 3].map(|passes| level(passes, rate).rate_with_interval());
        assert_eq!(found, [None, None, Some(whole), Some(whole)]);
        assert_eq!(level(2, LevelRate { high: None, ..rate }).rate_with_interval(), None);
        assert_eq!(level(2, LevelRate::of_one_pass(9.0)).rate_with_interval(), None);
    }
}
