//! The time of an operation from measurements that start with a warm-up: a robust subtraction.
//!
//! The first command of a series is often slow: 441 ms, then 56, 56, 56 and 57. JCAlgTest's mean
//! holds it, in the baseline too, so that a mean of differences may be far too small or negative.
//! Here the first measurement of each series is left out, and what is subtracted is the *median* of
//! the baseline, which one slow command does not move.

use tapstone_measure::interval::Estimate;
use tapstone_measure::units::Nanos;
use tapstone_record::Latency;

use super::block::{MethodTimes, SignedNanos};

/// JCAlgTest's clock tells milliseconds apart.
const CLOCK_STEP_NS: i64 = 1_000_000;

/// From so many measurements on, the first is left out. Of fewer, too little would be left.
const FEWEST_WITH_WARM_UP: usize = 3;

/// A measurement lies far apart from here on: so many median absolute deviations, each scaled to
/// the standard deviation of a normal distribution (the Hampel identifier), or clock steps.
const FAR_APART: f64 = 5.0;
const MAD_TO_SIGMA: f64 = 1.4826;

/// The series of a block without their warm-up, in nanoseconds.
pub(super) struct Steady {
    /// The median of the baseline's measurements, in nanoseconds: what is subtracted.
    pub(super) baseline_median: i64,
    baseline: Vec<i64>,
    /// Whole commands: the baseline is still in them.
    commands: Vec<i64>,
    operations_each: f64,
}

/// The time of one operation, and what it was made from.
pub(super) struct Figure {
    pub(super) latency: Latency,
    /// How many measurements the mean is made from.
    pub(super) averaged: usize,
}

impl Steady {
    pub(super) fn from_measured(measured: &MethodTimes) -> Self {
        let baseline = without_warm_up(&measured.baseline, SignedNanos(0));
        Self {
            // Without a baseline of its own, the block has what was subtracted.
            baseline_median: median(&baseline).unwrap_or(measured.subtracted.0),
            commands: without_warm_up(&measured.differences, measured.subtracted),
            baseline,
            operations_each: measured.operations_each as f64,
        }
    }

    /// The time of one operation; `None` when it may be negative.
    ///
    /// It is a time when its interval stays above zero, or when every command took longer than
    /// every command of the baseline.
    pub(super) fn figure(&self) -> Option<Figure> {
        // One far apart makes an interval useless; only then it is left out, and that is said.
        let mean =
            self.mean(&self.commands).or_else(|| self.mean(&close_to_median(&self.commands)));
        let shortest = *self.commands.iter().min()?;
        let longest = *self.commands.iter().max()?;
        let reach = self.baseline.iter().max().copied().unwrap_or(self.baseline_median);
        if mean.is_none() && shortest <= reach {
            return None;
        }
        let one = |command: i64| {
            let difference = command - self.baseline_median;
            Nanos((difference.max(0) as f64 / self.operations_each).round() as u64)
        };
        let averaged = mean.map_or(0, |(_, averaged)| averaged);
        let latency = Latency {
            mean: mean.map(|(mean, _)| mean.into()),
            min: one(shortest),
            max: one(longest),
            ..Latency::default()
        };
        Some(Figure { latency, averaged })
    }

    /// The mean of one operation over these commands, and how many they are. The uncertainties of
    /// the commands and of the baseline are independent, and add in quadrature.
    fn mean(&self, commands: &[i64]) -> Option<(Estimate, usize)> {
        if commands.len() < 2 {
            return None;
        }
        let differences = commands.iter().map(|command| (command - self.baseline_median) as f64);
        let of_commands = Estimate::mean_of(&differences.collect::<Vec<f64>>())?;
        let close = close_to_median(&self.baseline);
        let of_baseline = Estimate::mean_of(&close.iter().map(|it| *it as f64).collect::<Vec<_>>());
        let half_width = |mean: &Estimate| mean.high - mean.estimate;
        let both = half_width(&of_commands).hypot(of_baseline.as_ref().map_or(0.0, half_width));
        let mean = Estimate::around(of_commands.estimate, both)
            .no_narrower_than(CLOCK_STEP_NS as f64)
            .map(|ns| ns / self.operations_each);
        (mean.low > 0.0).then_some((mean, commands.len()))
    }
}

impl Figure {
    /// What is to be known about the figure.
    pub(super) fn caution(&self, steady: &Steady) -> Option<String> {
        let all = steady.commands.len();
        match self.averaged {
            0 if all == 1 => {
                Some("a single measurement: its spread, and so an interval, is unknown".to_owned())
            }
            0 => Some(
                "the measurements lie above the baseline, but so far apart that they have no mean"
                    .to_owned(),
            ),
            averaged if averaged < all => Some(format!(
                "{} of {all} measurements after the first lie far from the others, and are left \
                 out of the mean",
                all - averaged
            )),
            _ => None,
        }
    }
}

fn without_warm_up(series: &[SignedNanos], add: SignedNanos) -> Vec<i64> {
    let warm_up = usize::from(series.len() >= FEWEST_WITH_WARM_UP);
    series.iter().skip(warm_up).map(|time| time.0 + add.0).collect()
}

/// The values that do not lie far from their median.
fn close_to_median(values: &[i64]) -> Vec<i64> {
    let Some(middle) = median(values) else { return Vec::new() };
    let deviations: Vec<i64> = values.iter().map(|value| (value - middle).abs()).collect();
    let sigma = median(&deviations).unwrap_or(0) as f64 * MAD_TO_SIGMA;
    let far = FAR_APART * sigma.max(CLOCK_STEP_NS as f64);
    values.iter().copied().filter(|value| (value - middle).abs() as f64 <= far).collect()
}

/// Half-way between the two in the middle, where there are two.
fn median(values: &[i64]) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower + (upper - lower) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_two_lies_half_way() {
        assert_eq!(median(&[3, 1]), Some(2));
        assert_eq!(median(&[5, 1, 3]), Some(3));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn what_lies_far_apart_is_found_with_and_without_a_spread() {
        let ms = |values: &[i64]| values.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
        assert_eq!(close_to_median(&ms(&[618, 168, 168, 168])), ms(&[168, 168, 168]));
        assert_eq!(close_to_median(&ms(&[100, 105, 95, 101])), ms(&[100, 105, 95, 101]));
        // Key generation is spread widely by its nature, and loses nothing.
        let keys = ms(&[790, 300, 1200, 500, 2000, 640, 900]);
        assert_eq!(close_to_median(&keys), keys);
    }
}
