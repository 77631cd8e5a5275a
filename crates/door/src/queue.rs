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
        p99_9: quantile(0.999),
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

/// Events per `unit` since `start`, without those before, from counts in 32 stretches of equal length.
pub(crate) fn rate(moments: &[f64], start: f64, unit: f64) -> Estimate {
    const STRETCHES: usize = 32;
    let end = moments.iter().copied().fold(start, f64::max);
    let length = (end - start) / STRETCHES as f64;
    if length <= 0.0 {
        return Estimate { estimate: 0.0, low: 0.0, high: 0.0 };
    }
    let mut counts = [0.0; STRETCHES];
    let mut all = 0.0;
    for moment in moments.iter().filter(|moment| **moment >= start) {
        all += 1.0;
        counts[(((moment - start) / length) as usize).min(STRETCHES - 1)] += unit / length;
    }
    let rate = all * unit / (end - start);
    interval::Estimate::mean_of(&counts)
        .map_or(around(rate, 0.0), |of| around(rate, (of.high - of.low) / 2.0))
}

/// The part of the time since `start` in which something was in use, of so many that there are, from
/// 32 stretches of equal length.
pub(crate) fn busy_share(in_use: &[(f64, f64)], start: f64, of: f64) -> Estimate {
    const STRETCHES: usize = 32;
    let end = in_use.iter().map(|(_, to)| *to).fold(start, f64::max);
    let length = (end - start) / STRETCHES as f64;
    if length <= 0.0 {
        return Estimate { estimate: 0.0, low: 0.0, high: 0.0 };
    }
    let mut busy = [0.0; STRETCHES];
    for (from, to) in in_use {
        let from = from.max(start);
        let first = (((from - start) / length) as usize).min(STRETCHES - 1);
        let last = (((to - start) / length) as usize).min(STRETCHES - 1);
        for (at, share) in busy.iter_mut().enumerate().take(last + 1).skip(first) {
            let begins = start + at as f64 * length;
            *share += (to.min(begins + length) - from.max(begins)).max(0.0) / length / of;
        }
    }
    let share = busy.iter().sum::<f64>() / STRETCHES as f64;
    let interval = interval::Estimate::mean_of(&busy);
    let half = interval.map_or(0.0, |it| (it.high - it.low) / 2.0);
    let clamped = |share: f64| share.clamp(0.0, 1.0);
    Estimate { estimate: clamped(share), low: clamped(share - half), high: clamped(share + half) }
}

/// The mean of a value of each person, with its interval.
pub(crate) fn mean(values: &[f64]) -> Estimate {
    WaitBatches::from_values(values).interval()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-4 * other.abs()
    }

    /// So many values, 0 and 1 in turns of this length.
    fn in_turns(count: usize, turn: usize) -> Vec<f64> {
        (0..count).map(|at| (at / turn % 2) as f64).collect()
    }

    #[test]
    fn batches_leave_out_a_rest_that_is_too_short() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        assert_eq!(means(&values, 3, |value| value), [2.0, 5.0]);
        assert_eq!(means(&values, 3, |value| 10.0 * value), [20.0, 50.0]);
    }

    #[test]
    fn worked_examples_of_error_and_correlation() {
        // The root of 2.5 / 5.
        assert!(close(standard_error(&[1.0, 2.0, 3.0, 4.0, 5.0]), 0.5f64.sqrt()));
        assert!(close(standard_error(&[1.0, 3.0]), 1.0));
        assert_eq!((standard_error(&[7.0]), standard_error(&[])), (0.0, 0.0));
        assert_eq!(autocorrelation(&[1.0, 2.0, 1.0, 2.0]), -0.75);
        assert_eq!(autocorrelation(&[1.0, 1.0, 2.0, 2.0]), 0.25);
        assert_eq!(autocorrelation(&[4.0, 4.0, 4.0]), 0.0);
    }

    #[test]
    fn batches_grow_until_their_means_hardly_depend_on_one_another() {
        // (values, length of a turn, size of the batches, how many)
        for (count, turn, size, batches) in [
            (12_800, 1, 100, 128),
            (12_800, 400, 200, 64),
            // Never fewer than 16: these depend on one another to the end.
            (12_800, 3_200, 800, 16),
            (40, 1, 1, 40),
            (31, 8, 1, 31),
        ] {
            let found = WaitBatches::from_values(&in_turns(count, turn));
            assert_eq!((found.size, found.means.len()), (size, batches), "turns of {turn}");
        }
    }

    #[test]
    fn the_mean_has_the_interval_of_its_batches() {
        let waits = WaitBatches::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(waits.mean(), 3.0);
        let interval = waits.interval();
        assert!(close(interval.high, 3.0 + 2.7764 * 0.5f64.sqrt()), "{interval:?}");
        assert!(close(interval.low, 3.0 - 2.7764 * 0.5f64.sqrt()), "{interval:?}");
        // No wait is below zero.
        assert_eq!(WaitBatches::from_values(&[0.0, 1.0]).interval().low, 0.0);
        assert_eq!(WaitBatches::from_values(&[]).mean(), 0.0);
    }

    #[test]
    fn quantiles_need_twenty_values_beyond_them() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let figures = latency(&values, &WaitBatches::from_values(&values));
        let value = |quantile: Option<Estimate>| quantile.map(|it| it.estimate);
        assert_eq!((figures.min, figures.max), (Nanos(1_000_000), Nanos(1_000_000_000)));
        assert_eq!(figures.mean.map(|mean| mean.estimate), Some(500.5e6));
        // Of 1,000 values, that behind 499.5 others.
        assert_eq!(value(figures.p50), Some(501e6));
        assert_eq!((value(figures.p90), value(figures.p95)), (Some(900e6), Some(950e6)));
        assert_eq!((figures.p99, figures.p99_9), (None, None));
        assert!(quantile(&values[..40], &values[..40], 1, 0.5).is_some());
        assert_eq!(quantile(&values[..39], &values[..39], 1, 0.5), None);
        assert_eq!(latency(&[], &WaitBatches::from_values(&[])), Latency::default());
    }

    #[test]
    fn a_quantile_is_as_uncertain_as_its_share_in_the_batches() {
        let rising: Vec<f64> = (1..=100).map(f64::from).collect();
        // 51 values are at most 51: all of five batches, a tenth of one, and none of four. That
        // makes a standard error of 0.1636, times 2.262 at nine degrees of freedom.
        let median = quantile(&rising, &rising, 10, 0.5).unwrap();
        assert_eq!(median, Estimate { estimate: 51e6, low: 14e6, high: 87e6 });
        // Mixed, half of each batch but one is at most the median.
        let mixed: Vec<f64> = (0..100).map(|at| rising[at / 2 + at % 2 * 50]).collect();
        let median = quantile(&mixed, &rising, 10, 0.5).unwrap();
        assert!(median.low >= 47e6 && median.high <= 56e6, "{median:?}");
    }

    #[test]
    fn the_fewer_the_batches_the_wider_the_interval_of_a_quantile() {
        // Five batches of 200, of which 80 to 120 are at most 501: with the median itself a standard
        // error of 0.035369, times 2.776 at four degrees of freedom.
        let (mut low, mut high) = ((1..=500).map(f64::from), (501..=1000).map(f64::from));
        let mut values = Vec::new();
        for below in [80, 90, 100, 110, 120] {
            values.extend(low.by_ref().take(below));
            values.extend(high.by_ref().take(200 - below));
        }
        // The median is in a batch of its own place: the third, in exchange for its last value.
        let (at, last) = (values.iter().position(|value| *value == 501.0).unwrap(), 599);
        values.swap(at, last);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let median = quantile(&values, &sorted, 200, 0.5).unwrap();
        assert_eq!(median, Estimate { estimate: 501e6, low: 402e6, high: 599e6 });
    }

    #[test]
    fn a_rate_is_made_of_counts_in_stretches() {
        // One each 10 ms: the first stretch of 100 ms has nine, the last one eleven.
        for start in [0.0, 5_000.0] {
            let moments: Vec<f64> = (1..=320).map(|at| start + 10.0 * f64::from(at)).collect();
            let found = rate(&moments, start, 1_000.0);
            assert!(close(found.estimate, 100.0), "{found:?}");
            let half = 2.0395 * (200.0f64 / 31.0 / 32.0).sqrt();
            assert!(close(found.high - found.estimate, half), "{found:?}");
            assert!(close(found.estimate - found.low, half), "{found:?}");
        }
        let nothing = Estimate { estimate: 0.0, low: 0.0, high: 0.0 };
        assert_eq!((rate(&[], 7.0, 1.0), rate(&[7.0], 7.0, 1.0)), (nothing, nothing));
    }

    /// 32 stretches of 100 ms each.
    #[test]
    fn a_busy_share_is_made_of_stretches() {
        for start in [0.0, 5_000.0] {
            // Half of each stretch: the share has no spread.
            let halves: Vec<(f64, f64)> = (0..32)
                .map(|at| start + 100.0 * f64::from(at))
                .map(|from| (from + 50.0, from + 100.0))
                .collect();
            let even = busy_share(&halves, start, 1.0);
            assert!(close(even.estimate, 0.5) && close(even.low, 0.5), "{even:?}");
            assert!(close(busy_share(&halves, start, 2.0).estimate, 0.25), "of two doors");
            // All of the second half: 16 stretches of 0 and 16 of 1, with what was before the start.
            let late = busy_share(
                &[(start - 90.0, start), (start + 1_600.0, start + 3_200.0)],
                start,
                1.0,
            );
            let half = 2.0395 * (8.0f64 / 31.0 / 32.0).sqrt();
            assert!(close(late.estimate, 0.5), "{late:?}");
            assert!(close(late.high, 0.5 + half) && close(late.low, 0.5 - half), "{late:?}");
            // From before the start into the middle of the fifth of 32 stretches.
            let from_before = [(start - 500.0, start + 450.0), (start + 3_200.0, start + 3_200.0)];
            let found = busy_share(&from_before, start, 1.0);
            assert!(close(found.estimate, 4.5 / 32.0), "{found:?}");
            assert_eq!(found.low.max(0.0), found.low);
        }
        let nothing = Estimate { estimate: 0.0, low: 0.0, high: 0.0 };
        assert_eq!(busy_share(&[(1.0, 7.0)], 7.0, 1.0), nothing);
        // Stretches of half a millisecond.
        let short = busy_share(&[(0.0, 8.0), (16.0, 16.0)], 0.0, 1.0);
        assert!(close(short.estimate, 0.5), "{short:?}");
    }

    #[test]
    fn a_rate_leaves_out_what_was_before() {
        let moments = [0.0, 1_000.0, 2_000.0, 2_500.0, 4_200.0];
        // Four from 1,000 to 4,200 ms on: one each 800 ms.
        assert!(close(rate(&moments, 1_000.0, 1_000.0).estimate, 1.25));
    }
}
