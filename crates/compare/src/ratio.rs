//! The ratio of two figures of independent runs, and what its interval says.
//!
//! On the logarithm a ratio is a difference, and independent errors add in quadrature: the upper
//! arm of `ln(candidate / baseline)` is the root of the squares of the candidate's upper arm and
//! the baseline's lower one, and the other way round for the lower arm. A published figure has no
//! interval, and adds nothing: what its source was off by is not known.

use tapstone_measure::compare::{Percent, samples_to_decide};
use tapstone_record::{Change, Estimate, Judgement, Quantity};

/// Candidate over baseline; `None` when a figure or an end of its interval is not above zero.
#[must_use]
pub fn ratio_of(baseline: Estimate, candidate: Estimate) -> Option<Estimate> {
    let below = Arms::from_estimate(baseline)?;
    let above = Arms::from_estimate(candidate)?;
    let log = above.log - below.log;
    let up = above.up.hypot(below.down);
    let down = above.down.hypot(below.up);
    let ratio = Estimate { estimate: log.exp(), low: (log - down).exp(), high: (log + up).exp() };
    [ratio.low, ratio.estimate, ratio.high].iter().all(|end| end.is_normal()).then_some(ratio)
}

/// A figure on the logarithm: its value, and how far its interval reaches.
struct Arms {
    log: f64,
    down: f64,
    up: f64,
}

impl Arms {
    fn from_estimate(Estimate { estimate, low, high }: Estimate) -> Option<Self> {
        let positive = low > 0.0 && low <= estimate && estimate <= high && high.is_finite();
        positive.then(|| Self {
            log: estimate.ln(),
            down: (estimate / low).ln(),
            up: (high / estimate).ln(),
        })
    }
}

/// Whether more of a quantity is faster or slower.
const fn more_is_faster(quantity: Quantity) -> bool {
    match quantity {
        Quantity::Throughput => true,
        Quantity::Latency | Quantity::WallTime | Quantity::CpuTime => false,
    }
}

/// Faster or slower when the whole interval says so.
pub(crate) fn verdict(quantity: Quantity, ratio: Estimate) -> Change {
    match (ratio.low > 1.0, ratio.high < 1.0, more_is_faster(quantity)) {
        (true, _, true) | (_, true, false) => Change::Faster,
        (true, _, false) | (_, true, true) => Change::Slower,
        _ => Change::Inconclusive,
    }
}

/// How much slower a candidate may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowdownLimit {
    limit: f64,
    more_is_faster: bool,
}

impl SlowdownLimit {
    /// A rate may fall, and a time may rise, by this part of the baseline.
    #[must_use]
    pub fn new(quantity: Quantity, allowed: Percent) -> Self {
        let part = allowed.0 / 100.0;
        let more_is_faster = more_is_faster(quantity);
        Self { limit: if more_is_faster { 1.0 - part } else { 1.0 + part }, more_is_faster }
    }

    /// The ratio at which it is used up.
    #[must_use]
    pub const fn limit(self) -> f64 {
        self.limit
    }
}

/// Holds a ratio's interval against a budget.
#[must_use]
pub fn judge_slowdown(budget: SlowdownLimit, ratio: Estimate) -> Judgement {
    let (held, exceeded) = if budget.more_is_faster {
        (ratio.low >= budget.limit, ratio.high < budget.limit)
    } else {
        (ratio.high <= budget.limit, ratio.low > budget.limit)
    };
    match (held, exceeded) {
        (true, _) => Judgement::Held,
        (_, true) => Judgement::Exceeded,
        _ => Judgement::Undecided,
    }
}

/// About how many more samples on each measured side would decide nine times of ten, if the
/// estimate is the truth: see [`samples_to_decide`]. `samples` is what the smaller side had. `None`
/// when the estimate lies on the limit, or nearly, and when there are enough samples already.
#[must_use]
pub fn more_samples(ratio: Estimate, limit: f64, samples: u64) -> Option<u64> {
    let distance = (ratio.estimate / limit).ln();
    // The arm that reaches across the limit.
    let arm = if distance > 0.0 { ratio.estimate / ratio.low } else { ratio.high / ratio.estimate };
    let needed = samples_to_decide(arm.ln(), samples, distance.abs())?;
    needed.checked_sub(samples).filter(|more| *more > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;
    use tapstone_measure::interval;

    fn around(estimate: f64, part: f64) -> Estimate {
        Estimate { estimate, low: estimate / (1.0 + part), high: estimate * (1.0 + part) }
    }

    fn point(estimate: f64) -> Estimate {
        around(estimate, 0.0)
    }

    #[test]
    fn half_widths_combine_in_quadrature_on_the_logarithm() {
        let ratio = ratio_of(around(100.0, 0.03), around(200.0, 0.04)).unwrap();
        let half_width = 1.03f64.ln().hypot(1.04f64.ln());
        assert!((ratio.estimate - 2.0).abs() < 1e-12);
        assert!((ratio.high.ln() - 2f64.ln() - half_width).abs() < 1e-12, "{ratio:?}");
        assert!((2f64.ln() - ratio.low.ln() - half_width).abs() < 1e-12);
    }

    #[test]
    fn arms_of_unequal_length_cross_over() {
        let long_up = Estimate { estimate: 1.0, low: 1.0, high: 2.0 };
        let ratio = ratio_of(long_up, point(1.0)).unwrap();
        assert!((ratio.low - 0.5).abs() < 1e-12 && (ratio.high - 1.0).abs() < 1e-12, "{ratio:?}");
    }

    #[test]
    fn a_published_figure_adds_nothing() {
        let ratio = ratio_of(point(10.0), around(20.0, 0.1)).unwrap();
        assert!((ratio.high - 2.2).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_above_zero_has_no_ratio() {
        let reaches_zero = Estimate { estimate: 1.0, low: 0.0, high: 2.0 };
        for wrong in [point(0.0), point(-1.0), point(f64::NAN), point(f64::INFINITY), reaches_zero]
        {
            assert_eq!(ratio_of(point(1.0), wrong), None, "{wrong:?}");
            assert_eq!(ratio_of(wrong, point(1.0)), None, "{wrong:?}");
        }
    }

    #[test]
    fn more_is_faster_for_rates_and_slower_for_times() {
        let up = around(1.2, 0.1);
        let down = around(0.8, 0.1);
        assert_eq!(verdict(Quantity::Throughput, up), Change::Faster);
        assert_eq!(verdict(Quantity::Latency, up), Change::Slower);
        assert_eq!(verdict(Quantity::Throughput, down), Change::Slower);
        assert_eq!(verdict(Quantity::WallTime, down), Change::Faster);
        assert_eq!(verdict(Quantity::Latency, around(1.05, 0.1)), Change::Inconclusive);
    }

    #[test]
    fn a_budget_acts_on_the_interval() {
        let rate = SlowdownLimit::new(Quantity::Throughput, Percent(5.0));
        assert_eq!(judge_slowdown(rate, around(1.0, 0.04)), Judgement::Held);
        assert_eq!(judge_slowdown(rate, around(0.9, 0.04)), Judgement::Exceeded);
        assert_eq!(judge_slowdown(rate, around(0.94, 0.04)), Judgement::Undecided);
        let time = SlowdownLimit::new(Quantity::Latency, Percent(5.0));
        assert_eq!(judge_slowdown(time, around(1.0, 0.04)), Judgement::Held);
        assert_eq!(judge_slowdown(time, around(1.1, 0.04)), Judgement::Exceeded);
        assert_eq!(judge_slowdown(time, around(1.06, 0.04)), Judgement::Undecided);
    }

    #[test]
    fn an_interval_that_ends_at_the_limit_is_on_no_side_of_it() {
        let between = |low, high| Estimate { estimate: (low + high) / 2.0, low, high };
        let rate = |low, high| verdict(Quantity::Throughput, between(low, high));
        assert_eq!(rate(1.0, 1.5), Change::Inconclusive);
        assert_eq!(rate(0.5, 1.0), Change::Inconclusive);
        // Half as fast, and half as long again, is what is allowed.
        let limit = SlowdownLimit::new(Quantity::Throughput, Percent(50.0));
        assert_eq!(limit.limit(), 0.5);
        assert_eq!(judge_slowdown(limit, between(0.5, 0.7)), Judgement::Held);
        assert_eq!(judge_slowdown(limit, between(0.3, 0.5)), Judgement::Undecided);
        assert_eq!(judge_slowdown(limit, between(0.3, 0.49)), Judgement::Exceeded);
        let limit = SlowdownLimit::new(Quantity::Latency, Percent(50.0));
        assert_eq!(limit.limit(), 1.5);
        assert_eq!(judge_slowdown(limit, between(1.3, 1.5)), Judgement::Held);
        assert_eq!(judge_slowdown(limit, between(1.5, 1.7)), Judgement::Undecided);
        assert_eq!(judge_slowdown(limit, between(1.51, 1.7)), Judgement::Exceeded);
    }

    #[test]
    fn an_estimate_outside_of_its_interval_has_no_ratio() {
        for (estimate, low, high) in [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0)] {
            let wrong = Estimate { estimate, low, high };
            assert_eq!(ratio_of(point(1.0), wrong), None, "{wrong:?}");
            assert_eq!(ratio_of(wrong, point(1.0)), None, "{wrong:?}");
        }
    }

    /// ((z of 97.5 % + z of 90 %) / z of 97.5 %)²: what a decision nine times of ten takes.
    const POWER: f64 = 2.7335;

    fn assert_about(more: Option<u64>, expected: f64) {
        let more = more.unwrap() as f64;
        assert!((more / expected - 1.0).abs() < 0.01, "{more} {expected}");
    }

    #[test]
    fn the_arm_that_reaches_across_the_limit_is_what_has_to_shrink() {
        // Twice as far as the limit below the estimate, and five times above it.
        let above = Estimate { estimate: 0.1f64.exp(), low: (-0.1f64).exp(), high: 0.6f64.exp() };
        let expected = more_samples(above, 1.0, 1000);
        assert_about(expected, 4000.0 * POWER - 1000.0);
        let below =
            Estimate { estimate: (-0.1f64).exp(), low: (-0.6f64).exp(), high: 0.1f64.exp() };
        assert_eq!(more_samples(below, 1.0, 1000), expected);
    }

    #[test]
    fn as_many_more_samples_as_it_takes() {
        // The interval reaches twice as far as the limit is away: four times the samples, and the
        // power.
        let ratio = Estimate { estimate: 0.1f64.exp(), low: (-0.1f64).exp(), high: 0.3f64.exp() };
        assert_about(more_samples(ratio, 1.0, 1000), 4000.0 * POWER - 1000.0);
        assert_eq!(more_samples(around(1.0, 0.1), 1.0, 1000), None, "on the limit");
        assert_eq!(more_samples(around(1.0 + 1e-9, 0.1), 1.0, 1000), None, "nearly");
        // Two are the fewest that there can be, and they are enough here.
        assert_eq!(more_samples(around(1.5, 0.01), 1.0, 2), None, "none is missing");
    }

    /// Over many pairs of runs, the interval must hold the true ratio about as often as it says.
    #[test]
    fn the_interval_holds_the_true_ratio() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let run = |mean: f64, spread: f64, rng: &mut Pcg64Mcg| {
            let normal = Normal::new(mean, spread * mean).unwrap();
            let samples: Vec<f64> = (0..32).map(|_| normal.sample(rng)).collect();
            Estimate::from(interval::Estimate::mean_of(&samples).unwrap())
        };
        let held = (0..2_000)
            .filter(|_| {
                let one = run(3.0, 0.05, &mut rng);
                let other = run(4.5, 0.10, &mut rng);
                ratio_of(one, other).is_some_and(|it| it.low <= 1.5 && 1.5 <= it.high)
            })
            .count();
        assert!((1_860..=1_960).contains(&held), "{held} of 2,000");
    }

    /// What a run of so many samples says of a time whose true mean and spread are known.
    fn measured(mean: f64, samples: u64, rng: &mut Pcg64Mcg) -> Estimate {
        let error = 0.2 / (samples as f64).sqrt();
        let estimate = Normal::new(mean, error * mean).unwrap().sample(rng);
        // The normal distribution's 0.975 quantile: the spread counts as known.
        around(estimate, 1.96 * error)
    }

    /// The advice is held to what happens when it is followed. It holds for the estimate that it
    /// rests on, which is itself off where nothing was decided yet: one step decides more than half,
    /// a few steps nearly all, and rightly.
    #[test]
    fn who_takes_the_advised_samples_comes_to_a_decision() {
        const RUNS: usize = 2_000;
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let budget = SlowdownLimit::new(Quantity::Latency, Percent(5.0));
        for (truth, right) in [(1.02, Judgement::Held), (1.08, Judgement::Exceeded)] {
            let mut undecided = 0;
            let mut at_once = 0;
            let mut later = 0;
            let mut wrong = 0;
            let mut runs = 0;
            while undecided < RUNS {
                runs += 1;
                assert!(runs <= 20 * RUNS, "{truth}: {undecided} of {runs} runs are undecided");
                let mut samples = 60;
                let mut step = |samples: u64| {
                    let sides = (
                        measured(3.0, samples, &mut rng),
                        measured(3.0 * truth, samples, &mut rng),
                    );
                    ratio_of(sides.0, sides.1).unwrap()
                };
                let mut ratio = step(samples);
                if judge_slowdown(budget, ratio) != Judgement::Undecided {
                    continue;
                }
                undecided += 1;
                for round in 0..12 {
                    // Where the estimate lies on the limit there is no advice: twice as many.
                    let more = more_samples(ratio, budget.limit(), samples);
                    samples += more.unwrap_or(samples).min(9 * samples);
                    ratio = step(samples);
                    let judgement = judge_slowdown(budget, ratio);
                    if judgement == Judgement::Undecided {
                        continue;
                    }
                    at_once += usize::from(round == 0);
                    later += 1;
                    wrong += usize::from(judgement != right);
                    break;
                }
            }
            assert!(at_once * 10 >= RUNS * 5, "{truth}: {at_once} at once");
            assert!(later * 100 >= RUNS * 99, "{truth}: {later} in the end");
            assert!(wrong * 100 <= RUNS * 5, "{truth}: {wrong} wrong");
        }
    }

    #[test]
    fn the_advice_follows_the_root_of_the_number() {
        // With the estimate on its true value, what is needed is known: (width / distance)².
        for (samples, times) in [(1_000, 4.0f64), (10_000, 2.25), (500, 100.0)] {
            let distance = 0.03f64;
            let arm = distance * times.sqrt();
            let ratio =
                Estimate { estimate: (-distance).exp(), low: 0.5, high: (arm - distance).exp() };
            let more = more_samples(ratio, 1.0, samples).unwrap();
            let needed = samples as f64 * (times * POWER - 1.0);
            assert!((more as f64 / needed - 1.0).abs() <= 0.01, "{more} {needed}");
        }
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_inverts_the_ratio(
            one in 0.1f64..10.0, other in 0.1f64..10.0, a in 0.0f64..0.5, b in 0.0f64..0.5,
        ) {
            let one = around(one, a);
            let other = around(other, b);
            let there = ratio_of(one, other).unwrap();
            let back = ratio_of(other, one).unwrap();
            prop_assert!((there.estimate * back.estimate - 1.0).abs() < 1e-9);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
        }
    }
}
