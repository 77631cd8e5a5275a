//! Sets of moments: stretches of time in order that do not touch, and what two such sets have in
//! common, or not.

use tapstone_measure::units::Nanos;

/// Stretches of time, each from a moment up to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretches(Vec<(Nanos, Nanos)>);

impl FromIterator<(Nanos, Nanos)> for Stretches {
    /// From stretches in any order, which may overlap. Those that end before they begin are none.
    fn from_iter<I: IntoIterator<Item = (Nanos, Nanos)>>(stretches: I) -> Self {
        let mut all: Vec<_> = stretches.into_iter().filter(|(start, end)| start < end).collect();
        all.sort_unstable();
        let mut merged: Vec<(Nanos, Nanos)> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match merged.last_mut().filter(|last| start <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => merged.push((start, end)),
            }
        }
        Self(merged)
    }
}

impl Stretches {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        self.0.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long they are together.
    pub(crate) fn total(&self) -> Nanos {
        self.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether a moment lies in one.
    pub(crate) fn holds(&self, moment: Nanos) -> bool {
        let next = self.0.partition_point(|(_, end)| *end <= moment);
        self.0.get(next).is_some_and(|(start, _)| *start <= moment)
    }

    /// What lies in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut one = self.0.as_slice();
        let mut two = other.0.as_slice();
        let mut common = Vec::new();
        while let ([first, one_rest @ ..], [second, two_rest @ ..]) = (one, two) {
            let both = (first.0.max(second.0), first.1.min(second.1));
            if both.0 < both.1 {
                common.push(both);
            }
            if first.1 <= second.1 {
                one = one_rest;
            } else {
                two = two_rest;
            }
        }
        Self(common)
    }

    /// What lies in this one only.
    pub(crate) fn without(&self, other: &Self) -> Self {
        // The gaps of the other, from the first moment to the last.
        let mut gaps = Vec::with_capacity(other.0.len() + 1);
        let mut from = Nanos::ZERO;
        for (start, end) in other.iter() {
            gaps.push((from, start));
            from = end;
        }
        gaps.push((from, Nanos::NEVER));
        gaps.retain(|(start, end)| start < end);
        self.and(&Self(gaps))
    }

    /// From the first to the last.
    pub(crate) fn with_gaps(&self) -> Self {
        let ends = self.0.first().zip(self.0.last());
        ends.map(|(first, last)| (first.0, last.1)).into_iter().collect()
    }

    /// What lies in any of them.
    pub(crate) fn any_of<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        sets.into_iter().flat_map(Self::iter).collect()
    }

    /// What of them lies between two moments.
    pub(crate) fn between(&self, start: Nanos, end: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let first = self.0.partition_point(|stretch| stretch.1 <= start);
        let here = self.0[first..].iter().take_while(move |stretch| stretch.0 < end);
        here.map(move |stretch| (stretch.0.max(start), stretch.1.min(end)))
    }

    /// How much of them lies between two moments.
    pub(crate) fn within(&self, start: Nanos, end: Nanos) -> Nanos {
        self.between(start, end).map(|(start, end)| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(stretches: &[(u64, u64)]) -> Stretches {
        stretches.iter().map(|(start, end)| (Nanos(*start), Nanos(*end))).collect()
    }

    #[test]
    fn touching_stretches_are_one() {
        assert_eq!(set(&[(5, 7), (1, 3), (3, 4), (2, 3), (9, 9)]), set(&[(1, 4), (5, 7)]));
        assert_eq!(set(&[(1, 4), (5, 7)]).total(), Nanos(5));
        assert_eq!(set(&[(1, 4), (5, 7)]).with_gaps(), set(&[(1, 7)]));
    }

    #[test]
    fn a_stretch_holds_its_beginning_and_not_its_end() {
        let set = set(&[(1, 4), (5, 7)]);
        let held: Vec<_> = (0..8).filter(|moment| set.holds(Nanos(*moment))).collect();
        assert_eq!(held, [1, 2, 3, 5, 6]);
    }

    proptest! {
        #[test]
        fn sets_behave_as_sets_of_moments(
            one in prop::collection::vec((0u64..40, 0u64..40), 0..8),
            two in prop::collection::vec((0u64..40, 0u64..40), 0..8),
            (start, end) in (0u64..40, 0u64..40),
        ) {
            let first = set(&one);
            let second = set(&two);
            let and = first.and(&second);
            let without = first.without(&second);
            let either = Stretches::any_of([&first, &second]);
            let mut covered = 0;
            for moment in (0..40).map(Nanos) {
                let in_first = first.holds(moment);
                let in_second = second.holds(moment);
                prop_assert_eq!(and.holds(moment), in_first && in_second);
                prop_assert_eq!(without.holds(moment), in_first && !in_second);
                prop_assert_eq!(either.holds(moment), in_first || in_second);
                covered += u64::from(in_first && (start..end).contains(&moment.0));
            }
            prop_assert_eq!(first.within(Nanos(start), Nanos(end)), Nanos(covered));
            prop_assert_eq!(and.total() + without.total(), first.total());
        }
    }
}
