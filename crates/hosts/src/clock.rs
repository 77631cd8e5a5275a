//! The offset between two machines' clocks, from round trips, with a bound that holds whatever the
//! network does.
//!
//! A question leaves at `sent` and its answer is here at `heard`, both on our clock; in between the
//! other machine read `there` from its own. So the other's clock less ours is at least
//! `there - heard` and at most `there - sent`, however the trip was split between the two ways.
//! Every round trip gives such an interval, and the truth lies in all of them.

use tapstone_measure::units::Nanos;
use tapstone_token::controller::HostClock;

/// One question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// When it was asked, on our clock.
    pub(crate) sent: Nanos,
    /// What the other's clock said.
    pub(crate) there: Nanos,
    /// When the answer was here, on our clock.
    pub(crate) heard: Nanos,
}

/// What round trips say of the other clock less ours: the truth lies between these, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    low_ns: i64,
    high_ns: i64,
    round_trip: Nanos,
}

/// Why answers about a clock are not believed, in words that follow the agent's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockTrouble {
    /// There was no answer.
    #[error("does not say what its clock shows")]
    Silent,
    /// No machine has been up for so long, or for no time at all.
    #[error("says that its clock shows {0} ns since the start of its machine, which cannot be")]
    Impossible(u64),
    /// Two answers cannot both be true.
    #[error("contradicts itself about its clock: its answers lie {} apart where {} can be", .apart, .possible)]
    Contradictory {
        /// How far two answers are from agreeing.
        apart: Nanos,
        /// As much two clocks may run apart meanwhile.
        possible: Nanos,
    },
}

/// A century: no CLOCK_MONOTONIC shows more, because it counts from the start of the machine. All
/// sums of moments and offsets below this fit.
const LONGEST_UPTIME_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// The kernel slews a clock by 500 ppm at most (adjtimex(2)), so two clocks by twice that.
const SLEW: u64 = 1_000;

/// How far two clocks may run apart in so long.
fn possible_drift(meanwhile: Nanos) -> Nanos {
    Nanos(meanwhile.0 / SLEW)
}

impl Offset {
    /// From round trips that were made within a short time.
    ///
    /// # Errors
    /// There is none, or what the other said cannot be.
    pub(crate) fn from_round_trips(trips: &[RoundTrip]) -> Result<Self, ClockTrouble> {
        let impossible = |trip: &&RoundTrip| !(1..=LONGEST_UPTIME_NS).contains(&trip.there.0);
        if let Some(trip) = trips.iter().find(impossible) {
            return Err(ClockTrouble::Impossible(trip.there.0));
        }
        let difference = |a: Nanos, b: Nanos| a.0 as i64 - b.0 as i64;
        let low = trips.iter().map(|trip| difference(trip.there, trip.heard)).max();
        let high = trips.iter().map(|trip| difference(trip.there, trip.sent)).min();
        let round_trip = trips.iter().map(|trip| trip.heard - trip.sent).min();
        let first = trips.iter().map(|trip| trip.sent).min();
        let last = trips.iter().map(|trip| trip.heard).max();
        let (Some(low_ns), Some(high_ns), Some(round_trip)) = (low, high, round_trip) else {
            return Err(ClockTrouble::Silent);
        };
        let possible = possible_drift(last.unwrap_or_default() - first.unwrap_or_default());
        if low_ns > high_ns {
            let apart = Nanos(low_ns.abs_diff(high_ns));
            if apart > possible {
                return Err(ClockTrouble::Contradictory { apart, possible });
            }
        }
        // Clocks that run apart let the intervals miss each other by as little.
        Ok(Self { low_ns: low_ns.min(high_ns), high_ns: low_ns.max(high_ns), round_trip })
    }

    /// Whether what was said of this clock so long before can be true as well.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn agrees_with(
        self,
        before: HostClock,
        meanwhile: Nanos,
    ) -> Result<(), ClockTrouble> {
        let now = self.clock();
        let possible =
            Nanos(now.bound.0.saturating_add(before.bound.0)) + possible_drift(meanwhile);
        let apart = Nanos(now.offset_ns.abs_diff(before.offset_ns));
        if apart > possible {
            return Err(ClockTrouble::Contradictory { apart, possible });
        }
        Ok(())
    }

    /// The middle of the interval, and half its width.
    #[must_use]
    pub fn clock(self) -> HostClock {
        let offset_ns = self.low_ns + (self.high_ns - self.low_ns) / 2;
        self.held_against(offset_ns)
    }

    /// How far from the truth an offset that is in use may be.
    pub(crate) fn held_against(self, offset_ns: i64) -> HostClock {
        let bound = (self.high_ns - offset_ns).max(offset_ns - self.low_ns).max(0);
        HostClock { offset_ns, bound: Nanos(bound as u64), round_trip: self.round_trip }
    }
}

/// One of our moments on a clock that is so far ahead. "At once" and "never" stay what they are.
pub(crate) fn there(moment: Nanos, offset_ns: i64) -> Nanos {
    match moment {
        Nanos::ZERO | Nanos::NEVER => moment,
        Nanos(moment) => Nanos(moment.saturating_add_signed(offset_ns)),
    }
}

/// One of the other clock's moments on ours: the inverse of [`there`].
pub(crate) fn here(moment: Nanos, offset_ns: i64) -> Nanos {
    there(moment, -offset_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            offset in -1_000_000_000i64..1_000_000_000,
            ways in prop::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..20),
        ) {
            let mut now = 10_000_000_000u64;
            let mut trips = Vec::new();
            for (forth, back) in &ways {
                let there = Nanos((now + forth).saturating_add_signed(offset));
                let heard = Nanos(now + forth + back);
                trips.push(RoundTrip { sent: Nanos(now), there, heard });
                now += forth + back;
            }
            let clock = Offset::from_round_trips(&trips).unwrap().clock();
            let shortest = ways.iter().map(|(forth, back)| forth + back).min().unwrap();
            prop_assert!(clock.offset_ns.abs_diff(offset) <= clock.bound.0);
            prop_assert!(clock.bound.0 <= shortest.div_ceil(2));
            prop_assert_eq!(clock.round_trip, Nanos(shortest));
        }
    }

    fn trip(sent: u64, there: u64, heard: u64) -> RoundTrip {
        RoundTrip { sent: Nanos(sent), there: Nanos(there), heard: Nanos(heard) }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let told = |trips: &[RoundTrip]| Offset::from_round_trips(trips).unwrap_err();
        assert_eq!(told(&[]), ClockTrouble::Silent);
        for there in [0, u64::MAX, 1 << 63, LONGEST_UPTIME_NS + 1] {
            assert_eq!(told(&[trip(10, there, 20)]), ClockTrouble::Impossible(there));
        }
        // A second apart within twenty milliseconds.
        let trips =
            [trip(1_000, 5_000_000_000, 2_000), trip(20_000_000, 6_020_000_000, 20_001_000)];
        assert!(matches!(told(&trips), ClockTrouble::Contradictory { .. }));
    }

    #[test]
    fn a_clock_that_jumps_during_a_case_contradicts_itself() {
        let offset = |there| Offset::from_round_trips(&[trip(1_000, there, 2_000)]).unwrap();
        let before = offset(5_000_000).clock();
        let second = Nanos(1_000_000_000);
        assert_eq!(offset(5_900_000).agrees_with(before, second), Ok(()), "slewed by 900 ppm");
        assert!(offset(7_000_000).agrees_with(before, second).is_err(), "by 2,000 ppm");
    }

    #[test]
    fn moments_are_translated_both_ways() {
        assert_eq!(there(Nanos(5), -3), Nanos(2));
        assert_eq!(here(there(Nanos(5), 1_000), 1_000), Nanos(5));
        assert_eq!(there(Nanos::NEVER, 7), Nanos::NEVER);
        assert_eq!(there(Nanos::ZERO, 7), Nanos::ZERO);
    }
}
