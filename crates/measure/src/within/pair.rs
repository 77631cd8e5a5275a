//! Two rates near the limit, and where the line between them reaches the wanted share.

use crate::exceedance::{ArrivalBatch, LogShare, RateLevel, log_share};
use crate::interval::{Estimate, student_t};

/// One of the two rates of the third stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairEnd {
    Low,
    High,
}

/// The two rates of the third stage, with the batches of all their levels.
pub(super) struct Pair {
    low: f64,
    high: f64,
    of_low: Vec<ArrivalBatch>,
    of_high: Vec<ArrivalBatch>,
}

impl Pair {
    pub(super) fn new(centre: f64, distance: f64) -> Self {
        let low = centre * (-distance).exp();
        let high = centre * distance.exp();
        Self { low, high, of_low: Vec::new(), of_high: Vec::new() }
    }

    pub(super) fn rate(&self, end: PairEnd) -> f64 {
        match end {
            PairEnd::Low => self.low,
            PairEnd::High => self.high,
        }
    }

    pub(super) fn add(&mut self, level: &RateLevel, end: PairEnd) {
        let batches = match end {
            PairEnd::Low => &mut self.of_low,
            PairEnd::High => &mut self.of_high,
        };
        batches.extend(&level.batches);
    }

    /// The rate at which the share is reached; `None`: the two rates do not tell.
    pub(super) fn crossing(&self, share: f64) -> Option<Estimate> {
        let low = log_share(&self.of_low)?;
        let high = log_share(&self.of_high)?;
        let place = fieller(low, high, share.ln())?;
        let ratio = (self.high / self.low).ln();
        Some(place.map(|place| self.low * (place * ratio).exp()))
    }
}

/// Where the line from `low` (at 0) to `high` (at 1) reaches `wanted`, by Fieller's theorem: all
/// places at which the line's own interval holds `wanted`. `None`: they do not end.
fn fieller(low: LogShare, high: LogShare, wanted: f64) -> Option<Estimate> {
    let t = student_t(low.degrees.min(high.degrees));
    let variance_low = (t * low.standard_error).powi(2);
    let variance_high = (t * high.standard_error).powi(2);
    let rise = high.log - low.log;
    let missing = wanted - low.log;
    // (missing - x rise)² <= (1 - x)² variance_low + x² variance_high, a quadratic in x.
    let a = rise * rise - variance_low - variance_high;
    let b = missing * rise - variance_low;
    let c = missing * missing - variance_low;
    if a <= 0.0 || rise <= 0.0 {
        return None;
    }
    // The estimate is always such a place, so there are two ends: what is below 0 is rounding.
    let root = (b * b - a * c).max(0.0).sqrt();
    Some(Estimate { estimate: missing / rise, low: (b - root) / a, high: (b + root) / a })
}

#[cfg(test)]
mod tests {
    use super::super::levels::steady;
    use super::*;

    #[test]
    fn fieller_is_the_line_read_backwards() {
        let at = |log, standard_error| LogShare { log, standard_error, degrees: 1_000_000 };
        let exact = fieller(at(-5.0, 0.0), at(-4.0, 0.0), -4.6).unwrap();
        assert!((exact.estimate - 0.4).abs() < 1e-12 && exact.high - exact.low < 1e-9);
        // At one end only that end's own spread counts, over the slope.
        let end = fieller(at(-5.0, 0.01), at(-4.0, 0.0), -5.0).unwrap();
        assert!((end.high - 1.96 * 0.01).abs() < 1e-3, "{end:?}");
        assert_eq!(fieller(at(-5.0, 0.6), at(-4.9, 0.6), -4.95), None, "no slope, no end");
        assert_eq!(fieller(at(-4.0, 0.01), at(-5.0, 0.01), -4.5), None, "it falls");
    }

    #[test]
    fn an_exact_line_has_its_place_whatever_the_rounding() {
        // Without spread the interval is the place itself. Its square root is of nothing, or of a
        // rounding error of either sign.
        let at = |log| LogShare { log, standard_error: 0.0, degrees: 19 };
        for step in 1..200 {
            let log = -7.0 + f64::from(step) / 61.0;
            let found = fieller(at(-7.1), at(-3.3), log).unwrap_or_else(|| panic!("{log}"));
            let place = (log + 7.1) / 3.8;
            assert!((found.estimate - place).abs() < 1e-9, "{log}: {found:?}");
            assert!((found.low - place).abs() < 1e-6, "{log}: {found:?}");
            assert!((found.high - place).abs() < 1e-6, "{log}: {found:?}");
        }
    }

    #[test]
    fn the_ends_of_fieller_lie_where_the_line_just_holds_the_share() {
        let low = LogShare { log: -5.2, standard_error: 0.11, degrees: 5 };
        let high = LogShare { log: -3.9, standard_error: 0.07, degrees: 9 };
        for (low, high) in [(low, high), (low, LogShare { degrees: 5, ..high })] {
            let found = fieller(low, high, -4.4).unwrap();
            assert!((found.estimate - 0.8 / 1.3).abs() < 1e-12, "{found:?}");
            for place in [found.low, found.high] {
                // How far the line lies from the share there, and its own standard error there.
                let missed = -4.4 - (-5.2 + 1.3 * place);
                let error = (0.11 * (1.0 - place)).hypot(0.07 * place);
                // Student's t at 97.5 % with 5 degrees of freedom, the fewer of the two.
                assert!((missed.abs() - 2.570_582 * error).abs() < 1e-6, "{found:?} {place}");
            }
            assert!(found.low < found.estimate && found.estimate < found.high, "{found:?}");
        }
    }

    #[test]
    fn a_pair_is_read_where_its_line_reaches_the_share() {
        let mut pair = Pair::new(200.0, 0.3);
        let rates = [pair.rate(PairEnd::Low), pair.rate(PairEnd::High)];
        assert_eq!(rates, [200.0 * (-0.3f64).exp(), 200.0 * 0.3f64.exp()]);
        assert_eq!(pair.crossing(0.01), None, "nothing was measured");
        pair.add(&steady(rates[0], 40_000, 0.005), PairEnd::Low);
        assert_eq!(pair.crossing(0.01), None, "one rate alone");
        pair.add(&steady(rates[1], 40_000, 0.04), PairEnd::High);
        assert_eq!((pair.of_low.len(), pair.of_high.len()), (20, 20));
        // From 0.005 to 0.04 is a factor of eight: a third of its logarithm leads to 0.01.
        let found = pair.crossing(0.01).unwrap();
        assert!((found.estimate / (200.0 * (-0.1f64).exp()) - 1.0).abs() < 1e-9, "{found:?}");
        // Both levels of a rate count.
        pair.add(&steady(rates[0], 40_000, 0.015), PairEnd::Low);
        let found = pair.crossing(0.02).unwrap();
        assert!((found.estimate - 200.0).abs() < 1e-6, "{found:?}");
    }
}
