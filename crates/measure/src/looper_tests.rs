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
    /// Starts and ends of the operations that ended well.
    log: Vec<(u64, u64)>,
    /// The numbers of all operations.
    performed: Vec<u64>,
}

/// A code after which scripted work gives up.
const LAST_STRAW: u64 = 0x32;

impl<F> Scripted<F> {
    fn new(clock: &Virtual, service: F) -> Self {
        Self { clock: clock.clone(), service, log: Vec::new(), performed: Vec::new() }
    }
}

impl<F: Fn(u64) -> Result<u64, u64>> MeasuredWork for Scripted<F> {
    fn perform(&mut self, operation: u64) -> Result<(), u64> {
        self.performed.push(operation);
        let start = self.clock.now().0;
        let served = (self.service)(operation);
        self.clock.pass(served.unwrap_or(1000));
        if served.is_ok() {
            self.log.push((start, self.clock.now().0));
        }
        served.map(|_| ())
    }

    fn failed(&mut self, _: u64, code: u64) -> Onward {
        if code == LAST_STRAW { Onward::GiveUp } else { Onward::Continue }
    }
}

/// Collects slices; refuses some of them, as a full queue does.
struct Collect<'a> {
    series: &'a RefCell<Vec<Series>>,
    /// The slices of the first lane as they came.
    taken: &'a RefCell<Vec<Slice>>,
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
        if lane == 0 {
            self.taken.borrow_mut().push(slice.clone());
        }
        true
    }
}

struct Outcome {
    lanes: Vec<Series>,
    taken: Vec<Slice>,
    log: Vec<(u64, u64)>,
    performed: Vec<u64>,
    first_done: u32,
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
    let taken = RefCell::default();
    let sink = Collect { series: &lanes, taken: &taken, refuse_every, offered: 0 };
    let mut recorder = Recorder::new(1, grid, sink);
    let mut work = Scripted::new(&clock, service);
    let share = OperationRange { first: 0, limit };
    let ended = run_worker_loop(&clock, &gate, &mut pace, &mut work, &mut recorder, share);
    let ends = recorder.finish();
    drop(recorder);
    Outcome {
        lanes: lanes.into_inner(),
        taken: taken.into_inner(),
        log: work.log,
        performed: work.performed,
        first_done: gate.first_done(),
        ended,
        ends,
    }
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
        // The warm-up has numbers of its own.
        prop_assert!(outcome.performed.iter().copied().eq(0..outcome.performed.len() as u64));
        prop_assert_eq!(outcome.first_done, 1);
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
    let taken = RefCell::default();
    let sink = Collect { series: &lanes, taken: &taken, refuse_every: 0, offered: 0 };
    let mut recorder = Recorder::new(1, SliceGrid::default(), sink);
    let mut work = Scripted::new(&clock, |_| Ok(10));
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
        let mut work = Scripted::new(&clock, service);
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

/// Latencies and ends are those of the log, and each slice holds what ended in it: one that was
/// refused grew.
#[test]
fn slices_lie_on_the_grid_and_hold_what_ended_in_them() {
    for refuse_every in [0, 3] {
        let service = |op: u64| Ok(100_000 + op % 7 * 10_000);
        let outcome = simulate(ClosedLoop::TwoReadings, 1.0, None, refuse_every, service);
        let grid = SliceGrid::for_window(Nanos::from_secs(1));
        let length = grid.whole(Nanos::from_secs(1)).0;
        let counted = |slice: &Slice| {
            let range = OPENS + slice.start.0..OPENS + slice.start.0 + slice.length.0;
            outcome.log.iter().filter(|(_, end)| range.contains(end)).count() as u64
        };
        let mut next = 0;
        for slice in &outcome.taken {
            assert_eq!(slice.start.0, next);
            next += slice.length.0;
            assert_eq!(slice.completed, counted(slice), "{refuse_every} {slice:?}");
            assert!(slice.buckets.iter().all(|(_, count)| *count > 0), "{slice:?}");
            let times = slice.length.0 / grid.first_length.0;
            assert!(times == 1 || (refuse_every > 0 && times == 2), "{refuse_every} {slice:?}");
        }
        assert_eq!(next, length);

        let window = OPENS..OPENS + length;
        let inside: Vec<_> = outcome.log.iter().filter(|(_, end)| window.contains(end)).collect();
        let latencies: Vec<u64> = inside.iter().map(|(start, end)| end - start).collect();
        let total = outcome.lanes[0].total();
        assert_eq!(total.latency_sum, u128::from(latencies.iter().sum::<u64>()));
        assert_eq!(Some(total.min.0), latencies.iter().copied().min());
        assert_eq!(Some(total.max.0), latencies.iter().copied().max());
        let end = &outcome.ends[0];
        assert_eq!(end.first_end.map(|end| end.0), inside.first().map(|(_, end)| *end));
        assert_eq!(end.last_end.map(|end| end.0), inside.last().map(|(_, end)| *end));
        assert_eq!((outcome.ends[1].first_end, outcome.ends[1].last_end), (None, None));
    }
}

#[test]
fn a_slice_of_failures_alone_is_handed_on() {
    let outcome = simulate(ClosedLoop::TwoReadings, 0.1, None, 0, |_| Err(0x30));
    let failed = outcome.lanes[0].total().failed;
    assert_eq!(outcome.ends[0].failures, [(0x30, failed)]);
    assert!(failed > 50_000, "{failed}");
}

#[test]
fn each_request_that_was_waited_for_has_a_scheduling_delay() {
    let schedule = Schedule::constant(Nanos(0), PerSecond(1000.0));
    let outcome = simulate(OpenLoop::new(schedule), 1.0, None, 0, |_| Ok(200_000));
    let delays = outcome.lanes[1].total();
    // The virtual clock wakes on time.
    assert_eq!(delays.buckets, [(0, outcome.lanes[0].total().completed)]);
    assert_eq!(outcome.ends[1].last_end, outcome.ends[0].last_end);
}

#[test]
fn a_warm_up_lasts_its_length_and_keeps_the_first_latencies() {
    let clock = Virtual::default();
    clock.pass(1_000_000);
    let mut work = Scripted::new(&clock, |op| Ok(100 + op));
    // 105 + 106 + … + 123 are less, with 124 they are as long.
    let warm = warm_up(&clock, &mut work, Nanos(2_290), 5, || false);
    assert!(work.performed.iter().copied().eq(5..25));
    assert_eq!((warm.operations, warm.length), (20, Nanos(2_290)));
    assert!(warm.first.iter().map(|latency| latency.0).eq(105..121));
    assert!(warm.failures.is_empty() && !warm.gave_up);
    let stopped = warm_up(&clock, &mut work, Nanos(2_290), 5, || true);
    assert_eq!(stopped, WarmUpResult::default());
}

#[test]
fn a_warm_up_goes_on_after_a_failure_unless_the_work_gives_up() {
    let clock = Virtual::default();
    let service = |op: u64| match op {
        1 => Err(0x30),
        3 => Err(LAST_STRAW),
        _ => Ok(10),
    };
    let mut work = Scripted::new(&clock, service);
    let warm = warm_up(&clock, &mut work, Nanos::from_secs(1), 0, || false);
    assert_eq!((warm.operations, warm.failures), (4, vec![0x30, LAST_STRAW]));
    assert!(warm.gave_up);
}

#[test]
fn a_worker_that_gives_up_ends_with_the_code() {
    for last in [2, 5_000_000 / 70_000 + 5] {
        let service = |op: u64| if op == last { Err(LAST_STRAW) } else { Ok(70_000) };
        let outcome = simulate(ClosedLoop::TwoReadings, 1.0, None, 0, service);
        assert_eq!(outcome.ended, LoopEnd::GaveUp(LAST_STRAW));
        assert_eq!(outcome.performed.last(), Some(&last));
    }
}
