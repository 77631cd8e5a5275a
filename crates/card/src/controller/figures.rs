//! Operations as they happened, by case: counted into slices, and summarised.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Conditions, OperationsSummary, Summary};
use tapstone_measure::units::Nanos;

use super::card_run::CardRun;
use crate::protocol::{Fault, Sample};

/// The figures of one case.
#[derive(Clone, Debug)]
pub struct LaneFigures {
    /// Which case of the job.
    pub lane: u16,
    /// The operations over time.
    pub series: Series,
    /// Everything in one slice.
    pub total: Slice,
    /// The figures; intervals of latencies are over the operations in their own order.
    pub summary: Summary,
    /// Whether the interval of the rate keeps its promise.
    pub rate_reliable: bool,
    /// How the rate was made, in words.
    pub rate_method: String,
    /// From the first start to the last end, on the machine's CLOCK_MONOTONIC.
    pub window: (Nanos, Nanos),
    /// How many operations failed, by their code.
    pub failed: BTreeMap<String, u64>,
    /// What went wrong last.
    pub last_fault: Option<Fault>,
    /// What each worker did of the case, in the workers' order.
    pub parts: Vec<WorkerPart>,
}

/// What one worker did of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerPart {
    /// Operations that it completed.
    pub completed: u64,
    /// Their mean duration in nanoseconds.
    pub mean_ns: f64,
    /// The longest of them.
    pub longest: Nanos,
}

/// The cases of a run, in order; cases of which nothing was seen are not there.
#[must_use]
pub fn lanes(ran: &CardRun) -> Vec<LaneFigures> {
    let all = || ran.samples.iter().flatten();
    let mut numbers: Vec<u16> = all().map(|sample| sample.lane).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|lane| figures(ran, lane)).collect()
}

fn figures(ran: &CardRun, lane: u16) -> Option<LaneFigures> {
    let window = window(ran, lane)?;
    let of_lane = |samples: &'_ [Sample]| -> Vec<Sample> {
        samples.iter().filter(|sample| sample.lane == lane).cloned().collect()
    };
    let by_worker: Vec<Vec<Sample>> = ran.samples.iter().map(|all| of_lane(all)).collect();
    let all = || by_worker.iter().flatten();
    let timed = |sample: &Sample| (end(sample), sample.fault.is_none().then_some(sample.latency));
    let series = Series::from_operations(all().map(timed), window);
    let total = series.total();
    let ends = || all().filter(|sample| sample.fault.is_none()).map(end);
    let conditions = Conditions {
        window: window.1 - window.0,
        workers: NonZeroU32::new(by_worker.len() as u32)?,
        first_and_last: ends().min().zip(ends().max()),
        clock_step: Nanos(1),
    };
    let mut good: Vec<&Sample> = all().filter(|sample| sample.fault.is_none()).collect();
    good.sort_by_key(|sample| end(sample));
    let latencies: Vec<Nanos> = good.iter().map(|sample| sample.latency).collect();
    let OperationsSummary { summary, rate_reliable, rate_method } =
        OperationsSummary::from_operations(&latencies, &series, &conditions);
    let mut failed = BTreeMap::new();
    for fault in all().filter_map(|sample| sample.fault.as_ref()) {
        *failed.entry(fault.code()).or_default() += 1;
    }
    Some(LaneFigures {
        lane,
        total,
        summary,
        rate_reliable,
        rate_method,
        series,
        window,
        failed,
        last_fault: all().filter_map(|sample| sample.fault.clone()).next_back(),
        parts: by_worker.iter().map(|samples| part(samples)).collect(),
    })
}

fn end(sample: &Sample) -> Nanos {
    sample.start + sample.latency
}

/// From the first start, which all workers share, to the last end: who waits for another process
/// from the first moment on is part of what is measured.
fn window(ran: &CardRun, lane: u16) -> Option<(Nanos, Nanos)> {
    let all = || ran.samples.iter().flatten().filter(|sample| sample.lane == lane);
    let opens = all().map(|sample| sample.start).min()?;
    let closes = all().map(end).max()?;
    Some((opens, closes.max(opens + Nanos(1))))
}

fn part(samples: &[Sample]) -> WorkerPart {
    let good = || samples.iter().filter(|sample| sample.fault.is_none());
    let completed = good().count() as u64;
    let sum: u64 = good().map(|sample| sample.latency.0).sum();
    WorkerPart {
        completed,
        mean_ns: sum as f64 / completed.max(1) as f64,
        longest: good().map(|sample| sample.latency).max().unwrap_or(Nanos::ZERO),
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
