//! What stopping costs, as this run shows it.

use tapstone_events::system_calls::StopCost;
use tapstone_measure::units::Nanos;

/// Adds up what stopping the program has cost it.
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
