//! What a single figure hides: drift, two modes, outliers, a slow start. Each is named in a
//! sentence that says what to try next; none changes a figure. What would hardly change the mean
//! latency, and with it the rate, is not named: a note that always appears is noise.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::batch::{Batch, Batches, latency};
use crate::bucket::{bucket_numbered, end_of, lowest_of};
use crate::interval::{Estimate, student_t};
use crate::quantile::LatencyDistribution;
use crate::ratio::Ratio;
use crate::series::Series;
use crate::slice::Slice;
use tapstone_text::three_digits;

use crate::units::Nanos;

/// Batches in a fifth of a window: few enough for a series of 40 slices, and with 14 degrees of
/// freedom for the comparison of two fifths.
const BATCHES_PER_FIFTH: usize = 8;

/// By this share, or more, has a note's subject to change the mean latency or the rate: twice what
/// runs are precise to by default.
pub const EFFECT: f64 = 0.02;

/// A drift from the first fifth to the last: half of it is in the mean.
const NOTABLE: f64 = 1.0 + 2.0 * EFFECT;

/// The course of a window, from its first fifth to its last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Mean latency in the last fifth over that in the first, with its interval.
    pub ratio: Option<Estimate>,
    /// What it amounts to.
    pub course: Course,
}

/// How latencies changed from the first fifth of a window to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// The whole interval lies above 1.04.
    Slower,
    /// The whole interval lies below 1/1.04.
    Faster,
    /// No change of more than 4 % is certain.
    Steady,
    /// Too little was measured to tell.
    Unknown,
}

/// Compares the first fifth of a window with its last.
#[must_use]
pub fn drift(series: &Series, window: Nanos) -> Drift {
    let batches = Batches::exactly(series, window, 5 * BATCHES_PER_FIFTH);
    let ratio = batches.and_then(|batches| {
        let (first, rest) = batches.split_at(BATCHES_PER_FIFTH);
        ratio_of_means(first, &rest[rest.len() - BATCHES_PER_FIFTH..])
    });
    let course = match ratio {
        None => Course::Unknown,
        Some(ratio) if ratio.low > NOTABLE => Course::Slower,
        Some(ratio) if ratio.high < 1.0 / NOTABLE => Course::Faster,
        Some(_) => Course::Steady,
    };
    Drift { ratio, course }
}

/// The second mean latency over the first, by the relative errors of both.
fn ratio_of_means(first: &[Batch], last: &[Batch]) -> Option<Estimate> {
    let mean = |batches: &[Batch]| Ratio::over(&batches.iter().map(latency).collect::<Vec<_>>());
    let first = mean(first)?;
    let last = mean(last)?;
    if first.value() <= 0.0 || last.value() <= 0.0 {
        return None;
    }
    let relative = |mean: &Ratio| mean.standard_error() / mean.value();
    let half_width = student_t(2 * BATCHES_PER_FIFTH - 2) * relative(&first).hypot(relative(&last));
    Some(Estimate::around((last.value() / first.value()).ln(), half_width).map(f64::exp))
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Estimate { estimate, low, high }) = self.ratio else {
            return f.write_str("too little was measured to tell a drift; try a longer window");
        };
        let interval = format!("{estimate:.3} times (95 % interval {low:.3} to {high:.3})");
        match self.course {
            Course::Slower => write!(
                f,
                "calls in the last fifth took {interval} as long as in the first: look for \
                 throttling by heat, a licence or rate limit that sets in, or sessions and objects \
                 that leak; try a pause before the run, then a window twice as long"
            ),
            Course::Faster => write!(
                f,
                "calls in the last fifth took only {interval} as long as in the first: the device \
                 or a cache was still warming up; try a longer warm-up"
            ),
            Course::Steady | Course::Unknown => {
                write!(
                    f,
                    "no drift that surely changes the mean by 2 %: calls in the last fifth took \
                     {interval} as long as in the first"
                )
            }
        }
    }
}

/// Two kinds of calls, told apart by how long they take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bimodality {
    /// Where the faster calls gather.
    pub fast: Nanos,
    /// Where the slower calls gather.
    pub slow: Nanos,
    /// Share of the slower ones, by the deepest point between the two.
    pub slow_share: f64,
}

/// Fewer calls than this on one side are a tail, not a mode.
const SIDE_SHARE: f64 = 0.05;
/// A valley is at most half as high as the lower of its two peaks …
const VALLEY: f64 = 0.5;
/// … and lower by so many standard deviations of their difference. Four, because all valleys of a
/// few dozen bins get their chance.
const SIGNIFICANT: f64 = 4.0;

/// Looks for two modes; `None` when there is one, the calls are too few to tell, or the mean would
/// hardly be another without the rarer of the two.
#[must_use]
pub fn bimodality(total: &Slice, clock_step: Nanos) -> Option<Bimodality> {
    let density = Density::from_total(total, clock_step)?;
    let heights = &density.heights;
    let all: f64 = heights.iter().sum();
    let mut left = 0;
    let mut below = 0.0;
    let mut deepest: Option<(f64, Bimodality)> = None;
    for valley in 1..heights.len().saturating_sub(1) {
        below += heights[valley - 1];
        if heights[valley - 1] > heights[left] {
            left = valley - 1;
        }
        let right = highest(heights, valley + 1);
        let floor = heights[valley];
        let peak = heights[left].min(heights[right]);
        let slow_share = 1.0 - (below + floor / 2.0) / all;
        let deep = floor <= VALLEY * peak && peak - floor >= SIGNIFICANT * (peak + floor).sqrt();
        let both = (SIDE_SHARE..=1.0 - SIDE_SHARE).contains(&slow_share);
        let depth = floor / peak;
        if deep && both && deepest.is_none_or(|(other, _)| depth < other) {
            let fast = density.centre(left);
            let slow = density.centre(right);
            deepest = Some((depth, Bimodality { fast, slow, slow_share }));
        }
    }
    deepest.map(|(_, found)| found).filter(|found| found.effect() >= EFFECT)
}

impl Bimodality {
    /// The share of the mean that is owed to the rarer mode.
    fn effect(&self) -> f64 {
        let apart = self.slow.0 as f64 / self.fast.0.max(1) as f64 - 1.0;
        apart * self.slow_share.min(1.0 - self.slow_share)
    }
}

/// The first of the highest bins from a place on.
fn highest(heights: &[f64], from: usize) -> usize {
    (from..heights.len())
        .fold(from, |best, bin| if heights[bin] > heights[best] { bin } else { best })
}

/// Counts in bins of equal ratio. The histogram's own buckets will not do: their width doubles at
/// every power of two, which makes a step of two in the counts of any smooth distribution.
struct Density {
    origin: f64,
    width: f64,
    heights: Vec<f64>,
}

impl Density {
    /// From the 1st to the 99th percentile, so that a few outliers do not squeeze the rest into
    /// one bin; `None` when that range is hardly wider than what can be told apart.
    fn from_total(total: &Slice, clock_step: Nanos) -> Option<Self> {
        let all = LatencyDistribution::from_slices(std::slice::from_ref(total))?;
        let low = all.value_at(0.01).max(1.0);
        let high = all.value_at(0.99).max(1.0);
        // The Rice rule for the number of bins, no narrower than four buckets or three steps of
        // the clock: finer ones are a comb.
        let wanted = (2.0 * (total.completed as f64).cbrt()).min(64.0);
        let finest = (4.0 / 1024.0_f64).max(3.0 * clock_step.0.max(1) as f64 / low);
        let width = ((high / low).ln() / wanted).max(finest);
        let count = ((high / low).ln() / width).ceil() as usize;
        let mut density = Self { origin: low.ln(), width, heights: vec![0.0; count] };
        for (bucket, count) in &total.buckets {
            density.spread(bucket_numbered(*bucket), *count as f64);
        }
        (count >= 5).then_some(density)
    }

    /// Shares a bucket's count among the bins that it overlaps.
    fn spread(&mut self, bucket: usize, count: f64) {
        let place = |latency: Nanos| ((latency.0 as f64).max(0.5).ln() - self.origin) / self.width;
        let start = place(lowest_of(bucket));
        let end = place(end_of(bucket));
        let mut bin = start.floor();
        while bin < end {
            let overlap = (end.min(bin + 1.0) - start.max(bin)) / (end - start);
            if bin >= 0.0 && (bin as usize) < self.heights.len() {
                self.heights[bin as usize] += count * overlap;
            }
            bin += 1.0;
        }
    }

    fn centre(&self, bin: usize) -> Nanos {
        Nanos((self.origin + (bin as f64 + 0.5) * self.width).exp().round() as u64)
    }
}

impl fmt::Display for Bimodality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "latencies have two modes: {:.0} % around {} and {:.0} % around {}, so neither mean nor \
             median describes a typical call: look for other programs at work, two clock speeds, a \
             cache that sometimes misses, a lock that several workers take, or two devices behind \
             one slot; raw samples show them over time",
            100.0 * (1.0 - self.slow_share),
            self.fast,
            100.0 * self.slow_share,
            self.slow
        )
    }
}

/// Calls that are out of proportion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// The longest latency, exact.
    pub longest: Nanos,
    /// The median latency, to the histogram's bucket.
    pub median: Nanos,
    /// The former over the latter.
    pub times: f64,
    /// The share of all calls' time in those that took ten medians or more.
    pub share: f64,
}

/// A call is out of proportion from here on, in medians.
const OUT_OF_PROPORTION: f64 = 10.0;

/// Sets the longest calls against the median; `None` when those of ten medians and more took hardly
/// any of all calls' time.
#[must_use]
pub fn outlier(total: &Slice) -> Option<Outlier> {
    let median = LatencyDistribution::from_slices(std::slice::from_ref(total))?.value_at(0.5);
    let median = median.max(1.0);
    let calls = total.buckets.iter();
    let calls = calls.map(|(bucket, count)| (lowest_of(bucket_numbered(*bucket)), *count));
    let long = calls.filter(|(lowest, _)| lowest.0 as f64 >= OUT_OF_PROPORTION * median);
    let time: f64 = long.map(|(lowest, count)| lowest.0 as f64 * count as f64).sum();
    let share = time / total.busy.0.max(1) as f64;
    let times = total.max.0 as f64 / median;
    let median = Nanos(median.round() as u64);
    (share >= EFFECT).then_some(Outlier { longest: total.max, median, times, share })
}

impl fmt::Display for Outlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the longest call took {}, {} times the median of {}, and calls of ten medians or more \
             took {:.0} % of all time: look for a scheduler or another user of the device; try an \
             idle machine, and raw samples to see when it happens",
            self.longest,
            three_digits(self.times),
            self.median,
            100.0 * self.share
        )
    }
}

/// The first calls, when they took longer than the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowStart {
    /// How many of the first calls in a row were slow.
    pub calls: usize,
    /// Their mean latency over the steady median.
    pub times: f64,
    /// Whether all of the warm-up was slow, so that it may have been too short.
    pub unfinished: bool,
}

/// A first call is slow from here on, in medians.
const SLOW_START: f64 = 1.5;

/// The first calls of a worker.
#[derive(Clone, Copy, Debug)]
pub struct FirstCalls<'a> {
    /// Their latencies, in order.
    pub latencies: &'a [Nanos],
    /// How many calls the warm-up had, these among them.
    pub warm_up: u64,
}

/// Sets the first calls of a worker against the median of the window and the time in all of its
/// calls; `None` when the first one was not slow, or its like would hardly change the mean.
#[must_use]
pub fn slow_start(first: FirstCalls<'_>, median: Nanos, busy: Nanos) -> Option<SlowStart> {
    let median = median.0.max(1) as f64;
    let slow = |latency: &&Nanos| latency.0 as f64 >= SLOW_START * median;
    let calls = first.latencies.iter().take_while(slow).count();
    let sum: f64 = first.latencies[..calls].iter().map(|latency| latency.0 as f64).sum();
    let times = sum / calls.max(1) as f64 / median;
    let unfinished = calls as u64 == first.warm_up;
    let more = sum - calls as f64 * median;
    let matters = unfinished || more >= EFFECT * busy.0 as f64;
    (calls > 0 && matters).then_some(SlowStart { calls, times, unfinished })
}

impl fmt::Display for SlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calls {
            1 => f.write_str("the first call took ")?,
            calls => write!(f, "the first {calls} calls took ")?,
        }
        write!(f, "{} times the median", three_digits(self.times))?;
        if self.unfinished {
            f.write_str(", and none of the warm-up was faster; try a longer one")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
