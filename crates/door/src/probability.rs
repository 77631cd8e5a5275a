//! How often a target is met, by drawing every part at random.

use tapstone_record::{Estimate, Probability};

use crate::millis::Millis;
use crate::path::AuthenticationPath;
use crate::random::RandomStream;

/// Enough that the interval of a share is at most one part in a hundred wide.
const DRAWS: u64 = 40_000;

/// The stream of random numbers for this, apart from that of the queue.
const STREAM: u64 = 1;

/// `None` where every part is a single figure: then nothing is known of the spread.
pub(crate) fn probability_of_target(
    path: &AuthenticationPath,
    target: Millis,
    seed: u64,
) -> Option<Probability> {
    if path.is_fixed() {
        return None;
    }
    let mut random = RandomStream::new(seed, STREAM);
    let mut totals: Vec<f64> = (0..DRAWS).map(|_| path.draw(&mut random).total.0).collect();
    totals.sort_by(f64::total_cmp);
    let met = totals.partition_point(|total| *total <= target.0) as u64;
    let quantile = |part: f64| Millis(totals[(part * (DRAWS - 1) as f64).round() as usize]).nanos();
    Some(Probability {
        met: wilson(met, DRAWS),
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        draws: DRAWS,
        seed,
    })
}

/// A share with its 95 % interval by Wilson, which also holds near 0 and 1.
pub(crate) fn wilson(met: u64, draws: u64) -> Estimate {
    const Z: f64 = 1.959_963_984_540_054;
    if draws == 0 {
        return Estimate { estimate: 0.0, low: 0.0, high: 1.0 };
    }
    let n = draws as f64;
    let share = met as f64 / n;
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the ends rounding must not put the share outside of its own interval.
    let low = (middle - half).clamp(0.0, share);
    let high = (middle + half).clamp(share, 1.0);
    Estimate { estimate: share, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilsons_interval_is_that_of_the_books() {
        // 10 of 100: 0.0552 to 0.1744.
        let share = wilson(10, 100);
        assert!(
            (share.low - 0.0552).abs() < 5e-5 && (share.high - 0.1744).abs() < 5e-5,
            "{share:?}"
        );
        assert_eq!(wilson(0, 100).low, 0.0);
        assert_eq!(wilson(100, 100).high, 1.0);
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        assert_eq!(wilson(0, 0), Estimate { estimate: 0.0, low: 0.0, high: 1.0 });
        // One of two, by hand: 0.5 ± 0.4055.
        let half = wilson(1, 2);
        assert!((half.low - 0.0945).abs() < 1e-4 && (half.high - 0.9055).abs() < 1e-4, "{half:?}");
    }

    #[test]
    fn a_target_is_met_as_often_as_the_times_fall_below_it() {
        let scenario = |time: &str| {
            let card = "[[component]]\nkind = 'card'\nfrom = 'assumed'\n";
            let text = format!("title = 'x'\ntarget_ms = 250\n{card}time_ms = {time}\n");
            crate::Scenario::read(&text, "test").unwrap()
        };
        let even = scenario("{ uniform = { low = 0, high = 1000 } }");
        let chance = probability_of_target(&even.path, even.target, 7).unwrap();
        assert!((chance.met.estimate - 0.25).abs() < 0.01, "{chance:?}");
        assert!((chance.p50_ns / 500e6 - 1.0).abs() < 0.02, "{chance:?}");
        assert!((chance.p95_ns / 950e6 - 1.0).abs() < 0.02, "{chance:?}");
        assert_eq!((chance.draws, chance.seed), (40_000, 7));
        // What is met exactly is met.
        let [met, missed] = [250.0, 249.0].map(|ms| {
            let certain = scenario("{ uniform = { low = 250, high = 250 } }");
            probability_of_target(&certain.path, Millis(ms), 7).unwrap().met.estimate
        });
        assert_eq!((met, missed), (1.0, 0.0));
        assert_eq!(probability_of_target(&scenario("5").path, Millis(1.0), 7), None);
    }
}
