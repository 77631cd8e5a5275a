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
