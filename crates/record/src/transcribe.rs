//! What the statistics of a window say, in the record's words: copied, never computed anew.

use tapstone_measure::interval;
use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Summary, histogram};
use tapstone_measure::units::Nanos;

use crate::breakdown::SeriesPoint;
use crate::case_result::CaseResult;
use crate::figures::{Fraction, Interval, Latency, Throughput, Variation};
use crate::histogram::EncodedHistogram;
use crate::load::WarmUp;
use crate::{Estimate, Seconds};

/// A record keeps at most so many points of a series: enough for a plot.
const SERIES_POINTS: usize = 240;

/// Fewer completions than this in a slice have no 99 % quantile.
const ENOUGH_FOR_P99: u64 = 1000;

/// The latencies of a warm-up that are kept one by one.
const FIRST_KEPT: usize = 16;

impl CaseResult {
    /// Sets the latencies, their histogram and the way their intervals were made. The rate is the
    /// caller's: not every case has one.
    pub fn set_figures(&mut self, summary: &Summary, total: &Slice) {
        self.completed = total.completed;
        self.interval = Some(Interval {
            n: summary.batches as u64,
            method: summary.method.clone(),
            level: Fraction(interval::LEVEL),
            reliable: summary.reliable,
            autocorrelation: None,
            variation: Some(Variation::Window),
        });
        if total.completed == 0 {
            return;
        }
        self.latency_ns = Some(latencies(summary, total.min, total.max));
        self.histogram = EncodedHistogram::encode(&histogram(total)).ok();
    }

    /// Replaces the rate and the latencies of one round by those over all rounds of the case. The
    /// rest, such as count, histogram, shortest and longest, stays that of the round.
    pub fn set_rounds(&mut self, over: &Summary) {
        if let Some(throughput) = &mut self.throughput {
            *throughput = Throughput::operations(over.rate, throughput.over);
        }
        if let Some(latency) = &mut self.latency_ns {
            *latency = latencies(over, latency.min, latency.max);
        }
        if let Some(interval) = &mut self.interval {
            interval.n = over.batches as u64;
            interval.method.clone_from(&over.method);
            interval.reliable = over.reliable;
            interval.variation = Some(Variation::Rounds);
        }
    }
}

fn latencies(summary: &Summary, min: Nanos, max: Nanos) -> Latency {
    let figure = |figure: Option<interval::Estimate>| figure.map(Estimate::from);
    Latency {
        mean: figure(summary.mean),
        p50: figure(summary.p50),
        p90: figure(summary.p90),
        p95: figure(summary.p95),
        p99: figure(summary.p99),
        p99_9: figure(summary.p99_9),
        min,
        max,
    }
}

impl SeriesPoint {
    /// The slices of a window, merged until there are few enough to draw.
    #[must_use]
    pub fn all(series: &Series) -> Vec<Self> {
        let mut coarse = series.clone();
        while coarse.slices().len() > SERIES_POINTS {
            coarse = coarse.coarsened();
        }
        let point = |slice: &Slice| Self {
            start_ns: slice.start,
            end_ns: Some(slice.start + slice.length),
            completed: slice.completed,
            failed: slice.failed,
            p50_ns: slice.quantile(0.5),
            p99_ns: (slice.completed >= ENOUGH_FOR_P99).then(|| slice.quantile(0.99)).flatten(),
        };
        coarse.slices().iter().map(point).collect()
    }
}

impl WarmUp {
    /// So many operations in this time, the first of which took these times, held against the
    /// median of the window that followed.
    #[must_use]
    pub fn from_calls(operations: u64, length: Nanos, first: &[Nanos], summary: &Summary) -> Self {
        let first = &first[..first.len().min(FIRST_KEPT)];
        let mean = first.iter().map(|latency| latency.0 as f64).sum::<f64>() / first.len() as f64;
        let median = summary.p50.map(|p50| p50.estimate).filter(|median| *median > 0.0);
        Self {
            operations,
            seconds: Seconds(length.as_secs_f64()),
            first_ns: first.to_vec(),
            ratio_to_median: median.map(|median| mean / median).filter(|ratio| ratio.is_finite()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tapstone_measure::summary::Conditions;

    use super::*;
    use crate::case_result::Status;
    use crate::figures::RateBasis;
    use crate::load::{Concurrency, Load};

    const SLICE: Nanos = Nanos::from_millis(4);

    /// So many slices, in each of which this many calls of 1 ms ended, and one failed.
    fn series(slices: u64, calls: u64) -> Series {
        let mut series = Series::new(SLICE);
        for place in 0..slices {
            let start = Nanos(place * SLICE.0);
            let mut slice = Slice { start, length: SLICE, failed: 1, ..Slice::empty() };
            (0..calls).for_each(|_| slice.count(Nanos::from_millis(1)));
            series.add(&slice);
        }
        series
    }

    fn summary(series: &Series) -> Summary {
        let conditions = Conditions {
            window: series.span(),
            workers: NonZeroU32::MIN,
            first_and_last: None,
            clock_step: Nanos(1),
        };
        Summary::from_series(series, &conditions)
    }

    #[test]
    fn a_row_has_the_figures_of_its_window() {
        let series = series(250, 4);
        let total = series.total();
        let mut case = CaseResult::new("x", Status::OK, Concurrency::ONE, Load::CLOSED);
        case.set_figures(&summary(&series), &total);
        assert_eq!(case.completed, 1_000);
        let latency = case.latency_ns.unwrap();
        assert_eq!((latency.min, latency.max), (Nanos(1_000_000), Nanos(1_000_000)));
        assert!((latency.mean.unwrap().estimate - 1e6).abs() < 1.0, "{latency:?}");
        assert_eq!(case.histogram.unwrap().decode().unwrap().len(), 1_000);
        assert_eq!(case.interval.unwrap().level, Fraction(0.95));
    }

    #[test]
    fn a_row_in_which_nothing_completed_has_no_latencies() {
        let series = series(10, 0);
        let mut case = CaseResult::new("x", Status::OK, Concurrency::ONE, Load::CLOSED);
        case.set_figures(&summary(&series), &series.total());
        assert_eq!((case.completed, case.latency_ns, case.histogram), (0, None, None));
        assert!(case.interval.is_some());
    }

    #[test]
    fn a_series_has_at_most_240_points() {
        for (slices, points) in [(239, 239), (240, 240), (241, 121), (960, 240), (962, 121)] {
            let series = series(slices, 2);
            let found = SeriesPoint::all(&series);
            assert_eq!(found.len(), points, "of {slices} slices");
            let sum: u64 = found.iter().map(|point| point.completed).sum();
            assert_eq!(sum, 2 * slices, "nothing is lost");
            assert_eq!(found.iter().map(|point| point.failed).sum::<u64>(), slices);
            assert!(found.windows(2).all(|pair| pair[0].end_ns == Some(pair[1].start_ns)));
            assert_eq!((found[0].start_ns, found[0].p99_ns), (Nanos::ZERO, None));
            assert!(found[0].p50_ns.is_some());
        }
    }

    #[test]
    fn a_point_needs_a_thousand_calls_for_its_p99() {
        let told = |calls| SeriesPoint::all(&series(1, calls))[0].p99_ns.is_some();
        assert_eq!((told(999), told(1_000)), (false, true));
    }

    #[test]
    fn a_warm_up_is_held_against_the_median_of_the_window() {
        let summary = summary(&series(250, 4));
        let first: Vec<Nanos> = (1..=20).map(Nanos::from_millis).collect();
        let warm_up = WarmUp::from_calls(20, Nanos::from_millis(2_500), &first, &summary);
        assert_eq!((warm_up.operations, warm_up.seconds), (20, Seconds(2.5)));
        assert_eq!(warm_up.first_ns, first[..16], "the first sixteen alone");
        // The mean of 1 to 16 ms over 1 ms.
        assert!((warm_up.ratio_to_median.unwrap() - 8.5).abs() < 0.01, "{warm_up:?}");
        let none = WarmUp::from_calls(0, Nanos::ZERO, &[], &summary);
        assert_eq!(none.ratio_to_median, None);
        let unknown = Summary { p50: None, ..summary };
        assert_eq!(WarmUp::from_calls(1, Nanos::ZERO, &first, &unknown).ratio_to_median, None);
    }

    #[test]
    fn a_case_of_several_rounds_has_the_figures_over_all_of_them() {
        let one = series(250, 4);
        let mut case = CaseResult::new("x", Status::OK, Concurrency::ONE, Load::CLOSED);
        case.set_figures(&summary(&one), &one.total());
        let around = interval::Estimate::around;
        case.throughput =
            Some(Throughput::operations(around(1_000.0, 1.0), RateBasis::FirstToLast));
        let over = Summary {
            rate: around(700.0, 7.0),
            mean: Some(around(2e6, 2e3)),
            p50: Some(around(3e6, 3e3)),
            p90: None,
            p95: None,
            p99: None,
            p99_9: None,
            quantile_values: [None; 5],
            n: 5,
            batches: 12,
            method: "Student's t over rounds".into(),
            reliable: false,
        };
        case.set_rounds(&over);
        let throughput = case.throughput.unwrap();
        assert_eq!((throughput.estimate, throughput.low, throughput.high), (700.0, 693.0, 707.0));
        assert_eq!(throughput.over, RateBasis::FirstToLast, "how it was taken stays");
        let latency = case.latency_ns.unwrap();
        assert_eq!((latency.mean.unwrap().estimate, latency.p50.unwrap().estimate), (2e6, 3e6));
        assert_eq!((latency.p99, latency.min), (None, Nanos::from_millis(1)));
        let interval = case.interval.unwrap();
        assert_eq!((interval.n, interval.reliable), (12, false));
        assert_eq!(interval.method, "Student's t over rounds");
        assert_eq!(interval.variation, Some(Variation::Rounds));
        assert_eq!(case.completed, 1_000, "the count stays that of the round");
    }
}
