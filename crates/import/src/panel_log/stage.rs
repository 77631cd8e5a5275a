//! A stage of the authentication: its times, and the case that they make.

use std::num::NonZeroU32;

use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;
use tapstone_record::{CaseResult, Concurrency, Estimate, Load, Outcome, Status, StoppedBy};

/// When there are so many slices, two become one: memory does not grow with the log.
const MOST_SLICES: usize = 512;

/// The times of a stage, in the order of the log.
pub(super) struct Stage {
    operation: String,
    slices: Vec<Slice>,
    /// How many times a slice has.
    each: u64,
}

impl Stage {
    pub(super) fn new(operation: &str) -> Self {
        Self { operation: operation.to_owned(), slices: vec![Slice::empty()], each: 1 }
    }

    pub(super) fn add(&mut self, time: Nanos) {
        if self.slices.last().is_none_or(|slice| slice.completed >= self.each) {
            if self.slices.len() >= MOST_SLICES {
                self.coarsen();
            }
            self.slices.push(Slice::empty());
        }
        if let Some(slice) = self.slices.last_mut() {
            slice.count(time);
        }
    }

    pub(super) fn completed(&self) -> u64 {
        self.slices.iter().map(|slice| slice.completed).sum()
    }

    fn coarsen(&mut self) {
        self.each *= 2;
        let merge = |pair: &[Slice]| {
            let mut one = pair[0].clone();
            pair.get(1).into_iter().for_each(|other| one.absorb(other));
            one
        };
        self.slices = self.slices.chunks(2).map(merge).collect();
    }

    /// The case, with intervals wider by the resolution on both sides.
    pub(super) fn case(&self, resolution: Option<Nanos>) -> CaseResult {
        let mut case = CaseResult::new(&self.operation, Status::OK, Concurrency::ONE, Load::CLOSED);
        case.stopped_by = Some(StoppedBy::Count);
        // The statistics want slices on a grid. That of a log is the order of its lines.
        let mut series = Series::new(Nanos(1));
        for (at, slice) in self.slices.iter().enumerate() {
            series.add(&Slice { start: Nanos(at as u64), length: Nanos(1), ..slice.clone() });
        }
        let conditions = Conditions {
            window: series.span(),
            workers: NonZeroU32::MIN,
            first_and_last: None,
            clock_step: Nanos(1),
        };
        let summary = Summary::from_series(&series, &conditions);
        case.set_figures(&summary, &series.total());
        if case.completed == 0 {
            case.status = Status::at(Outcome::Failed, "panel log", "NO_TRANSACTION");
            case.interval = None;
        }
        if let Some(interval) = &mut case.interval {
            interval.method =
                format!("batch means in the order of the log, over {} batches", interval.n);
        }
        if let (Some(step), Some(latency)) = (resolution, &mut case.latency_ns) {
            let figures = [
                &mut latency.mean,
                &mut latency.p50,
                &mut latency.p90,
                &mut latency.p95,
                &mut latency.p99,
                &mut latency.p99_9,
            ];
            figures.into_iter().flatten().for_each(|figure| widen(figure, step));
            if let Some(interval) = &mut case.interval {
                interval.method.push_str(&format!("; wider by the log's {step} on both sides"));
            }
        }
        case
    }
}

fn widen(figure: &mut Estimate, step: Nanos) {
    figure.low = (figure.low - step.0 as f64).max(0.0);
    figure.high += step.0 as f64;
}
