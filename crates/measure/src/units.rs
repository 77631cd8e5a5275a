//! Quantities with their units: what crosses a crate's border is never a bare number.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapstone_text::{thousands, three_digits};

/// A length of time, or a moment on a clock that counts from an arbitrary origin, in nanoseconds.
///
/// Subtraction saturates at zero: the only way to get a negative length is to swap the operands,
/// and a clock that runs backwards must not turn into centuries.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens: "not yet known".
    pub const NEVER: Self = Self(u64::MAX);

    /// A length of so many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A length of so many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Seconds as a number, for arithmetic with rates.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

/// Prints with the unit that keeps three significant digits readable: `812 ns`, `43.1 µs`, `1.20 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = if ns < 1e3 {
            format!("{} ns", self.0)
        } else if ns < 999.5e3 {
            format!("{} µs", three_digits(ns / 1e3))
        } else if ns < 999.5e6 {
            format!("{} ms", three_digits(ns / 1e6))
        } else {
            format!("{} s", three_digits(ns / 1e9))
        };
        f.pad(&text)
    }
}

/// A rate in events per second, not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerSecond(pub f64);

/// Prints with three significant digits and a thousands separator: `1,234/s`, `98.7/s`.
impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0 < 999.5 {
            format!("{}/s", three_digits(self.0))
        } else {
            format!("{}/s", thousands(self.0.round() as u64))
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_with_a_unit_and_three_digits() {
        let cases = [
            (0, "0 ns"),
            (812, "812 ns"),
            (43_120, "43.1 µs"),
            (999_499, "999 µs"),
            (1_000, "1.00 µs"),
            (999_500, "1.00 ms"),
            (999_600, "1.00 ms"),
            (999_499_999, "999 ms"),
            (999_500_000, "1.00 s"),
            (1_204_000_000, "1.20 s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
        assert_eq!(PerSecond(39_353.0).to_string(), "39,353/s");
        assert_eq!(PerSecond(98.72).to_string(), "98.7/s");
        assert_eq!(PerSecond(999.4).to_string(), "999/s");
        assert_eq!(PerSecond(999.5).to_string(), "1,000/s");
    }

    #[test]
    fn a_clock_that_runs_backwards_is_no_time() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
    }

    #[test]
    fn nanoseconds_are_those_of_a_duration() {
        let duration = Duration::new(3, 7);
        assert_eq!(Nanos::from(duration), Nanos(3_000_000_007));
        assert_eq!(Duration::from(Nanos(3_000_000_007)), duration);
        assert_eq!(Nanos::from(Duration::MAX), Nanos::NEVER);
    }
}
