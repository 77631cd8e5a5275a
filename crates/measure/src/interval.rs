//! A figure with its 95 % interval, and the quantiles that make one.
//!
//! There is one level everywhere, so that two figures of Tapstone can always be set side by side.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Gamma, StudentsT};

/// How often an interval holds the true value, over many runs.
pub const LEVEL: f64 = 0.95;

/// What lies beyond each end of a two-sided interval.
const TAIL: f64 = (1.0 - LEVEL) / 2.0;

/// A figure and the ends of its interval, all three in the unit of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single value.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The interval that reaches equally far to both sides.
    #[must_use]
    pub fn around(estimate: f64, half_width: f64) -> Self {
        Self { estimate, low: estimate - half_width, high: estimate + half_width }
    }

    /// Widened, if need be, to reach this far to both sides: the resolution of what measured it.
    #[must_use]
    pub fn no_narrower_than(self, half_width: f64) -> Self {
        let floor = Self::around(self.estimate, half_width);
        Self { low: self.low.min(floor.low), high: self.high.max(floor.high), ..self }
    }

    /// Cut off at zero, for quantities that cannot be negative.
    #[must_use]
    pub fn not_negative(self) -> Self {
        Self { low: self.low.max(0.0), ..self }
    }

    /// Every value through a rising function, such as [`f64::exp`].
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { estimate: rising(self.estimate), low: rising(self.low), high: rising(self.high) }
    }

    /// Whether the interval holds a value, its ends included.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The longer arm of the interval as a share of the estimate: 0.01 is ±1 %. Infinite when the
    /// estimate is zero, so that nothing counts as precise before something was measured.
    #[must_use]
    pub fn relative_half_width(&self) -> f64 {
        let arm = (self.estimate - self.low).max(self.high - self.estimate);
        if self.estimate == 0.0 { f64::INFINITY } else { arm / self.estimate.abs() }
    }

    /// The mean of independent samples by Student's t; `None` for fewer than two.
    #[must_use]
    pub fn mean_of(samples: &[f64]) -> Option<Self> {
        if samples.len() < 2 {
            return None;
        }
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let standard_error = (squares / (n - 1.0) / n).sqrt();
        Some(Self::around(mean, student_t(samples.len() - 1) * standard_error))
    }
}

/// How many standard errors the interval reaches to each side, by degrees of freedom.
///
/// Infinite for zero degrees: one sample says nothing about its own spread.
#[must_use]
pub fn student_t(degrees: usize) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let t = StudentsT::new(0.0, 1.0, degrees as f64).expect("degrees of freedom are positive");
    t.inverse_cdf(1.0 - TAIL)
}

/// The interval of a count of events at random moments (Garwood 1936, exact for Poisson).
#[must_use]
pub fn poisson(events: u64) -> Estimate {
    let at = |shape: u64, probability| {
        let gamma = Gamma::new(shape as f64, 1.0).expect("shape and rate are positive");
        gamma.inverse_cdf(probability)
    };
    let low = if events == 0 { 0.0 } else { at(events, TAIL) };
    Estimate { estimate: events as f64, low, high: at(events + 1, 1.0 - TAIL) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_is_that_of_the_tables() {
        for (degrees, t) in [(1, 12.7062), (4, 2.7764), (20, 2.0860), (31, 2.0395)] {
            assert!((student_t(degrees) - t).abs() < 1e-4, "{degrees}: {}", student_t(degrees));
        }
        assert_eq!(student_t(0), f64::INFINITY);
    }

    #[test]
    fn poisson_limits_are_those_of_garwood() {
        for (events, low, high) in [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)] {
            let limits = poisson(events);
            assert!((limits.low - low).abs() < 1e-3, "{limits:?}");
            assert!((limits.high - high).abs() < 1e-3, "{limits:?}");
        }
    }

    #[test]
    fn mean_of_a_worked_example() {
        let mean = Estimate::mean_of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean.estimate, 3.0);
        assert!((mean.high - 4.9632).abs() < 1e-4, "3 + 2.7764 x sqrt(2.5 / 5), not {mean:?}");
        assert_eq!(Estimate::mean_of(&[1.0]), None);
    }

    #[test]
    fn an_interval_holds_its_ends() {
        let interval = Estimate { estimate: 2.0, low: 1.0, high: 4.0 };
        assert_eq!([0.9, 1.0, 4.0, 4.1].map(|it| interval.holds(it)), [false, true, true, false]);
        assert_eq!(
            interval.map(|value| 10.0 * value),
            Estimate { estimate: 20.0, low: 10.0, high: 40.0 }
        );
        assert_eq!(Estimate::around(2.0, 0.5), Estimate { estimate: 2.0, low: 1.5, high: 2.5 });
    }

    #[test]
    fn precision_is_that_of_the_longer_arm() {
        let width = |estimate, low, high| Estimate { estimate, low, high }.relative_half_width();
        assert_eq!(width(10.0, 9.0, 12.0), 0.2);
        assert_eq!(width(10.0, 7.0, 11.0), 0.3);
        assert_eq!(width(-10.0, -12.0, -9.0), 0.2);
        assert_eq!(width(0.0, 0.0, 0.0), f64::INFINITY);
        assert_eq!(width(0.0, -1.0, 1.0), f64::INFINITY);
    }

    #[test]
    fn two_samples_have_a_mean_and_one_has_none() {
        let mean = Estimate::mean_of(&[1.0, 3.0]).unwrap();
        assert_eq!(mean.estimate, 2.0);
        // One degree of freedom, and a standard error of 1.
        assert!((mean.high - mean.estimate - 12.7062).abs() < 1e-3, "{mean:?}");
        assert!((mean.estimate - mean.low - 12.7062).abs() < 1e-3, "{mean:?}");
        assert_eq!(Estimate::mean_of(&[]), None);
    }

    #[test]
    fn an_interval_is_widened_and_never_narrowed() {
        let wide = Estimate { estimate: 10.0, low: 4.0, high: 11.0 };
        let floored = wide.no_narrower_than(2.0);
        assert_eq!(floored, Estimate { estimate: 10.0, low: 4.0, high: 12.0 });
        assert!((floored.relative_half_width() - 0.6).abs() < 1e-12);
        let narrow = Estimate { estimate: 10.0, low: 9.5, high: 10.5 };
        assert_eq!(narrow.no_narrower_than(2.0), Estimate::around(10.0, 2.0));
        assert_eq!(Estimate::around(1.0, 3.0).not_negative().low, 0.0);
    }
}
