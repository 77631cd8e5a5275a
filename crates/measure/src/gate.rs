//! What the threads of one process agree on: when the window opens and closes, and who does the
//! next request of an open loop.
//!
//! The window opens at a moment announced in advance, once every worker of every process has
//! completed its first operation; so all workers cut their work at exactly the same moment
//! without a word between them while they measure.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::units::Nanos;

/// Shared by the workers of a process; changed by whoever steers them.
#[derive(Debug)]
pub struct Gate {
    opens: AtomicU64,
    closes: AtomicU64,
    first_done: AtomicU32,
    arrivals: Arrivals,
}

/// On a cache line of its own: every request of an open loop writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Arrivals(AtomicU64);

impl Default for Gate {
    fn default() -> Self {
        Self {
            opens: AtomicU64::new(Nanos::NEVER.0),
            closes: AtomicU64::new(Nanos::NEVER.0),
            first_done: AtomicU32::new(0),
            arrivals: Arrivals::default(),
        }
    }
}

impl Gate {
    /// Announces when the window opens: far enough ahead that every worker hears of it in time.
    pub fn open_at(&self, moment: Nanos) {
        self.opens.store(moment.0, Relaxed);
    }

    /// Announces when the window closes: ahead, as with the opening. A moment in the past ends the
    /// run at once, each worker where it is.
    pub fn close_at(&self, moment: Nanos) {
        self.closes.fetch_min(moment.0, Relaxed);
    }

    /// When the window opens; [`Nanos::NEVER`] while that is not known.
    #[inline]
    #[must_use]
    pub fn opens(&self) -> Nanos {
        Nanos(self.opens.load(Relaxed))
    }

    /// When the window closes; [`Nanos::NEVER`] while that is not known.
    #[inline]
    #[must_use]
    pub fn closes(&self) -> Nanos {
        Nanos(self.closes.load(Relaxed))
    }

    /// How many workers have completed their first operation since the start.
    #[must_use]
    pub fn first_done(&self) -> u32 {
        self.first_done.load(Relaxed)
    }

    pub(crate) fn note_first_done(&self) {
        self.first_done.fetch_add(1, Relaxed);
    }

    /// The number of the next request that nobody has taken yet.
    pub(crate) fn next_arrival(&self) -> u64 {
        self.arrivals.0.fetch_add(1, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_unknown_until_it_is_announced() {
        let gate = Gate::default();
        assert_eq!(gate.opens(), Nanos::NEVER);
        assert_eq!(gate.closes(), Nanos::NEVER);
        gate.open_at(Nanos(10));
        gate.close_at(Nanos(30));
        assert_eq!(gate.opens(), Nanos(10));
        assert_eq!(gate.closes(), Nanos(30));
    }

    /// Whoever wants to end the run first, does.
    #[test]
    fn the_earliest_end_counts() {
        let gate = Gate::default();
        gate.close_at(Nanos(30));
        gate.close_at(Nanos(40));
        assert_eq!(gate.closes(), Nanos(30));
        gate.close_at(Nanos(20));
        assert_eq!(gate.closes(), Nanos(20));
    }

    #[test]
    fn workers_are_counted_and_each_request_is_taken_once() {
        let gate = Gate::default();
        for number in 0..3 {
            assert_eq!(gate.first_done(), number);
            assert_eq!(gate.next_arrival(), u64::from(number));
            gate.note_first_done();
        }
        assert_eq!(gate.first_done(), 3);
    }
}
