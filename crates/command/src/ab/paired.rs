//! Ratios of what two sides took, round by round.

use tapstone_measure::compare;
use tapstone_measure::interval::{Estimate, student_t};
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record::Change;

/// In so many rounds, or in all of fewer, the kernel must have seen a part of the processor time
/// for a ratio of it: as many as a quantile wants on either side.
const FEWEST_SEEN: usize = 10;

/// Candidate over baseline, paired by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) ratio: Estimate,
    pub(super) verdict: Change,
}

/// Of times that every run has: the mean of the logarithms of each round's ratio, by Student's t.
pub(super) fn of_times(baseline: &[Nanos], candidate: &[Nanos]) -> Option<Ratio> {
    let rate = |time: &Nanos| PerSecond(1.0 / time.as_secs_f64());
    let round = |(a, b)| compare::PairedRound { a: rate(a), b: rate(b) };
    let rounds: Vec<compare::PairedRound> = baseline.iter().zip(candidate).map(round).collect();
    let comparison = compare::compare_rounds(&rounds);
    let Estimate { estimate, low, high } = comparison.ratio?;
    // Of rates it is: the inverse of that of times.
    let ratio = Estimate { estimate: 1.0 / estimate, low: 1.0 / high, high: 1.0 / low };
    Some(Ratio { ratio, verdict: comparison.verdict.into() })
}

/// Of times that a run may have none of, since the kernel samples them: the ratio of the sums over
/// all rounds, with Student's t over each round's residual (Cochran, Sampling Techniques, 3rd ed.
/// 1977, section 2.11). `None` when too few rounds have any.
pub(super) fn of_sampled_times(baseline: &[Nanos], candidate: &[Nanos]) -> Option<Ratio> {
    let seen = |times: &[Nanos]| times.iter().filter(|time| **time > Nanos::ZERO).count();
    let fewest = FEWEST_SEEN.min(baseline.len());
    if baseline.len() < 2 || seen(baseline).min(seen(candidate)) < fewest {
        return None;
    }
    let sum = |times: &[Nanos]| times.iter().copied().sum::<Nanos>().0 as f64;
    let below = sum(baseline);
    let rounds = baseline.len() as f64;
    let ratio = sum(candidate) / below;
    let residual = |(a, b): (&Nanos, &Nanos)| (b.0 as f64 - ratio * a.0 as f64).powi(2);
    let squares: f64 = baseline.iter().zip(candidate).map(residual).sum();
    let error = (squares * rounds / (rounds - 1.0)).sqrt() / below;
    let ratio = Estimate::around(ratio, student_t(baseline.len() - 1) * error).not_negative();
    let verdict = match ratio {
        _ if baseline.len() < compare::ROUNDS => Change::Inconclusive,
        ratio if ratio.high < 1.0 => Change::Faster,
        ratio if ratio.low > 1.0 => Change::Slower,
        _ => Change::Inconclusive,
    };
    Some(Ratio { ratio, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: &[u64]) -> Vec<Nanos> {
        times.iter().map(|time| Nanos::from_millis(*time)).collect()
    }

    #[test]
    fn a_ratio_of_times_is_the_inverse_of_that_of_rates() {
        let baseline = millis(&[100; 20]);
        let candidate: Vec<Nanos> =
            (0..20).map(|round| Nanos::from_millis(198 + round % 5)).collect();
        let there = of_times(&baseline, &candidate).unwrap();
        assert!((there.ratio.estimate - 2.0).abs() < 1e-3, "{there:?}");
        assert!(there.ratio.low < 2.0 && there.ratio.high > 2.0);
        assert_eq!(there.verdict, Change::Slower);
        let back = of_times(&candidate, &baseline).unwrap();
        assert_eq!(back.verdict, Change::Faster);
        assert!((back.ratio.low * there.ratio.high - 1.0).abs() < 1e-9);
        assert_eq!(
            of_times(&baseline[1..], &candidate[1..]).unwrap().verdict,
            Change::Inconclusive
        );
        assert_eq!(of_times(&baseline[..1], &candidate[..1]), None);
    }

    #[test]
    fn sampled_times_are_compared_by_their_sums() {
        // 4 ms in every second round, 8 ms in the others' place: twice as much on average.
        let baseline: Vec<Nanos> = millis(&[0, 4].repeat(20));
        let candidate: Vec<Nanos> = millis(&[8, 0].repeat(20));
        let Ratio { ratio, verdict } = of_sampled_times(&baseline, &candidate).unwrap();
        assert!((ratio.estimate - 2.0).abs() < 1e-12);
        // Residuals of 8 ms in each of 40 rounds; t of 39 degrees of freedom is 2.0227.
        let half_width = 2.0227 * (40.0 * 64.0 * 40.0 / 39.0_f64).sqrt() / 80.0;
        assert!((ratio.high - 2.0 - half_width).abs() < 1e-3, "{ratio:?}");
        assert_eq!(verdict, if ratio.low > 1.0 { Change::Slower } else { Change::Inconclusive });
    }

    #[test]
    fn what_the_kernel_hardly_saw_has_no_ratio() {
        let seen = millis(&[4; 20]);
        let unseen = millis(&[[4; 9].as_slice(), &[0; 11]].concat());
        assert_eq!(of_sampled_times(&seen, &unseen), None);
        assert_eq!(of_sampled_times(&unseen, &seen), None);
        assert!(of_sampled_times(&seen[..5], &unseen[..5]).is_some(), "all of five");
        assert_eq!(of_sampled_times(&seen[..1], &unseen[..1]), None);
    }

    /// Over many comparisons the interval must hold the true ratio about as often as it says, also
    /// where most rounds have none.
    #[test]
    fn the_interval_of_sampled_times_holds_the_true_ratio() {
        use proptest::prelude::Rng;
        use proptest::test_runner::{RngAlgorithm, TestRng};

        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        // Ticks of 4 ms, each met with this chance out of 256 in each of four places.
        let mut time = |chance: u8| {
            let met = rng.next_u32().to_le_bytes().iter().filter(|byte| **byte < chance).count();
            Nanos::from_millis(4 * met as u64)
        };
        let mut held = 0;
        let mut formed = 0;
        for _ in 0..2_000 {
            let baseline: Vec<Nanos> = (0..30).map(|_| time(64)).collect();
            let candidate: Vec<Nanos> = (0..30).map(|_| time(96)).collect();
            let Some(Ratio { ratio, .. }) = of_sampled_times(&baseline, &candidate) else {
                continue;
            };
            formed += 1;
            held += usize::from(ratio.holds(1.5));
        }
        assert!(formed > 1_900, "{formed}");
        let share = held as f64 / formed as f64;
        assert!((0.92..0.98).contains(&share), "{held} of {formed}");
    }
}
