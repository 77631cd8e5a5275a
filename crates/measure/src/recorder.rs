//! One worker's record of what it completed: counted into arrays while it measures, cut into
//! slices on the window's grid, and handed on.
//!
//! Between two slices nothing is allocated, locked or printed. A slice that cannot be handed on
//! at once stays open and grows: nothing is lost, the grid is only coarser there.

use serde::{Deserialize, Serialize};

use crate::bucket::{BUCKETS, bucket_of};
use crate::slice::Slice;
use crate::units::Nanos;

/// Where closed slices go.
pub trait Sink {
    /// Takes a slice of a lane. `false`: no room now, offer it again later.
    fn slice(&mut self, lane: usize, slice: &Slice) -> bool;

    /// Takes a raw sample; does nothing unless samples were asked for.
    #[inline]
    fn sample(&mut self, _sample: OperationSample) {}
}

/// One operation as it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSample {
    /// The index of the case that the operation belongs to.
    pub lane: usize,
    /// On the run's clock. In an open loop, the intended start.
    pub start: Nanos,
    /// From start to end.
    pub latency: Nanos,
    /// The code that it failed with.
    pub failure: Option<u64>,
}

/// When slices start and how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceGrid {
    /// The first slice's length.
    pub first_length: Nanos,
    /// After this many slices of one length, the next ones are twice as long.
    pub slices_per_length: u32,
}

impl SliceGrid {
    /// The grid of a window whose length is known: 512 slices, but none below a millisecond and
    /// none longer than [`LONGEST_SLICE`].
    #[must_use]
    pub fn for_window(length: Nanos) -> Self {
        let mut first = (length.0 / 512).max(1_000_000);
        while first > LONGEST_SLICE.0 {
            first /= 2;
        }
        Self { first_length: Nanos(first), ..Self::default() }
    }

    /// A window of about this length in whole slices: the last one is as long as the others.
    #[must_use]
    pub fn whole(&self, window: Nanos) -> Nanos {
        let slices = (window.0 as f64 / self.first_length.0 as f64).round().max(1.0);
        Nanos(slices as u64 * self.first_length.0)
    }

    /// The length of the slice that starts at `start` (since the window opened).
    fn length_at(&self, start: Nanos) -> Nanos {
        let mut length = self.first_length.0;
        while start.0 >= length * u64::from(self.slices_per_length) && length < LONGEST_SLICE.0 {
            length *= 2;
        }
        Nanos(length)
    }
}

/// For a window of unknown length: about 4 ms, 512 of them in the first look after 2 s.
impl Default for SliceGrid {
    fn default() -> Self {
        Self { first_length: Nanos(2_000_000_000 / 512), slices_per_length: 1024 }
    }
}

/// Slices stop growing here: they are also what shows that a run is alive, and 32 bits hold the
/// count of any bucket for as long.
pub const LONGEST_SLICE: Nanos = Nanos::from_millis(500);

/// Counts of one kind of operation in the open slice.
struct LaneCounts {
    counts: Box<[u32]>,
    /// One bit for each run of 1,024 buckets that holds a count: what a closing slice looks at.
    touched: u64,
    open: Slice,
    first_end: Nanos,
    last_end: Nanos,
}

const RUN: usize = 1024;
const _: () = assert!(BUCKETS.div_ceil(RUN) <= u64::BITS as usize);

impl LaneCounts {
    fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            touched: 0,
            // Room for every bucket: closing a slice never allocates.
            open: Slice { buckets: Vec::with_capacity(BUCKETS), ..Slice::empty() },
            first_end: Nanos::NEVER,
            last_end: Nanos::ZERO,
        }
    }

    #[inline(always)]
    fn count(&mut self, latency: Nanos, in_call: Nanos, end: Nanos) {
        let bucket = bucket_of(latency);
        let count = &mut self.counts[bucket];
        // Branches that are hardly ever taken are cheaper here than stores.
        if *count == 0 {
            self.touched |= 1 << (bucket / RUN);
        }
        *count += 1;
        self.open.latency_sum += u128::from(latency.0);
        self.open.busy.0 += in_call.0;
        if latency < self.open.min {
            self.open.min = latency;
        }
        if latency > self.open.max {
            self.open.max = latency;
        }
        if end < self.first_end {
            self.first_end = end;
        }
        self.last_end = end;
    }

    /// Nothing was counted since the slice was opened.
    fn is_empty(&self) -> bool {
        self.touched == 0 && self.open.failed == 0 && self.open.busy == Nanos::ZERO
    }

    /// Moves the counts into the slice's sparse list, in rising order, and adds them up.
    fn collect(&mut self) {
        self.open.buckets.clear();
        self.open.completed = 0;
        while self.touched != 0 {
            let run = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            let first = run * RUN;
            let last = (first + RUN).min(BUCKETS);
            for (place, count) in self.counts[first..last].iter_mut().enumerate() {
                if *count > 0 {
                    self.open.buckets.push(((first + place) as u32, u64::from(*count)));
                    self.open.completed += u64::from(*count);
                    *count = 0;
                }
            }
        }
    }

    /// Puts the counts back: the slice was not taken and stays open.
    fn restore(&mut self) {
        for &(bucket, count) in &self.open.buckets {
            self.counts[bucket as usize] = count as u32;
            self.touched |= 1 << (bucket as usize / RUN);
        }
    }

    fn reopen(&mut self) {
        let buckets = std::mem::take(&mut self.open.buckets);
        self.open = Slice { buckets, ..Slice::empty() };
    }
}

/// Everything that one worker recorded in its window, besides the slices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneEnd {
    /// When the first counted operation ended, on the run's clock.
    pub first_end: Option<Nanos>,
    /// When the last counted operation ended.
    pub last_end: Option<Nanos>,
    /// Pairs of return code and how often an operation failed with it.
    pub failures: Vec<(u64, u64)>,
}

/// Counts what one worker completes, lane by lane, and hands closed slices to a [`Sink`].
pub struct Recorder<S> {
    lanes: Vec<LaneCounts>,
    failures: Vec<(usize, u64, u64)>,
    sink: S,
    grid: SliceGrid,
    opens: Nanos,
    slice_start: Nanos,
    slice_length: Nanos,
}

impl<S: Sink> Recorder<S> {
    /// A recorder for `lanes` kinds of operation whose window opens later. One more lane, the
    /// last, holds how late an open loop's generator was.
    pub fn new(lanes: usize, grid: SliceGrid, sink: S) -> Self {
        Self {
            lanes: (0..=lanes).map(|_| LaneCounts::new()).collect(),
            failures: Vec::with_capacity(64),
            sink,
            grid,
            opens: Nanos::NEVER,
            slice_start: Nanos::ZERO,
            slice_length: grid.first_length,
        }
    }

    pub(crate) fn open(&mut self, opens: Nanos) {
        self.opens = opens;
    }

    /// The end of the open slice, on the run's clock.
    #[inline]
    pub(crate) fn boundary(&self) -> Nanos {
        self.opens + self.slice_start + self.slice_length
    }

    /// `in_call` is clipped to the window by the caller. Inlined, so that a sample need not be put
    /// into memory for it.
    #[inline(always)]
    pub(crate) fn completed(&mut self, sample: OperationSample, in_call: Nanos, end: Nanos) {
        self.lanes[sample.lane].count(sample.latency, in_call, end);
        self.sink.sample(sample);
    }

    #[cold]
    pub(crate) fn failed(&mut self, sample: OperationSample, in_call: Nanos, code: u64) {
        let lane = &mut self.lanes[sample.lane];
        lane.open.failed += 1;
        lane.open.busy += in_call;
        match self.failures.iter_mut().find(|(l, c, _)| (*l, *c) == (sample.lane, code)) {
            Some((_, _, count)) => *count += 1,
            None => self.failures.push((sample.lane, code, 1)),
        }
        self.sink.sample(sample);
    }

    pub(crate) fn scheduling_delay(&mut self, delay: Nanos, end: Nanos) {
        if let Some(lane) = self.lanes.last_mut() {
            lane.count(delay, Nanos::ZERO, end);
        }
    }

    /// Time in a call that no operation will count: the one that the window's end cut off.
    pub(crate) fn cut_off(&mut self, lane: usize, in_call: Nanos) {
        self.lanes[lane].open.busy += in_call;
    }

    /// Closes the open slice and opens the one that holds `now`.
    pub(crate) fn roll(&mut self, now: Nanos) {
        if !self.close_slices() {
            self.slice_length = Nanos(self.slice_length.0 * 2);
            return;
        }
        let since = now - self.opens;
        self.slice_length = self.grid.length_at(since);
        self.slice_start = Nanos(since.0 - since.0 % self.slice_length.0);
    }

    /// The last slices, and what is left to say.
    pub fn finish(&mut self) -> Vec<LaneEnd> {
        while !self.close_slices() {
            std::thread::yield_now();
        }
        let mut ends: Vec<LaneEnd> = self
            .lanes
            .iter()
            .map(|lane| LaneEnd {
                first_end: (lane.first_end != Nanos::NEVER).then_some(lane.first_end),
                last_end: (lane.first_end != Nanos::NEVER).then_some(lane.last_end),
                failures: Vec::new(),
            })
            .collect();
        for (lane, code, count) in self.failures.drain(..) {
            ends[lane].failures.push((code, count));
        }
        ends
    }

    /// `false` when a slice was not taken; those that were stay taken.
    fn close_slices(&mut self) -> bool {
        let mut all_taken = true;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.is_empty() {
                continue;
            }
            lane.collect();
            lane.open.start = self.slice_start;
            lane.open.length = self.slice_length;
            if self.sink.slice(index, &lane.open) {
                lane.reopen();
            } else {
                lane.restore();
                all_taken = false;
            }
        }
        all_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_window_is_cut_into_512_slices_of_a_millisecond_or_more() {
        let first = |window| SliceGrid::for_window(window).first_length;
        assert_eq!(first(Nanos::from_secs(1)), Nanos(1_953_125));
        assert_eq!(first(Nanos::from_millis(10)), Nanos::from_millis(1));
        let week = first(Nanos::from_secs(7 * 86_400));
        assert!(week <= LONGEST_SLICE && Nanos(2 * week.0) > LONGEST_SLICE, "{week}");
        assert_eq!(first(Nanos(512 * LONGEST_SLICE.0)), LONGEST_SLICE);
    }

    #[test]
    fn a_window_has_whole_slices_and_at_least_one() {
        let grid = SliceGrid { first_length: Nanos(10), ..SliceGrid::default() };
        let whole = [1, 14, 15, 26].map(|window| grid.whole(Nanos(window)).0);
        assert_eq!(whole, [10, 10, 20, 30]);
    }

    #[test]
    fn slices_double_after_so_many_of_one_length() {
        let grid = SliceGrid { first_length: Nanos(10), slices_per_length: 4 };
        let length = [0, 30, 39, 40, 70, 79, 80].map(|start| grid.length_at(Nanos(start)).0);
        assert_eq!(length, [10, 10, 10, 20, 20, 20, 40]);
        let late = grid.length_at(Nanos(1 << 60)).0;
        assert!((LONGEST_SLICE.0..2 * LONGEST_SLICE.0).contains(&late), "{late}");
        let longest = SliceGrid { first_length: LONGEST_SLICE, ..grid };
        assert_eq!(longest.length_at(Nanos(1 << 60)), LONGEST_SLICE);
    }
}
