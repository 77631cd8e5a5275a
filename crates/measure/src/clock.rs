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
    /// Measures the clock of this machine; takes a quarter of a millisecond.
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
    let mut gaps = Vec::with_capacity(4_000);
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
    const READINGS: u64 = 100;
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

    use std::cell::Cell;

    /// A clock that moves on by a script with each reading, and never waits.
    struct Scripted<F> {
        readings: Cell<u64>,
        now: Cell<u64>,
        step: F,
    }

    impl<F: Fn(u64) -> u64> Scripted<F> {
        fn new(step: F) -> Self {
            Self { readings: Cell::new(0), now: Cell::new(1_000), step }
        }
    }

    impl<F: Fn(u64) -> u64> Clock for Scripted<F> {
        fn now(&self) -> Nanos {
            let number = self.readings.replace(self.readings.get() + 1);
            self.now.set(self.now.get() + (self.step)(number));
            Nanos(self.now.get())
        }

        fn wait_until(&self, _: Nanos) {}
    }

    #[test]
    fn the_step_is_the_smallest_difference_between_gaps() {
        assert_eq!(step_of(&Scripted::new(|_| 40)), Nanos(40));
        // Gaps of 100 and 140 ns: the clock moves by 20 or 40, but no gap shows 20.
        assert_eq!(step_of(&Scripted::new(|it| 100 + 40 * (it % 2))), Nanos(40));
        assert_eq!(step_of(&Scripted::new(|_| 0)), Nanos(1), "a clock that stands");
    }

    #[test]
    fn the_cost_is_the_median_of_41_loops() {
        assert_eq!(cost_of(&Scripted::new(|_| 30)), 30_000);
        // 101 readings make a loop of 100 gaps; the 21st of 41 takes 10 ns times 21.
        assert_eq!(cost_of(&Scripted::new(|it| 10 * (1 + it / 101))), 210_000);
        let precision = Precision::measure(&Scripted::new(|_| 30));
        assert_eq!(precision, Precision { step: Nanos(30), cost_picos: 30_000 });
        assert_eq!(Precision { step: Nanos(1), cost_picos: 25_500 }.cost_ns(), 25.5);
    }

    #[test]
    fn the_moment_is_that_of_the_system() {
        let system = || {
            let now = clock_gettime(ClockId::Monotonic);
            std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos()
        };
        let before = system();
        let now = u128::from(Monotonic.now().0);
        assert!((before..=system()).contains(&now), "{before} {now}");
    }

    #[test]
    fn waiting_sleeps_but_for_the_last_stretch() {
        let used = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        };
        let before = used();
        let moment = Monotonic.now() + Nanos::from_millis(4);
        Monotonic.wait_until(moment);
        assert!(used() - before < 2_000_000, "{} ns of the processor", used() - before);
    }

    #[test]
    fn waiting_seldom_returns_late() {
        let lateness = |_| {
            let moment = Monotonic.now() + Nanos(200_000);
            Monotonic.wait_until(moment);
            Monotonic.now() - moment
        };
        let least = (0..200).map(lateness).find(|late| *late < WAKE_UP_MARGIN);
        assert!(least.is_some(), "always later than its margin");
    }
}
