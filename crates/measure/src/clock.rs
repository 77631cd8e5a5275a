//! The clock that everything is measured with, and what it is worth.

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::units::Nanos;

/// A source of moments. Real runs use [`Monotonic`]; tests and simulations bring their own.
pub trait Clock {
    /// The moment, since an origin of the clock's own.
    fn now(&self) -> Nanos;

    /// Returns at `moment` or as soon after it as it can; at once if it has passed.
    fn wait_until(&self, moment: Nanos);
}

/// `CLOCK_MONOTONIC`: one origin for all processes of a machine, never set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// A sleeping thread wakes up late by the timer slack (50 µs by default, prctl(2)) and the
/// scheduler; so the last stretch before a moment is waited for actively.
const WAKE_UP_MARGIN: Nanos = Nanos(150_000);

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        let now = clock_gettime(ClockId::Monotonic);
        Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    fn wait_until(&self, moment: Nanos) {
        let wake_up = moment - WAKE_UP_MARGIN;
        while self.now() < wake_up {
            let request = Timespec {
                tv_sec: (wake_up.0 / 1_000_000_000) as i64,
                tv_nsec: (wake_up.0 % 1_000_000_000) as _,
            };
            // An error is a signal that came in between: look at the clock again.
            let _ = clock_nanosleep_absolute(SleepClock::Monotonic, &request);
        }
        while self.now() < moment {
            std::hint::spin_loop();
        }
    }
}

/// What a clock can tell apart, and what asking it costs. Recorded, never subtracted silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// The smallest difference that two readings can have.
    pub step: Nanos,
    /// The median time from one reading to the next, in picoseconds: a reading costs tens of ns.
    pub cost_picos: u64,
}

impl Precision {
    /// Measures the clock of this machine; takes a few milliseconds.
    #[must_use]
    pub fn measure(clock: &impl Clock) -> Self {
        Self { step: step_of(clock), cost_picos: cost_of(clock) }
    }

    /// The cost of one reading in nanoseconds.
    #[must_use]
    pub fn cost_ns(&self) -> f64 {
        self.cost_picos as f64 / 1e3
    }
}

/// Two readings in a row are at least a reading's cost apart, which hides the step; but the lengths
/// of many such gaps differ from each other by whole steps.
fn step_of(clock: &impl Clock) -> Nanos {
    let mut gaps = Vec::with_capacity(20_000);
    let mut last = clock.now();
    for _ in 0..gaps.capacity() {
        let now = clock.now();
        gaps.push((now - last).0);
        last = now;
    }
    gaps.push(0);
    gaps.sort_unstable();
    let steps = gaps.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0);
    Nanos(steps.min().unwrap_or(1))
}

/// The median of many short loops: one that was interrupted does not count.
fn cost_of(clock: &impl Clock) -> u64 {
    const READINGS: u64 = 500;
    let mut costs: Vec<u64> = (0..41)
        .map(|_| {
            let start = clock.now();
            for _ in 1..READINGS {
                std::hint::black_box(clock.now());
            }
            (clock.now() - start).0 * 1000 / READINGS
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_has_a_step_and_a_cost() {
        let precision = Precision::measure(&Monotonic);
        assert!(precision.step > Nanos::ZERO);
        assert!(precision.cost_picos > 0);
    }

    #[test]
    fn waiting_never_returns_early() {
        let clock = Monotonic;
        let moment = clock.now() + Nanos(400_000);
        clock.wait_until(moment);
        assert!(clock.now() >= moment);
    }
}
