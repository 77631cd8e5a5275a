//! What limits a rate: the device, this machine, other programs, a lock or a connection of each
//! process, the network, or the search for the limit itself.
//!
//! A cause is right if removing it would raise the rate by [`WORTH`]; it is the device only if no
//! other removal would. So each cause has to be shown or excluded by evidence, and where evidence
//! is missing or contradicts itself the answer is [`LimitCause::Unknown`]. One level of concurrency
//! never shows that it is the device: only more threads and more processes that bring nothing do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::contention::Contention;
use crate::interval::Estimate;
use crate::knee::AxisEnd;
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
    /// The mean latency.
    pub latency: Option<Nanos>,
    /// What the system says of the threads and their machine.
    pub contention: Contention,
}

/// How a search for the limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchEnd {
    /// Everything that it may try has been tried.
    Complete,
    /// Its time was up.
    Time,
    /// The token gave out no more sessions.
    SessionCount,
    /// The user, or a signal.
    Interrupted,
    /// Operations failed, or results were wrong.
    Failed,
}

/// All that a search for the limit has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchEvidence {
    /// Why it ended.
    pub end: SearchEnd,
    /// What more threads brought, in one process.
    pub threads: AxisEnd,
    /// What more processes brought.
    pub processes: AxisEnd,
    /// What more hosts brought; `None` where one machine measures.
    pub hosts: Option<AxisEnd>,
    /// The level of highest concurrency: where the device is the limit, calls only wait longer
    /// there, and whatever else costs a fixed time weighs least.
    pub top: LevelEvidence,
    /// The level with the most threads in one process.
    pub most_threads: LevelEvidence,
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

    /// The processor as the limit, where its figures show that.
    fn processor_limit(&self) -> Option<Attribution> {
        if self.is_starved() && self.has_neighbours() {
            return Some(self.other_programs());
        }
        (self.is_client_busy() || self.is_starved()).then(|| self.client())
    }

    /// What the threads of one process share, where more processes help.
    fn shared_in_process(&self, gain: Estimate) -> Attribution {
        let helps =
            format!("more threads in one process bring nothing, a second process {}", Gain(gain));
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

/// What limits the rate at the end of a search.
#[must_use]
pub fn attribute_search(search: &SearchEvidence) -> Attribution {
    let top = &search.top;
    match search.end {
        SearchEnd::Interrupted => {
            return Attribution {
                cause: LimitCause::Interruption,
                why: "the search was interrupted before it was known".into(),
            };
        }
        SearchEnd::Failed => {
            return Attribution::unknown("operations failed, or their results were wrong");
        }
        _ => {}
    }
    let growing = search.growing_axis();
    let is_full = top.is_machine_full() && f64::from(top.workers) >= top.cores;
    let is_steep = growing.is_some_and(|axis| axis.gain.low >= STEEP) && !top.is_client_busy();
    if is_full
        && !is_steep
        && let Some(limit) = top.processor_limit()
    {
        return limit;
    }
    if let Some(growing) = growing {
        return growing.attribution(search.end);
    }
    if let Some(limit) = top.processor_limit() {
        return limit;
    }
    match search.end {
        SearchEnd::Time => return Attribution::unknown("the time was up before it was known"),
        SearchEnd::SessionCount => {
            return Attribution::unknown("the token gave out no more sessions before it was known");
        }
        _ => {}
    }
    for (axis, end) in search.axes() {
        match end {
            AxisEnd::NotTried => {
                return Attribution::unknown(format!(
                    "more {} were not tried ({})",
                    axis.unit, axis.cap
                ));
            }
            AxisEnd::Unclear { .. } => {
                return Attribution::unknown(format!(
                    "the rates vary too much to say whether more {} help",
                    axis.unit
                ));
            }
            AxisEnd::Flat { .. } | AxisEnd::Growing { .. } => {}
        }
    }
    if top.kept_waiting().is_none() {
        return Attribution::unknown(
            "the system does not say how long threads waited for a processor",
        );
    }
    behind_the_module(search)
}

/// What the threads of one process share, if more processes help where more threads do not.
#[must_use]
pub fn attribute_process(
    search: &SearchEvidence,
    first_step: Option<Estimate>,
) -> Option<Attribution> {
    let gain = first_step.filter(|gain| gain.low > 1.0 && gain.estimate >= WORTH)?;
    let flat = matches!(search.threads, AxisEnd::Flat { .. });
    flat.then(|| search.most_threads.shared_in_process(gain))
}

/// Calls wait for whatever is behind the module's functions.
fn behind_the_module(search: &SearchEvidence) -> Attribution {
    let top = &search.top;
    let connections = top.contention.connections;
    let waits = top.contention.waits;
    let mostly_input = 2 * waits.input > waits.waiting();
    let latency = search.most_threads.latency;
    if let Some((trip, latency)) = connections.round_trip.zip(latency)
        && trip.0 as f64 >= SHARE * latency.0 as f64
    {
        return Attribution {
            cause: LimitCause::Network,
            why: format!("a round trip to the device takes {trip} of a call's {latency}"),
        };
    }
    if connections.local && mostly_input {
        return Attribution::unknown(
            "calls wait for another process of this machine, and what lies behind it is not seen",
        );
    }
    Attribution {
        cause: LimitCause::Device,
        why: format!(
            "{}, and workers waited inside their calls for {:.0} % of the time",
            flat_axes(search),
            100.0
                * top.contention.threads.map_or(0.0, |threads| {
                    1.0 - threads.running_share() - threads.runnable_share()
                })
        ),
    }
}

fn flat_axes(search: &SearchEvidence) -> String {
    let flat = |(axis, end): (Axis, AxisEnd)| match end {
        AxisEnd::Flat { gain } => Some(format!("more {} bring {}", axis.unit, Gain(gain))),
        _ => None,
    };
    search.axes().filter_map(flat).collect::<Vec<_>>().join(", ")
}

/// A kind of concurrency, as a user knows it.
#[derive(Clone, Copy)]
struct Axis {
    unit: &'static str,
    /// The option that limits it.
    cap: &'static str,
}

/// A kind of concurrency that still raised the rate.
#[derive(Clone, Copy)]
struct GrowingAxis {
    axis: Axis,
    gain: Estimate,
    at: u32,
}

impl SearchEvidence {
    fn axes(&self) -> impl Iterator<Item = (Axis, AxisEnd)> {
        let all = [
            (Axis { unit: "threads", cap: "--max-threads" }, Some(self.threads)),
            (Axis { unit: "processes", cap: "--max-processes" }, Some(self.processes)),
            (Axis { unit: "hosts", cap: "--hosts" }, self.hosts),
        ];
        all.into_iter().filter_map(|(axis, end)| Some((axis, end?)))
    }

    fn growing_axis(&self) -> Option<GrowingAxis> {
        self.axes().find_map(|(axis, end)| match end {
            AxisEnd::Growing { gain, at } => Some(GrowingAxis { axis, gain, at }),
            _ => None,
        })
    }
}

impl GrowingAxis {
    fn attribution(self, end: SearchEnd) -> Attribution {
        let Self { axis: Axis { unit, cap }, gain, at } = self;
        let stopped = match end {
            SearchEnd::Time => "its time was up".into(),
            SearchEnd::SessionCount => "the token gave out no more sessions".into(),
            _ => format!("{cap} allowed no more"),
        };
        let gain = Gain(gain);
        Attribution {
            cause: LimitCause::SearchCap,
            why: format!(
                "the rate was still growing, {gain} with the last doubling to {at} {unit}, when \
                 {stopped}"
            ),
        }
    }
}

/// `×1.98 [1.95, 2.01]`: a doubling's gain with its interval.
struct Gain(Estimate);

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { estimate, low, high } = self.0;
        write!(f, "×{estimate:.2} [{low:.2}, {high:.2}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::{Connections, MachineTimes, ThreadTimes, WaitSamples};

    /// A level whose threads run and are kept waiting for these shares of their time, while
    /// programs use so many processors of two.
    fn level(workers: u32, running: f64, runnable: f64, others: f64) -> LevelEvidence {
        let second = |share: f64| Nanos((share * 1e9) as u64);
        let used_cores = running * f64::from(workers);
        LevelEvidence {
            workers,
            cores: 2.0,
            used_cores,
            own_cores: 0.01,
            latency: Some(Nanos::from_millis(2)),
            contention: Contention {
                threads: Some(ThreadTimes {
                    watched: second(1.0),
                    running: second(running),
                    runnable: second(runnable),
                    ..ThreadTimes::default()
                }),
                waits: WaitSamples { sleep: 100, ..WaitSamples::default() },
                machine: Some(MachineTimes {
                    watched: second(1.0),
                    busy: second(used_cores + 0.01 + others),
                    ..MachineTimes::default()
                }),
                connections: Connections::default(),
            },
        }
    }

    fn flat() -> AxisEnd {
        AxisEnd::Flat { gain: Estimate::around(1.0, 0.01) }
    }

    fn growing() -> AxisEnd {
        AxisEnd::Growing { gain: Estimate::around(1.9, 0.05), at: 8 }
    }

    /// A serial device: calls wait, and nothing more brings anything.
    fn search(top: LevelEvidence) -> SearchEvidence {
        SearchEvidence {
            end: SearchEnd::Complete,
            threads: flat(),
            processes: flat(),
            hosts: None,
            top,
            most_threads: top,
        }
    }

    fn cause(search: &SearchEvidence) -> LimitCause {
        attribute_search(search).cause
    }

    #[test]
    fn the_device_needs_every_other_cause_excluded() {
        let idle = search(level(8, 0.01, 0.01, 0.05));
        let limit = attribute_search(&idle);
        assert_eq!(limit.cause, LimitCause::Device);
        assert_eq!(
            limit.why,
            "more threads bring ×1.00 [0.99, 1.01], more processes bring ×1.00 [0.99, 1.01], and \
             workers waited inside their calls for 98 % of the time"
        );
        let without = |change: fn(&mut SearchEvidence)| {
            let mut search = idle.clone();
            change(&mut search);
            cause(&search)
        };
        assert_eq!(without(|it| it.threads = AxisEnd::NotTried), LimitCause::Unknown);
        assert_eq!(without(|it| it.processes = AxisEnd::NotTried), LimitCause::Unknown);
        assert_eq!(without(|it| it.hosts = Some(AxisEnd::NotTried)), LimitCause::Unknown);
        assert_eq!(without(|it| it.hosts = Some(flat())), LimitCause::Device);
        let unclear = |it: &mut SearchEvidence| it.processes = AxisEnd::Unclear { gain: None };
        assert_eq!(without(unclear), LimitCause::Unknown);
        assert_eq!(without(|it| it.top.contention.threads = None), LimitCause::Unknown);
        for end in [SearchEnd::Time, SearchEnd::SessionCount, SearchEnd::Failed] {
            assert_eq!(cause(&SearchEvidence { end, ..idle.clone() }), LimitCause::Unknown);
        }
        let interrupted = SearchEvidence { end: SearchEnd::Interrupted, ..idle.clone() };
        assert_eq!(cause(&interrupted), LimitCause::Interruption);
    }

    #[test]
    fn a_rate_that_still_grows_is_the_searchs_end() {
        for end in [SearchEnd::Complete, SearchEnd::Time, SearchEnd::SessionCount] {
            let search =
                SearchEvidence { end, threads: growing(), ..search(level(8, 0.01, 0.01, 0.0)) };
            let limit = attribute_search(&search);
            assert_eq!(limit.cause, LimitCause::SearchCap);
            let stopped = match end {
                SearchEnd::Time => "its time was up",
                SearchEnd::SessionCount => "the token gave out no more sessions",
                _ => "--max-threads allowed no more",
            };
            assert!(limit.why.ends_with(stopped), "{}", limit.why);
            assert!(limit.why.contains("×1.90 [1.85, 1.95] with the last doubling to 8 threads"));
        }
        let more = SearchEvidence { processes: growing(), ..search(level(8, 0.01, 0.01, 0.0)) };
        assert!(attribute_search(&more).why.contains("--max-processes"));
    }

    #[test]
    fn a_full_machine_is_the_limit_of_whoever_fills_it() {
        // Eight threads share two processors that nobody else wants.
        assert_eq!(cause(&search(level(8, 0.25, 0.7, 0.05))), LimitCause::Client);
        // Another program takes one of the two.
        let starved = search(level(8, 0.125, 0.8, 1.0));
        let limit = attribute_search(&starved);
        assert_eq!(limit.cause, LimitCause::OtherPrograms);
        assert_eq!(
            limit.why,
            "other programs used 1.0 of 2.0 processors, and workers that were ready to run waited \
             for one 80 % of the time"
        );
        // More threads then take a larger share, which is no property of the device.
        let gain = Estimate::around(1.3, 0.05);
        let larger_share =
            SearchEvidence { threads: AxisEnd::Growing { gain, at: 8 }, ..starved.clone() };
        assert_eq!(cause(&larger_share), LimitCause::OtherPrograms);
        // A rate that doubles will go on doubling, whoever is busy beside.
        assert_eq!(cause(&SearchEvidence { threads: growing(), ..starved }), LimitCause::SearchCap);
        let filled = SearchEvidence { threads: growing(), ..search(level(2, 0.99, 0.0, 0.0)) };
        assert_eq!(cause(&filled), LimitCause::Client);
        // The hypervisor is another program, too.
        let mut stolen = search(level(8, 0.125, 0.8, 0.0));
        stolen.top.contention.machine.as_mut().unwrap().steal = Nanos::from_secs(1);
        assert_eq!(cause(&stolen), LimitCause::OtherPrograms);
        // Spinning threads need no processor that they lack.
        assert_eq!(cause(&search(level(2, 0.95, 0.0, 0.0))), LimitCause::Client);
        // One busy thread at the cap: a second one would help.
        let one = SearchEvidence { threads: growing_at_one(), ..search(level(1, 0.99, 0.0, 0.0)) };
        assert_eq!(cause(&one), LimitCause::SearchCap);
    }

    fn growing_at_one() -> AxisEnd {
        AxisEnd::Growing { gain: Estimate::around(1.9, 0.05), at: 1 }
    }

    #[test]
    fn neighbours_that_take_nothing_away_are_no_limit() {
        // Both processors are busy with others, but the workers wait for the device.
        let limit = cause(&search(level(16, 0.005, 0.05, 1.9)));
        assert_eq!(limit, LimitCause::Device);
        // At a share of a tenth of the cycle their absence would be worth it.
        let search = |runnable| search(level(16, 0.005, runnable, 1.9));
        assert_eq!(cause(&search(SHARE + 1e-6)), LimitCause::OtherPrograms);
        assert_eq!(cause(&search(SHARE - 1e-6)), LimitCause::Device);
    }

    #[test]
    fn one_level_is_never_the_devices() {
        assert_eq!(attribute_case(&level(8, 0.01, 0.01, 0.0)).cause, LimitCause::Unknown);
        assert_eq!(attribute_case(&level(8, 0.25, 0.7, 0.0)).cause, LimitCause::Client);
        assert_eq!(attribute_case(&level(8, 0.1, 0.8, 1.2)).cause, LimitCause::OtherPrograms);
        assert_eq!(attribute_case(&LevelEvidence::default()).cause, LimitCause::Unknown);
    }

    #[test]
    fn what_one_process_shares_is_told_by_samples() {
        let gain = Some(Estimate::around(1.98, 0.03));
        let shared = |lock, sleep| {
            let mut search = search(level(8, 0.01, 0.01, 0.0));
            search.most_threads.contention.waits =
                WaitSamples { lock, sleep, ..WaitSamples::default() };
            attribute_process(&search, gain).unwrap().cause
        };
        assert_eq!(shared(700, 100), LimitCause::ProcessLock);
        assert_eq!(shared(0, 800), LimitCause::ProcessConnection);
        assert_eq!(shared(200, 600), LimitCause::ProcessLockOrConnection);
        assert_eq!(shared(20, 5), LimitCause::ProcessLockOrConnection, "too few samples");
        let idle = search(level(8, 0.01, 0.01, 0.0));
        let no_gain = [None, Some(Estimate::around(1.0, 0.02)), Some(Estimate::around(1.2, 0.3))];
        assert!(no_gain.iter().all(|gain| attribute_process(&idle, *gain).is_none()));
        let growing = SearchEvidence { threads: growing(), ..idle };
        assert_eq!(attribute_process(&growing, gain), None, "more threads help as well");
    }

    #[test]
    fn what_lies_behind_a_socket_is_not_the_device() {
        let with = |round_trip, local, input| {
            let mut search = search(level(8, 0.01, 0.01, 0.0));
            search.top.contention.waits =
                WaitSamples { input, sleep: 100, ..WaitSamples::default() };
            search.top.contention.connections = Connections { round_trip, local };
            cause(&search)
        };
        let fast = Some(Nanos(100_000));
        assert_eq!(with(fast, false, 300), LimitCause::Device);
        assert_eq!(with(Some(Nanos(200_000)), false, 300), LimitCause::Network, "of 2 ms");
        assert_eq!(with(None, true, 300), LimitCause::Unknown);
        assert_eq!(with(None, true, 50), LimitCause::Device, "they mostly wait for something else");
    }
}
