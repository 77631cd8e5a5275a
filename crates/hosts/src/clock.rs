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

impl Offset {
    /// From round trips that were made within a short time; `None` without any.
    pub(crate) fn from_round_trips(trips: &[RoundTrip]) -> Option<Self> {
        let difference = |a: Nanos, b: Nanos| a.0 as i64 - b.0 as i64;
        let low_ns = trips.iter().map(|trip| difference(trip.there, trip.heard)).max()?;
        let high_ns = trips.iter().map(|trip| difference(trip.there, trip.sent)).min()?;
        let round_trip = trips.iter().map(|trip| trip.heard - trip.sent).min()?;
        // Clocks that run apart could make the intervals miss each other by a hair.
        Some(Self { low_ns: low_ns.min(high_ns), high_ns: low_ns.max(high_ns), round_trip })
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

    #[test]
    fn moments_are_translated_both_ways() {
        assert_eq!(there(Nanos(5), -3), Nanos(2));
        assert_eq!(here(there(Nanos(5), 1_000), 1_000), Nanos(5));
        assert_eq!(there(Nanos::NEVER, 7), Nanos::NEVER);
        assert_eq!(there(Nanos::ZERO, 7), Nanos::ZERO);
    }
}
