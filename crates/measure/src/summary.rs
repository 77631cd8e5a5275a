//! The figures of a case, each with its interval: rate, mean latency and quantiles.
//!
//! Slices of closed and open loops are treated alike. Failures, and what limits the rate, are not
//! judged here.

use std::num::NonZeroU32;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::batch::{Batch, Batches, completions_over_time, inside, latency};
use crate::bucket::{HIGHEST, bucket_numbered, lowest_of};
use crate::interval::{Estimate, poisson};
use crate::quantile::LatencyDistribution;
use crate::ratio::Ratio;
use crate::series::Series;
use crate::slice::Slice;
use crate::units::Nanos;

/// With fewer completions than this per worker, the operations that straddle the window's edges
/// are too large a part of it for a count over its length.
pub const FEW_PER_WORKER: u64 = 30;

/// What a series of slices does not know about its window.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// From opening to closing.
    pub window: Nanos,
    /// How many workers filled it.
    pub workers: NonZeroU32,
    /// When the first and the last operation inside the window completed, of all workers.
    pub first_and_last: Option<(Nanos, Nanos)>,
    /// The smallest difference that the clock can show.
    pub clock_step: Nanos,
}

/// What a window tells about the operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Operations per second, of all workers together.
    pub rate: Estimate,
    /// Mean latency in ns: the exact sum over the count. `None` when nothing completed.
    pub mean: Option<Estimate>,
    /// Median latency in ns. This and the other quantiles are `None` when fewer than ten
    /// completions lie on either side, or the interval reaches beyond the longest latency.
    pub p50: Option<Estimate>,
    /// Latency in ns that 90 % do not exceed.
    pub p90: Option<Estimate>,
    /// Latency in ns that 95 % do not exceed.
    pub p95: Option<Estimate>,
    /// Latency in ns that 99 % do not exceed.
    pub p99: Option<Estimate>,
    /// Latency in ns that 99.9 % do not exceed.
    pub p99_9: Option<Estimate>,
    /// p50, p90, p95, p99 and p99.9 in ns without their intervals, also where one would reach
    /// beyond the longest latency: `None` only when fewer than ten completions lie on either side.
    /// A figure over several rounds is made of these, since it needs no interval of a single one.
    pub quantile_values: [Option<f64>; 5],
    /// Completed operations inside the window.
    pub n: u64,
    /// Batches that the intervals were taken over.
    pub batches: usize,
    /// How rate and intervals were made, in words.
    pub method: String,
    /// Whether the batches were enough and uncorrelated, so that the intervals keep their promise.
    pub reliable: bool,
}

impl Summary {
    /// All figures of a window.
    #[must_use]
    pub fn from_series(series: &Series, conditions: &Conditions) -> Self {
        let slices = inside(series, conditions.window);
        let n = slices.iter().map(|slice| slice.completed).sum();
        let few = n < FEW_PER_WORKER * u64::from(conditions.workers.get());
        let batches = if few {
            Batches::by_completion(series, conditions.window)
        } else {
            Batches::by_time(series, conditions.window)
        };
        let parts = batches.as_slice();
        let (rate, method) =
            if few { rate_of_few(n, conditions, parts) } else { rate(n, conditions, parts) };
        let figures = LatencyFigures::over(slices, parts, conditions);
        let LatencyFigures { mean, quantiles: [p50, p90, p95, p99, p99_9], quantile_values } =
            figures;
        Self {
            rate: rate.not_negative(),
            mean,
            p50,
            p90,
            p95,
            p99,
            p99_9,
            quantile_values,
            n,
            batches: parts.len(),
            method,
            reliable: batches.reliable(),
        }
    }
}

/// The figures of operations of which each is known.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationsSummary {
    /// All figures; the intervals of latencies, their number and their method are over operations
    /// in their own order.
    pub summary: Summary,
    /// Whether the interval of the rate keeps its promise: that one is over batches of time.
    pub rate_reliable: bool,
    /// How the rate was made, in words.
    pub rate_method: String,
}

impl OperationsSummary {
    /// The figures of `latencies`, in the order in which they ended, and of the same operations in
    /// time.
    ///
    /// A window may have pauses: other operations had their turn, or the device was waited for.
    /// Over batches of time latencies would then be in few of them, and what little those differ by
    /// would pass for their spread.
    #[must_use]
    pub fn from_operations(latencies: &[Nanos], in_time: &Series, conditions: &Conditions) -> Self {
        let by_time = Summary::from_series(in_time, conditions);
        let ordered = Series::in_order(latencies);
        let batches = Batches::by_completion(&ordered, ordered.span());
        let parts = batches.as_slice();
        let figures = LatencyFigures::over(ordered.slices(), parts, conditions);
        let method = match parts.len() {
            groups if over(parts, latency).is_some() => {
                format!("Student's t over {groups} groups of consecutive operations")
            }
            _ => at_random("mean of the operations"),
        };
        let LatencyFigures { mean, quantiles: [p50, p90, p95, p99, p99_9], quantile_values } =
            figures;
        let rate_reliable = by_time.reliable;
        let rate_method = by_time.method.clone();
        let summary = Summary {
            mean,
            p50,
            p90,
            p95,
            p99,
            p99_9,
            quantile_values,
            batches: parts.len(),
            method,
            reliable: batches.reliable(),
            ..by_time
        };
        Self { summary, rate_reliable, rate_method }
    }
}

/// Mean and quantiles with their intervals, no narrower than a step of the clock.
struct LatencyFigures {
    mean: Option<Estimate>,
    /// p50, p90, p95, p99 and p99.9.
    quantiles: [Option<Estimate>; 5],
    quantile_values: [Option<f64>; 5],
}

impl LatencyFigures {
    const PER_MILLE: [u64; 5] = [500, 900, 950, 990, 999];

    fn over(slices: &[Slice], batches: &[Batch], conditions: &Conditions) -> Self {
        let n = slices.iter().map(|slice| slice.completed).sum();
        let step = conditions.clock_step.0 as f64;
        let resolved = |estimate: Estimate| estimate.no_narrower_than(step).not_negative();
        let all = LatencyDistribution::from_slices(slices);
        let quantiles =
            all.as_ref().map_or([None; 5], |all| all.quantiles(Self::PER_MILLE, slices, batches));
        Self {
            mean: mean_latency(n, batches).map(resolved),
            quantiles: quantiles.map(|quantile| quantile.map(resolved)),
            quantile_values: all.map_or([None; 5], |all| all.values(Self::PER_MILLE)),
        }
    }
}

/// Everything in a slice as an HDR histogram of nanoseconds with three digits.
///
/// Nothing is lost: its buckets are those of [`crate::bucket`].
#[must_use]
pub fn histogram(slice: &Slice) -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, HIGHEST.0, 3).expect("the bounds rise and 3 digits fit");
    for (bucket, count) in &slice.buckets {
        // Saturating, because a slice may come from another host.
        histogram.saturating_record_n(lowest_of(bucket_numbered(*bucket)).0, *count);
    }
    histogram
}

/// Completions over the window's length, no more precise than one operation.
fn rate(n: u64, conditions: &Conditions, batches: &[Batch]) -> (Estimate, String) {
    let seconds = conditions.window.as_secs_f64();
    match over(batches, completions_over_time) {
        Some(ratio) => {
            let method = format!(
                "completions over the window's length; Student's t over {} batches of it",
                batches.len()
            );
            (ratio.estimate().no_narrower_than(1.0 / seconds), method)
        }
        None => {
            (per_second(poisson(n), seconds), at_random("completions over the window's length"))
        }
    }
}

/// Completions but one over the time from the first to the last.
///
/// A batch of time would hold a handful and mostly count its edges, so the spread is that of the
/// latencies: in a closed loop they are the gaps between a worker's completions. Workers may run
/// in step, then each of them may have one operation more or less in the span.
fn rate_of_few(n: u64, conditions: &Conditions, batches: &[Batch]) -> (Estimate, String) {
    let span = conditions.first_and_last.map_or(Nanos::ZERO, |(first, last)| last - first);
    if n < 2 || span == Nanos::ZERO {
        let estimate = per_second(poisson(n), conditions.window.as_secs_f64());
        return (estimate, at_random("completions over the window's length"));
    }
    let seconds = span.as_secs_f64();
    let rule = "(n-1) over first to last completion";
    let limits = per_second(poisson(n - 1), seconds);
    let Some(ratio) = over(batches, latency) else {
        return (limits, at_random(rule));
    };
    let relative = ratio.half_width() / ratio.value().max(f64::MIN_POSITIVE);
    let rate = Estimate::around(limits.estimate, limits.estimate * relative)
        .no_narrower_than(f64::from(conditions.workers.get()) / seconds);
    (rate, format!("{rule}; Student's t over {} groups of latencies", batches.len()))
}

/// The exact sum over the count. Where no spread can be seen, it is taken as that of exponential
/// latencies, as wide as any that a device without stalls shows.
fn mean_latency(n: u64, batches: &[Batch]) -> Option<Estimate> {
    if n == 0 {
        return None;
    }
    if let Some(ratio) = over(batches, latency) {
        return Some(ratio.estimate());
    }
    let sum: u128 = batches.iter().map(|batch| batch.latency_sum).sum();
    let mean = sum as f64 / n as f64;
    let count = poisson(n);
    let n = n as f64;
    Some(Estimate { estimate: mean, low: mean * n / count.high, high: mean * n / count.low })
}

fn over(batches: &[Batch], parts: impl Fn(&Batch) -> (f64, f64)) -> Option<Ratio> {
    Ratio::over(&batches.iter().map(parts).collect::<Vec<_>>())
}

fn per_second(events: Estimate, seconds: f64) -> Estimate {
    // A window without length holds nothing, and nothing a nanosecond is no rate.
    let seconds = seconds.max(Nanos(1).as_secs_f64());
    events.map(|count| count / seconds)
}

fn at_random(rule: &str) -> String {
    format!("{rule}; too few to see a spread, limits as for random completions (Garwood)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One worker without pauses; the window opens when the first call starts.
    fn measured(window: Nanos, latencies: impl IntoIterator<Item = u64>) -> (Series, Conditions) {
        let length = Nanos::from_millis(4);
        let mut series = Series::new(length);
        let mut now = 0;
        let mut ends = Vec::new();
        for latency in latencies {
            now += latency;
            if now >= window.0 {
                break;
            }
            let start = Nanos(now - now % length.0);
            let mut slice = Slice { start, length, ..Slice::empty() };
            slice.count(Nanos(latency));
            series.add(&slice);
            ends.push(Nanos(now));
        }
        series.extend_to(window);
        let conditions = Conditions {
            window,
            workers: NonZeroU32::MIN,
            first_and_last: ends.first().copied().zip(ends.last().copied()),
            clock_step: Nanos(1),
        };
        (series, conditions)
    }

    fn summary(window: Nanos, latencies: impl IntoIterator<Item = u64>) -> Summary {
        let (series, conditions) = measured(window, latencies);
        Summary::from_series(&series, &conditions)
    }

    /// Operations of which each is known: a pause before the first, then one after the other, each
    /// followed by as much of something else.
    fn with_pauses(latencies: &[u64]) -> OperationsSummary {
        let mut now = Nanos::from_secs(60);
        let mut operations = Vec::new();
        for latency in latencies {
            now += Nanos(*latency);
            operations.push((now, Some(Nanos(*latency))));
            now += Nanos(*latency);
        }
        let first_and_last = Some((operations[0].0, operations[operations.len() - 1].0));
        let window = (Nanos::ZERO, now);
        let series = Series::from_operations(operations.into_iter(), window);
        let conditions = Conditions {
            window: now,
            workers: NonZeroU32::MIN,
            first_and_last,
            clock_step: Nanos(1),
        };
        let latencies: Vec<Nanos> = latencies.iter().map(|latency| Nanos(*latency)).collect();
        OperationsSummary::from_operations(&latencies, &series, &conditions)
    }

    #[test]
    fn a_pause_before_operations_does_not_hide_their_spread() {
        // 82 values from 4.4 to 30 ms, mixed.
        let latencies: Vec<u64> =
            (0..82_u64).map(|n| 4_400_000 + (n * 37 % 82) * 25_600_000 / 81).collect();
        let summary = with_pauses(&latencies).summary;
        let mean = summary.mean.unwrap();
        // The spread of an even distribution is its width over the root of 12.
        let error = 25.6e6 / 12f64.sqrt() / 82f64.sqrt();
        assert!(mean.holds(17.2e6), "{mean:?}");
        assert!(mean.high - mean.low > 2.0 * error, "{mean:?}: the standard error is {error}");
        let median = summary.p50.unwrap();
        assert!(median.high - median.low > 2.0 * error, "{median:?}");
        assert!(summary.reliable && summary.batches > 16, "{summary:?}");
        assert!(summary.method.contains("groups of consecutive operations"), "{}", summary.method);
    }

    #[test]
    fn latencies_in_few_batches_of_time_are_not_reliable() {
        // A minute without a completion, then 82 within one batch of the window.
        let window = Nanos::from_secs(61);
        let mut latencies = vec![60_000_000_000];
        latencies.extend((0..81).map(|n| 4_400_000 + n * 37 % 82 * 100_000));
        assert!(!summary(window, latencies).reliable);
    }

    #[test]
    fn intervals_over_operations_with_pauses_hold_the_mean() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp};

        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
        let wait = Exp::new(1.0 / 5e6).unwrap();
        let held = (0..1_000)
            .filter(|_| {
                let latencies: Vec<u64> =
                    (0..82).map(|_| 5_000_000 + wait.sample(&mut rng) as u64).collect();
                with_pauses(&latencies).summary.mean.unwrap().holds(10e6)
            })
            .count();
        assert!((910..=975).contains(&held), "{held} of 1,000");
    }

    #[test]
    fn a_regular_service_is_known_to_one_operation_and_one_bucket() {
        let summary = summary(Nanos::from_secs(3), std::iter::repeat(1_000_000));
        assert_eq!(summary.n, 2_999);
        assert!(summary.reliable, "{summary:?}");
        assert!(summary.rate.holds(1_000.0), "{:?}", summary.rate);
        assert!(summary.rate.high - summary.rate.low >= 2.0 / 3.0);
        assert_eq!(summary.mean, Some(Estimate::around(1e6, 1.0)));
        assert_eq!(summary.p99, Some(Estimate::around(1e6, 1.0)));
        assert_eq!(summary.p99_9, None, "2,999 x 0.001 is under ten");
    }

    #[test]
    fn quantiles_come_with_ten_on_either_side() {
        let enough = |n: u64| summary(Nanos::from_millis(n + 1), vec![1_000_000; n as usize]);
        assert!(enough(19).p50.is_none());
        assert!(enough(20).p50.is_some());
        assert!(enough(99).p90.is_none());
        assert!(enough(100).p90.is_some());
        assert!(enough(9_999).p99_9.is_none());
        assert!(enough(10_000).p99_9.is_some());
    }

    #[test]
    fn few_slow_operations_are_counted_from_first_to_last() {
        // Ten seconds hold 19 of 0.52 s; 19 / 10 s would be 1.2 % off, 18 gaps over 9.36 s are not.
        let summary = summary(Nanos::from_secs(10), std::iter::repeat(520_000_000));
        assert!((summary.rate.estimate - 1.0 / 0.52).abs() < 1e-9);
        assert!(summary.method.starts_with("(n-1) over first to last completion"));
        assert!(summary.rate.high - summary.rate.low >= 2.0 / 9.36 - 1e-9);
    }

    #[test]
    fn none_one_and_two_completions_are_said_to_be_so() {
        let window = Nanos::from_secs(10);
        let none = summary(window, []);
        assert_eq!((none.n, none.mean, none.p50, none.reliable), (0, None, None, false));
        assert_eq!((none.rate.estimate, none.rate.low), (0.0, 0.0));
        assert!((none.rate.high - 0.369).abs() < 1e-3, "3.69 in ten seconds: {:?}", none.rate);
        let one = summary(window, [2_000_000_000]);
        assert!(one.rate.holds(0.5) && one.mean.is_some_and(|mean| mean.holds(3e9)));
        let two = summary(window, [2_000_000_000, 3_000_000_000]);
        assert!((two.rate.estimate - 1.0 / 3.0).abs() < 1e-9 && two.rate.holds(0.4));
        assert!(two.method.contains("Garwood") && !two.reliable);
        assert!(summary(Nanos::ZERO, []).rate.high.is_finite());
    }

    #[test]
    fn workers_in_step_may_each_have_one_more() {
        // Four workers complete at 1, 2, 3, 4 and 5 s: 19 over 4 s is 4.75/s, the truth 4/s.
        let length = Nanos::from_millis(4);
        let mut series = Series::new(length);
        for second in 1..=5 {
            let start = Nanos::from_secs(second);
            let mut slice = Slice { start, length, ..Slice::empty() };
            (0..4).for_each(|_| slice.count(Nanos::from_secs(1)));
            series.add(&slice);
        }
        let conditions = Conditions {
            window: Nanos::from_millis(5_500),
            workers: NonZeroU32::new(4).unwrap(),
            first_and_last: Some((Nanos::from_secs(1), Nanos::from_secs(5))),
            clock_step: Nanos(1),
        };
        assert!(Summary::from_series(&series, &conditions).rate.holds(4.0));
    }

    #[test]
    fn each_of_several_workers_has_to_complete_thirty() {
        let method = |workers| {
            let (series, conditions) = measured(Nanos::from_secs(1), vec![9_000_000; 100]);
            let workers = NonZeroU32::new(workers).unwrap();
            Summary::from_series(&series, &Conditions { workers, ..conditions }).method
        };
        assert!(method(3).starts_with("completions over the window's length"), "{}", method(3));
        assert!(method(4).starts_with("(n-1) over first to last completion"), "{}", method(4));
    }

    #[test]
    fn completions_in_one_moment_are_counted_over_the_window() {
        let (series, conditions) = measured(Nanos::from_secs(2), [1_000_000, 0, 0]);
        let moment = conditions.first_and_last.unwrap();
        assert_eq!((moment.0, moment.1), (Nanos::from_millis(1), Nanos::from_millis(1)));
        let rate = Summary::from_series(&series, &conditions).rate;
        assert!((rate.estimate - 1.5).abs() < 1e-9, "{rate:?}");
    }

    #[test]
    fn the_last_slice_of_a_window_counts_as_far_as_the_window_goes() {
        let summary = summary(Nanos::from_millis(1_001), std::iter::repeat(100_000));
        assert!((summary.rate.estimate / 1e4 - 1.0).abs() < 1e-3, "{:?}", summary.rate);
    }

    #[test]
    fn a_bucket_that_no_loop_counts_is_the_last_one() {
        let foreign = Slice { completed: 1, buckets: vec![(u32::MAX, 1)], ..Slice::empty() };
        assert_eq!(histogram(&foreign).count_at(HIGHEST.0), 1);
    }

    #[test]
    fn a_coarse_clock_widens_every_latency() {
        let (series, mut conditions) = measured(Nanos::from_secs(1), vec![1_000; 50_000]);
        conditions.clock_step = Nanos(40);
        let summary = Summary::from_series(&series, &conditions);
        for latency in [summary.mean, summary.p50, summary.p99] {
            assert_eq!(latency, Some(Estimate::around(1_000.0, 40.0)));
        }
    }

    #[test]
    fn thirty_operations_of_each_worker_are_enough_for_a_count_over_the_window() {
        // A window of a little more than so many calls of 100 ms.
        let method = |n: u64| {
            let summary = summary(Nanos::from_millis(100 * n + 50), vec![100_000_000; n as usize]);
            assert_eq!(summary.n, n);
            summary.method
        };
        assert!(method(29).starts_with("(n-1) over first to last completion"), "{}", method(29));
        assert!(method(30).starts_with("completions over the window's length"), "{}", method(30));
    }

    #[test]
    fn a_rate_is_known_to_one_operation_of_the_window() {
        // Ten calls in each of a thousand slices: no batch differs from another.
        let length = Nanos::from_millis(4);
        let mut series = Series::new(length);
        for place in 0..1_000 {
            let mut slice = Slice { start: Nanos(place * length.0), length, ..Slice::empty() };
            (0..10).for_each(|_| slice.count(Nanos(400_000)));
            series.add(&slice);
        }
        let conditions = Conditions {
            window: Nanos::from_secs(4),
            workers: NonZeroU32::MIN,
            first_and_last: None,
            clock_step: Nanos(1),
        };
        let rate = Summary::from_series(&series, &conditions).rate;
        assert!((rate.estimate - 2_500.0).abs() < 1e-9, "{rate:?}");
        assert!((rate.high - 2_500.25).abs() < 1e-9 && (rate.low - 2_499.75).abs() < 1e-9);
    }

    #[test]
    fn the_rate_of_few_is_as_uncertain_as_their_mean() {
        // 25 calls from 0.2 to 0.8 s, mixed.
        let latencies = (0..25_u64).map(|n| 200_000_000 + n * 7 % 25 * 25_000_000);
        let summary = summary(Nanos::from_secs(20), latencies);
        assert_eq!(summary.n, 25);
        let mean = summary.mean.unwrap();
        let relative = (mean.high - mean.estimate) / mean.estimate;
        let half_width = summary.rate.estimate * relative;
        assert!(relative > 0.08, "more than one operation of the span: {mean:?}");
        let arms =
            [summary.rate.high - summary.rate.estimate, summary.rate.estimate - summary.rate.low];
        assert!(arms.iter().all(|arm| (arm / half_width - 1.0).abs() < 1e-9), "{summary:?}");
    }

    #[test]
    fn the_mean_of_two_has_the_limits_of_random_counts() {
        // Of two events the limits are 0.2422 and 7.2247 (Garwood 1936).
        let mean = summary(Nanos::from_secs(10), [2_000_000_000, 3_000_000_000]).mean.unwrap();
        assert_eq!(mean.estimate, 2.5e9);
        assert!((mean.low / (5e9 / 7.2247) - 1.0).abs() < 1e-4, "{mean:?}");
        assert!((mean.high / (5e9 / 0.2422) - 1.0).abs() < 1e-3, "{mean:?}");
    }

    #[test]
    fn few_operations_with_pauses_have_limits_as_for_random_ones() {
        let few = with_pauses(&[2_000_000, 3_000_000]);
        assert!(few.summary.method.starts_with("mean of the operations; too few"), "{few:?}");
    }

    #[test]
    fn latencies_are_those_of_the_operations_and_not_of_the_series() {
        let (series, conditions) = measured(Nanos::from_secs(20), vec![1_000_000; 19_000]);
        let operations = vec![Nanos(2_000_000); 10_000];
        let found = OperationsSummary::from_operations(&operations, &series, &conditions).summary;
        let figures = [found.mean, found.p50, found.p90, found.p95, found.p99, found.p99_9];
        assert!(figures.iter().all(|it| it.is_some_and(|it| it.holds(2e6) && !it.holds(1e6))));
        assert!(found.quantile_values.iter().all(|it| it.is_some_and(|it| it > 1.9e6)));
        assert!((found.rate.estimate - 950.0).abs() < 1.0, "{found:?}");
    }

    proptest! {
        #[test]
        fn intervals_hold_their_estimates(
            latencies in prop::collection::vec(1u64..100_000_000, 0..200),
            millis in 1u64..4_000,
        ) {
            let summary = summary(Nanos::from_millis(millis), latencies);
            let latencies = [summary.mean, summary.p50, summary.p90, summary.p95, summary.p99];
            for estimate in latencies.into_iter().flatten().chain([summary.rate]) {
                prop_assert!(estimate.low >= 0.0 && estimate.high.is_finite());
                prop_assert!(estimate.holds(estimate.estimate), "{:?}", estimate);
            }
        }

        #[test]
        fn the_histogram_keeps_every_count(
            latencies in prop::collection::vec(0u64..HIGHEST.0, 0..200),
        ) {
            let mut slice = Slice::empty();
            latencies.iter().for_each(|latency| slice.count(Nanos(*latency)));
            let histogram = histogram(&slice);
            prop_assert_eq!(histogram.len(), latencies.len() as u64);
            for (bucket, count) in &slice.buckets {
                prop_assert_eq!(histogram.count_at(lowest_of(*bucket as usize).0), *count);
            }
        }
    }
}
