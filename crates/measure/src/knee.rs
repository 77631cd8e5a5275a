//! Where more concurrency stops helping, from levels measured in interleaved passes.
//!
//! Pure functions over typed rates: what to measure next is decided here, measuring is not.

use serde::{Deserialize, Serialize};

use crate::compare::{PairedRound, paired_ratio};
use crate::interval::Estimate;
use crate::units::PerSecond;
use crate::usl::{Usl, UslPoint};

/// A level is measured in at least so many passes over all levels.
pub const PASSES: usize = 5;

/// Where so many passes do not say whether a doubling helped, no more will be tried.
pub const MOST_PASSES: usize = 15;

/// Doubling the concurrency has to give this much, or it has stopped helping.
pub const GAIN: f64 = 1.05;

/// The knee gives this share of the plateau.
pub const KNEE_SHARE: f64 = 0.95;

/// More of another kind is tried from where this share of the plateau is reached: what is left to
/// gain must not pass for what the other kind brings, so it is surely less than [`GAIN`].
pub const ENOUGH_SHARE: f64 = 0.98;

/// A law with three parameters says something about no fewer levels than this.
pub const USL_LEVELS: usize = 6;

/// One concurrency and its rates, one for each pass, in the passes' order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Workers at the same time.
    pub concurrency: u32,
    /// What each pass over it measured, in order.
    pub passes: Vec<LevelPass>,
}

/// One pass over a level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelPass {
    /// The pass's number in the search: levels that were measured in turn share it.
    pub number: u32,
    /// The rate of all workers together.
    pub rate: PerSecond,
}

/// What more concurrency of one kind has brought in the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum AxisEnd {
    /// There is one level only.
    NotTried,
    /// The last doublings surely gave less than [`GAIN`].
    Flat {
        /// The ratio of the rates of the last doubling.
        gain: Estimate,
    },
    /// The last doubling surely helped, and no higher level was measured.
    Growing {
        /// The ratio of the rates of the last doubling.
        gain: Estimate,
        /// The concurrency that it reached, the highest that was measured.
        at: u32,
    },
    /// Passes differ too much to say either.
    Unclear {
        /// The ratio of the rates of the last doubling; `None` without two common passes.
        gain: Option<Estimate>,
    },
}

/// From one level to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelStep {
    /// The lower concurrency, in workers.
    pub from: u32,
    /// The higher concurrency, in workers.
    pub to: u32,
    /// The higher level's rate over the lower one's, pass by pass; `None` before two common passes
    /// or when one of these completed nothing.
    pub ratio: Option<Estimate>,
}

/// Where the rate stops growing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The highest rate that a level reached, per second, with its interval over the passes.
    pub plateau: Estimate,
    /// The concurrency that reached it.
    pub at: u32,
    /// The smallest measured concurrency that gives [`KNEE_SHARE`] of the plateau.
    pub concurrency: u32,
    /// The largest measured concurrency below the knee that does not: the true knee lies between.
    pub below: Option<u32>,
    /// The scalability law, with [`USL_LEVELS`] levels or more.
    pub law: Option<Usl>,
}

impl Level {
    /// The mean over the passes.
    fn mean(&self) -> f64 {
        self.rates().sum::<f64>() / self.passes.len().max(1) as f64
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.passes.iter().map(|pass| pass.rate.0)
    }
}

/// The paired ratios of neighbouring levels, which are in order of rising concurrency.
#[must_use]
pub fn steps(levels: &[Level]) -> Vec<LevelStep> {
    let step = |pair: &[Level]| LevelStep {
        from: pair[0].concurrency,
        to: pair[1].concurrency,
        ratio: between(&pair[0], &pair[1]),
    };
    levels.windows(2).map(step).collect()
}

/// Whether the last two doublings both surely gave less than [`GAIN`].
///
/// Two, because one flat step may be a boundary such as the number of cores of one card, beyond
/// which the next card takes over.
#[must_use]
pub fn should_stop(levels: &[Level]) -> bool {
    let Some(last) = levels.len().checked_sub(3).map(|start| &levels[start..]) else {
        return false;
    };
    let measured = last.iter().all(|level| level.passes.len() >= PASSES);
    measured && steps(last).iter().all(LevelStep::is_flat)
}

impl LevelStep {
    /// The doubling surely gave less than [`GAIN`].
    fn is_flat(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio.high < GAIN)
    }

    /// Surely more than nothing, and probably at least [`GAIN`].
    fn is_growth(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio.low > 1.0 && ratio.estimate >= GAIN)
    }

    /// The passes show neither growth nor that there is none.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        !self.is_flat() && !self.is_growth()
    }
}

/// What doubling has brought in the end: it is flat after so many surely flat doublings.
#[must_use]
pub fn axis_end(levels: &[Level], flat_doublings: usize) -> AxisEnd {
    let steps = steps(levels);
    let (Some(last), Some(level)) = (steps.last(), levels.last()) else { return AxisEnd::NotTried };
    let flat = steps.iter().rev().take_while(|step| step.is_flat()).count();
    match last.ratio {
        Some(gain) if flat >= flat_doublings.max(1) => AxisEnd::Flat { gain },
        Some(gain) if last.is_growth() => AxisEnd::Growing { gain, at: level.concurrency },
        gain => AxisEnd::Unclear { gain },
    }
}

/// The plateau and the knee; `None` without a level of two passes or when nothing was completed.
#[must_use]
pub fn find_knee(levels: &[Level]) -> Option<Knee> {
    let best = best(levels)?;
    let rates: Vec<f64> = best.rates().collect();
    let plateau = Estimate::mean_of(&rates).filter(|plateau| plateau.estimate > 0.0)?;
    let concurrency = smallest_with(levels, best, KNEE_SHARE)?;
    let below = levels.iter().map(|level| level.concurrency).filter(|own| *own < concurrency).max();
    let law = (levels.len() >= USL_LEVELS).then(|| Usl::fit(&points(levels))).flatten();
    Some(Knee { plateau: plateau.not_negative(), at: best.concurrency, concurrency, below, law })
}

/// The smallest measured concurrency of which more brings nothing: it gives [`ENOUGH_SHARE`] of the
/// plateau. `None` without a level.
#[must_use]
pub fn enough(levels: &[Level]) -> Option<u32> {
    smallest_with(levels, best(levels)?, ENOUGH_SHARE)
}

fn best(levels: &[Level]) -> Option<&Level> {
    levels.iter().max_by(|a, b| a.mean().total_cmp(&b.mean()))
}

/// The smallest concurrency that gives this share of the best level's rate. Pass by pass where there
/// are common ones: what a pass did to all of its levels must not move it.
fn smallest_with(levels: &[Level], best: &Level, least: f64) -> Option<u32> {
    let reaches = |level: &&Level| {
        let share = between(best, level).map_or(level.mean() / best.mean(), |ratio| ratio.estimate);
        level.concurrency == best.concurrency || share >= least
    };
    levels.iter().filter(reaches).map(|level| level.concurrency).min()
}

impl Knee {
    /// The concurrency to measure next to narrow down the knee: halfway between what is enough and
    /// what is not. `None` when they are neighbours.
    #[must_use]
    pub fn refine(&self) -> Option<u32> {
        let below = self.below?;
        let middle = below + (self.concurrency - below) / 2;
        (middle > below).then_some(middle)
    }
}

/// The second level's rate over the first one's, over the passes that both took part in.
fn between(from: &Level, to: &Level) -> Option<Estimate> {
    let common = |a: &LevelPass| {
        let b = to.passes.iter().find(|b| b.number == a.number)?;
        Some(PairedRound { a: a.rate, b: b.rate })
    };
    paired_ratio(&from.passes.iter().filter_map(common).collect::<Vec<_>>())
}

fn points(levels: &[Level]) -> Vec<UslPoint> {
    let point =
        |level: &Level| UslPoint { concurrency: level.concurrency, rate: PerSecond(level.mean()) };
    levels.iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usl::Peak;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;

    /// A level with these rates in passes 0, 1, 2 …
    fn level(concurrency: u32, rates: impl IntoIterator<Item = PerSecond>) -> Level {
        let pass = |(number, rate)| LevelPass { number, rate };
        Level { concurrency, passes: (0..).zip(rates).map(pass).collect() }
    }

    /// Six passes that share a drift of 20 %, with 1 % of noise of their own.
    fn levels(concurrencies: &[u32], rate: impl Fn(f64) -> f64, seed: u64) -> Vec<Level> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let normal = Normal::new(1.0, 0.01).unwrap();
        let mut noisy = |concurrency: u32| {
            let pass = |pass: u32| {
                let drift = 1.0 - 0.2 * f64::from(pass) / 6.0;
                PerSecond(rate(f64::from(concurrency)) * drift * normal.sample(&mut rng))
            };
            level(concurrency, (0..6).map(pass))
        };
        concurrencies.iter().map(|concurrency| noisy(*concurrency)).collect()
    }

    /// A card with eight engines of 100/s.
    fn engines(n: f64) -> f64 {
        100.0 * n.min(8.0)
    }

    #[test]
    fn doubling_stops_after_two_flat_steps() {
        let all = levels(&[1, 2, 4, 8, 16, 32], engines, 1);
        let stops: Vec<_> = (0..=all.len()).map(|count| should_stop(&all[..count])).collect();
        assert_eq!(stops, [false, false, false, false, false, false, true]);
        let mut early = all;
        early.iter_mut().for_each(|level| level.passes.truncate(PASSES - 1));
        assert!(!should_stop(&early), "four passes decide nothing");
    }

    /// Three levels, of which each gives this much more than the one before, pass by pass.
    fn growing_by(ratios: &[f64]) -> Vec<Level> {
        let rates = |power| ratios.iter().map(move |ratio| PerSecond(ratio.powi(power)));
        (0..3).map(|power| level(1 << power, rates(power))).collect()
    }

    #[test]
    fn doubling_stops_only_when_both_steps_surely_gave_less() {
        // The whole interval is below 1.05, in no more passes than it takes.
        assert!(should_stop(&growing_by(&[1.01, 1.02, 1.03, 1.02, 1.01])));
        // Its lower end and its middle are below, its upper end is not: nobody knows.
        let noisy = growing_by(&[0.9, 1.1, 0.95, 1.12, 1.0]);
        let ratio = steps(&noisy)[0].ratio.unwrap();
        assert!(ratio.estimate < GAIN && ratio.low < GAIN && ratio.high > GAIN, "{ratio:?}");
        assert!(!should_stop(&noisy));
        // Exactly 1.05 is as much as a doubling has to give.
        assert_eq!(steps(&growing_by(&[GAIN; PASSES]))[0].ratio.unwrap().high, GAIN);
        assert!(!should_stop(&growing_by(&[GAIN; PASSES])));
        // The whole interval is above.
        assert!(!should_stop(&growing_by(&[1.9, 2.0, 2.1, 2.0, 1.9])));
        // One of two steps is flat, the first or the last.
        let mut last = growing_by(&[1.01, 1.02, 1.03, 1.02, 1.01]);
        last[2].passes.iter_mut().for_each(|pass| pass.rate.0 *= 2.0);
        assert!(!should_stop(&last));
        let mut first = growing_by(&[1.01, 1.02, 1.03, 1.02, 1.01]);
        first[0].passes.iter_mut().for_each(|pass| pass.rate.0 /= 2.0);
        assert!(!should_stop(&first));
    }

    #[test]
    fn a_step_is_unclear_when_it_shows_neither_growth_nor_that_there_is_none() {
        let first = |ratios: &[f64]| steps(&growing_by(ratios)).remove(0);
        assert!(!first(&[1.01, 1.02, 1.03, 1.02, 1.01]).is_unclear(), "flat");
        assert!(!first(&[1.9, 2.0, 2.1, 2.0, 1.9]).is_unclear(), "growth");
        assert!(first(&[0.9, 1.1, 0.95, 1.12, 1.0]).is_unclear(), "the interval holds both");
    }

    #[test]
    fn the_knee_is_where_95_percent_are_reached() {
        // Without noise the paired ratios are exact: 94 % is not enough, 96 % is.
        let of = |concurrency, rate: f64| level(concurrency, [PerSecond(rate); 5]);
        let all = [of(1, 50.0), of(2, 94.0), of(4, 96.0), of(8, 100.0), of(16, 99.0)];
        let knee = find_knee(&all).unwrap();
        assert_eq!((knee.at, knee.concurrency, knee.below), (8, 4, Some(2)));
        assert_eq!(knee.plateau, Estimate { estimate: 100.0, low: 100.0, high: 100.0 });
        assert_eq!(knee.refine(), Some(3));
        assert_eq!(find_knee(&all[3..]).unwrap().below, None);
        assert_eq!(find_knee(&all[3..]).unwrap().refine(), None);
        // An interval that would reach below zero does not.
        let two = level(1, [1.0, 200.0].map(PerSecond));
        assert_eq!(find_knee(&[two]).unwrap().plateau.low, 0.0);
    }

    #[test]
    fn another_kind_is_tried_from_where_nothing_is_left_to_gain() {
        // One engine of 5 ms, whose client is 0.24 ms late for the next call: one thread gives
        // 95.4 %, and a second process of one thread gives 4.8 % more because it is a second worker.
        let of = |concurrency, rate: f64| level(concurrency, [PerSecond(rate); 5]);
        let late = [of(1, 190.8), of(2, 200.0), of(4, 199.8), of(8, 199.9)];
        assert_eq!(find_knee(&late).unwrap().concurrency, 1);
        assert_eq!(enough(&late), Some(2));
        assert_eq!(enough(&[of(1, 197.0), of(2, 200.0)]), Some(1));
        assert_eq!(enough(&[of(1, 100.0), of(2, 200.0)]), Some(2));
        assert_eq!(enough(&[]), None);
    }

    #[test]
    fn levels_are_paired_by_the_passes_that_they_share() {
        // The device slows down by half between passes 4 and 5; each doubling brings nothing.
        let pass = |number| {
            let rate = PerSecond(if number < 5 { 100.0 } else { 50.0 });
            LevelPass { number, rate }
        };
        let over = |concurrency, passes: std::ops::Range<u32>| Level {
            concurrency,
            passes: passes.map(pass).collect(),
        };
        let all = [over(1, 0..5), over(2, 0..10), over(4, 5..10)];
        let ratios: Vec<f64> =
            steps(&all).iter().map(|step| step.ratio.unwrap().estimate).collect();
        assert_eq!(ratios, [1.0, 1.0]);
        assert_eq!(between(&all[0], &all[2]), None, "no common pass");
        let apart = |rate| {
            let passes = (5..10).map(|number| LevelPass { number, rate: PerSecond(rate) });
            Level { concurrency: 2, passes: passes.collect() }
        };
        let first = over(1, 0..5);
        assert_eq!(find_knee(&[first.clone(), apart(104.0)]).unwrap().concurrency, 1, "96 %");
        assert_eq!(find_knee(&[first, apart(111.0)]).unwrap().concurrency, 2, "90 %");
        // The knee then rests on the means: 100, 75 and 50.
        assert_eq!(find_knee(&all).unwrap().concurrency, 1);
    }

    #[test]
    fn an_axis_ends_flat_growing_or_unclear() {
        assert_eq!(axis_end(&[], 1), AxisEnd::NotTried);
        let steady = growing_by(&[1.01, 1.02, 1.03, 1.02, 1.01]);
        assert_eq!(axis_end(&steady[..1], 1), AxisEnd::NotTried);
        assert!(matches!(axis_end(&steady, 2), AxisEnd::Flat { .. }));
        assert!(matches!(axis_end(&steady, 3), AxisEnd::Unclear { gain: Some(_) }), "two of three");
        assert!(matches!(axis_end(&steady, 0), AxisEnd::Flat { .. }), "one is the least");
        let growing = growing_by(&[1.9, 2.0, 2.1, 2.0, 1.9]);
        assert!(matches!(axis_end(&growing, 1), AxisEnd::Growing { at: 4, .. }));
        let noisy = growing_by(&[0.9, 1.1, 0.95, 1.12, 1.0]);
        assert!(matches!(axis_end(&noisy, 1), AxisEnd::Unclear { gain: Some(_) }));
        let apart = [level(1, []), level(2, [PerSecond(1.0); 5])];
        assert_eq!(axis_end(&apart, 1), AxisEnd::Unclear { gain: None });
        // A whole interval above 1 whose middle is below 1.05 is no growth worth a doubling.
        let little = growing_by(&[1.041, 1.04, 1.049, 1.06, 1.043]);
        assert!(matches!(axis_end(&little, 1), AxisEnd::Unclear { .. }), "{:?}", steps(&little));
    }

    #[test]
    fn what_is_left_between_two_levels_is_halved() {
        let knee = |below, concurrency| {
            let plateau = Estimate { estimate: 1.0, low: 1.0, high: 1.0 };
            Knee { plateau, at: 64, concurrency, below, law: None }.refine()
        };
        assert_eq!(knee(Some(16), 32), Some(24));
        assert_eq!(knee(Some(3), 5), Some(4));
        assert_eq!(knee(Some(3), 6), Some(4));
        assert_eq!(knee(Some(3), 4), None);
        assert_eq!(knee(None, 4), None);
    }

    #[test]
    fn a_drift_that_all_levels_share_cancels() {
        let all = levels(&[4, 8], engines, 3);
        let ratio = steps(&all)[0].ratio.unwrap();
        assert!(ratio.holds(2.0) && ratio.relative_half_width() < 0.03, "{ratio:?}");
    }

    #[test]
    fn the_knee_is_narrowed_down_to_the_eighth_engine() {
        let mut concurrencies = vec![1, 2, 4, 12, 24, 48];
        let knee = |concurrencies: &[u32]| find_knee(&levels(concurrencies, engines, 5)).unwrap();
        // Between 4 and 12 there are three halves.
        for next in [8, 6, 7] {
            assert_eq!(knee(&concurrencies).refine(), Some(next));
            concurrencies.push(next);
            concurrencies.sort_unstable();
        }
        let knee = knee(&concurrencies);
        assert_eq!((knee.below, knee.concurrency, knee.refine()), (Some(7), 8, None));
    }

    #[test]
    fn the_law_predicts_the_peak_through_noise() {
        let law = |n: f64| 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.0005 * n * (n - 1.0));
        let all = levels(&[1, 2, 4, 8, 16, 32, 64, 128], law, 7);
        let fit = find_knee(&all).unwrap().law.unwrap();
        let Peak::At { concurrency, rate } = fit.peak else { panic!("{fit:?}") };
        assert!((concurrency / 43.6 - 1.0).abs() < 0.1, "sqrt(0.95 / 0.0005) = 43.6: {fit:?}");
        // Passes average a drift of 0.9166 for all levels.
        assert!((rate.0 / (law(43.6) * 0.9166) - 1.0).abs() < 0.05, "{rate}");
        assert!(find_knee(&all[..5]).unwrap().law.is_none(), "five levels");
    }

    #[test]
    fn nothing_measured_has_no_knee() {
        assert_eq!(find_knee(&[]), None);
        assert_eq!(find_knee(&[level(1, [PerSecond(0.0); 5])]), None);
    }

    proptest! {
        #[test]
        fn the_knee_is_a_measured_level_at_or_below_the_best(
            rates in prop::collection::vec(1.0f64..1000.0, 1..10), seed in 0u64..1000,
        ) {
            let concurrencies: Vec<u32> = (1..=rates.len() as u32).collect();
            let all = levels(&concurrencies, |n| rates[n as usize - 1], seed);
            let knee = find_knee(&all).unwrap();
            prop_assert!(concurrencies.contains(&knee.concurrency));
            prop_assert!(knee.concurrency <= knee.at);
            prop_assert!(knee.below.is_none_or(|below| below < knee.concurrency));
        }
    }
}
