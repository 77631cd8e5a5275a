//! Figures of a simulated queue, with intervals that know that one wait follows from another.

use tapstone_measure::interval::{self, student_t};
use tapstone_measure::units::Nanos;
use tapstone_record::{Estimate, Latency};

use crate::millis::Millis;

/// WaitBatches at the start, and at the least.
const MOST: usize = 128;
const LEAST: usize = 16;
/// WaitBatches that go together more than this are merged.
const CORRELATED: f64 = 0.2;
/// A quantile needs so many values beyond it.
const BEYOND: f64 = 20.0;

/// Values in their order, in batches so long that their means hardly depend on one another.
pub(crate) struct WaitBatches {
    means: Vec<f64>,
    size: usize,
    mean: f64,
}

impl WaitBatches {
    pub(crate) fn from_values(values: &[f64]) -> Self {
        let mut size = (values.len() / MOST).max(1);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        loop {
            let means = means(values, size, |value| value);
            if means.len() < 2 * LEAST || autocorrelation(&means) < CORRELATED {
                return Self { means, size, mean };
            }
            size *= 2;
        }
    }

    pub(crate) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard error of the mean, over batch means.
    pub(crate) fn standard_error(&self) -> f64 {
        standard_error(&self.means)
    }

    /// The mean with its 95 % interval.
    fn interval(&self) -> Estimate {
        let half = self.standard_error() * student_t(self.means.len().max(2) - 1);
        around(self.mean, half)
    }
}

fn around(value: f64, half: f64) -> Estimate {
    Estimate { estimate: value, low: (value - half).max(0.0), high: value + half }
}

/// Means of batches of what is made of each value. A rest too short for a batch is left out.
fn means(values: &[f64], size: usize, of: impl Fn(f64) -> f64) -> Vec<f64> {
    let mean = |batch: &[f64]| batch.iter().map(|value| of(*value)).sum::<f64>() / size as f64;
    values.chunks_exact(size).map(mean).collect()
}

fn standard_error(means: &[f64]) -> f64 {
    let count = means.len() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = means.iter().sum::<f64>() / count;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    (squares / (count - 1.0) / count).sqrt()
}

/// Of each with the next.
fn autocorrelation(means: &[f64]) -> f64 {
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    let products: f64 = means.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Mean and quantiles of values in milliseconds, in nanoseconds.
pub(crate) fn latency(values: &[f64], batches: &WaitBatches) -> Latency {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
        return Latency::default();
    };
    let nanos = |ms: f64| Nanos(Millis(ms).nanos() as u64);
    let quantile = |part: f64| quantile(values, &sorted, batches.size, part);
    Latency {
        mean: Some(in_nanos(batches.interval())),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        min: nanos(*min),
        max: nanos(*max),
    }
}

/// The variance of "at most the quantile" over the batches, inverted: where the quantile could be
/// if its part were that much smaller or larger.
fn quantile(values: &[f64], sorted: &[f64], size: usize, part: f64) -> Option<Estimate> {
    let count = sorted.len() as f64;
    if count * (1.0 - part) < BEYOND {
        return None;
    }
    let at = |part: f64| sorted[(part.clamp(0.0, 1.0) * (count - 1.0)).round() as usize];
    let value = at(part);
    let below = means(values, size, |one| if one <= value { 1.0 } else { 0.0 });
    let half = standard_error(&below) * student_t(below.len().max(2) - 1);
    Some(in_nanos(Estimate { estimate: value, low: at(part - half), high: at(part + half) }))
}

fn in_nanos(ms: Estimate) -> Estimate {
    let nanos = |value: f64| Millis(value).nanos();
    Estimate { estimate: nanos(ms.estimate), low: nanos(ms.low), high: nanos(ms.high) }
}

/// Events per `unit` since `start`, from counts in 32 stretches of equal length.
pub(crate) fn rate(moments: &[f64], start: f64, unit: f64) -> Estimate {
    const STRETCHES: usize = 32;
    let end = moments.iter().copied().fold(start, f64::max);
    let length = (end - start) / STRETCHES as f64;
    if length <= 0.0 {
        return Estimate { estimate: 0.0, low: 0.0, high: 0.0 };
    }
    let mut counts = [0.0; STRETCHES];
    for moment in moments.iter().filter(|moment| **moment >= start) {
        counts[(((moment - start) / length) as usize).min(STRETCHES - 1)] += unit / length;
    }
    let rate = moments.len() as f64 * unit / (end - start);
    interval::Estimate::mean_of(&counts)
        .map_or(around(rate, 0.0), |of| around(rate, (of.high - of.low) / 2.0))
}
