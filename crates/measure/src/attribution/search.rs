//! What limits the rate at the end of a search over several levels of concurrency.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Attribution, FEWEST_SAMPLES, LevelEvidence, LimitCause, SHARE, STEEP, WORTH};
use crate::interval::Estimate;
use crate::knee::AxisEnd;
use crate::units::Nanos;

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
    /// What brought the search to its end.
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
    /// The mean latency of a call while no other is under way: the level of one worker.
    pub latency_alone: Option<Nanos>,
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
    let is_steep = growing.is_some_and(|axis| axis.gain.low >= STEEP) && !top.is_computing();
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
            return Attribution::unknown(
                "the token gave out no more sessions (CKR_SESSION_COUNT) before it was known",
            );
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

/// What the threads of one process share, if more processes help where more threads do not. Threads
/// that are on a processor share that: also those that spin while they wait for a lock.
#[must_use]
pub fn attribute_process(
    search: &SearchEvidence,
    first_step: Option<Estimate>,
) -> Option<Attribution> {
    let gain = first_step.filter(|gain| gain.low > 1.0 && gain.estimate >= WORTH)?;
    let level = &search.most_threads;
    let limit = || level.processor_limit().unwrap_or_else(|| level.shared_in_process(gain));
    matches!(search.threads, AxisEnd::Flat { .. }).then(limit)
}

/// Calls wait for whatever is behind the module's functions.
fn behind_the_module(search: &SearchEvidence) -> Attribution {
    let top = &search.top;
    let connections = top.contention.connections;
    let waits = top.contention.waits;
    let mostly_input = 2 * waits.input > waits.waiting();
    if waits.total() < FEWEST_SAMPLES {
        return Attribution::unknown("what the workers waited for was not seen often enough");
    }
    if let Some(limit) = search.round_trips() {
        return limit;
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

    /// The last kind of concurrency that still raised the rate, unless a later flat one was tried
    /// from there: each kind is tried from where the one before is enough, and that may be less
    /// than the most that was tried of it.
    fn growing_axis(&self) -> Option<GrowingAxis> {
        let mut later = None;
        for (axis, end) in self.axes().filter(|(_, end)| *end != AxisEnd::NotTried) {
            later = match end {
                AxisEnd::Growing { gain, at } => Some(GrowingAxis { axis, gain, at }),
                _ => later.filter(|growing: &GrowingAxis| self.top.workers < 2 * growing.at),
            };
        }
        later
    }

    /// The round trips to the device, where a call that waits for no other spends a good part of
    /// its time in them.
    ///
    /// The rate is theirs if the device serves one call after the other, round trip and all. Where
    /// more workers brought more, round trips overlap: then they may cost nothing, or each of
    /// several places in the device may be taken for as long as a round trip.
    fn round_trips(&self) -> Option<Attribution> {
        let trip = self.top.contention.connections.round_trip?;
        let Some(alone) = self.latency_alone else {
            return Some(Attribution::unknown("a call that waits for no other was not measured"));
        };
        if (trip.0 as f64) < SHARE * alone.0 as f64 {
            return None;
        }
        let share = format!("a round trip to the device takes {trip} of the {alone} of a call");
        let one_by_one = alone.0 as f64 * f64::from(self.top.workers);
        let is_serial = self.top.latency.is_some_and(|top| one_by_one < WORTH * top.0 as f64);
        Some(if is_serial {
            let why = format!("{share} that waits for no other, and calls are served one by one");
            Attribution { cause: LimitCause::Network, why }
        } else {
            Attribution::unknown(format!("{share}, and what the device does meanwhile is not seen"))
        })
    }
}

impl GrowingAxis {
    fn attribution(self, end: SearchEnd) -> Attribution {
        let Self { axis: Axis { unit, cap }, gain, at } = self;
        let stopped = match end {
            SearchEnd::Time => "its time was up".into(),
            SearchEnd::SessionCount => {
                "the token gave out no more sessions (CKR_SESSION_COUNT)".into()
            }
            _ => format!("{cap} allowed no more"),
        };
        if gain.estimate < WORTH {
            return Attribution::unknown(format!(
                "the last doubling to {at} {unit} still brought {}, too little to say that more \
                 bring more",
                Gain(gain)
            ));
        }
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
pub(super) struct Gain(pub(super) Estimate);

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { estimate, low, high } = self.0;
        write!(f, "×{estimate:.2} [{low:.2}, {high:.2}]")
    }
}
