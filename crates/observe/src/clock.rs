//! The processor's time-stamp counter as a clock: a reading costs a third of clock_gettime(2).
//!
//! It is used where the kernel says that it runs evenly on all cores. Its rate is taken from two
//! pairs of readings, at the beginning and at the end of a run, so that it needs no calibration.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tapstone_measure::units::Nanos;

use crate::wire::CLOCK_TSC;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    nanos: u64,
    ticks: u64,
}

impl ClockReading {
    /// The tightest of some pairs.
    pub(crate) fn now() -> Self {
        let pair = || {
            let before = ticks();
            let nanos = monotonic();
            let after = ticks();
            (after - before, Self { nanos, ticks: before + (after - before) / 2 })
        };
        let best = (0..8).map(|_| pair()).min_by_key(|(width, _)| *width);
        best.expect("eight pairs").1
    }

    pub(crate) fn nanos(self) -> Nanos {
        Nanos(self.nanos)
    }

    /// The reading of both clocks: nanoseconds, then ticks.
    pub(crate) fn both(self) -> [u64; 2] {
        [self.nanos, self.ticks]
    }

    pub(crate) fn of_both([nanos, ticks]: [u64; 2]) -> Self {
        Self { nanos, ticks }
    }
}

/// CLOCK_MONOTONIC now, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    monotonic()
}

/// How fast the counter runs, roughly: for the probe's own time limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks(u32);

impl Ticks {
    /// By what both clocks showed at `start`, a millisecond ago at least: it waits for what is
    /// missing of that. `None` where the counter is not to be trusted.
    pub(crate) fn since(start: ClockReading) -> Option<Self> {
        const SHORTEST: Duration = Duration::from_millis(1);
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
        let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
        if !(has("constant_tsc") && has("nonstop_tsc")) {
            return None;
        }
        let passed = Duration::from_nanos(monotonic() - start.nanos);
        thread::sleep(SHORTEST.saturating_sub(passed));
        let end = ClockReading::now();
        let micros = (end.nanos - start.nanos) as f64 / 1e3;
        Some(Self(((end.ticks - start.ticks) as f64 / micros).round() as u32))
    }

    pub(crate) fn per_micro(self) -> u32 {
        self.0
    }
}

/// Turns moments of the probe into nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    readings: [ClockReading; 2],
    start: ClockReading,
    nanos_per_tick: f64,
}

impl Scale {
    pub(crate) fn between(start: ClockReading, end: ClockReading, clock: u32) -> Self {
        let readings = [start, end];
        // A file can say anything: of a clock that runs backwards nothing is made.
        if clock == CLOCK_TSC && end.ticks > start.ticks && end.nanos >= start.nanos {
            let nanos_per_tick =
                (end.nanos - start.nanos) as f64 / (end.ticks - start.ticks) as f64;
            return Self { readings, start, nanos_per_tick };
        }
        Self { readings, start: ClockReading { nanos: 0, ticks: 0 }, nanos_per_tick: 1.0 }
    }

    /// What it was made from.
    pub(crate) fn readings(&self) -> [ClockReading; 2] {
        self.readings
    }

    /// A moment of the probe's clock, on CLOCK_MONOTONIC.
    #[must_use]
    pub fn moment(&self, time: u64) -> Nanos {
        let since = time.wrapping_sub(self.start.ticks) as i64;
        let after = (since as f64 * self.nanos_per_tick) as i64;
        Nanos((self.start.nanos as i64).saturating_add(after).max(0) as u64)
    }

    /// A duration of the probe's clock, in nanoseconds.
    #[must_use]
    pub fn duration(&self, time: u64) -> Nanos {
        Nanos((time as f64 * self.nanos_per_tick) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_clock_runs_backwards_or_far_is_read_as_it_is() {
        let at = |nanos, ticks| ClockReading { nanos, ticks };
        let backwards = Scale::between(at(9, 1), at(3, 2), CLOCK_TSC);
        assert_eq!(backwards.moment(7), Nanos(7));
        let far = Scale::between(at(u64::MAX >> 1, 1), at(u64::MAX, 2), CLOCK_TSC);
        assert_eq!(far.moment(u64::MAX), Nanos(0), "before the first reading");
        assert_eq!(far.moment(3), Nanos(u64::MAX >> 1));
    }
}
