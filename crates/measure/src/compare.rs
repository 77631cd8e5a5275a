//! Is B faster than A? Judged on rounds in which both ran side by side.
//!
//! A device that warms up or shares its power with a neighbour changes by more from minute to
//! minute than two libraries differ. So A and B take turns in one run, in an order drawn for each
//! round, each round gives one ratio, and what both share cancels in it. Logarithms, so that "twice" and "half" weigh the
//! same and A against B is the exact reciprocal of B against A.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::interval::{Estimate, student_t};
use crate::ratio::Ratio;
use crate::units::{Nanos, PerSecond};

/// The normal distribution's 0.9 quantile: the share of repetitions that decide.
const NINE_OF_TEN: f64 = 1.281_551_565_544_600_4;

/// A verdict needs so many rounds: with fewer, one disturbed round decides it.
pub const ROUNDS: usize = 20;

/// The rates of A and B in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRound {
    /// What is compared against: the old version, the other library, the lower concurrency.
    pub a: PerSecond,
    /// The rate of the side that is judged, per second.
    pub b: PerSecond,
}

impl PairedRound {
    /// `ln(b / a)`; `None` when a side completed nothing.
    fn log_ratio(self) -> Option<f64> {
        let ratio = self.b.0 / self.a.0;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
    }
}

/// B's rate over A's (1.05: B is 5 % faster) with its interval, by Student's t on the logarithms.
///
/// `None` with fewer than two rounds, or when a side completed nothing in one of them.
#[must_use]
pub fn paired_ratio(rounds: &[PairedRound]) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = rounds.iter().map(|round| round.log_ratio()).collect();
    Some(Estimate::mean_of(&logs?)?.map(f64::exp))
}

/// B compared with A over interleaved rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// B's rate over A's; `None` when it cannot be formed.
    pub ratio: Option<Estimate>,
    /// How many rounds it is made of.
    pub rounds: usize,
    /// Faster, slower or inconclusive, from the interval of `ratio` alone.
    pub verdict: PairedVerdict,
}

/// What rounds say about B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedVerdict {
    /// B's rate is higher: the whole interval lies above 1.
    Faster,
    /// B's rate is lower: the whole interval lies below 1.
    Slower,
    /// The interval includes 1, or there is no interval.
    Inconclusive(Doubt),
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// There are fewer than [`ROUNDS`] rounds.
    TooFewRounds,
    /// In some round a side completed nothing.
    NothingCompleted,
    /// The interval holds 1.
    NoDifferenceSeen,
}

/// What one operation took in one round, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedTimes {
    /// The time of the baseline.
    pub before: Nanos,
    /// The time of the side that is judged.
    pub after: Nanos,
}

/// Means, their difference and their ratio: every figure follows from the first two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanComparison {
    /// Mean time of the baseline, in nanoseconds.
    pub before: Estimate,
    /// Mean time of the side that is judged, in nanoseconds.
    pub after: Estimate,
    /// Mean of `before` over mean of `after`: above 1 is faster.
    pub speedup: Estimate,
    /// From the interval of `speedup` alone.
    pub verdict: PairedVerdict,
}

/// Compares the mean times of interleaved rounds. The interval of the speed-up is that of a ratio of
/// two sums, from each round's residual, so that what both sides of a round share cancels (Cochran,
/// Sampling Techniques, 3rd ed. 1977, section 2.11). `None` with fewer than three rounds.
#[must_use]
pub fn compare_means(rounds: &[PairedTimes]) -> Option<MeanComparison> {
    let times = |of: fn(&PairedTimes) -> Nanos| -> Vec<f64> {
        rounds.iter().map(|round| of(round).0 as f64).collect()
    };
    let before = times(|round| round.before);
    let after = times(|round| round.after);
    let pairs: Vec<(f64, f64)> = before.iter().copied().zip(after.iter().copied()).collect();
    let speedup = Ratio::over(&pairs)?.estimate().not_negative();
    let verdict = match speedup {
        _ if rounds.len() < ROUNDS => PairedVerdict::Inconclusive(Doubt::TooFewRounds),
        speedup if speedup.low > 1.0 => PairedVerdict::Faster,
        speedup if speedup.high < 1.0 => PairedVerdict::Slower,
        _ => PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen),
    };
    Some(MeanComparison {
        before: Estimate::mean_of(&before)?,
        after: Estimate::mean_of(&after)?,
        speedup,
        verdict,
    })
}

/// Compares B with A over interleaved rounds.
#[must_use]
pub fn compare_rounds(rounds: &[PairedRound]) -> PairedComparison {
    let ratio = paired_ratio(rounds);
    let verdict = match ratio {
        _ if rounds.len() < ROUNDS => PairedVerdict::Inconclusive(Doubt::TooFewRounds),
        None => PairedVerdict::Inconclusive(Doubt::NothingCompleted),
        Some(ratio) if ratio.low > 1.0 => PairedVerdict::Faster,
        Some(ratio) if ratio.high < 1.0 => PairedVerdict::Slower,
        Some(_) => PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen),
    };
    PairedComparison { ratio, rounds: rounds.len(), verdict }
}

/// How many samples, or rounds, decide a comparison nine times of ten, if its estimate is the truth.
///
/// `samples` gave an interval that reaches `half_width` to the side of the limit, which is
/// `distance` away from the estimate; both in one unit, for ratios the logarithm. The spread of a
/// single sample follows from the interval, and the number from both the interval that the samples
/// will have and the spread of the estimate in it (Student's t at 97.5 % plus at 90 %; Cohen,
/// Statistical Power Analysis, 1988). `None` when more than a million times the samples would be
/// needed: the estimate lies on the limit.
#[must_use]
pub fn samples_to_decide(half_width: f64, samples: u64, distance: f64) -> Option<u64> {
    /// More than this many times the samples is no advice.
    const MOST_TIMES: u64 = 1_000_000;
    // Beyond that Student's t is the normal distribution's quantile to four digits.
    const MANY: u64 = 10_000;
    let t = |samples: u64| student_t(samples.min(MANY).saturating_sub(1) as usize);
    if samples < 2 || half_width.is_nan() || half_width <= 0.0 || distance.is_nan() {
        return None;
    }
    let spread = half_width / t(samples) * (samples as f64).sqrt();
    let decides = |samples: u64| {
        let error = spread / (samples as f64).sqrt();
        (t(samples) + NINE_OF_TEN) * error <= distance
    };
    let mut high = 2;
    while !decides(high) {
        high *= 2;
        if high / samples > MOST_TIMES {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if decides(middle) { high = middle } else { low = middle }
    }
    Some(high.max(2))
}

impl PairedComparison {
    /// About how many more rounds would decide which side is faster; `None` when no number would,
    /// or when it is decided.
    #[must_use]
    pub fn more_rounds(&self) -> Option<u64> {
        let ratio =
            self.ratio.filter(|_| matches!(self.verdict, PairedVerdict::Inconclusive(_)))?;
        let half_width = (ratio.high / ratio.low).ln() / 2.0;
        let rounds = self.rounds as u64;
        let needed = samples_to_decide(half_width, rounds, ratio.estimate.ln().abs())?;
        Some(needed.max(ROUNDS as u64).saturating_sub(rounds).max(1))
    }
}

impl fmt::Display for PairedComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            PairedVerdict::Faster => write!(f, "B is faster: ")?,
            PairedVerdict::Slower => write!(f, "B is slower: ")?,
            PairedVerdict::Inconclusive(doubt) => write!(f, "inconclusive ({doubt}): ")?,
        }
        match self.ratio {
            Some(Estimate { estimate, low, high }) => write!(
                f,
                "{estimate:.3} times the rate of A (95 % interval {low:.3} to {high:.3}, {} rounds)",
                self.rounds
            ),
            None => write!(f, "no ratio from {} rounds", self.rounds),
        }?;
        let more = self.ratio.map(|_| self.more_rounds());
        match (self.verdict, more) {
            (PairedVerdict::Inconclusive(_), Some(Some(more))) => {
                write!(f, "; about {more} more rounds would decide")
            }
            (PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen), Some(None)) => {
                f.write_str("; no number of rounds would decide: the estimate is 1")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewRounds => write!(f, "a verdict needs at least {ROUNDS} rounds"),
            Self::NothingCompleted => f.write_str("in a round one side completed nothing"),
            Self::NoDifferenceSeen => f.write_str("the interval holds 1"),
        }
    }
}

/// A share in hundredths, as a user writes it: `5%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percent(pub f64);

/// Not a share between 0 % and 100 %.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a percentage from 0% to under 100%\nhint: write it as 5% or 2.5%")]
pub struct NotPercent(String);

impl FromStr for Percent {
    type Err = NotPercent;

    fn from_str(text: &str) -> Result<Self, NotPercent> {
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        match number.and_then(|number| number.parse().ok()) {
            Some(value) if (0.0..100.0).contains(&value) => Ok(Self(value)),
            _ => Err(NotPercent(text.to_owned())),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;

    /// Both sides slow down by a third over the run; each round adds its own noise.
    fn rounds(count: usize, ratio: f64, noise: f64, seed: u64) -> Vec<PairedRound> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let normal = Normal::new(0.0, noise).unwrap();
        let mut side = |rate: f64| PerSecond(rate * f64::exp(normal.sample(&mut rng)));
        let shared = |round: usize| 1000.0 * (1.0 - round as f64 / count as f64 / 3.0);
        (0..count).map(|i| PairedRound { a: side(shared(i)), b: side(shared(i) * ratio) }).collect()
    }

    #[test]
    fn a_difference_far_smaller_than_the_common_drift_is_seen() {
        let faster = compare_rounds(&rounds(20, 1.03, 0.01, 1));
        assert_eq!(faster.verdict, PairedVerdict::Faster, "{faster}");
        assert_eq!(compare_rounds(&rounds(20, 0.97, 0.01, 2)).verdict, PairedVerdict::Slower);
        let same = compare_rounds(&rounds(20, 1.0, 0.01, 3)).verdict;
        assert_eq!(same, PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen));
    }

    #[test]
    fn nineteen_rounds_are_not_enough_however_clear() {
        let early = compare_rounds(&rounds(19, 2.0, 0.001, 1));
        assert_eq!(early.verdict, PairedVerdict::Inconclusive(Doubt::TooFewRounds));
        assert!(early.ratio.is_some_and(|ratio| ratio.low > 1.9));
    }

    #[test]
    fn a_side_that_completed_nothing_has_no_ratio() {
        let mut dead = rounds(20, 1.0, 0.01, 1);
        dead[7].b = PerSecond(0.0);
        let dead = compare_rounds(&dead);
        assert_eq!(dead.verdict, PairedVerdict::Inconclusive(Doubt::NothingCompleted));
    }

    #[test]
    fn equal_devices_are_told_apart_in_one_run_of_twenty() {
        let wrong = (0..2_000)
            .filter(|seed| {
                let verdict = compare_rounds(&rounds(20, 1.0, 0.05, *seed)).verdict;
                !matches!(verdict, PairedVerdict::Inconclusive(_))
            })
            .count();
        assert!((60..=140).contains(&wrong), "{wrong} of 2,000");
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_inverts_the_ratio(ratio in 0.2f64..5.0, seed in 0u64..1000) {
            let rounds = rounds(20, ratio, 0.1, seed);
            let swapped: Vec<_> = rounds.iter().map(|r| PairedRound { a: r.b, b: r.a }).collect();
            let one = paired_ratio(&rounds).unwrap();
            let other = paired_ratio(&swapped).unwrap();
            prop_assert!((one.low * other.high - 1.0).abs() < 1e-9);
            prop_assert!((one.estimate * other.estimate - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn an_interval_that_ends_at_one_is_no_difference() {
        let equal = [PairedRound { a: PerSecond(1e3), b: PerSecond(1e3) }; ROUNDS];
        let comparison = compare_rounds(&equal);
        assert_eq!(comparison.ratio, Some(Estimate { estimate: 1.0, low: 1.0, high: 1.0 }));
        assert_eq!(comparison.verdict, PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen));
        assert_eq!(comparison.rounds, ROUNDS);
    }

    #[test]
    fn a_ratio_needs_two_sides_that_did_something() {
        let round = |a, b| PairedRound { a: PerSecond(a), b: PerSecond(b) };
        assert_eq!(paired_ratio(&[round(1.0, 1.0), round(0.0, 1.0)]), None);
        assert_eq!(paired_ratio(&[round(1.0, 1.0), round(1.0, 0.0)]), None);
        assert_eq!(paired_ratio(&[round(0.0, 0.0), round(1.0, 1.0)]), None);
        assert_eq!(paired_ratio(&[round(1.0, 2.0)]), None, "one round");
        // The geometric mean.
        let ratio = paired_ratio(&[round(1.0, 1.0), round(1.0, 4.0)]).unwrap();
        assert!((ratio.estimate - 2.0).abs() < 1e-12, "{ratio:?}");
    }

    #[test]
    fn comparisons_are_told_in_a_sentence() {
        let told = |verdict, ratio| PairedComparison { ratio, rounds: 20, verdict }.to_string();
        let ratio = Some(Estimate { estimate: 1.5, low: 1.25, high: 1.75 });
        let figures = "1.500 times the rate of A (95 % interval 1.250 to 1.750, 20 rounds)";
        assert_eq!(told(PairedVerdict::Faster, ratio), format!("B is faster: {figures}"));
        assert_eq!(told(PairedVerdict::Slower, ratio), format!("B is slower: {figures}"));
        let doubts = [
            (Doubt::TooFewRounds, "a verdict needs at least 20 rounds"),
            (Doubt::NothingCompleted, "in a round one side completed nothing"),
            (Doubt::NoDifferenceSeen, "the interval holds 1"),
        ];
        for (doubt, words) in doubts {
            let text = told(PairedVerdict::Inconclusive(doubt), None);
            assert_eq!(text, format!("inconclusive ({words}): no ratio from 20 rounds"));
        }
        let open = PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen);
        let near = Some(Estimate { estimate: 1.01, low: 0.99, high: 1.03 });
        let text = told(open, near);
        assert!(text.contains("; about ") && text.ends_with(" more rounds would decide"), "{text}");
        let on = Some(Estimate { estimate: 1.0, low: 0.99, high: 1.01 });
        let text = told(open, on);
        assert!(text.ends_with("; no number of rounds would decide: the estimate is 1"), "{text}");
        assert_eq!(Percent(2.5).to_string(), "2.5 %");
    }

    /// The number is held to what happens: of comparisons with so many rounds, nine of ten decide.
    #[test]
    fn so_many_rounds_decide_nine_times_of_ten() {
        for (ratio, noise) in [(1.02, 0.05), (0.97, 0.04), (1.01, 0.01)] {
            // The spread of the logarithm of a ratio of two sides.
            let spread = noise * 2f64.sqrt();
            let half_width = student_t(39) * spread / 40f64.sqrt();
            let needed = samples_to_decide(half_width, 40, f64::ln(ratio).abs()).unwrap();
            let decided = (0..1_000)
                .filter(|seed| {
                    let logs: Vec<f64> = rounds(needed as usize, ratio, noise, *seed)
                        .iter()
                        .map(|round| round.log_ratio().unwrap())
                        .collect();
                    let interval = Estimate::mean_of(&logs).unwrap();
                    interval.low > 0.0 || interval.high < 0.0
                })
                .count();
            assert!((870..=930).contains(&decided), "{ratio}: {decided} with {needed}");
        }
    }

    #[test]
    fn no_number_of_rounds_decides_what_lies_on_the_limit() {
        assert_eq!(samples_to_decide(0.1, 20, 0.0), None);
        assert_eq!(samples_to_decide(0.1, 20, 1e-6), None);
        assert_eq!(samples_to_decide(0.0, 20, 0.1), None, "no spread was seen");
        assert_eq!(samples_to_decide(f64::NAN, 20, 0.1), None);
        assert_eq!(samples_to_decide(0.1, 1, 0.1), None);
        assert_eq!(samples_to_decide(0.1, 2, 10.0), Some(2), "two have a spread");
        // Nor is a million times the samples any advice; what is below is.
        let many = 1_099_511;
        assert!(samples_to_decide(0.1, many, 0.1 / 523.7).is_some_and(|it| it / many < 1_000_000));
        assert_eq!(samples_to_decide(0.1, many, 0.1 / 1_000.0), None);
        let open = compare_rounds(&rounds(20, 1.01, 0.05, 1));
        let more = open.more_rounds().unwrap();
        assert!(more > 20, "{open}");
        // From the middle of the interval to its end, on the logarithm.
        let ratio = open.ratio.unwrap();
        let half_width = (ratio.high.ln() - ratio.low.ln()) / 2.0;
        let needed = samples_to_decide(half_width, 20, ratio.estimate.ln().abs()).unwrap();
        assert!((more + 20).abs_diff(needed) <= 1, "{more} {needed}");
        assert_eq!(compare_rounds(&rounds(20, 1.5, 0.05, 1)).more_rounds(), None);
        // However clear it is, a verdict needs twenty.
        assert_eq!(compare_rounds(&rounds(12, 2.0, 0.001, 1)).more_rounds(), Some(8));
    }

    #[test]
    fn means_their_difference_and_their_ratio_say_the_same() {
        // The medians are 420 and 419 ms; one round of the baseline took 30 ms longer.
        let round = |number: u64| PairedTimes {
            before: Nanos::from_millis(if number == 3 { 450 } else { 420 }),
            after: Nanos::from_millis(419),
        };
        let rounds: Vec<PairedTimes> = (0..20).map(round).collect();
        let compared = compare_means(&rounds).unwrap();
        let ratio = compared.before.estimate / compared.after.estimate;
        assert!((compared.before.estimate - 421.5e6).abs() < 1.0, "{compared:?}");
        assert!((compared.speedup.estimate - ratio).abs() < 1e-12, "{compared:?}");
        assert_eq!(compared.verdict, PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen));
        let early = compare_means(&rounds[..19]).unwrap();
        assert_eq!(early.verdict, PairedVerdict::Inconclusive(Doubt::TooFewRounds));
        assert_eq!(compare_means(&rounds[..2]), None);
        let twice: Vec<PairedTimes> = (0..20)
            .map(|number| PairedTimes {
                before: Nanos::from_millis(200 + 2 * number),
                after: Nanos::from_millis(100 + number),
            })
            .collect();
        let twice = compare_means(&twice).unwrap();
        assert_eq!(twice.verdict, PairedVerdict::Faster);
        assert!((twice.speedup.low - 2.0).abs() < 1e-9, "what rounds share cancels: {twice:?}");
    }

    #[test]
    fn means_are_slower_or_the_same_as_well() {
        let rounds = |before: u64, after: u64| -> Vec<PairedTimes> {
            let round = PairedTimes {
                before: Nanos::from_millis(before),
                after: Nanos::from_millis(after),
            };
            vec![round; 20]
        };
        let verdict = |before, after| compare_means(&rounds(before, after)).unwrap().verdict;
        assert_eq!(verdict(100, 200), PairedVerdict::Slower);
        assert_eq!(verdict(200, 100), PairedVerdict::Faster);
        // Both ends of the interval are 1.
        let same = PairedVerdict::Inconclusive(Doubt::NoDifferenceSeen);
        assert_eq!(verdict(100, 100), same);
    }

    #[test]
    fn percentages_are_read_as_they_are_written() {
        assert_eq!("5%".parse(), Ok(Percent(5.0)));
        assert_eq!(" 2.5 % ".parse(), Ok(Percent(2.5)));
        assert_eq!("0%".parse(), Ok(Percent(0.0)));
        for wrong in ["5", "-1%", "100%", "NaN%", ""] {
            let error = wrong.parse::<Percent>().unwrap_err().to_string();
            assert!(error.contains("hint:"), "{error}");
        }
    }
}
