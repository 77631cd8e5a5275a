//! The measuring threads of one run: started, warmed up, released together, collected.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::gate::Gate;
use tapstone_measure::looper::{self, LoopEnd, OperationRange, WarmUpResult};
use tapstone_measure::pace::{ClosedLoop, OpenLoop, Schedule};
use tapstone_measure::recorder::{LaneEnd, Recorder};
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{Pkcs11Failure, Violation};

use super::WorkerEvent;
use super::bench::Bench;
use super::contention::ThreadNumber;
use super::sink::{Drain, RingSink, ring};
use crate::protocol::{CaseRun, Pace, ThreadEnd};

/// Makes what a thread measures with, on that thread.
pub(super) type BenchBuilder = Box<dyn FnOnce() -> Result<Bench, Pkcs11Failure> + Send>;

/// Threads that are warming up or measuring.
pub(super) struct MeasuringThreads {
    pub(super) gate: Arc<Gate>,
    starts: Vec<Sender<Nanos>>,
    handles: Vec<JoinHandle<FinishedThread>>,
    pub(super) drains: Vec<Drain>,
    pub(super) numbers: Vec<ThreadNumber>,
}

/// A thread that has ended; its session and what it kept live on for verification.
pub(super) struct FinishedThread {
    pub(super) bench: Option<Bench>,
    pub(super) end: Option<ThreadEnd>,
}

impl MeasuringThreads {
    /// Starts one thread for each builder, which runs on that thread: all of them or none.
    pub(super) fn start(
        run: &CaseRun,
        gate: Arc<Gate>,
        first_worker: u32,
        builders: Vec<BenchBuilder>,
        events: &Sender<WorkerEvent>,
    ) -> std::io::Result<Self> {
        let mut running = Self {
            gate,
            starts: Vec::new(),
            handles: Vec::new(),
            drains: Vec::new(),
            numbers: Vec::new(),
        };
        for (index, build) in builders.into_iter().enumerate() {
            let (sink, drain) = ring(first_worker + index as u32, run.samples);
            let (start, started) = mpsc::channel();
            let thread = MeasuringThread {
                index,
                run: run.clone(),
                gate: Arc::clone(&running.gate),
                sink,
                events: events.clone(),
            };
            let number = ThreadNumber::default();
            running.numbers.push(number.clone());
            let handle = thread::Builder::new().name(format!("measure-{index}"));
            let handle = handle.spawn(move || {
                number.set_to_this_thread();
                let finished = thread.build_and_measure(build, &started);
                number.note_end();
                finished
            });
            match handle {
                Ok(handle) => running.handles.push(handle),
                Err(error) => {
                    running.gate.close_at(Nanos::ZERO);
                    running.join();
                    return Err(error);
                }
            }
            running.starts.push(start);
            running.drains.push(drain);
        }
        Ok(running)
    }

    /// Releases the threads at a moment.
    pub(super) fn release(&self, at: Nanos) {
        for start in &self.starts {
            // A thread that failed to warm up is not waiting.
            let _ = start.send(at);
        }
    }

    /// Waits for the threads; the window must have closed.
    pub(super) fn join(self) -> Vec<FinishedThread> {
        drop(self.starts);
        let ended = self.handles.into_iter().map(JoinHandle::join);
        ended.map(|thread| thread.unwrap_or(FinishedThread { bench: None, end: None })).collect()
    }
}

struct MeasuringThread {
    index: usize,
    run: CaseRun,
    gate: Arc<Gate>,
    sink: RingSink,
    events: Sender<WorkerEvent>,
}

impl MeasuringThread {
    fn build_and_measure(
        self,
        build: BenchBuilder,
        started: &mpsc::Receiver<Nanos>,
    ) -> FinishedThread {
        let events = self.events.clone();
        let (finished, ready) = match build() {
            Ok(bench) => self.measure(bench, started),
            Err(failure) => (FinishedThread { bench: None, end: None }, Err(failure)),
        };
        if let Err(failure) = ready {
            let _ = events.send(WorkerEvent::Ready(Err(failure)));
        }
        let _ = events.send(WorkerEvent::Ended);
        finished
    }

    fn measure(
        self,
        mut bench: Bench,
        started: &mpsc::Receiver<Nanos>,
    ) -> (FinishedThread, Result<(), Pkcs11Failure>) {
        let closed = || self.gate.closes() <= Monotonic.now();
        let warm_up =
            looper::warm_up(&Monotonic, &mut bench, self.run.warm_up, self.run.first, closed);
        if let Some(failure) = gave_up(&warm_up, &bench) {
            return (FinishedThread { bench: Some(bench), end: None }, Err(failure));
        }
        let first = self.run.first + warm_up.operations;
        let _ = self.events.send(WorkerEvent::Ready(Ok(warm_up)));
        // The sender is gone when the run was called off.
        let Ok(at) = started.recv() else {
            return (FinishedThread { bench: Some(bench), end: None }, Ok(()));
        };
        Monotonic.wait_until(at);
        let limit = self.run.counts.as_ref().map(|counts| counts[self.index]);
        let end = self.count(&mut bench, at, OperationRange { first, limit });
        (FinishedThread { bench: Some(bench), end: Some(end) }, Ok(()))
    }

    fn count(self, bench: &mut Bench, at: Nanos, share: OperationRange) -> ThreadEnd {
        let lanes = bench.lanes.len();
        let gate = Arc::clone(&self.gate);
        let seed = self.run.seed;
        let mut recorder = Recorder::new(lanes, self.run.grid, self.sink);
        let mut measuring = LoopArguments { gate: &gate, bench, recorder: &mut recorder, share };
        let ended = match self.run.pace {
            Pace::Closed => measuring.measure_at_pace(&mut ClosedLoop::TwoReadings),
            Pace::Chained => measuring.measure_at_pace(&mut ClosedLoop::Chained),
            Pace::Constant(rate) => {
                measuring.measure_at_pace(&mut OpenLoop::new(Schedule::constant(at, rate)))
            }
            Pace::Poisson(rate) => {
                measuring.measure_at_pace(&mut OpenLoop::new(Schedule::poisson(at, rate, seed)))
            }
        };
        let lanes = recorder.finish();
        ThreadEnd {
            ended,
            last_failure: bench.last,
            broken_outside: bench.violations_outside(&lanes),
            lanes: with_changed_inputs(bench, lanes),
            eligible: bench.lanes.iter().map(|lane| lane.eligible()).collect(),
            outages: bench.outages.clone(),
            phases: bench.phases(),
        }
    }
}

/// The loop's arguments, but for the pace.
struct LoopArguments<'a> {
    gate: &'a Gate,
    bench: &'a mut Bench,
    recorder: &'a mut Recorder<RingSink>,
    share: OperationRange,
}

impl LoopArguments<'_> {
    fn measure_at_pace<P: tapstone_measure::pace::Pace>(&mut self, pace: &mut P) -> LoopEnd {
        looper::run_worker_loop(&Monotonic, self.gate, pace, self.bench, self.recorder, self.share)
    }
}

/// A change in the middle of a long input is seen only now: it counts as one more failure.
fn with_changed_inputs(bench: &Bench, mut ends: Vec<LaneEnd>) -> Vec<LaneEnd> {
    for (lane, end) in bench.lanes.iter().zip(&mut ends) {
        if !lane.inputs_are_unchanged() {
            end.failures.push((Violation::InputChanged.code().0, 1));
        }
    }
    ends
}

/// Nothing succeeded, and the thread has given up.
fn gave_up(warm_up: &WarmUpResult, bench: &Bench) -> Option<Pkcs11Failure> {
    let nothing = warm_up.failures.len() as u64 == warm_up.operations;
    bench.last.filter(|_| nothing && warm_up.gave_up)
}
