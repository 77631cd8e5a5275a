//! Quantiles of latencies that depend on each other.
//!
//! The share of calls that took at most `q` is a mean, so its interval comes from batches like
//! that of any other mean; read back through the histogram, its ends are the ends of the
//! quantile's interval (Woodruff, Confidence intervals for medians and other position measures,
//! J. Am. Stat. Assoc. 47, 1952). Order statistics would do for independent samples only.

use crate::batch::Batch;
use crate::bucket::{BUCKETS, bucket_numbered, end_of, lowest_of};
use crate::interval::Estimate;
use crate::ratio::Ratio;
use crate::slice::Slice;
use crate::units::Nanos;

/// Completions that must lie on either side of a quantile: with ten, the spread of their number
/// alone is a third of it.
const BEYOND: u64 = 10;

/// All latencies of a window, by bucket.
#[derive(Debug)]
pub(crate) struct LatencyDistribution {
    filled: Vec<Filled>,
    total: u64,
    min: Nanos,
    max: Nanos,
}

/// A bucket that holds something.
#[derive(Clone, Copy, Debug)]
struct Filled {
    bucket: u32,
    count: u64,
    /// Completions in lower buckets.
    below: u64,
}

/// Where a share of the completions ends: so far into a bucket.
#[derive(Clone, Copy, Debug)]
struct Position {
    bucket: u32,
    /// Share of the bucket's completions that lie at or before it.
    within: f64,
}

impl LatencyDistribution {
    /// Everything in these slices; `None` when they hold no completion.
    pub(crate) fn from_slices(slices: &[Slice]) -> Option<Self> {
        // Dense, because merging a thousand sorted lists pair by pair would copy the longest of
        // them a thousand times.
        let mut counts = vec![0u64; BUCKETS];
        let mut min = Nanos::NEVER;
        let mut max = Nanos::ZERO;
        for slice in slices {
            for (bucket, count) in &slice.buckets {
                counts[bucket_numbered(*bucket)] += count;
            }
            min = min.min(slice.min);
            max = max.max(slice.max);
        }
        let mut total = 0;
        let mut filled = Vec::new();
        for (bucket, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            filled.push(Filled { bucket: bucket as u32, count, below: total });
            total += count;
        }
        (total > 0).then_some(Self { filled, total, min, max })
    }

    /// The latency that this share of the completions did not exceed, in nanoseconds,
    /// interpolated within its bucket.
    pub(crate) fn value_at(&self, share: f64) -> f64 {
        let position = self.position(share);
        let (low, high) = self.edges(position.bucket);
        low + position.within * (high - low)
    }

    /// Quantiles in per mille as they are, in nanoseconds; `None` where fewer than [`BEYOND`]
    /// completions lie on either side.
    pub(crate) fn values<const N: usize>(&self, per_mille: [u64; N]) -> [Option<f64>; N] {
        per_mille.map(|quantile| {
            self.has_enough_beyond(quantile).then(|| self.value_at(quantile as f64 / 1e3))
        })
    }

    /// Quantiles in per mille, rising, with their intervals from these batches of the same
    /// `slices`. `None` where fewer than [`BEYOND`] completions lie on either side, and where the
    /// interval would have to reach beyond the longest latency seen.
    pub(crate) fn quantiles<const N: usize>(
        &self,
        per_mille: [u64; N],
        slices: &[Slice],
        batches: &[Batch],
    ) -> [Option<Estimate>; N] {
        let positions = per_mille.map(|quantile| self.position(quantile as f64 / 1e3));
        let mut parts = vec![Vec::with_capacity(batches.len()); N];
        for batch in batches {
            let end = batch.slices.end.min(slices.len());
            let start = batch.slices.start.min(end);
            let covered = covered(&slices[start..end], &positions);
            for (parts, covered) in parts.iter_mut().zip(covered) {
                parts.push((covered, batch.completed as f64));
            }
        }
        let mut estimates = [None; N];
        for ((estimate, quantile), parts) in estimates.iter_mut().zip(per_mille).zip(&parts) {
            *estimate = self.estimate(quantile, parts);
        }
        estimates
    }

    fn estimate(&self, per_mille: u64, parts: &[(f64, f64)]) -> Option<Estimate> {
        if !self.has_enough_beyond(per_mille) {
            return None;
        }
        let share = per_mille as f64 / 1e3;
        let half_width = Ratio::over(parts)?.half_width();
        if share + half_width > 1.0 {
            return None;
        }
        let shares = Estimate::around(share, half_width).not_negative();
        let quantile = shares.map(|share| self.value_at(share));
        let (low, high) = self.edges(self.position(share).bucket);
        Some(Estimate { low: quantile.low.min(low), high: quantile.high.max(high), ..quantile })
    }

    /// Whether at least [`BEYOND`] completions lie on either side of this quantile, in per mille.
    fn has_enough_beyond(&self, per_mille: u64) -> bool {
        self.total * per_mille.min(1000 - per_mille) >= BEYOND * 1000
    }

    fn position(&self, share: f64) -> Position {
        let rank = share.clamp(0.0, 1.0) * self.total as f64;
        let place = self.filled.partition_point(|cell| ((cell.below + cell.count) as f64) < rank);
        let cell = self.filled[place.min(self.filled.len() - 1)];
        let within = (rank - cell.below as f64) / cell.count as f64;
        Position { bucket: cell.bucket, within: within.clamp(0.0, 1.0) }
    }

    /// The lowest and the highest latency that a bucket can have got: whole nanoseconds, and not
    /// beyond the extremes, so that a constant latency has exactly that quantile.
    fn edges(&self, bucket: u32) -> (f64, f64) {
        let low = lowest_of(bucket as usize).max(self.min);
        let high = (end_of(bucket as usize) - Nanos(1)).min(self.max).max(low);
        (low.0 as f64, high.0 as f64)
    }
}

/// How many completions of these slices lie at or before each of the rising positions.
fn covered<const N: usize>(slices: &[Slice], positions: &[Position; N]) -> [f64; N] {
    let mut covered = [0.0; N];
    for slice in slices {
        let mut below = 0;
        let mut done = 0;
        for (covered, position) in covered.iter_mut().zip(positions) {
            let rest = &slice.buckets[done..];
            let here = done + rest.partition_point(|(bucket, _)| *bucket < position.bucket);
            below += slice.buckets[done..here].iter().map(|(_, count)| count).sum::<u64>();
            done = here;
            *covered += below as f64;
            if let Some((bucket, count)) = slice.buckets.get(here)
                && *bucket == position.bucket
            {
                *covered += position.within * *count as f64;
            }
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slice_of(latencies: &[u64]) -> Slice {
        let mut slice = Slice::empty();
        latencies.iter().for_each(|latency| slice.count(Nanos(*latency)));
        slice
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_a_bucket_of_the_order_statistic(
            mut latencies in prop::collection::vec(1u64..1 << 40, 1..300),
            share in 0.01f64..1.0,
        ) {
            let slices: Vec<_> = latencies.chunks(7).map(slice_of).collect();
            let value = LatencyDistribution::from_slices(&slices).unwrap().value_at(share);
            latencies.sort_unstable();
            let rank = (share * latencies.len() as f64).ceil() as usize;
            let exact = latencies[rank.max(1) - 1] as f64;
            prop_assert!((value / exact - 1.0).abs() <= 1.0 / 1024.0, "{} {}", value, exact);
        }

        #[test]
        fn batches_together_cover_the_share(
            latencies in prop::collection::vec(1u64..1 << 30, 20..300),
        ) {
            let slices: Vec<_> = latencies.chunks(7).map(slice_of).collect();
            let all = LatencyDistribution::from_slices(&slices).unwrap();
            let shares = [0.5, 0.9, 0.99];
            let counts = covered(&slices, &shares.map(|share| all.position(share)));
            for (count, share) in counts.iter().zip(shares) {
                prop_assert!((count - share * latencies.len() as f64).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_constant_latency_is_its_own_quantile() {
        for latency in [7, 100, 10_500_000] {
            let all = LatencyDistribution::from_slices(&[slice_of(&[latency; 50])]).unwrap();
            assert_eq!(all.value_at(0.5), latency as f64);
            assert_eq!(all.value_at(1.0), latency as f64);
        }
        assert!(LatencyDistribution::from_slices(&[Slice::empty()]).is_none());
    }

    /// One call of each whole latency from 1 ns to so many, in this many slices.
    fn one_of_each(most: u64, slices: usize) -> Vec<Slice> {
        let dealt = |first: usize| (1..=most).skip(first).step_by(slices).collect::<Vec<_>>();
        (0..slices).map(|first| slice_of(&dealt(first))).collect()
    }

    /// Each slice as a batch.
    fn batches(slices: &[Slice]) -> Vec<Batch> {
        let batch = |(place, slice): (usize, &Slice)| Batch {
            slices: place..place + 1,
            length: Nanos(1),
            completed: slice.completed,
            latency_sum: slice.latency_sum,
        };
        slices.iter().enumerate().map(batch).collect()
    }

    fn quantiles<const N: usize>(per_mille: [u64; N], slices: &[Slice]) -> [Option<Estimate>; N] {
        let all = LatencyDistribution::from_slices(slices).unwrap();
        all.quantiles(per_mille, slices, &batches(slices))
    }

    #[test]
    fn a_bucket_that_there_is_not_counts_as_the_last() {
        // Slices come from other processes.
        let slice = Slice { min: Nanos(5), max: Nanos::NEVER, ..Slice::empty() };
        for bucket in [BUCKETS as u32, u32::MAX] {
            let slice = Slice { buckets: vec![(bucket, 3)], ..slice.clone() };
            let all = LatencyDistribution::from_slices(&[slice]).unwrap();
            assert_eq!((all.total, all.filled[0].bucket), (3, BUCKETS as u32 - 1));
        }
    }

    #[test]
    fn a_share_ends_with_the_call_that_completes_it() {
        let all = LatencyDistribution::from_slices(&one_of_each(1000, 20)).unwrap();
        for (share, latency) in [(0.001, 1.0), (0.25, 250.0), (0.5, 500.0), (0.999, 999.0)] {
            assert_eq!(all.value_at(share), latency);
        }
        // Beyond both ends there are the shortest and the longest.
        assert_eq!([-1.0, 0.0, 1.0, 2.0].map(|it| all.value_at(it)), [1.0, 1.0, 1000.0, 1000.0]);
    }

    #[test]
    fn within_a_bucket_calls_count_as_evenly_spread() {
        // One bucket holds 8,192 values here, and these are the ends of what it got.
        let low = 10_002_432;
        let high = 10_006_432;
        let calls: Vec<u64> = [low, high].repeat(50);
        let slices: Vec<Slice> = calls.chunks(10).map(slice_of).collect();
        let all = LatencyDistribution::from_slices(&slices).unwrap();
        assert_eq!(all.filled.len(), 1, "one bucket");
        assert_eq!(all.value_at(0.25), (low + 1_000) as f64);
        // Batches that agree make no interval; that of the bucket is left.
        let [median] = quantiles([500], &slices);
        let expected =
            Estimate { estimate: (low + 2_000) as f64, low: low as f64, high: high as f64 };
        assert_eq!(median, Some(expected));
    }

    /// Ten completions on the rarer side: 1,000 calls for p99, 20 for the median.
    #[test]
    fn a_quantile_needs_ten_calls_on_either_side() {
        for (calls, per_mille, told) in
            [(1000, 990, true), (990, 990, false), (1000, 10, true), (990, 10, false)]
        {
            // Equal slices: nothing else can be in the way.
            let slow = calls / 100;
            let fast = calls - slow;
            let latencies = match per_mille {
                990 => [vec![1_000; fast], vec![2_000; slow]].concat(),
                _ => [vec![2_000; fast], vec![1_000; slow]].concat(),
            };
            let mut slices: Vec<Vec<u64>> = vec![Vec::new(); 10];
            latencies.iter().enumerate().for_each(|(at, it)| slices[at % 10].push(*it));
            let slices: Vec<Slice> = slices.iter().map(|it| slice_of(it)).collect();
            let [found] = quantiles([per_mille], &slices);
            assert_eq!(found.is_some(), told, "{calls} calls, {per_mille} per mille: {found:?}");
        }
        assert!(quantiles([500], &one_of_each(20, 4))[0].is_some());
        assert_eq!(quantiles([500], &one_of_each(19, 4)), [None]);
    }

    #[test]
    fn no_interval_reaches_beyond_the_longest_call() {
        // All slow calls in one slice: their share may as well be twice as large.
        let mut slices = vec![slice_of(&[1_000; 100]); 9];
        slices.push(slice_of(&[vec![1_000; 50], vec![2_000; 50]].concat()));
        let [p95, median] = quantiles([950, 500], &slices);
        assert_eq!(p95, None);
        assert_eq!(median.map(|it| (it.estimate, it.high)), Some((1_000.0, 1_000.0)));
    }

    #[test]
    fn the_interval_of_a_share_is_read_back_as_one_of_latencies() {
        let slices = one_of_each(1000, 1);
        let all = LatencyDistribution::from_slices(&slices).unwrap();
        // Batches that hold 40 % and 60 % of what is below the median, in turns.
        let parts: Vec<(f64, f64)> =
            (0..20).map(|at| (if at % 2 == 0 { 20.0 } else { 30.0 }, 50.0)).collect();
        let half_width = Ratio::over(&parts).unwrap().half_width();
        let median = all.estimate(500, &parts).unwrap();
        assert!((median.low - (500.0 - 1_000.0 * half_width).ceil()).abs() <= 1.0, "{median:?}");
        assert!((median.high - (500.0 + 1_000.0 * half_width).ceil()).abs() <= 1.0, "{median:?}");
        assert!(median.high - median.low > 50.0, "{median:?}");
    }
}
