//! A case while it runs: threads measure, this forwards what they have and passes on orders.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use cryptoki_sys::CKR_SESSION_COUNT;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::contention::Contention;
use tapstone_measure::gate::Gate;
use tapstone_measure::looper::WarmUpResult;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{Pkcs11Failure, Rv};
use tapstone_worker::BoardCell;

use super::bench::{Bench, FailurePolicy};
use super::case::Case;
use super::case_lane::LaneThread;
use super::contention::ContentionWatch;
use super::shared::Shared;
use super::threads::{BenchBuilder, MeasuringThreads};
use super::watch::CallWatch;
use super::{Worker, WorkerEvent};
use crate::module::Session;
use crate::protocol::{CaseRun, Done, Order, Report, Task};

/// How often slices are forwarded.
const TICK: Duration = Duration::from_millis(50);

/// How often a thread's first completion is looked for: the window waits for it.
const FIRST_TICK: Duration = Duration::from_millis(2);

/// Samples in one frame.
const SAMPLE_BATCH: usize = 1 << 16;

/// The threads of a case, and how far they have come.
pub(super) struct RunningCase {
    running: MeasuringThreads,
    threads: usize,
    counted: bool,
    ready: Vec<WarmUpResult>,
    failure: Option<Pkcs11Failure>,
    ended: usize,
    released: bool,
    first_done: bool,
    opened: Option<ProcessorTime>,
    closed: Option<ProcessorTime>,
    watch: ContentionWatch,
    contention: Contention,
    samples_dropped: u64,
}

/// Processor time used by this process, at a moment.
#[derive(Clone, Copy, Debug)]
struct ProcessorTime {
    at: Nanos,
    user: Nanos,
    system: Nanos,
}

impl RunningCase {
    /// Starts the threads, which open their sessions and warm up.
    pub(super) fn start(worker: &mut Worker, run: CaseRun) -> io::Result<Self> {
        let board = worker.board()?;
        let events = worker.events.clone();
        let token = worker.token()?;
        token.end_threads();
        let case = Arc::new(token.case.take().ok_or_else(super::out_of_order)?);
        if case.is_login() {
            token.main.logout().ok();
            // Private session objects go with the login.
            token.shared.module.live_objects.clear();
        }
        let gate = Arc::new(Gate::default());
        let threads = run.threads as usize;
        let builder = |index| {
            // Several threads must not use one session at a time.
            let spare = (threads == 1).then(|| token.main.lend());
            let case = Arc::clone(&case);
            let shared = Arc::clone(&token.shared);
            let gate = Arc::clone(&gate);
            let place = board.cell(1 + index);
            let run = run.clone();
            let build = move || {
                let session = open_or_take(spare, &shared)?;
                build_bench(index, &case, shared, gate, run, place, session)
            };
            Box::new(build) as BenchBuilder
        };
        let builders = (0..threads).map(builder);
        let first_worker = case.job.first_worker;
        let builders = builders.collect();
        let running =
            match MeasuringThreads::start(&run, gate.clone(), first_worker, builders, &events) {
                Ok(running) => running,
                Err(error) => {
                    // Its keys have to be destroyed.
                    token.case = Arc::into_inner(case);
                    return Err(error);
                }
            };
        token.running_case = Some(case);
        Ok(Self {
            watch: ContentionWatch::new(running.numbers.clone()),
            contention: Contention::default(),
            running,
            threads,
            counted: run.counts.is_some(),
            ready: Vec::new(),
            failure: None,
            ended: 0,
            released: false,
            first_done: false,
            opened: None,
            closed: None,
            samples_dropped: 0,
        })
    }

    /// Steers the threads until all have ended.
    pub(super) fn steer(mut self, worker: &mut Worker) -> io::Result<()> {
        while self.ended < self.threads {
            let tick = if self.released && !self.first_done { FIRST_TICK } else { TICK };
            match worker.inbox.recv_timeout(tick.min(self.watch.until_next_sample())) {
                Ok(event) => self.take(event, worker),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => worker.abandoned = true,
            }
            self.look(worker);
            if worker.abandoned {
                self.close(Nanos::ZERO);
            }
        }
        self.end(worker)
    }

    fn take(&mut self, event: WorkerEvent, worker: &mut Worker) {
        match event {
            WorkerEvent::Ready(Ok(warm_up)) => self.ready.push(warm_up),
            WorkerEvent::Ready(Err(failure)) => {
                self.failure.get_or_insert(failure);
                // The others need not warm up, or wait, for a run that will not be.
                self.close(Nanos::ZERO);
            }
            WorkerEvent::Ended => self.ended += 1,
            WorkerEvent::Order(Order::Task(Task::Start { at })) => {
                if self.counted {
                    self.running.gate.open_at(at);
                    self.open();
                }
                self.running.release(at);
                self.released = true;
            }
            WorkerEvent::Order(Order::Task(Task::Open { at, closes })) => {
                if let Some(closes) = closes {
                    self.running.gate.close_at(closes);
                }
                self.running.gate.open_at(at);
                let known = self.open();
                worker.report(&Report::Opened { from: at.max(known) });
            }
            WorkerEvent::Order(Order::Task(Task::Ping)) => worker.report(&Report::Pong),
            WorkerEvent::Order(Order::Task(Task::Close { at })) => self.close(at),
            WorkerEvent::Order(_) => {}
            WorkerEvent::Abandoned => worker.abandoned = true,
        }
        let all_warm = self.ready.len() == self.threads;
        let report = match self.failure {
            Some(failure) if self.ended == self.threads => Some(Err(failure)),
            None if all_warm && !self.released => Some(Ok(std::mem::take(&mut self.ready))),
            _ => None,
        };
        if let Some(report) = report {
            worker.report(&Report::Ready(report));
        }
    }

    fn close(&mut self, at: Nanos) {
        self.running.gate.close_at(at);
        if !self.released {
            // Threads that wait for the start are called off.
            self.running.release(Nanos::ZERO);
            self.released = true;
        }
    }

    /// The window opens; the moment from which the threads know of it.
    fn open(&mut self) -> Nanos {
        let opened = ProcessorTime::now();
        self.opened = Some(opened);
        self.watch.open();
        opened.at
    }

    /// Forwards what the threads have, and notes what they have reached.
    fn look(&mut self, worker: &mut Worker) {
        if self.released && !self.first_done {
            self.first_done = self.running.gate.first_done() as usize == self.threads;
            if self.first_done && !self.counted {
                worker.report(&Report::FirstDone);
            }
        }
        if self.closed.is_none() && self.running.gate.closes() <= Monotonic.now() {
            self.note_closing();
        }
        self.watch.sample();
        self.forward(worker);
    }

    fn note_closing(&mut self) {
        self.closed = Some(ProcessorTime::now());
        self.contention = self.watch.close();
    }

    fn forward(&mut self, worker: &mut Worker) {
        let mut slices = Vec::new();
        self.samples_dropped = 0;
        for drain in &mut self.running.drains {
            slices.extend(drain.slices());
            self.samples_dropped += drain.dropped();
            loop {
                let samples = drain.samples(SAMPLE_BATCH);
                if samples.is_empty() {
                    break;
                }
                worker.report(&Report::Samples(samples));
            }
        }
        if !slices.is_empty() {
            worker.report(&Report::Slices(slices));
        }
    }

    fn end(mut self, worker: &mut Worker) -> io::Result<()> {
        self.forward(worker);
        if self.closed.is_none() {
            self.note_closing();
        }
        let closed = self.closed.unwrap_or_else(ProcessorTime::now);
        let finished = self.running.join();
        let token = worker.token()?;
        token.case = token.running_case.take().and_then(Arc::into_inner);
        let threads = finished.iter().filter_map(|thread| thread.end.clone()).collect();
        token.finished = finished;
        if self.failure.is_some() || worker.abandoned {
            return Ok(());
        }
        let opened = self.opened.unwrap_or(closed);
        let done = Done {
            threads,
            user: closed.user - opened.user,
            system: closed.system - opened.system,
            elapsed: closed.at - opened.at,
            contention: self.contention,
            samples_dropped: self.samples_dropped,
        };
        worker.report(&Report::Done(Box::new(done)));
        Ok(())
    }
}

/// A session for a measuring thread: one of its own, or on a token that has no room for another
/// the main one, which nobody else uses while the thread measures.
fn open_or_take(spare: Option<Session>, shared: &Shared) -> Result<Session, Pkcs11Failure> {
    let opened = Session::open(&shared.module, shared.slot, shared.read_only);
    match (opened, spare) {
        (Err(failure), Some(spare)) if failure.code == SESSION_COUNT => Ok(spare),
        (opened, _) => opened,
    }
}

const SESSION_COUNT: Rv = Rv(CKR_SESSION_COUNT as u64);

/// What one thread measures with, in the thread itself: its lanes and its memory.
fn build_bench(
    index: usize,
    case: &Case,
    shared: Arc<Shared>,
    gate: Arc<Gate>,
    run: CaseRun,
    place: BoardCell,
    session: Session,
) -> Result<Bench, Pkcs11Failure> {
    let worker = case.job.first_worker.wrapping_add(index as u32);
    let limit = run.counts.as_ref().map_or(u64::MAX, |counts| counts[index]);
    let keep_bytes = run.keep_bytes / u64::from(run.threads.max(1));
    let seed = run.seed.wrapping_add(u64::from(worker));
    let thread = LaneThread { index, worker, keep_bytes, limit, seed, place: &place };
    let lanes = case.lanes_for(&shared, &session, thread)?;
    Ok(Bench {
        references: case.references(),
        shared,
        gate,
        session: Some(session),
        lanes,
        mix: run.mix,
        watch: CallWatch::new(place, run.phases),
        failure_policy: FailurePolicy { max_failures: run.max_failures, reconnect: run.reconnect },
        seed,
        outages: Vec::new(),
        in_a_row: 0,
        last: None,
        violations: Vec::new(),
    })
}

impl ProcessorTime {
    fn now() -> Self {
        // SAFETY: all zero is a valid `rusage`, and the call only fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let nanos = |time: libc::timeval| {
            Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
        };
        let at = Monotonic.now();
        Self { at, user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
    }
}
