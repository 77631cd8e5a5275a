//! The loop on a virtual clock, against a log of what really happened.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::pace::{ClosedLoop, OpenLoop, Schedule};
use crate::recorder::SliceGrid;
use crate::series::Series;
use crate::slice::Slice;
use crate::units::PerSecond;

/// A clock that only work and waiting move.
#[derive(Clone, Default)]
struct Virtual(Rc<Cell<u64>>);

impl Virtual {
    fn pass(&self, nanos: u64) {
        self.0.set(self.0.get() + nanos);
    }
}

impl Clock for Virtual {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
    fn wait_until(&self, moment: Nanos) {
        self.0.set(self.0.get().max(moment.0));
    }
}

/// Serves each operation for as long as a function of its number says, and keeps a log.
struct Scripted<F> {
    clock: Virtual,
    service: F,
    log: Vec<(u64, u64)>,
}

impl<F: Fn(u64) -> Result<u64, u64>> MeasuredWork for Scripted<F> {
    fn perform(&mut self, operation: u64) -> Result<(), u64> {
        let start = self.clock.now().0;
        let served = (self.service)(operation);
        self.clock.pass(served.unwrap_or(1000));
        if served.is_ok() {
            self.log.push((start, self.clock.now().0));
        }
        served.map(|_| ())
    }
}

/// Collects slices; refuses some of them, as a full queue does.
struct Collect<'a> {
    series: &'a RefCell<Vec<Series>>,
    refuse_every: u64,
    offered: u64,
}

impl Sink for Collect<'_> {
    fn slice(&mut self, lane: usize, slice: &Slice) -> bool {
        self.offered += 1;
        if self.refuse_every > 0 && self.offered.is_multiple_of(self.refuse_every) {
            return false;
        }
        self.series.borrow_mut()[lane].add(slice);
        true
    }
}

struct Outcome {
    lanes: Vec<Series>,
    log: Vec<(u64, u64)>,
    ended: LoopEnd,
    ends: Vec<crate::recorder::LaneEnd>,
}

const OPENS: u64 = 5_000_000;

fn simulate<P: Pace>(
    mut pace: P,
    seconds: f64,
    limit: Option<u64>,
    refuse_every: u64,
    service: impl Fn(u64) -> Result<u64, u64>,
) -> Outcome {
    let clock = Virtual::default();
    let window = Nanos((seconds * 1e9) as u64);
    let grid = SliceGrid::for_window(window);
    let gate = Gate::default();
    gate.open_at(Nanos(OPENS));
    if limit.is_none() {
        gate.close_at(Nanos(OPENS) + grid.whole(window));
    }
    let lanes = RefCell::new(vec![Series::new(grid.first_length); 2]);
    let sink = Collect { series: &lanes, refuse_every, offered: 0 };
    let mut recorder = Recorder::new(1, grid, sink);
    let mut work = Scripted { clock: clock.clone(), service, log: Vec::new() };
    let share = OperationRange { first: 0, limit };
    let ended = run_worker_loop(&clock, &gate, &mut pace, &mut work, &mut recorder, share);
    let ends = recorder.finish();
    drop(recorder);
    Outcome { lanes: lanes.into_inner(), log: work.log, ended, ends }
}

/// Completions that the window `[OPENS, OPENS + length)` holds, by the log.
fn logged(log: &[(u64, u64)], length: u64) -> u64 {
    let window = OPENS..OPENS + length;
    log.iter().filter(|(_, end)| window.contains(end)).count() as u64
}

proptest! {
    #[test]
    fn counts_exactly_what_completes_inside_the_window(
        services in prop::collection::vec(1_000u64..30_000_000, 1..50),
        refuse_every in 0u64..4,
    ) {
        let service = |op: u64| Ok(services[op as usize % services.len()]);
        let refuse_every = if refuse_every == 1 { 0 } else { refuse_every };
        let outcome = simulate(ClosedLoop::TwoReadings, 1.0, None, refuse_every, service);
        let length = SliceGrid::for_window(Nanos::from_secs(1)).whole(Nanos::from_secs(1)).0;
        let total = outcome.lanes[0].total();
        prop_assert_eq!(total.completed, logged(&outcome.log, length));
        prop_assert_eq!(outcome.ended, LoopEnd::Window);
        // A worker that never idles is busy for exactly the window.
        prop_assert_eq!(total.busy.0, length);
    }

    #[test]
    fn a_counted_run_does_its_count_and_no_more(limit in 1u64..500) {
        let outcome = simulate(ClosedLoop::TwoReadings, 1.0, Some(limit), 0, |_| Ok(70_000));
        prop_assert_eq!(outcome.ended, LoopEnd::Count);
        prop_assert_eq!(outcome.lanes[0].total().completed, limit);
        let after_opening = outcome.log.iter().filter(|(_, end)| *end >= OPENS).count();
        prop_assert_eq!(after_opening as u64, limit);
    }
}

#[test]
fn failures_are_counted_by_code_and_never_raise_a_rate() {
    let service = |op: u64| if op % 4 == 3 { Err(0x30) } else { Ok(100_000) };
    let outcome = simulate(ClosedLoop::TwoReadings, 1.0, None, 0, service);
    let total = outcome.lanes[0].total();
    let length = SliceGrid::for_window(Nanos::from_secs(1)).whole(Nanos::from_secs(1)).0;
    assert_eq!(total.completed, logged(&outcome.log, length));
    assert_eq!(outcome.ends[0].failures, [(0x30, total.failed)]);
    assert!(total.failed > 0);
}

/// 1,000 requests a second, 0.2 ms each, and 50 ms more at every 500th: the open loop charges the
/// stall to all the requests that waited behind it, the closed loop only to the one that stalled.
#[test]
fn an_open_loop_charges_a_stall_to_all_that_it_held_up() {
    let service = |op: u64| Ok(if op % 500 == 499 { 50_200_000 } else { 200_000 });
    let schedule = Schedule::constant(Nanos(0), PerSecond(1000.0));
    let open = simulate(OpenLoop::new(schedule), 20.0, None, 0, service);
    let closed = simulate(ClosedLoop::TwoReadings, 20.0, None, 0, service);
    let p99 = |outcome: &Outcome| {
        let total = outcome.lanes[0].total();
        let mut left = total.completed / 100;
        let mut buckets = total.buckets.iter().rev();
        loop {
            let (bucket, count) = buckets.next().unwrap();
            if *count > left {
                break crate::bucket::lowest_of(*bucket as usize).0 as f64 / 1e6;
            }
            left -= count;
        }
    };
    assert!((45.0..47.0).contains(&p99(&open)), "{}", p99(&open));
    assert!((0.19..0.21).contains(&p99(&closed)), "{}", p99(&closed));
}

#[test]
fn lateness_is_the_generators_own() {
    let schedule = Schedule::constant(Nanos(0), PerSecond(1000.0));
    let outcome = simulate(OpenLoop::new(schedule), 1.0, None, 0, |_| Ok(2_000_000));
    // The device takes twice as long as the gaps: the generator never has to wait, and is not late.
    assert!(outcome.lanes[1].total().completed <= 1);
}

#[test]
fn a_run_that_is_ended_before_its_window_opens_counts_nothing() {
    let clock = Virtual::default();
    let gate = Gate::default();
    gate.close_at(Nanos::ZERO);
    let lanes = RefCell::new(vec![Series::new(Nanos(1_000_000)); 2]);
    let sink = Collect { series: &lanes, refuse_every: 0, offered: 0 };
    let mut recorder = Recorder::new(1, SliceGrid::default(), sink);
    let mut work = Scripted { clock: clock.clone(), service: |_| Ok(10), log: Vec::new() };
    let share = OperationRange { first: 0, limit: None };
    let ended = run_worker_loop(
        &clock,
        &gate,
        &mut ClosedLoop::TwoReadings,
        &mut work,
        &mut recorder,
        share,
    );
    assert_eq!(ended, LoopEnd::Window);
    assert_eq!(recorder.finish()[0].first_end, None);
    assert_eq!(lanes.borrow()[0].total().completed, 0);
}

/// Keeps raw samples by the moment at which they ended.
#[derive(Default)]
struct Ends(Vec<(u64, Option<u64>)>);

impl Sink for &mut Ends {
    fn slice(&mut self, _: usize, _: &Slice) -> bool {
        true
    }

    fn sample(&mut self, sample: OperationSample) {
        self.0.push(((sample.start + sample.latency).0, sample.failure));
    }
}

/// A completed operation is recorded after the next one, and yet before it, however the loop ends.
#[test]
fn samples_are_handed_on_in_order_and_none_is_left_behind() {
    for limit in 1..40 {
        let clock = Virtual::default();
        let gate = Gate::default();
        gate.open_at(Nanos::ZERO);
        let mut ends = Ends::default();
        let mut recorder = Recorder::new(1, SliceGrid::default(), &mut ends);
        let service = |op: u64| if op % 3 == 2 { Err(0x30) } else { Ok(700_000) };
        let mut work = Scripted { clock: clock.clone(), service, log: Vec::new() };
        let share = OperationRange { first: 0, limit: Some(limit) };
        let pace = &mut ClosedLoop::TwoReadings;
        let ended = run_worker_loop(&clock, &gate, pace, &mut work, &mut recorder, share);
        assert_eq!(ended, LoopEnd::Count);
        recorder.finish();
        drop(recorder);
        assert_eq!(ends.0.len() as u64, limit);
        assert!(ends.0.is_sorted_by_key(|(end, _)| *end), "{:?}", ends.0);
        let completed: Vec<u64> =
            ends.0.iter().filter(|it| it.1.is_none()).map(|it| it.0).collect();
        let logged: Vec<u64> = work.log.iter().map(|(_, end)| *end).collect();
        assert_eq!(completed, logged);
    }
}
