//! The slices of all workers of a case, added up on one grid in bounded memory.
//!
//! A day of operations and a second of them cost the same: when the grid would grow past
//! [`MAX_SLICES`], neighbours merge and every slice becomes twice as long.

use std::collections::BTreeMap;

use crate::slice::Slice;
use crate::units::Nanos;

/// At most this many slices are kept.
pub const MAX_SLICES: usize = 1024;

/// A window of which every operation is known is cut into so many: enough for 48 batches of several
/// each.
const SLICES_OF_A_WINDOW: u64 = 512;

/// The series of a window whose operations come one by one, in any order.
#[derive(Clone, Debug)]
pub struct WindowSeries {
    opens: Nanos,
    closes: Nanos,
    length: Nanos,
    slices: BTreeMap<u64, Slice>,
}

impl WindowSeries {
    /// Of a window from one moment to a later one.
    #[must_use]
    pub fn new((opens, closes): (Nanos, Nanos)) -> Self {
        let length = Nanos(((closes - opens).0 / SLICES_OF_A_WINDOW).max(1));
        Self { opens, closes, length, slices: BTreeMap::new() }
    }

    /// Adds an operation that ended then, and took so long unless it failed. What ends with the
    /// window is part of its last slice.
    pub fn add(&mut self, end: Nanos, latency: Option<Nanos>) {
        let Self { opens, closes, length, .. } = *self;
        let since = (end - opens).min(closes - opens - Nanos(1));
        let place = since.0 / length.0;
        let start = Nanos(place * length.0);
        let new = || Slice { start, length, ..Slice::empty() };
        let slice = self.slices.entry(place).or_insert_with(new);
        match latency {
            Some(latency) => slice.count(latency),
            None => slice.failed += 1,
        }
    }

    /// All that were added.
    #[must_use]
    pub fn finish(self) -> Series {
        let mut series = Series::new(self.length);
        self.slices.values().for_each(|slice| series.add(slice));
        series.extend_to(self.closes - self.opens);
        series
    }
}

/// Slices of equal length without gaps, the first of which starts when the window opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    length: Nanos,
    slices: Vec<Slice>,
}

impl Series {
    /// An empty series whose grid starts with slices of this length (more than zero).
    #[must_use]
    pub fn new(length: Nanos) -> Self {
        assert!(length > Nanos::ZERO, "a slice has a length");
        Self { length, slices: Vec::new() }
    }

    /// The series of operations of which each moment is known: their ends, and their times unless
    /// they failed. What ends with the window is part of its last slice.
    #[must_use]
    pub fn from_operations(
        operations: impl Iterator<Item = (Nanos, Option<Nanos>)>,
        (opens, closes): (Nanos, Nanos),
    ) -> Self {
        let mut series = WindowSeries::new((opens, closes));
        operations.for_each(|(end, latency)| series.add(end, latency));
        series.finish()
    }

    /// Operations in their own order, a slice for each or for a few neighbours: the axis is the
    /// operation's number and not time, so that pauses between them are not there.
    #[must_use]
    pub fn in_order(latencies: &[Nanos]) -> Self {
        let together = latencies.len().div_ceil(SLICES_OF_A_WINDOW as usize).max(1);
        let length = Nanos(1);
        let mut series = Self::new(length);
        for (place, neighbours) in (0_u64..).zip(latencies.chunks(together)) {
            let mut slice = Slice { start: Nanos(place), length, ..Slice::empty() };
            neighbours.iter().for_each(|latency| slice.count(*latency));
            series.add(&slice);
        }
        series
    }

    /// Adds what one worker did in one slice. Its length is a power-of-two multiple of the first.
    pub fn add(&mut self, slice: &Slice) {
        while self.length < slice.length || self.place(slice) >= MAX_SLICES {
            *self = self.coarsened();
        }
        let place = self.place(slice);
        while self.slices.len() <= place {
            self.slices.push(self.empty_at(self.slices.len()));
        }
        self.slices[place].absorb(slice);
    }

    /// The slices, in time order, empty ones included.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// How long every slice is.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.length
    }

    /// Everything in one slice.
    #[must_use]
    pub fn total(&self) -> Slice {
        let mut total = Slice { length: self.span(), ..Slice::empty() };
        for slice in &self.slices {
            total.absorb(slice);
        }
        total
    }

    /// From the window's opening to the end of the last slice.
    #[must_use]
    pub fn span(&self) -> Nanos {
        Nanos(self.length.0.saturating_mul(self.slices.len() as u64))
    }

    /// The same with neighbours merged: half as many slices, twice as long.
    #[must_use]
    pub fn coarsened(&self) -> Self {
        let length = Nanos(self.length.0.saturating_mul(2));
        let mut coarse = Self { length, slices: Vec::with_capacity(self.slices.len().div_ceil(2)) };
        for pair in self.slices.chunks(2) {
            let mut merged = coarse.empty_at(coarse.slices.len());
            for slice in pair {
                merged.absorb(slice);
            }
            coarse.slices.push(merged);
        }
        coarse
    }

    /// The series up to the window's end: pads with empty slices, drops none.
    pub fn extend_to(&mut self, end: Nanos) {
        while self.span() < end {
            if self.slices.len() == MAX_SLICES {
                *self = self.coarsened();
            }
            self.slices.push(self.empty_at(self.slices.len()));
        }
    }

    /// The series as if the window had opened so much later, a multiple of the slices' length.
    #[must_use]
    pub fn opened_later(&self, offset: Nanos) -> Self {
        let skipped = (offset.0 / self.length.0) as usize;
        let rest = self.slices.iter().skip(skipped);
        let slices = rest.map(|slice| Slice { start: slice.start - offset, ..slice.clone() });
        Self { length: self.length, slices: slices.collect() }
    }

    /// The series without slices that start when the window has closed.
    #[must_use]
    pub fn closed_at(&self, end: Nanos) -> Self {
        let slices = self.slices.iter().take_while(|slice| slice.start < end);
        Self { length: self.length, slices: slices.cloned().collect() }
    }

    fn place(&self, slice: &Slice) -> usize {
        (slice.start.0 / self.length.0) as usize
    }

    fn empty_at(&self, place: usize) -> Slice {
        let start = Nanos(self.length.0.saturating_mul(place as u64));
        Slice { start, length: self.length, ..Slice::empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As a file of somebody else may say.
    #[test]
    fn a_window_that_never_ends_has_an_end() {
        let mut series = Series::new(Nanos(1));
        series.extend_to(Nanos(u64::MAX));
        assert_eq!(series.span(), Nanos(u64::MAX));
        series.add(&Slice { start: Nanos(u64::MAX), length: series.length(), ..Slice::empty() });
        assert!(series.slices().len() <= MAX_SLICES);
    }

    fn one(start: u64, length: u64, latency: u64) -> Slice {
        let mut slice = Slice { start: Nanos(start), length: Nanos(length), ..Slice::empty() };
        slice.count(Nanos(latency));
        slice
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_long_it_runs(
            starts in prop::collection::vec(0u64..1 << 22, 1..200),
            latency in 1u64..1 << 30,
        ) {
            let mut series = Series::new(Nanos(8));
            for start in &starts {
                series.add(&one(start & !7, 8, latency));
            }
            prop_assert!(series.slices().len() <= MAX_SLICES);
            let total = series.total();
            prop_assert_eq!(total.completed, starts.len() as u64);
            prop_assert_eq!(total.latency_sum, u128::from(latency) * starts.len() as u128);
            let counted: u64 = total.buckets.iter().map(|(_, n)| n).sum();
            prop_assert_eq!(counted, total.completed);
        }
    }

    #[test]
    fn a_window_that_opens_later_has_fewer_slices() {
        let mut series = Series::new(Nanos(10));
        [0, 10, 20, 30].into_iter().for_each(|start| series.add(&one(start, 10, 3)));
        let later = series.opened_later(Nanos(20));
        assert_eq!(later.total().completed, 2);
        assert_eq!(later.slices()[0].start, Nanos::ZERO);
    }

    #[test]
    fn what_comes_after_the_window_does_not_count() {
        let mut series = Series::new(Nanos(10));
        [0, 10, 20, 30].into_iter().for_each(|start| series.add(&one(start, 10, 3)));
        assert_eq!(series.closed_at(Nanos(20)).total().completed, 2);
        assert_eq!(series.closed_at(Nanos(21)).total().completed, 3);
    }

    #[test]
    fn workers_with_different_slice_lengths_share_the_coarser_grid() {
        let mut series = Series::new(Nanos(10));
        series.add(&one(10, 10, 3));
        series.add(&one(40, 20, 5));
        assert_eq!(series.length(), Nanos(20));
        let counts: Vec<_> = series.slices().iter().map(|slice| slice.completed).collect();
        assert_eq!(counts, [1, 0, 1]);
    }

    #[test]
    fn operations_fall_into_the_slices_in_which_they_end() {
        let window = (Nanos(1_000), Nanos(1_000 + 10 * SLICES_OF_A_WINDOW));
        let operations = [
            (Nanos(1_009), Some(Nanos(3))),
            (Nanos(1_010), Some(Nanos(4))),
            (Nanos(1_015), None),
            // It ends with the window, and so in its last slice.
            (window.1, Some(Nanos(5))),
        ];
        let series = Series::from_operations(operations.into_iter(), window);
        assert_eq!((series.length(), series.slices().len()), (Nanos(10), 512));
        let counts =
            |place: usize| (series.slices()[place].completed, series.slices()[place].failed);
        assert_eq!(
            (counts(0), counts(1), counts(2), counts(511)),
            ((1, 0), (1, 1), (0, 0), (1, 0))
        );
        let total = series.total();
        assert_eq!((total.latency_sum, total.failed), (12, 1));
        assert_eq!((series.span(), total.length), (Nanos(5_120), Nanos(5_120)));
        assert!(series.slices().iter().all(|slice| slice.length == Nanos(10)));
        let short = Series::from_operations(std::iter::empty(), (Nanos(7), Nanos(17)));
        assert_eq!((short.length(), short.slices().len()), (Nanos(1), 10));
    }
}
