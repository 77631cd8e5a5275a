use super::levels::{growing, growing_at_capacity, steady};
use super::*;

const PLAN: WithinPlan = WithinPlan {
    share: 0.01,
    longest: Nanos::from_millis(5),
    unloaded: Nanos::from_millis(1),
    first: PerSecond(10.0),
    lowest: PerSecond(10.0),
    highest: PerSecond(10_000.0),
    arrivals: 1_000_000,
    precision: 0.03,
};

/// Answers each rate and number of arrivals by a function, and keeps what was asked.
struct Scripted<F> {
    level: F,
    offered: Vec<(f64, u64)>,
}

impl<F: FnMut(f64, u64) -> Option<RateLevel>> MeasuresRates for Scripted<F> {
    type Error = std::convert::Infallible;

    fn measure_rate(
        &mut self,
        rate: PerSecond,
        arrivals: u64,
    ) -> Result<Option<RateLevel>, Self::Error> {
        self.offered.push((rate.0, arrivals));
        Ok((self.level)(rate.0, arrivals))
    }
}

/// What a search finds, and the rates and arrivals that it offered.
fn searched(
    plan: WithinPlan,
    level: impl FnMut(f64, u64) -> Option<RateLevel>,
) -> (LatencyLimit, Vec<(f64, u64)>) {
    let mut device = Scripted { level, offered: Vec::new() };
    let found = find_rate_within(plan, &mut device);
    let limit = found.unwrap_or_else(|never| match never {}).limit;
    (limit, device.offered)
}

fn assert_offered(offered: &[(f64, u64)], expected: &[(f64, u64)]) {
    let alike = |(one, other): (&(f64, u64), &(f64, u64))| {
        (one.0 / other.0 - 1.0).abs() < 1e-9 && one.1 == other.1
    };
    let all = offered.len() == expected.len() && offered.iter().zip(expected).all(alike);
    assert!(all, "offered {offered:?}\nexpected {expected:?}");
}

#[test]
fn levels_have_the_arrivals_that_their_stage_needs() {
    // 50 beyond the bound tell one side from the other; 0.01 of 5,000 are 50.
    assert_eq!((PLAN.coarse_arrivals(), PLAN.approach_arrivals()), (5_000, 400_000));
    let with = |arrivals| WithinPlan { arrivals, ..PLAN };
    assert_eq!(with(3_000).coarse_arrivals(), 3_000);
    assert_eq!(with(10_000).approach_arrivals(), 5_000, "two fifths would be too few");
    assert_eq!(with(20_000).approach_arrivals(), 8_000);
    assert_eq!(WithinPlan { share: 0.3, ..PLAN }.coarse_arrivals(), 166);
}

#[test]
fn the_expected_time_is_that_of_all_levels() {
    // 10,000 arrivals while it doubles, 10,000 while the gap is halved, three times 20,000
    // nearby and four times 50,000 at the end.
    let plan = WithinPlan { arrivals: 50_000, first: PerSecond(50.0), ..PLAN };
    let seconds = |limit| plan.expected_seconds(PerSecond(limit));
    assert!((seconds(500.0) - (10_000.0 / 50.0 + 270_000.0 / 500.0)).abs() < 1e-9);
    assert!((seconds(20.0) - 280_000.0 / 20.0).abs() < 1e-9, "it begins above the limit");
}

/// The share rises with the 20th power of the rate and is the wanted one at 200/s.
#[test]
fn a_search_doubles_halves_and_looks_nearby_before_it_decides() {
    let share = |rate: f64| (0.01 * (rate / 200.0).powi(20)).min(0.9);
    let (limit, offered) =
        searched(PLAN, |rate, arrivals| Some(steady(rate, arrivals, share(rate))));
    let high = (160.0 * 320.0_f64).sqrt();
    let low = (160.0 * high).sqrt();
    let coarse = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, high, low].map(|rate| (rate, 5_000));
    assert_offered(&offered[..8], &coarse);
    // One of 250 lies beyond at the lower rate, and 30 at the higher one.
    let part = 2.5_f64.ln() / 30_f64.ln();
    assert_offered(&offered[8..9], &[(low * (high / low).powf(part), 400_000)]);
    let near =
        |(rate, arrivals): &(f64, u64)| *arrivals == 400_000 && (rate / 200.0 - 1.0).abs() < 0.005;
    assert!(offered[9..11].iter().all(near), "{offered:?}");
    // Low, high, high, low: 0.6 on the logarithm of the share to either side.
    let [a, b, c, d] = offered[11..] else { panic!("{offered:?}") };
    assert!((a, b) == (d, c) && a.1 == 1_000_000 && b.1 == 1_000_000, "{offered:?}");
    assert!(((b.0 / a.0).ln() - 2.0 * 0.6 / 20.0).abs() < 0.002, "{offered:?}");
    assert!(((a.0 * b.0).sqrt() / 200.0 - 1.0).abs() < 0.002, "{offered:?}");
    let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
    assert!((found.estimate / 200.0 - 1.0).abs() < 1e-3, "{found:?}");
}

/// A short level just below the limit has the share of a far higher rate. The line through it
/// leads far below.
#[test]
fn a_level_that_was_held_up_once_does_not_keep_the_search_far_below_the_limit() {
    let plan = WithinPlan { share: 0.1, arrivals: 5_000, first: PerSecond(60.0), ..PLAN };
    let mut spoilt = 0;
    let (limit, offered) = searched(plan, |rate, arrivals| {
        let held_up = spoilt == 0 && (750.0..839.0).contains(&rate);
        spoilt += u32::from(held_up);
        let share = if held_up { 0.41 } else { (0.1 * (rate / 839.0).powi(11)).min(0.97) };
        Some(steady(rate, arrivals, share))
    });
    assert_eq!(spoilt, 1);
    let LatencyLimit::Rate(found) = limit else { panic!("{limit:?} {offered:?}") };
    assert!((found.estimate / 839.0 - 1.0).abs() < 0.01, "{found:?}");
    let [.., low, high, _, _] = offered[..] else { panic!("{offered:?}") };
    assert!((low.0..high.0).contains(&839.0), "{offered:?}");
}

#[test]
fn a_figure_far_from_where_it_was_measured_is_not_given() {
    // Short levels have their limit at 300/s. Longer ones point far beyond, wherever they are, or
    // far below: the next two rates are a bracket's width farther there.
    for (far, width) in [(0.0015, BRACKET), (0.06, 1.0 / BRACKET)] {
        let (limit, offered) = searched(PLAN, |rate, arrivals| {
            let share = match arrivals == PLAN.coarse_arrivals() {
                true => 0.01 * (rate / 300.0).powi(10),
                false => far * (rate / 300.0).powf(1.2),
            };
            Some(steady(rate, arrivals, share.min(0.9)))
        });
        assert!(!matches!(limit, LatencyLimit::Rate(_)), "{limit:?} {offered:?}");
        let decided: Vec<f64> =
            offered.iter().filter(|it| it.1 == PLAN.arrivals).map(|it| it.0).collect();
        let centres = decided.chunks(4).map(|round| (round[0] * round[1]).sqrt());
        let centres: Vec<f64> = centres.collect();
        assert!((centres[1] / centres[0] / width - 1.0).abs() < 1e-9, "{centres:?} {offered:?}");
    }
}

#[test]
fn a_rate_that_was_beyond_in_a_short_level_alone_ends_no_interval() {
    // All but the longest levels have their limit at 300/s; those are within at any rate.
    let (limit, offered) = searched(PLAN, |rate, arrivals| {
        let share = match arrivals == PLAN.arrivals {
            true => 0.0015 * (rate / 300.0).powf(1.2),
            false => 0.01 * (rate / 300.0).powi(10),
        };
        Some(steady(rate, arrivals, share.min(0.9)))
    });
    assert!(!matches!(limit, LatencyLimit::Rate(_)), "{limit:?} {offered:?}");
}

#[test]
fn a_backlog_that_only_a_long_level_shows_is_the_limit() {
    // The share reaches its place at 200/s; from 192/s on the longest levels grow.
    let (limit, offered) = searched(PLAN, |rate, arrivals| {
        let share = (0.01 * (rate / 200.0).powi(20)).min(0.9);
        let grows = arrivals == PLAN.arrivals && rate >= 192.0;
        Some(if grows { growing } else { steady }(rate, arrivals, share))
    });
    // The lower of the two rates near 200/s is the first long level, and grows. The rate below it
    // gives way at once, and does not.
    let long: Vec<f64> = offered.iter().filter(|it| it.1 == PLAN.arrivals).map(|it| it.0).collect();
    let [high, low] = long[..] else { panic!("{offered:?}") };
    assert!((192.0..200.0).contains(&high) && low < 192.0, "{offered:?}");
    assert!((high / low / GIVES_WAY - 1.0).abs() < 1e-9, "{offered:?}");
    assert_eq!(limit, between(low, high));
}

#[test]
fn where_the_backlog_grows_the_gap_is_halved_to_a_hundredth() {
    let level = |rate: f64, arrivals| {
        Some(if rate < 250.0 { steady(rate, arrivals, 0.0) } else { growing(rate, arrivals, 0.0) })
    };
    let (limit, offered) = searched(PLAN, level);
    // A level that grows is measured again, and longer, before that is believed.
    let mut expected: Vec<(f64, u64)> =
        [10.0, 20.0, 40.0, 80.0, 160.0, 320.0].map(|rate| (rate, 5_000)).into();
    expected.push((320.0, 1_000_000));
    let mut low: f64 = 160.0;
    let mut high: f64 = 320.0;
    while high / low > 1.01 {
        let arrivals = if high / low > 1.3 { 5_000 } else { 400_000 };
        let middle = (low * high).sqrt();
        expected.push((middle, arrivals));
        if middle < 250.0 {
            low = middle;
        } else {
            expected.push((middle, 1_000_000));
            high = middle;
        }
    }
    expected.push((low, 1_000_000));
    assert_offered(&offered, &expected);
    let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
    assert!((found.low / low - 1.0).abs() < 1e-9 && (found.high / high - 1.0).abs() < 1e-9);
    assert!((found.estimate / (low * high).sqrt() - 1.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_lower_rate_gives_way_until_a_long_level_is_within() {
    // Long levels are beyond from 240/s on; short ones, which show it by no share, from 250/s.
    let level = |rate: f64, arrivals| {
        let beyond = rate >= 240.0 && arrivals == PLAN.arrivals;
        let share = if beyond { 0.6 } else { 0.0 };
        Some(if rate < 250.0 {
            steady(rate, arrivals, share)
        } else {
            growing(rate, arrivals, share)
        })
    };
    let (limit, offered) = searched(PLAN, level);
    let last: Vec<f64> = offered.iter().rev().take(3).map(|(rate, _)| *rate).collect();
    assert!((last[1] / last[0] - 1.02).abs() < 1e-9 && (last[2] / last[1] - 1.02).abs() < 1e-9);
    assert!(last[0] < 240.0 && last[1] >= 240.0, "{offered:?}");
    let between = Estimate { estimate: (last[0] * last[1]).sqrt(), low: last[0], high: last[1] };
    assert_eq!(limit, LatencyLimit::Rate(between));
}

#[test]
fn rates_are_halved_down_to_the_lowest_which_has_a_second_try() {
    let plan = WithinPlan { first: PerSecond(100.0), ..PLAN };
    let down = [100.0, 50.0, 25.0, 12.5, 10.0].map(|rate| (rate, 5_000));
    let (limit, offered) = searched(plan, |rate, arrivals| Some(steady(rate, arrivals, 0.03)));
    assert_eq!(limit, LatencyLimit::NoRate);
    assert_offered(&offered[..5], &down);
    assert_offered(&offered[5..], &[(10.0, 1_000_000)]);
    // By chance the short level at the lowest was beyond: the longer one is within, and it
    // goes on from there. The limit is 11/s.
    let (limit, _) = searched(plan, |rate, arrivals| {
        let by_chance = rate < 10.1 && arrivals == 5_000;
        let share = if by_chance { 0.03 } else { 0.01 * (rate / 11.0).powi(20) };
        Some(steady(rate, arrivals, share.min(0.9)))
    });
    let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
    assert!((found.estimate / 11.0 - 1.0).abs() < 0.01, "{found:?}");
    // A first rate below the lowest is not offered.
    let low = WithinPlan { first: PerSecond(1.0), ..PLAN };
    let (_, offered) = searched(low, |_, _| None);
    assert_offered(&offered, &[(10.0, 5_000)]);
}

#[test]
fn no_rate_above_the_highest_is_offered() {
    let plan = WithinPlan { highest: PerSecond(70.0), ..PLAN };
    let (limit, offered) = searched(plan, |rate, arrivals| Some(steady(rate, arrivals, 0.0)));
    assert_eq!(limit, LatencyLimit::AtLeast(PerSecond(70.0), WithinEnd::RateCap));
    assert_offered(&offered, &[10.0, 20.0, 40.0, 70.0].map(|rate| (rate, 5_000)));
}

#[test]
fn a_search_ends_where_its_device_or_its_generator_does() {
    let ended = |health: Option<GeneratorHealth>| {
        searched(PLAN, |rate, arrivals| {
            let level = steady(rate, arrivals, 0.0);
            if rate < 40.0 {
                return Some(level);
            }
            health.map(|generator| RateLevel { generator, ..level })
        })
    };
    for (health, end) in [
        (None, WithinEnd::Interrupted),
        (Some(GeneratorHealth::Late), WithinEnd::GeneratorLate),
        (Some(GeneratorHealth::Exhausted), WithinEnd::GeneratorExhausted),
    ] {
        let (limit, offered) = ended(health);
        assert_eq!(limit, LatencyLimit::AtLeast(PerSecond(20.0), end));
        assert_eq!(offered.len(), 3);
    }
}

#[test]
fn no_search_takes_more_than_sixty_levels() {
    // The side depends on how often the rate was offered: nothing is ever narrowed down.
    let mut beyond = false;
    let plan = WithinPlan { precision: 0.0, ..PLAN };
    let (limit, offered) = searched(plan, |rate, arrivals| {
        beyond = !beyond;
        let share = if rate < 100.0 {
            0.0
        } else if beyond {
            0.009
        } else {
            0.011
        };
        let mut level = steady(rate, arrivals, share);
        for batch in level.batches.iter_mut().step_by(2) {
            batch.beyond *= 2;
        }
        Some(level)
    });
    assert!(offered.len() <= 60, "{} {limit:?}", offered.len());
}

fn at<F>(device: &mut Scripted<F>, levels: Vec<RateLevel>) -> Search<'_, Scripted<F>> {
    Search { plan: PLAN, device, levels }
}

#[test]
fn a_side_is_beyond_from_the_first_arrival_more() {
    let of = |share: f64| {
        let level = move |rate, arrivals| Some(steady(rate, arrivals, share));
        let mut device = Scripted { level, offered: Vec::new() };
        let side = at(&mut device, Vec::new()).level(100.0, 5_000);
        side.unwrap_or_else(|never| match never {}).unwrap()
    };
    // 2.5 of 250 are rounded to 3, and 2 stay 2.
    assert_eq!((of(0.008).beyond, of(0.012).beyond), (false, true));
    assert_eq!(of(0.012).log, Some(0.012_f64.ln()));
    // A share of nothing has half an arrival of 5,000.
    assert!((of(0.0).log.unwrap() - 1e-4_f64.ln()).abs() < 1e-12);
    assert_eq!((of(0.5).log, of(0.5).beyond), (None, true));
    assert!(of(0.496).log.is_some());
    let just = |rate, _| Some(steady(rate, 2_000, 0.01));
    let mut device = Scripted { level: just, offered: Vec::new() };
    let side = at(&mut device, Vec::new()).level(100.0, 2_000);
    assert!(!side.unwrap_or_else(|never| match never {}).unwrap().beyond, "just the share");
}

#[test]
fn no_rate_above_the_capacity_is_held() {
    let mut device = Scripted { level: |_, _| None, offered: Vec::new() };
    let search = at(&mut device, vec![growing_at_capacity(150.0)]);
    let capacity = search.capacity().unwrap();
    assert_eq!((capacity.low, capacity.high), (100.0, 100.0));
    let grows = |rate| search.grows(&steady(rate, 2_000, 0.0));
    assert_eq!([99.0, 100.0, 101.0].map(grows), [false, false, true]);
    assert!(search.grows(&growing(10.0, 2_000, 0.0)));
    let unknown = at(&mut device, Vec::new());
    assert!(!unknown.grows(&steady(1e6, 2_000, 0.0)));
}

#[test]
fn the_limit_reaches_to_the_capacity_where_that_is_known() {
    let level = |rate: f64, arrivals| {
        Some(if rate <= 100.0 { steady(rate, arrivals, 0.0) } else { growing_at_capacity(rate) })
    };
    let (limit, offered) = searched(PLAN, level);
    // No level is repeated: that it grows is known from how long its arrivals waited.
    assert_offered(&offered[..5], &[10.0, 20.0, 40.0, 80.0, 160.0].map(|rate| (rate, 5_000)));
    assert!(offered[5].0 < 160.0, "{offered:?}");
    let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
    let low = offered[offered.len() - 1].0;
    assert!(low > 99.0 && low <= 100.0, "{offered:?}");
    assert_eq!(found, Estimate { estimate: (low * 100.0).sqrt(), low, high: 100.0 });
}

/// What is known of levels that a search had measured when it ended.
fn known(levels: &[RateLevel]) -> LatencyLimit {
    let mut device = Scripted { level: |_, _| None, offered: Vec::new() };
    at(&mut device, levels.to_vec()).known_so_far(WithinEnd::Interrupted)
}

fn at_least(rate: f64) -> LatencyLimit {
    LatencyLimit::AtLeast(PerSecond(rate), WithinEnd::Interrupted)
}

#[test]
fn a_rate_is_within_where_its_whole_interval_is() {
    let unknown = LatencyLimit::Unknown(WithinEnd::Interrupted);
    assert_eq!(known(&[]), unknown);
    let steady_at = |rate| steady(rate, 20_000, 0.005);
    assert_eq!(known(&[steady_at(2_000.0)]), at_least(2_000.0));
    let uneven = |rate: f64, beyond: [u64; 2]| {
        let mut level = steady(rate, 20_000, 0.0);
        for (place, batch) in level.batches.iter_mut().enumerate() {
            batch.beyond = beyond[place % 2];
        }
        level
    };
    // Of 1,000 each 9 lie beyond on average, with a standard error of 5 over the root of 19:
    // times 2.09 it reaches to 11.4. Of 5 with 1 it reaches to 5.5.
    assert_eq!(known(&[steady_at(2_000.0), uneven(3_000.0, [4, 14])]), at_least(2_000.0));
    assert_eq!(known(&[steady_at(2_000.0), uneven(3_000.0, [4, 6])]), at_least(3_000.0));
    let exhausted =
        RateLevel { generator: GeneratorHealth::Exhausted, ..steady(3_000.0, 20_000, 0.0) };
    assert_eq!(known(&[steady_at(2_000.0), exhausted]), at_least(2_000.0));
    // The share itself is within, and not beyond.
    assert_eq!(known(&[steady(2_000.0, 20_000, 0.01)]), at_least(2_000.0));
    assert_eq!(known(&[steady(1_000.0, 20_000, 0.01), steady_at(2_000.0)]), at_least(2_000.0));
    let one = RateLevel { batches: vec![steady_at(1.0).batches[0]], ..steady_at(2_000.0) };
    assert_eq!(known(&[one]), unknown, "one batch has no spread");
}

#[test]
fn a_level_that_was_soon_over_says_of_no_rate_that_it_is_within() {
    // Ten bounds of 5 ms are 50 ms: 20 arrivals at 400/s.
    assert_eq!(known(&[steady(400.0, 20, 0.0)]), at_least(400.0));
    assert_eq!(known(&[steady(401.0, 20, 0.0)]), LatencyLimit::Unknown(WithinEnd::Interrupted));
}

#[test]
fn no_rate_is_within_above_one_that_was_beyond() {
    let levels = |other: RateLevel| {
        [100.0, 200.0, 300.0].map(|rate| steady(rate, 20_000, 0.0)).into_iter().chain([other])
    };
    let known_with = |other| known(&levels(other).collect::<Vec<_>>());
    assert_eq!(known_with(steady(250.0, 20_000, 0.02)), at_least(200.0));
    assert_eq!(known_with(growing(250.0, 20_000, 0.0)), at_least(200.0));
    assert_eq!(known_with(growing(200.0, 20_000, 0.0)), at_least(100.0));
    assert_eq!(known_with(steady(50.0, 20_000, 0.0)), at_least(300.0));
}
