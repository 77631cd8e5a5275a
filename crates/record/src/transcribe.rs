//! What the statistics of a window say, in the record's words: copied, never computed anew.

use tapstone_measure::interval;
use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Summary, histogram};
use tapstone_measure::units::Nanos;

use crate::breakdown::SeriesPoint;
use crate::case_result::CaseResult;
use crate::figures::{Fraction, Interval, Latency};
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
    /// caller's: not every row has one.
    pub fn set_figures(&mut self, summary: &Summary, total: &Slice) {
        self.completed = total.completed;
        self.interval = Some(Interval {
            n: summary.batches as u64,
            method: summary.method.clone(),
            level: Fraction(interval::LEVEL),
            reliable: summary.reliable,
            autocorrelation: None,
        });
        if total.completed == 0 {
            return;
        }
        let figure = |figure: Option<interval::Estimate>| figure.map(Estimate::from);
        self.latency_ns = Some(Latency {
            mean: figure(summary.mean),
            p50: figure(summary.p50),
            p90: figure(summary.p90),
            p95: figure(summary.p95),
            p99: figure(summary.p99),
            p999: figure(summary.p99_9),
            min: total.min,
            max: total.max,
        });
        self.histogram = EncodedHistogram::encode(&histogram(total)).ok();
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
