//! Batches: stretches of a window long enough that what happens in one says little about the next.
//!
//! Operations are not independent (a stall holds up its neighbours, a clock changes for seconds),
//! so a spread is never taken over single operations but over the sums of a few dozen batches.
//! [`Batches::reliable`] says whether there are enough of them and whether they still correlate.

use std::ops::Range;

use crate::ratio::Ratio;
use crate::series::Series;
use crate::slice::Slice;
use crate::units::Nanos;

/// Neighbouring batches that correlate this much are merged.
pub const CORRELATED: f64 = 0.2;

/// Merging ends here: with fewer batches their own spread is too uncertain.
pub const FEWEST: usize = 16;

/// Merging begins here. More batches hardly narrow an interval (Student's t at 47 degrees of
/// freedom is within 3 % of the normal quantile) and only make each shorter, so that correlation
/// hides in it (Schmeiser, Batch size effects in the analysis of simulation output, Oper. Res. 30,
/// 1982).
pub const MOST: usize = 48;

/// As long as [`FEWEST`] batches remain, each holds this many completions on average. The
/// operation that straddles an edge falls into one batch or the other whole: that alone gives a
/// count the variance 2/12 of two uniform phases, 0.8 % of 50 as a standard deviation, and makes
/// neighbours correlate negatively.
pub const COMPLETIONS: u64 = 50;

/// Some neighbouring slices added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Places in [`Series::slices`]; ends beyond the last slice where nothing was recorded.
    pub slices: Range<usize>,
    /// How much of the window it covers.
    pub length: Nanos,
    /// Operations that ended well.
    pub completed: u64,
    /// Sum of their latencies.
    pub latency_sum: u128,
}

/// All batches of a window, in time order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    batches: Vec<Batch>,
    correlated: bool,
}

impl Batches {
    /// Batches of nearly equal length, as many as are nearly uncorrelated both in their counts and
    /// in their latencies.
    #[must_use]
    pub fn by_time(series: &Series, window: Nanos) -> Self {
        let cells = cells(series, window);
        let completed: u64 = cells.iter().map(|cell| cell.completed).sum();
        let most = (completed / COMPLETIONS).clamp(FEWEST as u64, MOST as u64) as usize;
        Self::merged(&cells, most, |batches| {
            correlates(batches, completions_over_time) || correlates(batches, latency)
        })
    }

    /// Batches of nearly equal numbers of slices in which something was completed: for operations
    /// so long that most slices are empty, where a batch of time would mostly count edges.
    #[must_use]
    pub fn by_completion(series: &Series, window: Nanos) -> Self {
        let mut cells = cells(series, window);
        cells.retain(|cell| cell.completed > 0);
        Self::merged(&cells, MOST, |batches| correlates(batches, latency))
    }

    /// Exactly so many batches of nearly equal length; `None` where the slices are too few.
    pub(crate) fn exactly(series: &Series, window: Nanos, count: usize) -> Option<Vec<Batch>> {
        let cells = cells(series, window);
        (cells.len() >= count).then(|| grouped(&cells, count))
    }

    /// The batches, in time order.
    #[must_use]
    pub fn as_slice(&self) -> &[Batch] {
        &self.batches
    }

    /// Whether there are [`FEWEST`] batches in which something was completed, and they do not
    /// correlate: whether an interval over them keeps its promise. Empty ones (the window had a
    /// pause) say nothing of how latencies spread.
    #[must_use]
    pub fn reliable(&self) -> bool {
        let filled = self.batches.iter().filter(|batch| batch.completed > 0).count();
        filled >= FEWEST && !self.correlated
    }

    /// Merges until `correlates` is content, or [`FEWEST`] remain.
    fn merged(cells: &[Batch], most: usize, correlates: impl Fn(&[Batch]) -> bool) -> Self {
        let mut count = most.min(cells.len());
        loop {
            let batches = grouped(cells, count);
            let correlated = correlates(&batches);
            if !correlated || count <= FEWEST {
                return Self { batches, correlated };
            }
            // By a quarter at a time: halving would step over groupings that are good enough.
            count = (count * 3 / 4).max(FEWEST);
        }
    }
}

/// What the rate is made of: completions and seconds.
pub(crate) fn completions_over_time(batch: &Batch) -> (f64, f64) {
    (batch.completed as f64, batch.length.as_secs_f64())
}

/// What the mean latency is made of: nanoseconds and completions.
pub(crate) fn latency(batch: &Batch) -> (f64, f64) {
    (batch.latency_sum as f64, batch.completed as f64)
}

fn correlates(batches: &[Batch], parts: impl Fn(&Batch) -> (f64, f64)) -> bool {
    let parts: Vec<_> = batches.iter().map(parts).collect();
    Ratio::over(&parts).is_some_and(|ratio| ratio.correlation() >= CORRELATED)
}

/// One batch for every slice of the window, those that were never recorded included.
fn cells(series: &Series, window: Nanos) -> Vec<Batch> {
    let slice_length = series.length().0;
    let count = window.0.div_ceil(slice_length) as usize;
    let cell = |place: usize| {
        let start = place as u64 * slice_length;
        let slice = series.slices().get(place);
        Batch {
            slices: place..place + 1,
            length: Nanos(slice_length.min(window.0 - start)),
            completed: slice.map_or(0, |slice| slice.completed),
            latency_sum: slice.map_or(0, |slice| slice.latency_sum),
        }
    };
    (0..count).map(cell).collect()
}

/// The slices of the window, of which a series may have recorded fewer or more.
pub(crate) fn inside(series: &Series, window: Nanos) -> &[Slice] {
    let count = window.0.div_ceil(series.length().0) as usize;
    &series.slices()[..count.min(series.slices().len())]
}

/// Neighbours merged into `count` groups whose sizes differ by one at most.
fn grouped(cells: &[Batch], count: usize) -> Vec<Batch> {
    let edge = |group: usize| group * cells.len() / count;
    (0..count).map(|group| merge(&cells[edge(group)..edge(group + 1)])).collect()
}

fn merge(cells: &[Batch]) -> Batch {
    let first = cells.first().map_or(0, |cell| cell.slices.start);
    let end = cells.last().map_or(0, |cell| cell.slices.end);
    Batch {
        slices: first..end,
        length: cells.iter().map(|cell| cell.length).sum(),
        completed: cells.iter().map(|cell| cell.completed).sum(),
        latency_sum: cells.iter().map(|cell| cell.latency_sum).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLICE: Nanos = Nanos::from_millis(4);

    /// One worker without pauses whose `i`-th call takes `latency(i)`.
    fn closed_loop(window: Nanos, latency: impl Fn(u64) -> u64) -> Series {
        let mut series = Series::new(SLICE);
        let mut now = 0;
        for call in 0.. {
            now += latency(call);
            if now >= window.0 {
                break;
            }
            let start = Nanos(now - now % SLICE.0);
            let mut slice = Slice { start, length: SLICE, ..Slice::empty() };
            slice.count(Nanos(latency(call)));
            series.add(&slice);
        }
        series.extend_to(window);
        series
    }

    proptest! {
        #[test]
        fn every_completion_and_every_moment_is_in_one_batch(
            latencies in prop::collection::vec(100_000u64..9_000_000, 1..50),
            millis in 1u64..6_000,
        ) {
            let window = Nanos::from_millis(millis);
            let series = closed_loop(window, |call| latencies[call as usize % latencies.len()]);
            let total = series.total();
            for batches in [Batches::by_time(&series, window), Batches::by_completion(&series, window)] {
                let sum: u64 = batches.as_slice().iter().map(|batch| batch.completed).sum();
                prop_assert_eq!(sum, total.completed);
                let sum: u128 = batches.as_slice().iter().map(|batch| batch.latency_sum).sum();
                prop_assert_eq!(sum, total.latency_sum);
            }
            let by_time = Batches::by_time(&series, window);
            let covered: Nanos = by_time.as_slice().iter().map(|batch| batch.length).sum();
            prop_assert_eq!(covered, window);
        }
    }

    #[test]
    fn a_regular_service_is_not_drowned_by_the_edges_of_its_slices() {
        let window = Nanos::from_secs(4);
        let series = closed_loop(window, |_| 10_500_000);
        let batches = Batches::by_time(&series, window);
        assert_eq!(batches.as_slice().len(), FEWEST, "few completions, so few batches");
        assert!(batches.reliable());
        let parts: Vec<_> = batches.as_slice().iter().map(completions_over_time).collect();
        let rate = Ratio::over(&parts).unwrap().estimate();
        assert!(rate.holds(1e9 / 10.5e6), "{rate:?}");
        assert!(rate.relative_half_width() < 0.012, "{rate:?}");
    }

    #[test]
    fn slow_changes_merge_batches_and_a_trend_is_reported() {
        let window = Nanos::from_secs(4);
        let alternating = closed_loop(window, |call| 1_000_000 + 500_000 * (call / 400 % 2));
        let merged = Batches::by_time(&alternating, window);
        assert!(merged.as_slice().len() < MOST);
        let ramp = closed_loop(window, |call| 1_000_000 + call * 200);
        let hopeless = Batches::by_time(&ramp, window);
        assert_eq!(hopeless.as_slice().len(), FEWEST);
        assert!(!hopeless.reliable());
    }

    #[test]
    fn a_window_of_few_slices_is_not_reliable() {
        let window = Nanos::from_millis(20);
        let batches = Batches::by_time(&closed_loop(window, |_| 1_000_000), window);
        assert_eq!(batches.as_slice().len(), 5);
        assert!(!batches.reliable());
        assert!(Batches::by_time(&Series::new(SLICE), Nanos::ZERO).as_slice().is_empty());
    }

    /// `count` cells of one completion each, that took as long as the cell's number says.
    fn numbered(count: usize) -> Vec<Batch> {
        let cell = |place| Batch {
            slices: place..place + 1,
            length: SLICE,
            completed: 1,
            latency_sum: place as u128,
        };
        (0..count).map(cell).collect()
    }

    #[test]
    fn a_rate_is_made_of_completions_and_seconds_and_a_mean_of_latencies_and_completions() {
        let length = Nanos::from_millis(2_500);
        let batch = Batch { slices: 0..4, length, completed: 3, latency_sum: 7 };
        assert_eq!(completions_over_time(&batch), (3.0, 2.5));
        assert_eq!(latency(&batch), (7.0, 3.0));
    }

    #[test]
    fn merging_takes_a_quarter_away_at_a_time_until_sixteen_are_left() {
        let cells = numbered(100);
        let tried = std::cell::RefCell::new(Vec::new());
        let hopeless = Batches::merged(&cells, MOST, |batches| {
            tried.borrow_mut().push(batches.len());
            true
        });
        assert_eq!(*tried.borrow(), [48, 36, 27, 20, 16]);
        assert!(hopeless.correlated && hopeless.batches.len() == FEWEST);
        assert!(!hopeless.reliable());
        let merged = Batches::merged(&cells, MOST, |batches| batches.len() > 27);
        assert_eq!((merged.batches.len(), merged.correlated), (27, false));
        assert!(merged.reliable());
        // Never more than there is to merge.
        assert_eq!(Batches::merged(&cells[..5], MOST, |_| false).batches.len(), 5);
    }

    #[test]
    fn groups_differ_by_one_cell_at_most_and_add_up() {
        let groups = grouped(&numbered(10), 3);
        let parts: Vec<_> = groups.iter().map(|it| (it.slices.clone(), it.latency_sum)).collect();
        assert_eq!(parts, [(0..3, 3), (3..6, 12), (6..10, 30)]);
        assert!(groups.iter().all(|it| it.completed as usize == it.slices.len()));
        assert_eq!(groups[2].length, Nanos(4 * SLICE.0));
    }

    #[test]
    fn a_batch_of_time_holds_fifty_completions_as_long_as_sixteen_remain() {
        let window = Nanos::from_secs(4);
        // An edge takes one completion at most.
        for (completions, batches) in [(400, 16), (1_600, 31), (2_000, 39), (10_000, 48)] {
            let series = closed_loop(window, |_| window.0 / completions);
            assert_eq!(
                Batches::by_time(&series, window).as_slice().len(),
                batches,
                "{completions}"
            );
        }
    }

    #[test]
    fn batches_by_completion_leave_out_what_is_empty() {
        let window = Nanos::from_secs(1);
        let series = closed_loop(window, |_| 45_000_000);
        let batches = Batches::by_completion(&series, window);
        assert_eq!(batches.as_slice().len(), 22, "calls of 45 ms in a second");
        assert!(batches.as_slice().iter().all(|batch| batch.completed == 1));
    }

    #[test]
    fn the_last_cell_ends_with_the_window() {
        let window = Nanos(SLICE.0 * 5 / 2);
        let series = closed_loop(Nanos(SLICE.0 * 4), |_| 1_000_000);
        let lengths: Vec<_> = cells(&series, window).iter().map(|cell| cell.length.0).collect();
        assert_eq!(lengths, [SLICE.0, SLICE.0, SLICE.0 / 2]);
        assert_eq!(inside(&series, window).len(), 3);
        assert_eq!(inside(&series, Nanos::from_secs(1)).len(), 4, "no more than were recorded");
    }

    #[test]
    fn exactly_so_many_batches_or_none() {
        let series = closed_loop(Nanos(SLICE.0 * 4), |_| 1_000_000);
        let exactly = |count| Batches::exactly(&series, Nanos(SLICE.0 * 4), count);
        assert_eq!(exactly(4).map(|batches| batches.len()), Some(4));
        assert_eq!(exactly(3).map(|batches| batches.len()), Some(3));
        assert_eq!(exactly(5), None);
    }

    /// A slow device answers late, a slow client asks seldom: either alone makes batches correlate.
    #[test]
    fn counts_and_latencies_are_both_looked_at() {
        let halves = |calls: [u64; 2], latencies: [u64; 2]| {
            let mut series = Series::new(SLICE);
            for place in 0..480 {
                let half = usize::from(place >= 240);
                let start = Nanos(place * SLICE.0);
                let mut slice = Slice { start, length: SLICE, ..Slice::empty() };
                (0..calls[half]).for_each(|_| slice.count(Nanos(latencies[half])));
                series.add(&slice);
            }
            Batches::by_time(&series, series.span()).reliable()
        };
        assert!(halves([10, 10], [1_000, 1_000]));
        assert!(!halves([10, 20], [1_000, 1_000]), "counts");
        assert!(!halves([10, 10], [1_000, 2_000]), "latencies");
    }
}
