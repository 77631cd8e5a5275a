//! The ratio of two sums over batches, and how uncertain it is.
//!
//! Every figure of a case is such a ratio: completions over time, time over completions,
//! completions below a latency over completions. One batch contributes `numerator - ratio x
//! denominator` (Cochran, Sampling Techniques, 3rd ed. 1977, section 2.11); the residuals need not
//! come from batches of equal length.

use crate::interval::{Estimate, student_t};

/// With fewer batches than this the spread cannot be seen at all.
const FEWEST: usize = 3;

/// Sums over batches in time order.
#[derive(Debug)]
pub(crate) struct Ratio {
    residuals: Vec<f64>,
    numerator: f64,
    denominator: f64,
}

impl Ratio {
    /// From the numerator and denominator of every batch; `None` with fewer than three batches or
    /// nothing to divide by.
    pub(crate) fn over(batches: &[(f64, f64)]) -> Option<Self> {
        let mut numerator = 0.0;
        let mut denominator = 0.0;
        for (above, below) in batches {
            numerator += above;
            denominator += below;
        }
        if batches.len() < FEWEST || denominator <= 0.0 {
            return None;
        }
        let ratio = numerator / denominator;
        let residuals = batches.iter().map(|(above, below)| above - ratio * below).collect();
        Some(Self { residuals, numerator, denominator })
    }

    /// Sum of the numerators over sum of the denominators.
    pub(crate) fn value(&self) -> f64 {
        self.numerator / self.denominator
    }

    /// Lag-1 autocorrelation of the residuals.
    pub(crate) fn correlation(&self) -> f64 {
        let squares = self.squares();
        // Identical batches leave nothing but rounding, which correlates with itself.
        let rounding = 1e-12 * self.numerator;
        if squares <= rounding * rounding {
            return 0.0;
        }
        self.residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares
    }

    /// Of the ratio, in its own unit.
    ///
    /// What correlation is left between neighbours is charged to the variance as that of a
    /// first-order autoregression, (1 + r) / (1 - r) (Tafazzoli and Wilson, Skart, IIE Trans.
    /// 43, 2011). A negative one never narrows the interval: counts of a regular service
    /// alternate by the edges of their batches alone.
    pub(crate) fn standard_error(&self) -> f64 {
        let batches = self.residuals.len() as f64;
        let correlation = self.correlation().clamp(0.0, 0.9);
        let adjustment = (1.0 + correlation) / (1.0 - correlation);
        let variance = self.squares() * batches / (batches - 1.0) * adjustment;
        variance.sqrt() / self.denominator
    }

    /// How far the interval reaches to each side, in the ratio's unit.
    pub(crate) fn half_width(&self) -> f64 {
        student_t(self.residuals.len() - 1) * self.standard_error()
    }

    /// The ratio with its interval.
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate::around(self.value(), self.half_width())
    }

    fn squares(&self) -> f64 {
        self.residuals.iter().map(|residual| residual * residual).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denominators_give_the_ordinary_interval_of_a_mean() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        let ratio = Ratio::over(&samples.map(|sample| (sample, 1.0))).unwrap();
        assert!(ratio.correlation() < 0.0);
        let got = ratio.estimate();
        let want = Estimate::mean_of(&samples).unwrap();
        assert!((got.low - want.low).abs() < 1e-12 && (got.high - want.high).abs() < 1e-12);
    }

    #[test]
    fn a_constant_ratio_has_no_spread_whatever_the_sizes() {
        let ratio = Ratio::over(&[(2.0, 1.0), (20.0, 10.0), (6.0, 3.0), (0.0, 0.0)]).unwrap();
        assert_eq!((ratio.value(), ratio.half_width(), ratio.correlation()), (2.0, 0.0, 0.0));
    }

    #[test]
    fn neighbours_that_agree_widen_the_interval() {
        let mixed = Ratio::over(&[(1.0, 1.0), (2.0, 1.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        let grouped = Ratio::over(&[(1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!(grouped.half_width() > mixed.half_width());
    }

    #[test]
    fn too_little_to_see_a_spread() {
        assert!(Ratio::over(&[(1.0, 1.0), (2.0, 1.0)]).is_none());
        assert!(Ratio::over(&[(0.0, 0.0); 5]).is_none());
    }

    const ALTERNATING: [(f64, f64); 4] = [(1.0, 1.0), (2.0, 1.0), (1.0, 1.0), (2.0, 1.0)];

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9 * other.abs().max(1e-9)
    }

    /// Residuals of ∓½, whose squares add up to 1; neighbours' products to -3/4 and to +1/4.
    #[test]
    fn the_error_of_a_worked_example() {
        let ratio = Ratio::over(&ALTERNATING).unwrap();
        assert_eq!((ratio.value(), ratio.correlation()), (1.5, -0.75));
        // The root of 1 × 4 / 3, over a denominator of 4.
        assert!(close(ratio.standard_error(), (4.0f64 / 3.0).sqrt() / 4.0), "{ratio:?}");
        // Student's t at three degrees of freedom.
        assert!((ratio.half_width() / ratio.standard_error() - 3.1824).abs() < 1e-4);
        let estimate = ratio.estimate();
        assert!(close(estimate.high - estimate.estimate, ratio.half_width()));
        let grouped = Ratio::over(&[(1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 1.0)]).unwrap();
        assert_eq!(grouped.correlation(), 0.25);
        // The same, times (1 + ¼) / (1 - ¼).
        assert!(close(grouped.standard_error(), (20.0f64 / 9.0).sqrt() / 4.0), "{grouped:?}");
    }

    #[test]
    fn batches_count_by_their_size() {
        let ratio = Ratio::over(&[(2.0, 1.0), (6.0, 2.0), (4.0, 1.0)]).unwrap();
        assert_eq!(ratio.value(), 3.0);
        // Residuals of -1, 0 and 1.
        assert_eq!(ratio.correlation(), 0.0);
        assert!(close(ratio.standard_error(), 3f64.sqrt() / 4.0), "{ratio:?}");
    }

    #[test]
    fn what_nearly_repeats_itself_is_charged_as_a_correlation_of_nine_tenths() {
        let mut batches = [(1.0, 1.0); 100];
        batches[50..].fill((2.0, 1.0));
        let ratio = Ratio::over(&batches).unwrap();
        assert_eq!(ratio.correlation(), 0.97);
        // Squares of 25, and (1 + 0.9) / (1 - 0.9).
        let variance = 25.0 * 100.0 / 99.0 * 19.0f64;
        assert!(close(ratio.standard_error(), variance.sqrt() / 100.0), "{ratio:?}");
    }

    #[test]
    fn rounding_does_not_correlate_and_a_small_spread_does() {
        let third = |parts: u32| (f64::from(parts) * 1e9 / 3.0, f64::from(parts));
        let same: Vec<_> = (1..20).map(third).collect();
        let rounding = Ratio::over(&same).unwrap();
        assert!(rounding.squares() > 0.0, "the example rounds");
        assert_eq!(rounding.correlation(), 0.0);
        let spread = ALTERNATING.map(|(above, below)| (1.0 + above * 1e-6, below));
        assert!((Ratio::over(&spread).unwrap().correlation() + 0.75).abs() < 1e-6);
    }

    #[test]
    fn three_batches_and_something_to_divide_by() {
        assert!(Ratio::over(&[(0.0, 1.0); 3]).is_some());
        assert!(Ratio::over(&[(1.0, 1.0); 2]).is_none());
        assert!(Ratio::over(&[(1.0, 0.0); 3]).is_none());
        assert!(Ratio::over(&[(1.0, -1.0); 3]).is_none());
    }
}
