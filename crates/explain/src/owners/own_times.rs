//! A time for each of millions of calls, in four bytes.

use std::collections::BTreeMap;

use tapstone_measure::units::Nanos;

/// What a time of this many nanoseconds or more (4.29 s) has in place of itself.
const LONG: u32 = u32::MAX;

/// A time for each call of a thread, in the order of the calls. Few are long: these are apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTimes {
    /// In nanoseconds; [`LONG`] for those that are in `long`.
    short: Vec<u32>,
    /// Those of [`LONG`] nanoseconds or more, by the places of their calls.
    long: BTreeMap<usize, Nanos>,
}

impl OwnTimes {
    /// No time for each of so many calls.
    pub(super) fn zero(calls: usize) -> Self {
        Self { short: vec![0; calls], long: BTreeMap::new() }
    }

    /// The time of the call at a place.
    ///
    /// # Panics
    /// When there is no call at that place.
    #[must_use]
    pub fn get(&self, place: usize) -> Nanos {
        match self.short[place] {
            LONG => self.long[&place],
            short => Nanos(short.into()),
        }
    }

    /// The call at a place has this time from now on.
    pub(super) fn set(&mut self, place: usize, time: Nanos) {
        let before = std::mem::replace(&mut self.short[place], short(time));
        if short(time) == LONG {
            self.long.insert(place, time);
        } else if before == LONG {
            self.long.remove(&place);
        }
    }

    /// The times of all calls, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Nanos> {
        (0..self.short.len()).map(|place| self.get(place))
    }
}

impl FromIterator<Nanos> for OwnTimes {
    fn from_iter<I: IntoIterator<Item = Nanos>>(times: I) -> Self {
        let mut long = BTreeMap::new();
        let each = times.into_iter().enumerate().map(|(place, time)| {
            if short(time) == LONG {
                long.insert(place, time);
            }
            short(time)
        });
        Self { short: each.collect(), long }
    }
}

/// A time in nanoseconds, or that it is long.
fn short(time: Nanos) -> u32 {
    u32::try_from(time.0).unwrap_or(LONG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = u32::MAX as u64;

    #[test]
    fn times_at_the_limit_are_kept() {
        let times = [0, 1, LIMIT - 1, LIMIT, LIMIT + 1, u64::MAX].map(Nanos);
        let kept: OwnTimes = times.into_iter().collect();
        assert!(kept.iter().eq(times));
        assert_eq!(kept.long.len(), 3);
        let mut set = OwnTimes::zero(times.len());
        assert!(set.iter().eq([Nanos::ZERO; 6]));
        for (place, time) in times.into_iter().enumerate() {
            set.set(place, time);
            assert_eq!(set.get(place), time);
        }
        assert_eq!(set, kept);
    }

    #[test]
    fn a_long_time_that_becomes_short_is_no_longer_apart() {
        let mut times: OwnTimes = [Nanos(LIMIT + 1), Nanos(LIMIT + 2)].into_iter().collect();
        times.set(0, Nanos(LIMIT));
        assert_eq!((times.get(0), times.long.len()), (Nanos(LIMIT), 2));
        times.set(0, Nanos(LIMIT - 1));
        assert_eq!((times.get(0), times.long.len()), (Nanos(LIMIT - 1), 1));
        assert!(times.iter().eq([Nanos(LIMIT - 1), Nanos(LIMIT + 2)]));
    }

    proptest! {
        #[test]
        fn they_are_those_of_a_list(
            first in prop::collection::vec(0..3 * LIMIT, 1..20),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..3 * LIMIT), 0..40,
            ),
        ) {
            let mut list: Vec<Nanos> = first.into_iter().map(Nanos).collect();
            let mut times: OwnTimes = list.iter().copied().collect();
            for (index, time) in changes {
                let place = index.index(list.len());
                list[place] = Nanos(time);
                times.set(place, Nanos(time));
            }
            prop_assert!(times.iter().eq(list.iter().copied()));
            let collected: OwnTimes = list.into_iter().collect();
            prop_assert_eq!(times, collected);
        }
    }
}
