//! A length of time in milliseconds, the unit of doors.

use std::iter::Sum;
use std::ops::{Add, Mul, Sub};

use tapstone_measure::units::Nanos;
use tapstone_record::Estimate;

/// A length of time in milliseconds. A difference may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Millis(pub f64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0.0);

    /// In nanoseconds, as a record has it, without an interval of its own.
    #[must_use]
    pub fn exactly(self) -> Estimate {
        let nanos = self.nanos();
        Estimate { estimate: nanos, low: nanos, high: nanos }
    }

    /// In nanoseconds. Rounded to whole ones: a sum of milliseconds is not to end in 0.0000002.
    #[must_use]
    pub fn nanos(self) -> f64 {
        (self.0 * 1e6).round()
    }
}

impl From<Nanos> for Millis {
    fn from(nanos: Nanos) -> Self {
        Self(nanos.0 as f64 / 1e6)
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Millis {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Millis {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl Sum for Millis {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_differences_and_parts() {
        assert_eq!(Millis(1.5) + Millis(2.0), Millis(3.5));
        assert_eq!(Millis(1.5) - Millis(2.0), Millis(-0.5));
        assert_eq!(Millis(1.5) * 3.0, Millis(4.5));
        assert_eq!(
            [Millis(1.0), Millis(2.0), Millis(4.0)].into_iter().sum::<Millis>(),
            Millis(7.0)
        );
        assert_eq!(Millis::from(Nanos(2_500_000)), Millis(2.5));
    }

    #[test]
    fn nanoseconds_are_whole() {
        assert_eq!(Millis(0.1 + 0.2).nanos(), 300_000.0);
        let exactly = Millis(2.5).exactly();
        assert_eq!(exactly, Estimate { estimate: 2.5e6, low: 2.5e6, high: 2.5e6 });
    }
}
