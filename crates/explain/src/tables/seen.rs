//! Figures of operations that are known one by one, and too many to be kept: they are gone through
//! twice, first for when they were, then for the series.

use std::num::NonZeroU32;

use tapstone_measure::series::{Series, WindowSeries};
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;
use tapstone_record as record;

/// Operations up to so many are kept one by one.
const MOST_VALUES: usize = 1000;

/// What is known of operations once they were gone through.
#[derive(Debug, Default)]
pub(super) struct OperationsSeen {
    count: usize,
    /// From the first beginning to the last end.
    window: Option<(Nanos, Nanos)>,
    /// When the first and the last ended that went well.
    first_and_last: Option<(Nanos, Nanos)>,
    /// The times of those that went well, as long as they are few.
    latencies: Vec<Nanos>,
}

impl OperationsSeen {
    /// One that ended then, and its time unless it failed.
    pub(super) fn see(&mut self, end: Nanos, time: Option<Nanos>) {
        self.count += 1;
        let start = end - time.unwrap_or_default();
        let (opens, closes) = self.window.unwrap_or((start, end));
        self.window = Some((opens.min(start), closes.max(end)));
        let Some(time) = time else { return };
        let (first, last) = self.first_and_last.unwrap_or((end, end));
        self.first_and_last = Some((first.min(end), last.max(end)));
        if self.count <= MOST_VALUES {
            self.latencies.push(time);
        }
    }

    /// The series for all of them, to which they are then added in any order; `None` where there
    /// are none.
    pub(super) fn series(&self) -> Option<WindowSeries> {
        let (opens, closes) = self.window?;
        Some(WindowSeries::new((opens, closes.max(opens + Nanos(1)))))
    }

    /// Sets the figures of a case; `series` holds all of them.
    pub(super) fn set_figures(self, case: &mut record::CaseResult, series: &Series) {
        let Some((opens, closes)) = self.window else { return };
        let conditions = Conditions {
            window: closes.max(opens + Nanos(1)) - opens,
            workers: NonZeroU32::MIN,
            first_and_last: self.first_and_last,
            clock_step: Nanos(1),
        };
        case.set_figures(&Summary::from_series(series, &conditions), &series.total());
        if self.count <= MOST_VALUES {
            case.latencies_ns = self.latencies;
        }
    }
}

/// The figures of operations that are kept: their ends, and their times unless they failed.
pub(super) fn set_figures(
    case: &mut record::CaseResult,
    operations: impl Iterator<Item = (Nanos, Option<Nanos>)> + Clone,
) {
    let mut seen = OperationsSeen::default();
    operations.clone().for_each(|(end, time)| seen.see(end, time));
    let Some(mut series) = seen.series() else { return };
    operations.for_each(|(end, time)| series.add(end, time));
    seen.set_figures(case, &series.finish());
}
