use super::*;
use crate::bucket::{BUCKETS, HIGHEST, bucket_of};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution as _, Gamma};
use rand_pcg::Pcg64Mcg;

/// Calls of 20 % spread around `mean(moment, coin)`, where both are in [0, 1).
fn window(seed: u64, window: Nanos, mean: impl Fn(f64, f64) -> f64) -> Series {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let service = Gamma::new(25.0, 1.0 / 25.0).unwrap();
    let length = Nanos::from_millis(4);
    let mut series = Series::new(length);
    let mut now = 0;
    loop {
        let mean = mean(now as f64 / window.0 as f64, rng.random());
        let latency = (mean * service.sample(&mut rng)).round() as u64;
        now += latency;
        if now >= window.0 {
            series.extend_to(window);
            return series;
        }
        let start = Nanos(now - now % length.0);
        let mut slice = Slice { start, length, ..Slice::empty() };
        slice.count(Nanos(latency));
        series.add(&slice);
    }
}

const SECONDS: Nanos = Nanos::from_secs(3);

#[test]
fn a_device_that_throttles_is_told_from_one_that_warms_up() {
    let throttled = window(1, SECONDS, |moment, _| 1e6 * (1.0 + 0.3 * moment));
    let drift_of = |series: &Series| drift(series, SECONDS);
    let slower = drift_of(&throttled);
    assert_eq!(slower.course, Course::Slower);
    // Ends of 0.1 and 0.9 of the way, roughly: 1.27 / 1.03.
    assert!(slower.ratio.is_some_and(|ratio| ratio.holds(1.27 / 1.03)), "{slower}");
    assert!(slower.to_string().contains("throttling"));
    let cold = window(2, SECONDS, |moment, _| 1e6 * (1.2 - 0.2 * moment));
    assert_eq!(drift_of(&cold).course, Course::Faster);
}

#[test]
fn a_steady_device_is_seldom_said_to_drift() {
    let false_alarms = (0..200)
        .filter(|seed| {
            let course = drift(&window(*seed, SECONDS, |_, _| 1e6), SECONDS).course;
            assert_ne!(course, Course::Unknown);
            course != Course::Steady
        })
        .count();
    assert!(false_alarms <= 8, "{false_alarms} of 200");
    let short = Nanos::from_millis(30);
    assert_eq!(drift(&window(1, short, |_, _| 1e6), short).course, Course::Unknown);
}

#[test]
fn two_speeds_are_two_modes() {
    let total = window(3, SECONDS, |_, coin| if coin < 0.7 { 1e6 } else { 3e6 }).total();
    let found = bimodality(&total, Nanos(1)).unwrap();
    assert!((found.fast.0 as f64 / 1e6 - 1.0).abs() < 0.15, "{found}");
    assert!((found.slow.0 as f64 / 3e6 - 1.0).abs() < 0.15, "{found}");
    assert!((found.slow_share - 0.3).abs() < 0.05, "{found}");
    assert!(found.to_string().starts_with("latencies have two modes: 7"), "{found}");
}

/// So many calls of one latency.
fn spike(total: &mut Slice, latency: u64, count: u32) {
    (0..count).for_each(|_| total.count(Nanos(latency)));
}

/// So many calls that are even on the logarithm between two latencies.
fn even(total: &mut Slice, low: f64, high: f64, count: u32) {
    for place in 0..count {
        let part = (f64::from(place) + 0.5) / f64::from(count);
        total.count(Nanos((low * (high / low).powf(part)) as u64));
    }
}

/// Calls that are even from 1 ms to 4 ms, with so many more at either end.
fn even_between(ends: u32, between: u32) -> Slice {
    let mut total = Slice::empty();
    spike(&mut total, 1_000_000, ends);
    even(&mut total, 1e6, 4e6, between);
    spike(&mut total, 4_000_000, ends);
    total
}

#[test]
fn a_valley_that_chance_can_make_is_none() {
    // Some 15 calls lie in each bin, and some 24 more in the first and in the last: that is less
    // than four standard deviations of the difference.
    assert_eq!(bimodality(&even_between(24, 183), Nanos(1)), None);
    // With as many in the valleys, and 90 more at the ends, there is no doubt.
    assert!(bimodality(&even_between(90, 183), Nanos(1)).is_some());
}

#[test]
fn of_the_deepest_valley_one_half_belongs_to_either_mode() {
    let total = even_between(300, 183);
    let found = bimodality(&total, Nanos(1)).unwrap();
    let density = Density::from_total(&total, Nanos(1)).unwrap();
    let heights = &density.heights;
    let all: f64 = heights.iter().sum();
    let share =
        |valley: usize| 1.0 - (heights[..valley].iter().sum::<f64>() + heights[valley] / 2.0) / all;
    let is_it = |valley: &usize| (share(*valley) - found.slow_share).abs() < 1e-12;
    let valleys: Vec<usize> = (1..heights.len() - 1).filter(is_it).collect();
    let [valley] = valleys[..] else { panic!("{found:?}: {heights:?}") };
    assert!(heights[valley] > 0.0, "{heights:?}");
    let inner = &heights[1..heights.len() - 1];
    assert!(inner.iter().all(|height| *height >= heights[valley]), "{heights:?}");
}

#[test]
fn a_valley_is_as_deep_as_it_lies_below_its_lower_peak() {
    // The second valley lies lower, but so do its peaks.
    let mut total = Slice::empty();
    spike(&mut total, 1_000_000, 1000);
    even(&mut total, 1e6, 2e6, 840);
    spike(&mut total, 2_000_000, 1000);
    even(&mut total, 2e6, 4e6, 560);
    spike(&mut total, 4_000_000, 100);
    let found = bimodality(&total, Nanos(1)).unwrap();
    assert!(found.slow_share > 0.4, "{found:?}");
}

#[test]
fn the_effect_of_two_modes_is_what_the_mean_owes_to_the_rarer() {
    let effect =
        |slow_share| Bimodality { fast: Nanos(1000), slow: Nanos(1100), slow_share }.effect();
    assert!((effect(0.3) - 0.03).abs() < 1e-12);
    assert!((effect(0.8) - 0.02).abs() < 1e-12);
}

#[test]
fn a_mode_is_the_highest_bin_on_its_side_of_the_valley() {
    let total = window(3, SECONDS, |_, coin| if coin < 0.7 { 1e6 } else { 3e6 }).total();
    let found = bimodality(&total, Nanos(1)).unwrap();
    let density = Density::from_total(&total, Nanos(1)).unwrap();
    let between = density.heights.len() / 2;
    let highest_in = |bins: std::ops::Range<usize>| {
        bins.max_by(|one, other| density.heights[*one].total_cmp(&density.heights[*other]))
    };
    let fast = highest_in(0..between).unwrap();
    let slow = highest_in(between..density.heights.len()).unwrap();
    assert_eq!((found.fast, found.slow), (density.centre(fast), density.centre(slow)));
}

#[test]
fn of_two_valleys_that_are_as_deep_the_first_is_taken() {
    let mut total = Slice::empty();
    for latency in [1_000_000, 2_000_000, 4_000_000] {
        spike(&mut total, latency, 100);
    }
    let found = bimodality(&total, Nanos(1)).unwrap();
    // Two thirds and not one, but for what lies beyond the 1st and the 99th percentile.
    assert!(found.slow_share > 0.5, "{found:?}");
}

#[test]
fn a_few_calls_on_either_side_are_no_mode() {
    let of = |fast, slow| {
        let mut total = Slice::empty();
        even(&mut total, 1e6, 1.1e6, fast);
        even(&mut total, 4e6, 4.4e6, slow);
        bimodality(&total, Nanos(1))
    };
    assert!(of(5_000, 5_000).is_some());
    assert_eq!((of(9_700, 300), of(300, 9_700)), (None, None));
}

/// Calls that take the same within each fifth of a window.
fn by_fifths(micros: [u64; 5]) -> Drift {
    let length = Nanos::from_millis(4);
    let mut series = Series::new(length);
    let batches = 5 * BATCHES_PER_FIFTH as u64;
    for batch in 0..batches {
        let mut slice = Slice { start: Nanos(batch * length.0), length, ..Slice::empty() };
        let latency = micros[(batch / BATCHES_PER_FIFTH as u64) as usize];
        (0..10).for_each(|_| slice.count(Nanos(latency * 1_000)));
        series.add(&slice);
    }
    let window = Nanos(batches * length.0);
    series.extend_to(window);
    drift(&series, window)
}

#[test]
fn the_last_fifth_is_set_against_the_first() {
    let found = by_fifths([100, 100, 100, 100, 200]);
    assert_eq!(found.course, Course::Slower);
    assert!((found.ratio.unwrap().estimate - 2.0).abs() < 1e-9, "{found:?}");
    // 2 % either way are no drift, 5 % are.
    let course = |last| by_fifths([100, 100, 100, 100, last]).course;
    assert_eq!(
        [95, 98, 102, 105].map(course),
        [Course::Faster, Course::Steady, Course::Steady, Course::Slower,]
    );
}

#[test]
fn an_interval_of_means_is_of_students_t_over_both_fifths() {
    let fifth = |sums: [u128; 2]| -> Vec<Batch> {
        let batch =
            |latency_sum| Batch { slices: 0..1, length: Nanos(1), completed: 10, latency_sum };
        (0..BATCHES_PER_FIFTH).map(|number| batch(sums[number % 2])).collect()
    };
    let found = ratio_of_means(&fifth([1000, 1000]), &fifth([1900, 2100])).unwrap();
    let last: Vec<(f64, f64)> = fifth([1900, 2100]).iter().map(latency).collect();
    let mean = Ratio::over(&last).unwrap();
    // Eight batches and eight more, of which two means are known.
    let half_width = student_t(14) * mean.standard_error() / mean.value();
    assert!((found.high.ln() - 2f64.ln() - half_width).abs() < 1e-9, "{found:?}");
    assert!((2f64.ln() - found.low.ln() - half_width).abs() < 1e-9, "{found:?}");
}

#[test]
fn calls_make_twice_as_many_bins_as_their_cube_root() {
    let total = even_between(0, 1000);
    let bins = Density::from_total(&total, Nanos(1)).unwrap().heights.len();
    assert!((20..=21).contains(&bins), "{bins}");
}

#[test]
fn the_longest_call_is_named_in_medians() {
    let mut total = Slice::empty();
    spike(&mut total, 1_000_000, 900);
    spike(&mut total, 100_000_000, 10);
    let found = outlier(&total).unwrap();
    assert!((found.times / 100.0 - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn a_bin_has_its_centre_in_its_middle() {
    let density = Density { origin: 1000f64.ln(), width: 4f64.ln(), heights: vec![0.0; 3] };
    assert_eq!([0, 1, 2].map(|bin| density.centre(bin)), [2_000, 8_000, 32_000].map(Nanos));
}

#[test]
fn without_latency_there_is_no_ratio_of_means() {
    let fifth = |latency_sum| {
        let batch = Batch { slices: 0..1, length: Nanos(1), completed: 10, latency_sum };
        vec![batch; BATCHES_PER_FIFTH]
    };
    assert_eq!(ratio_of_means(&fifth(0), &fifth(100)), None);
    assert_eq!(ratio_of_means(&fifth(100), &fifth(0)), None);
    let twice = ratio_of_means(&fifth(100), &fifth(200)).unwrap();
    assert!((twice.estimate - 2.0).abs() < 1e-9, "{twice:?}");
}

#[test]
fn a_bucket_that_there_is_not_is_no_reason_to_fail() {
    let mut total = even_between(90, 183);
    total.buckets.push((u32::MAX, 1));
    assert!(bimodality(&total, Nanos(1)).is_some());
}

#[test]
fn one_mode_stays_one_wherever_the_buckets_double() {
    for seed in 0..200 {
        let mean = 1e6 * (1.0 + seed as f64 / 100.0);
        let total = window(seed, SECONDS, |_, _| mean).total();
        assert_eq!(bimodality(&total, Nanos(1)), None, "around {mean} ns");
    }
}

#[test]
fn the_steps_of_a_coarse_clock_are_no_modes() {
    let mut total = Slice::empty();
    let smooth = window(4, SECONDS, |_, _| 5e4).total();
    for (bucket, count) in &smooth.buckets {
        let coarse = lowest_of(*bucket as usize).0.div_ceil(10_000) * 10_000;
        (0..*count).for_each(|_| total.count(Nanos(coarse)));
    }
    assert_eq!(bimodality(&total, Nanos(10_000)), None);
    assert_eq!(bimodality(&Slice::empty(), Nanos(1)), None);
}

#[test]
fn two_modes_that_lie_close_together_are_not_named() {
    let modes = |apart: f64| {
        let mut total = Slice::empty();
        for call in 0..4_000_u64 {
            let scatter = 1.0 + 0.001 * (call * 7919 % 21) as f64 / 21.0;
            let mode = if call % 2 == 0 { 1e6 } else { 1e6 * (1.0 + apart) };
            total.count(Nanos((mode * scatter) as u64));
        }
        bimodality(&total, Nanos(1))
    };
    // Half of the calls in either: half of the distance is in the mean.
    assert_eq!(modes(0.03), None);
    let found = modes(0.05).unwrap();
    assert!((0.02..0.03).contains(&found.effect()), "{found:?}");
}

#[test]
fn only_long_calls_that_matter_are_named() {
    let mut total = window(5, SECONDS, |_, _| 1e6).total();
    assert_eq!(outlier(&total), None);
    total.count(Nanos::from_millis(43));
    assert_eq!(outlier(&total), None, "1.4 % of three seconds");
    total.count(Nanos::from_millis(43));
    let named = outlier(&total).unwrap();
    assert_eq!(named.longest, Nanos::from_millis(43));
    assert!((named.share - 0.086 / 3.086).abs() < 1e-3, "{named:?}");
    assert!(named.to_string().starts_with("the longest call took 43.0 ms, 4"), "{named}");
    assert!(named.to_string().contains("took 3 % of all time"), "{named}");
    assert_eq!(outlier(&Slice::empty()), None);
}

#[test]
fn the_first_calls_are_named_as_long_as_they_are_slow() {
    let first = [50, 40, 20, 14, 10, 30].map(Nanos);
    let told = |latencies: &[Nanos], warm_up, busy| {
        let calls = FirstCalls { latencies, warm_up };
        slow_start(calls, Nanos(10), Nanos(busy)).map(|found| found.to_string())
    };
    let three = "the first 3 calls took 3.67 times the median";
    // 80 more than three medians.
    assert_eq!(told(&first, 6, 4_000).as_deref(), Some(three));
    assert_eq!(told(&first, 6, 4_001), None);
    let one = "the first call took 5.00 times the median, and none of the warm-up was faster; \
               try a longer one";
    assert_eq!(told(&first[..1], 1, 1_000_000).as_deref(), Some(one));
    assert_eq!(told(&first[..1], 2, 1_000_000), None, "the second call is not known");
    assert_eq!(told(&first[3..], 3, 1), None);
    assert_eq!(told(&[], 0, 1), None);
}

/// Calls that are even on the logarithm within each of three stretches from 1 ms on: two humps of
/// 0.4 and a valley of 0.6 between them, which is this part as dense as they are.
fn humps(count: f64, valley: f64) -> Slice {
    let dense = count / (0.8 + 0.6 * valley);
    let mut total = Slice::empty();
    let mut low = 1e6;
    for (length, part) in [(0.4, 1.0), (0.6, valley), (0.4, 1.0)] {
        let high = low * f64::exp(length);
        even(&mut total, low, high, (dense * length * part).round() as u32);
        low = high;
    }
    total
}

#[test]
fn a_valley_is_at_most_half_as_high_as_its_peaks() {
    // Of 100,000 calls in 64 bins: 1,900 in a bin of the humps, and what lies between is no chance.
    assert_eq!(bimodality(&humps(1e5, 0.6), Nanos(1)), None);
    let found = bimodality(&humps(1e5, 0.4), Nanos(1)).unwrap();
    assert!((found.slow_share - 0.5).abs() < 0.25, "{found:?}");
}

#[test]
fn a_valley_is_four_standard_deviations_below_its_peaks() {
    // Of 300 calls in 14 bins some 30 lie in a bin of the humps and 9 in one of the valley: 21
    // fewer, and four times the root of 39 are 25.
    assert_eq!(bimodality(&humps(300.0, 0.3), Nanos(1)), None);
    // Of 1,000 in 20 bins, 70 and 21: 49 fewer, and four times the root of 91 are 38.
    assert!(bimodality(&humps(1_000.0, 0.3), Nanos(1)).is_some());
}

#[test]
fn a_bucket_that_there_is_not_counts_as_the_last() {
    // Slices come from other processes.
    for bucket in [BUCKETS as u32, u32::MAX] {
        let shortest = Nanos::from_secs(1200);
        let calls = Slice { completed: 900, min: shortest, max: HIGHEST, ..Slice::empty() };
        let near = bucket_of(shortest) as u32;
        let with = |far| Slice { buckets: vec![(near, 600), (far, 300)], ..calls.clone() };
        let foreign = with(bucket);
        let last = with(BUCKETS as u32 - 1);
        assert_eq!(bimodality(&foreign, Nanos(1)), bimodality(&last, Nanos(1)));
        assert!(bimodality(&last, Nanos(1)).is_some());
        assert_eq!(outlier(&foreign), outlier(&last));
        assert_eq!(foreign.quantile(0.9), last.quantile(0.9));
    }
}
