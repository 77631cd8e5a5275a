//! Figures over repeated rounds: each a fresh start, a warm-up and a window of its own.
//!
//! One window knows nothing of what varies from window to window: where threads land, what is
//! cached, how the device feels today. An interval that is to hold the device's figure has to hold
//! that as well, so it is made of rounds, one figure each.
//!
//! How many rounds are enough is decided by the spread of the first ones and never by where their
//! mean lies, and the interval keeps the first rounds' spread and degrees of freedom: looking does
//! not make it believe luck (Stein, "A two-sample test for a linear hypothesis whose power is
//! independent of the variance", Ann. Math. Stat. 16, 1945).

use crate::bucket::{bucket_of, end_of, lowest_of};
use crate::interval::{Estimate, student_t};
use crate::summary::Summary;
use crate::units::Nanos;

/// No conclusion rests on fewer rounds.
pub const FEWEST_ROUNDS: usize = 5;

/// Where so many rounds do not make the interval narrow enough, no more are made.
pub const MOST_ROUNDS: usize = 20;

/// How many rounds make the interval of the mean as narrow as `precision`, a share of the mean:
/// from [`FEWEST_ROUNDS`] to [`MOST_ROUNDS`], by the spread of the first ones.
#[must_use]
pub fn rounds_needed(first: &[f64], precision: f64) -> usize {
    let Some(spread) = Estimate::mean_of(first) else { return MOST_ROUNDS };
    // With n rounds instead of the first m the half-width is smaller by the root of n/m.
    let times = (spread.relative_half_width() / precision).powi(2);
    let needed = (first.len() as f64 * times).ceil();
    if needed.is_finite() {
        (needed as usize).clamp(FEWEST_ROUNDS, MOST_ROUNDS)
    } else {
        MOST_ROUNDS
    }
}

/// The mean of all rounds, with an interval by the spread of the first `first` of them; `None` for
/// fewer than two of these.
///
/// Rounds of a steady device may agree to the last operation. `resolution` is what one of them can
/// tell apart, in the unit of the figures, and the interval is no narrower: windows that open on an
/// operation all cut it off on the same side, so that more of them do not help.
#[must_use]
pub fn over_rounds(figures: &[f64], first: usize, resolution: f64) -> Option<Estimate> {
    let first = &figures[..first.min(figures.len())];
    let degrees = first.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let spread = Estimate::mean_of(first)?;
    // The half-width of the first rounds, as that of a mean of all.
    let t = student_t(degrees);
    let deviation = (spread.high - spread.estimate) / t * (first.len() as f64).sqrt();
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let half_width = t * deviation / (figures.len() as f64).sqrt();
    Some(Estimate::around(mean, half_width).no_narrower_than(resolution))
}

impl Summary {
    /// The figures of a case over its rounds: each a mean of all, with an interval by the spread of
    /// the first `first`; `None` for fewer than two rounds. A figure that one of them lacks is not
    /// known; a quantile needs no interval in any of them.
    #[must_use]
    pub fn over_rounds(rounds: &[Self], first: usize) -> Option<Self> {
        let figure = |of: &dyn Fn(&Self) -> Option<f64>, resolution: fn(&Self, f64) -> f64| {
            let figures: Vec<f64> = rounds.iter().map(of).collect::<Option<_>>()?;
            let steps =
                rounds.iter().zip(&figures).map(|(round, figure)| resolution(round, *figure));
            over_rounds(&figures, first, steps.fold(0.0, f64::max))
        };
        let rate =
            figure(&|round| Some(round.rate.estimate), |round, rate| rate / round.n.max(1) as f64)?;
        let values = [0, 1, 2, 3, 4].map(|place| {
            figure(&|round| round.quantile_values[place], |_, latency| bucket_width(latency))
        });
        let [p50, p90, p95, p99, p99_9] = values;
        Some(Self {
            rate: rate.not_negative(),
            // The mean is of exact sums, in ns.
            mean: figure(&|round| round.mean.map(|mean| mean.estimate), |_, _| 1.0),
            p50,
            p90,
            p95,
            p99,
            p99_9,
            quantile_values: values.map(|value| value.map(|value| value.estimate)),
            n: rounds.iter().map(|round| round.n).sum(),
            batches: rounds.len(),
            method: format!(
                "mean of {} rounds; Student's t over the first {}",
                rounds.len(),
                first.min(rounds.len())
            ),
            // What depends on what inside a window is no part of this interval.
            reliable: rounds.len() >= FEWEST_ROUNDS,
        })
    }
}

/// What a histogram of latencies cannot tell apart around one of them, in ns.
fn bucket_width(latency_ns: f64) -> f64 {
    let bucket = bucket_of(Nanos(latency_ns as u64));
    (end_of(bucket) - lowest_of(bucket)).0 as f64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::claim::{ClaimVerdict, Demand};
    use crate::series::Series;
    use crate::summary::Conditions;
    use crate::units::PerSecond;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn steady_rounds_need_no_more_and_wild_ones_the_most() {
        assert_eq!(rounds_needed(&[100.0; 5], 0.01), FEWEST_ROUNDS);
        // A half-width of 1.24 % of the mean: (1.24/1)^2 times five rounds, rounded up.
        let first = [99.0, 101.0, 100.0, 99.0, 101.0];
        let half_width = Estimate::mean_of(&first).unwrap().relative_half_width();
        assert!((half_width - 0.0124).abs() < 1e-4, "{half_width}");
        assert_eq!(rounds_needed(&first, 0.01), 8);
        assert_eq!(rounds_needed(&first, 0.02), FEWEST_ROUNDS);
        assert_eq!(rounds_needed(&[50.0, 150.0, 100.0, 20.0, 180.0], 0.01), MOST_ROUNDS);
        assert_eq!(rounds_needed(&[0.0; 5], 0.01), MOST_ROUNDS, "nothing was completed");
        assert_eq!(rounds_needed(&[1.0], 0.01), MOST_ROUNDS);
    }

    #[test]
    fn the_interval_keeps_the_spread_of_the_first_rounds() {
        let first = [99.0, 101.0, 100.0, 99.0, 101.0];
        assert_eq!(over_rounds(&first, 5, 0.0), Estimate::mean_of(&first));
        // Four times the rounds halve it, however the later ones lie.
        let mut all = first.to_vec();
        all.extend([100.0; 15]);
        let five = over_rounds(&first, 5, 0.0).unwrap();
        let twenty = over_rounds(&all, 5, 0.0).unwrap();
        let ratio = (five.high - five.estimate) / (twenty.high - twenty.estimate);
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
        // Rounds that agree to the last operation know no more than that operation.
        assert_eq!(over_rounds(&[100.0; 5], 5, 2.0), Some(Estimate::around(100.0, 2.0)));
        assert_eq!(over_rounds(&first, 5, 0.1), Some(five));
        assert_eq!(over_rounds(&[1.0], 5, 0.0), None);
        assert_eq!(over_rounds(&[], 5, 0.0), None);
    }

    /// A round of so many operations in a second, whose median and mean latency is `nanos`.
    fn round(rate: f64, nanos: f64) -> Summary {
        Summary {
            rate: Estimate::around(rate, 0.001),
            mean: Some(Estimate::around(nanos, 1.0)),
            p50: Some(Estimate::around(nanos, 1.0)),
            p90: Some(Estimate::around(nanos, 1.0)),
            p95: None,
            p99: None,
            p99_9: None,
            quantile_values: [Some(nanos), Some(nanos), None, None, None],
            n: rate as u64,
            batches: 32,
            method: String::new(),
            reliable: true,
        }
    }

    #[test]
    fn all_figures_are_over_rounds_and_no_narrower_than_what_a_round_shows() {
        let steady: Vec<Summary> = (0..5).map(|_| round(100.0, 10e6)).collect();
        let over = Summary::over_rounds(&steady, 5).unwrap();
        assert_eq!(over.rate, Estimate::around(100.0, 1.0), "an operation a second");
        assert_eq!(over.mean, Some(Estimate::around(10e6, 1.0)));
        // 10 ms lie in an octave of buckets of 2^13 ns.
        assert_eq!(over.p50, Some(Estimate::around(10e6, 8192.0)));
        assert_eq!((over.n, over.batches, over.reliable), (500, 5, true));
        let mut lacking = steady;
        lacking[3].quantile_values[1] = None;
        lacking[2].p50 = None;
        lacking[4].reliable = false;
        let over = Summary::over_rounds(&lacking, 5).unwrap();
        assert!(
            over.p90.is_none() && over.p50.is_some() && over.reliable,
            "a median without an interval is one"
        );
        assert!(!Summary::over_rounds(&lacking[..4], 5).unwrap().reliable, "too few rounds");
        assert!(Summary::over_rounds(&lacking[..1], 5).is_none());
    }

    #[test]
    fn a_round_whose_latencies_drift_has_a_median() {
        // 400 calls that grow from 1.0 to 1.4 ms: the median's share of a batch is all or nothing.
        let mut now = Nanos(0);
        let ends: Vec<(Nanos, Option<Nanos>)> = (0..400)
            .map(|call| {
                let latency = Nanos(1_000_000 + call * 1_000);
                now += latency;
                (now, Some(latency))
            })
            .collect();
        let conditions = Conditions {
            window: now,
            workers: NonZeroU32::MIN,
            first_and_last: Some((ends[0].0, now)),
            clock_step: Nanos(1),
        };
        let series = Series::from_operations(ends.into_iter(), (Nanos::ZERO, now));
        let round = Summary::from_series(&series, &conditions);
        assert_eq!(round.p50, None, "its interval would be everything");
        let over = Summary::over_rounds(&vec![round; 5], 5).unwrap();
        assert!(over.p50.unwrap().holds(1.2e6), "{over:?}");
    }

    #[test]
    fn the_spread_of_a_window_is_no_part_of_the_spread_of_rounds() {
        let rates = [99.0, 101.0, 100.0, 99.0, 101.0];
        let rounds: Vec<Summary> = rates.iter().map(|rate| round(*rate, 1e9 / rate)).collect();
        let over = Summary::over_rounds(&rounds, 5).unwrap();
        assert_eq!(over.rate, Estimate::mean_of(&rates).unwrap());
    }

    /// One measurement of a device of 1,000/s whose rounds vary by so much: as many rounds as are
    /// needed, and what becomes of a claim.
    fn verdict(rng: &mut Pcg64Mcg, deviation: f64, claim: f64) -> ClaimVerdict {
        let rounds = Normal::new(1_000.0, 1_000.0 * deviation).unwrap();
        let mut figures: Vec<f64> = (0..FEWEST_ROUNDS).map(|_| rounds.sample(rng)).collect();
        let needed = rounds_needed(&figures, 0.01);
        figures.extend((FEWEST_ROUNDS..needed).map(|_| rounds.sample(rng)));
        Demand::Rate(PerSecond(claim)).judge(over_rounds(&figures, FEWEST_ROUNDS, 0.0)).verdict
    }

    #[test]
    fn verdicts_about_a_known_rate_are_right() {
        let mut rng = Pcg64Mcg::seed_from_u64(45);
        for deviation in [0.002, 0.005, 0.01] {
            let mut count = |claim: f64, wrong: ClaimVerdict| {
                (0..2_000).filter(|_| verdict(&mut rng, deviation, claim) == wrong).count()
            };
            assert_eq!(count(970.0, ClaimVerdict::Missed), 0);
            assert_eq!(count(1_030.0, ClaimVerdict::Met), 0);
            // At the truth itself an interval of 95 % lies below it in 2.5 % of runs.
            let missed = count(1_000.0, ClaimVerdict::Missed);
            assert!((20..=80).contains(&missed), "{deviation}: {missed} of 2,000");
        }
    }
}
