//! The overhead of the measuring loop between two operations. It is in no latency, but a worker
//! cannot be inside a call for that long.

use crate::clock::Clock;
use crate::gate::Gate;
use crate::looper::{MeasuredWork, OperationRange, run_worker_loop};
use crate::pace::ClosedLoop;
use crate::recorder::{Recorder, Sink, SliceGrid};
use crate::slice::Slice;
use crate::units::Nanos;

/// Time from the end of an operation to the start of the next, in nanoseconds, on this machine:
/// the smallest of some rounds, because whatever interrupts only adds. Takes a few milliseconds.
#[must_use]
pub fn loop_overhead_ns(clock: &impl Clock) -> f64 {
    (0..9).map(|_| round(clock)).fold(f64::INFINITY, f64::min)
}

const OPERATIONS: u64 = 5_000;

fn round(clock: &impl Clock) -> f64 {
    let gate = Gate::default();
    let begin = clock.now();
    gate.open_at(begin);
    let mut sum = Nanos::ZERO;
    let mut recorder = Recorder::new(1, SliceGrid::default(), BusyTime(&mut sum));
    let share = OperationRange { first: 0, limit: Some(OPERATIONS) };
    run_worker_loop(clock, &gate, &mut ClosedLoop::TwoReadings, &mut Nothing, &mut recorder, share);
    let elapsed = clock.now() - begin;
    recorder.finish();
    drop(recorder);
    (elapsed - sum).0 as f64 / OPERATIONS as f64
}

struct Nothing;

impl MeasuredWork for Nothing {
    #[inline]
    fn perform(&mut self, operation: u64) -> Result<(), u64> {
        std::hint::black_box(operation);
        Ok(())
    }
}

/// Keeps the time inside operations.
struct BusyTime<'a>(&'a mut Nanos);

impl Sink for BusyTime<'_> {
    fn slice(&mut self, _: usize, slice: &Slice) -> bool {
        *self.0 += slice.busy;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Monotonic;

    #[test]
    fn costs_something_but_not_much() {
        let cost = loop_overhead_ns(&Monotonic);
        assert!(cost > 0.0 && cost < 100_000.0, "{cost}");
    }

    use std::cell::Cell;

    /// Each reading takes 10 ns and nothing else takes any time.
    struct Ticking(Cell<u64>);

    impl Clock for Ticking {
        fn now(&self) -> Nanos {
            self.0.set(self.0.get() + 10);
            Nanos(self.0.get())
        }

        fn wait_until(&self, _: Nanos) {}
    }

    #[test]
    fn the_overhead_is_the_time_outside_operations() {
        // One gap between two readings is an operation, and the next one is not.
        let cost = loop_overhead_ns(&Ticking(Cell::new(0)));
        assert!((10.0..10.1).contains(&cost), "{cost}");
    }
}
