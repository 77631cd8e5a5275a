//! What stopping at system calls costs, as a run shows it.

use tapstone_measure::units::Nanos;

/// What a stopped call costs the program, measured in the run itself.
///
/// A call of a few hundred nanoseconds takes as long as two switches between program and tracer.
/// So how long calls take is only worth something where they slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopCost {
    /// Calls that stopped twice, at their entry and their return; with those that only the tracer
    /// wanted to know of.
    pub calls: u64,
    /// The tracer's own work for one, on average: registers, stack, names.
    pub work: Nanos,
    /// From letting a thread into the kernel to seeing it back, typically, for calls that do not
    /// sleep: a switch to the program, the call, and a switch to the tracer.
    pub round_trip: Nanos,
}

/// Calls that took longer than so many round trips have slept; a short delay by the scheduler is
/// not taken for one.
const ROUND_TRIPS: u64 = 4;

/// Whatever the round trip: below the timer slack of 50 µs nothing is a sleep.
const SHORTEST_SLEEP: Nanos = Nanos(50_000);

impl StopCost {
    /// The whole cost of a call: the work, and a round trip at each of its stops.
    #[must_use]
    pub fn per_call(&self) -> Nanos {
        self.work + self.round_trip + self.round_trip
    }

    /// What a call took at least if it slept.
    #[must_use]
    pub fn shortest_sleep(&self) -> Nanos {
        SHORTEST_SLEEP.max(Nanos(self.round_trip.0.saturating_mul(ROUND_TRIPS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(round_trip: u64) -> StopCost {
        StopCost { calls: 10, work: Nanos(700), round_trip: Nanos(round_trip) }
    }

    #[test]
    fn a_call_costs_its_work_and_two_round_trips() {
        assert_eq!(cost(6_000).per_call(), Nanos(12_700));
    }

    #[test]
    fn a_sleep_is_longer_than_four_round_trips_and_than_the_timer_slack() {
        assert_eq!(cost(6_000).shortest_sleep(), Nanos(50_000));
        assert_eq!(cost(30_000).shortest_sleep(), Nanos(120_000));
    }
}
