//! What comes from the workers while a case runs, added up.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tapstone_measure::recorder::SliceGrid;
use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;

use crate::protocol::{Done, RawSample};

/// Where raw samples go.
pub trait SampleSink {
    /// Takes samples of a case whose lanes have these names.
    ///
    /// # Errors
    /// What the file says, in words; the run goes on without samples.
    fn take(&mut self, lanes: &[String], samples: &[RawSample]) -> Result<(), String>;
}

/// All that the workers of a case have said so far.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// By lane, all processes together.
    pub lanes: Vec<Series>,
    /// How late the generator of an open loop was.
    pub lateness: Series,
    /// Counts by process, then lane; latencies are in `lanes` only.
    pub shares: Vec<Vec<Series>>,
    /// Everything so far, for whoever watches.
    pub so_far: Slice,
    /// By process, once it is done.
    pub done: Vec<Option<Done>>,
    /// When the workers began: the origin of an open loop's schedule.
    pub started: Nanos,
    /// When the window opened.
    pub opened: Nanos,
    /// When it closed, or the last operation of a counted case ended.
    pub closed: Nanos,
}

impl Gathered {
    pub(super) fn new(lanes: usize, processes: usize, grid: SliceGrid) -> Self {
        let empty = Series::new(grid.first_length);
        Self {
            lanes: vec![empty.clone(); lanes],
            lateness: empty.clone(),
            shares: vec![vec![empty.clone(); lanes]; processes],
            so_far: Slice::empty(),
            done: vec![None; processes],
            started: Nanos::NEVER,
            opened: Nanos::NEVER,
            closed: Nanos::NEVER,
        }
    }

    /// Takes a slice of a process's lane; the lane after the last is lateness.
    pub(super) fn take(&mut self, process: usize, lane: u8, slice: &Slice) {
        match self.lanes.get_mut(usize::from(lane)) {
            Some(series) => {
                series.add(slice);
                self.so_far.absorb(slice);
                let counts = Slice { buckets: Vec::new(), ..slice.clone() };
                self.shares[process][usize::from(lane)].add(&counts);
            }
            None => self.lateness.add(slice),
        }
    }

    /// Lets the window open only when the last worker knew of it.
    pub(super) fn open_later(&mut self, known_to_all: Nanos) {
        let series = self.lanes.iter().chain([&self.lateness]).chain(self.shares.iter().flatten());
        let coarsest = series.map(Series::length).max().unwrap_or(Nanos(1)).0;
        let late = known_to_all - self.opened;
        let offset = Nanos(late.0.div_ceil(coarsest) * coarsest);
        let all = self.lanes.iter_mut().chain([&mut self.lateness]);
        for series in all.chain(self.shares.iter_mut().flatten()) {
            *series = series.opened_later(offset);
        }
        self.opened += offset;
        self.closed = self.closed.max(self.opened);
    }

    /// Lets go of what was done after the window closed, by workers that heard of it too late.
    pub(super) fn end_with_window(&mut self) {
        let window = self.window();
        let all = self.lanes.iter_mut().chain([&mut self.lateness]);
        for series in all.chain(self.shares.iter_mut().flatten()) {
            *series = series.closed_at(window);
        }
    }

    /// A moment not before this, in an open window, at which all slices that there are end.
    pub(super) fn between_slices(&self, at: Nanos) -> Nanos {
        let all = self.lanes.iter().chain([&self.lateness]);
        let coarsest = all.map(Series::length).max().unwrap_or(Nanos(1)).0;
        self.opened + Nanos((at - self.opened).0.next_multiple_of(coarsest))
    }

    /// The moment up to which all of these processes have reported.
    pub(super) fn last_of(&self, places: &[usize]) -> Nanos {
        let span = |place: &usize| self.shares[*place].iter().map(Series::span).max();
        self.opened + places.iter().filter_map(span).min().unwrap_or(Nanos::ZERO)
    }

    /// The end of the last slice that was reported.
    pub(super) fn last_slice(&self) -> Nanos {
        self.opened + self.lanes.iter().map(Series::span).max().unwrap_or(Nanos::ZERO)
    }

    /// All lanes of the case as one series.
    #[must_use]
    pub fn combined(&self) -> Series {
        let mut all = Series::new(
            self.lateness
                .length()
                .min(self.lanes.iter().map(Series::length).min().unwrap_or(Nanos::NEVER)),
        );
        for slice in self.lanes.iter().flat_map(Series::slices) {
            all.add(slice);
        }
        all
    }

    /// From the opening of the window to its closing.
    #[must_use]
    pub fn window(&self) -> Nanos {
        self.closed - self.opened
    }

    /// The figures of a series of this case.
    #[must_use]
    pub fn summary(
        &self,
        series: &Series,
        lane: Option<usize>,
        workers: u32,
        step: Nanos,
    ) -> Summary {
        let conditions = Conditions {
            window: self.window(),
            workers: NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN),
            first_and_last: self.first_and_last(lane),
            clock_step: step,
        };
        Summary::from_series(series, &conditions)
    }

    /// When the first and the last counted operation ended, of a lane or of all.
    fn first_and_last(&self, lane: Option<usize>) -> Option<(Nanos, Nanos)> {
        let ends = || {
            let threads = self.done.iter().flatten().flat_map(|done| &done.threads);
            threads
                .flat_map(move |thread| {
                    let lanes = thread.lanes.len().saturating_sub(1);
                    thread.lanes[..lanes].iter().enumerate()
                })
                .filter(move |(index, _)| lane.is_none_or(|lane| lane == *index))
        };
        let first = ends().filter_map(|(_, end)| end.first_end).min()?;
        let last = ends().filter_map(|(_, end)| end.last_end).max()?;
        Some((first, last))
    }

    /// When the last counted operation ended.
    pub(super) fn last_end(&self) -> Option<Nanos> {
        self.first_and_last(None).map(|(_, last)| last)
    }

    /// No operation failed in any lane.
    pub(super) fn has_no_failure(&self) -> bool {
        (0..self.lanes.len()).all(|lane| self.failures(lane).is_empty())
    }

    /// Failures of a lane by code.
    #[must_use]
    pub fn failures(&self, lane: usize) -> BTreeMap<u64, u64> {
        let mut failures = BTreeMap::new();
        for thread in self.done.iter().flatten().flat_map(|done| &done.threads) {
            for (code, count) in thread.lanes.get(lane).map_or(&[][..], |lane| &lane.failures) {
                *failures.entry(*code).or_default() += count;
            }
        }
        failures
    }
}
