//! What stopping costs, as this run shows it.

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
    pub(super) fn shortest_sleep(&self) -> Nanos {
        SHORTEST_SLEEP.max(Nanos(self.round_trip.0.saturating_mul(ROUND_TRIPS)))
    }
}

/// Adds up.
pub(super) struct Meter {
    calls: u64,
    work: Nanos,
    /// Durations of calls that do not sleep, by their order of magnitude in powers of two: count
    /// and sum. A few that the scheduler held up for milliseconds must not count.
    prompt: [(u64, Nanos); u64::BITS as usize],
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { calls: 0, work: Nanos::ZERO, prompt: [(0, Nanos::ZERO); u64::BITS as usize] }
    }

    /// The tracer has worked on a stop for so long.
    pub(super) fn worked(&mut self, time: Nanos) {
        self.work += time;
    }

    /// A call has returned.
    pub(super) fn returned(&mut self, time: Nanos, may_wait: bool) {
        self.calls += 1;
        if !may_wait {
            let (count, sum) = &mut self.prompt[time.0.max(1).ilog2() as usize];
            *count += 1;
            *sum += time;
        }
    }

    /// The costs so far.
    pub(super) fn cost(&self) -> StopCost {
        let mean = |sum: Nanos, count: u64| Nanos(sum.0.checked_div(count).unwrap_or(0));
        let half = self.prompt.iter().map(|(count, _)| count).sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let middle = self.prompt.iter().find(|(count, _)| {
            seen += count;
            *count > 0 && seen >= half
        });
        let round_trip = middle.map_or(Nanos::ZERO, |(count, sum)| mean(*sum, *count));
        StopCost { calls: self.calls, work: mean(self.work, self.calls), round_trip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_sleeps_nor_a_few_delays_count_as_round_trips() {
        let mut meter = Meter::new();
        assert_eq!(meter.cost(), StopCost::default());
        for time in [5_000, 5_200, 5_400, 900, 4_000_000] {
            meter.worked(Nanos(3_000));
            meter.returned(Nanos(time), false);
        }
        meter.returned(Nanos(50_000_000), true);
        let cost = meter.cost();
        let expected = StopCost { calls: 6, work: Nanos(2_500), round_trip: Nanos(5_200) };
        assert_eq!(cost, expected);
        assert_eq!(cost.per_call(), Nanos(12_900));
        assert_eq!(cost.shortest_sleep(), Nanos(50_000));
        let slow = StopCost { round_trip: Nanos(30_000), ..cost };
        assert_eq!(slow.shortest_sleep(), Nanos(120_000));
    }
}
