//! A row from its keys to its last slice: prepared, started together, watched, closed, cleaned up.

use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::looper::WarmUp;
use tapstone_measure::recorder::Grid;
use tapstone_measure::slice::Slice;
use tapstone_measure::units::{Nanos, PerSecond};

use super::error::{LabError, Lost};
use super::gather::{Gathered, SampleSink};
use super::plan::{KeyCount, KeysPlan, LoadPlan, RowPlan, Stop};
use super::process::Word;
use super::{Lab, RowOutcome, figures, verify};
use crate::calls::Failure;
use crate::material::{ForToken, Inputs, KeyMaterial, MaterialError, Verifier};
use crate::protocol::{
    Job, KeyPlan, KeyUse, LaneJob, LaneReady, Order, Pace, Report, Run, Trouble,
};

/// Watches a row while it runs.
pub trait Observer {
    /// Something is being done before or after the measuring.
    fn stage(&mut self, row: &str, stage: &str);

    /// Called a few times a second while a row is measured.
    fn progress(&mut self, row: &str, progress: &Progress);
}

/// How a row stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the window opened.
    pub elapsed: Nanos,
    /// How long it will be at most; `None`: until a count is done.
    pub window: Option<Nanos>,
    /// Completed so far.
    pub completed: u64,
    /// Of how many, if they are counted.
    pub count: Option<u64>,
    /// Failed so far.
    pub failed: u64,
    /// Completed a second, so far.
    pub rate: PerSecond,
    /// Median latency so far.
    pub p50: Option<Nanos>,
    /// Latency that 99 % did not exceed so far.
    pub p99: Option<Nanos>,
}

/// From the order to start to the start: the time for it to reach all workers.
const START_NOTICE: Nanos = Nanos::from_millis(20);

/// From the last first completion to the window's opening.
const OPEN_NOTICE: Nanos = Nanos::from_millis(10);

/// From a decision to close to the closing: longer than any slice that may be open.
const CLOSE_NOTICE: Nanos = Nanos::from_millis(30);

/// When the rate's interval is first looked at; then at twice that, and so on. Looking all the
/// time and stopping at the first narrow interval would believe luck.
const FIRST_LOOK: Nanos = Nanos::from_secs(2);

/// Between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(200);

/// Memory for results to be verified, all workers together.
const KEEP_BYTES: u64 = 256 << 20;

/// Inputs in a ring: enough that a token cannot answer from memory, few enough to stay in cache.
const RING: usize = 64;

/// A row whose keys and inputs are in place.
pub(super) struct Prepared {
    /// Process numbers, by token.
    pub(super) processes: Vec<Vec<usize>>,
    /// Of each process, in the order of `processes` flattened.
    pub(super) first_workers: Vec<u32>,
    /// By process, then lane.
    pub(super) ready: Vec<Vec<LaneReady>>,
    /// By process, lane, key.
    pub(super) verifiers: Vec<Vec<Vec<Verifier>>>,
}

impl Prepared {
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.processes.iter().flatten().copied().collect()
    }
}

/// A row that ran.
pub(super) struct Ran {
    pub(super) gathered: Gathered,
    pub(super) warm_ups: Vec<WarmUp>,
    /// Which of the prepared processes took part.
    pub(super) took_part: Vec<usize>,
    pub(super) threads: u32,
    /// The rate was known well enough before the time was up.
    pub(super) precise: bool,
    pub(super) lost: Option<Lost>,
    pub(super) interrupted: bool,
}

/// Why a row has no figures.
pub(super) enum NoRow {
    /// A call of the trial, or before it, failed: the token cannot do this, or not this way.
    Refused(Failure),
    /// Everything else.
    Error(LabError),
}

impl From<LabError> for NoRow {
    fn from(error: LabError) -> Self {
        Self::Error(error)
    }
}

impl Lab {
    /// Measures a row. What goes wrong is in the outcome, beside whatever was measured before.
    pub fn measure(
        &mut self,
        plan: &RowPlan,
        observer: &mut dyn Observer,
        samples: Option<&mut dyn SampleSink>,
    ) -> RowOutcome {
        observer.stage(plan.name(), "preparing keys");
        let prepared = match self.prepare(plan, plan.processes) {
            Ok(prepared) => prepared,
            Err(why) => return self.without_figures(plan, why),
        };
        let numbers = prepared.numbers();
        let outcome = match self.run(plan, &prepared, &numbers, plan.threads, observer, samples) {
            Ok(ran) => {
                observer.stage(plan.name(), "verifying results");
                let judged = verify::judge(self, plan, &prepared, &ran);
                figures::outcome(self, plan, &prepared, ran, judged)
            }
            Err(why) => self.without_figures(plan, why),
        };
        let cleaned = self.finish(&prepared);
        outcome.with_trouble(cleaned.err())
    }

    fn without_figures(&mut self, plan: &RowPlan, why: NoRow) -> RowOutcome {
        // A process that died may have left keys; those that live have cleaned up.
        let cleaned = self.replace_the_dead();
        figures::without(plan, why).with_trouble(cleaned.err())
    }

    /// Makes or finds the keys, prepares the inputs, and tries one operation of each lane.
    pub(super) fn prepare(&mut self, plan: &RowPlan, processes: u32) -> Result<Prepared, NoRow> {
        let processes = self.ensure(processes)?;
        let mut prepared = Prepared {
            processes,
            first_workers: Vec::new(),
            ready: Vec::new(),
            verifiers: Vec::new(),
        };
        let numbers = prepared.numbers();
        prepared.first_workers = numbers.iter().map(|_| self.fresh.worker()).collect();
        let jobs: Vec<Job> =
            prepared.first_workers.iter().map(|first| self.job(plan, *first)).collect();
        let limit = self.options.timeout;
        let order = |place: usize| Order::Prepare(Box::new(jobs[place].clone()));
        let answers = self.ask_all(&numbers, order, 0, limit, |report| match report {
            Report::Prepared(ready) => Some(ready),
            _ => None,
        });
        for answer in answers {
            match answer.map_err(|lost| self.lost(lost))? {
                Ok(ready) => prepared.ready.push(ready),
                Err(Trouble::Call { failure, .. }) => return Err(NoRow::Refused(failure)),
                Err(other) => return Err(LabError::Keys { trouble: other }.into()),
            }
        }
        let inputs = make_inputs(plan, &mut prepared).map_err(LabError::Material)?;
        self.try_inputs(&numbers, &inputs)?;
        Ok(prepared)
    }

    fn job(&self, plan: &RowPlan, first_worker: u32) -> Job {
        let keys = match &plan.keys {
            KeysPlan::Existing { label, id } => {
                KeyPlan::Existing { label: label.clone(), id: id.clone() }
            }
            KeysPlan::Own { count, on_token } => KeyPlan::Own {
                count: match count {
                    KeyCount::Shared => 1,
                    KeyCount::PerWorker => plan.threads,
                    KeyCount::Number(number) => *number,
                },
                // Session keys are gone with the session that a lost device takes along.
                on_token: *on_token || plan.common.reconnect,
            },
        };
        let lane = |lane: &super::plan::LanePlan| LaneJob {
            variant: lane.variant.clone(),
            keys: keys.clone(),
        };
        Job {
            run: self.run.clone(),
            lanes: plan.lanes.iter().map(lane).collect(),
            first_worker,
            verify: plan.common.verify,
            key_use: key_use(plan),
            extra_objects: plan.common.extra_objects,
            idle_sessions: plan.common.idle_sessions,
        }
    }

    fn try_inputs(
        &mut self,
        numbers: &[usize],
        inputs: &[Vec<Vec<ForToken>>],
    ) -> Result<(), NoRow> {
        let limit = self.options.timeout;
        let order = |place: usize| Order::Inputs(inputs[place].clone());
        let answers = self.ask_all(numbers, order, 0, limit, |report| match report {
            Report::Tried(tried) => Some(tried),
            _ => None,
        });
        for answer in answers {
            let tried = answer.map_err(|lost| self.lost(lost))?;
            if let Some(failure) = tried.into_iter().find_map(Result::err) {
                return Err(NoRow::Refused(failure));
            }
        }
        Ok(())
    }

    /// Runs a prepared row on some of its processes.
    pub(super) fn run(
        &mut self,
        plan: &RowPlan,
        prepared: &Prepared,
        numbers: &[usize],
        threads: u32,
        observer: &mut dyn Observer,
        samples: Option<&mut dyn SampleSink>,
    ) -> Result<Ran, NoRow> {
        observer.stage(plan.name(), "warming up");
        let limit = self.options.timeout;
        let runs = self.runs(plan, numbers.len() as u32, threads);
        let order = |place: usize| Order::Run(Box::new(runs[place].clone()));
        let ready = self.ask_all(numbers, order, threads as usize, limit, |report| match report {
            Report::Ready(ready) => Some(ready),
            _ => None,
        });
        let mut warm_ups = Vec::new();
        let mut warm = Vec::new();
        let mut refused = None;
        for (answer, number) in ready.into_iter().zip(numbers) {
            match answer {
                Ok(Ok(threads)) => {
                    warm_ups.extend(threads);
                    warm.push(*number);
                }
                Ok(Err(failure)) => refused = refused.or(Some(NoRow::Refused(failure))),
                Err(lost) => refused = refused.or(Some(self.lost(lost).into())),
            }
        }
        if let Some(why) = refused {
            self.call_off(&warm);
            return Err(why);
        }
        let grid = runs[0].grid;
        let took_part = numbers
            .iter()
            .filter_map(|number| prepared.numbers().iter().position(|other| other == number))
            .collect();
        let gathered = Gathered::new(plan.lanes.len(), numbers.len(), grid);
        let mut steering = Steering {
            lab: self,
            plan,
            numbers,
            threads,
            observer,
            samples,
            gathered,
            grid,
            first_done: 0,
            next_look: FIRST_LOOK,
            precise: false,
            lost: None,
            closing: false,
            interrupted: false,
            last_progress: Instant::now(),
        };
        steering.start();
        steering.until_done();
        let Steering { gathered, precise, lost, interrupted, .. } = steering;
        Ok(Ran { gathered, warm_ups, took_part, threads, precise, lost, interrupted })
    }

    /// Ends threads that are warm for a run that will not be.
    fn call_off(&mut self, warm: &[usize]) {
        let limit = self.options.timeout;
        self.ask_all(
            warm,
            |_| Order::Close { at: Nanos::ZERO },
            0,
            limit,
            |report| matches!(report, Report::Done(_)).then_some(()),
        );
    }

    fn runs(&mut self, plan: &RowPlan, processes: u32, threads: u32) -> Vec<Run> {
        let grid = match plan.stop {
            Stop::Seconds(window) => Grid::for_window(window),
            Stop::Precision { .. } | Stop::Count(_) => Grid::default(),
        };
        let pace = match plan.load {
            LoadPlan::Closed => Pace::Closed,
            LoadPlan::Chained => Pace::Chained,
            LoadPlan::Open { rate, poisson } => {
                let share = PerSecond(rate.0 / f64::from(processes));
                if poisson { Pace::Poisson(share) } else { Pace::Constant(share) }
            }
        };
        let run = |place: u32| Run {
            threads,
            pace,
            first: self.fresh.operation(),
            counts: match plan.stop {
                Stop::Count(count) => {
                    Some(split(count, processes * threads, place * threads, threads))
                }
                _ => None,
            },
            grid,
            warm_up: plan.common.warm_up,
            keep_bytes: if plan.common.verify { KEEP_BYTES / u64::from(processes) } else { 0 },
            seed: plan.common.seed.wrapping_add(u64::from(place)),
            mix: plan.mix(),
            samples: plan.common.samples,
            phases: plan.common.phases,
            max_failures: plan.common.max_failures,
            reconnect: plan.common.reconnect,
        };
        (0..processes).map(run).collect()
    }

    /// Destroys the row's keys; replaces processes that were lost and cleans up behind them.
    pub(super) fn finish(&mut self, prepared: &Prepared) -> Result<(), LabError> {
        let living: Vec<usize> = prepared
            .numbers()
            .into_iter()
            .filter(|number| self.member(*number).is_some())
            .collect();
        let limit = self.options.timeout;
        let answers = self.ask_all(
            &living,
            |_| Order::Finish,
            0,
            limit,
            |report| match report {
                Report::Finished(finished) => Some(finished),
                _ => None,
            },
        );
        let mut outcome = Ok(());
        for answer in answers {
            let failure = match answer {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => {
                    LabError::Call { what: "removing the run's own keys".into(), failure }
                }
                Err(lost) => self.lost(lost),
            };
            outcome = outcome.and(Err(failure));
        }
        self.replace_the_dead().and(outcome)
    }

    /// After a worker has died: removes the keys that it may have left, from a fresh process where
    /// the token has none any more.
    fn replace_the_dead(&mut self) -> Result<(), LabError> {
        let dead = self.members.iter().filter(|member| member.is_none()).count();
        if dead == self.mourned {
            return Ok(());
        }
        self.mourned = dead;
        for token in 0..self.targets.len() {
            if self.processes_of(token).is_empty() {
                self.join(token)?;
            }
            let run = self.run.clone();
            self.sweep(token, true, Some(run))?;
        }
        Ok(())
    }
}

/// Which thread uses which key.
pub(super) fn key_use(plan: &RowPlan) -> KeyUse {
    match plan.keys {
        KeysPlan::Own { count: KeyCount::PerWorker, .. } => KeyUse::PerThread,
        _ => KeyUse::InTurn,
    }
}

/// The shares of `count` for `threads` of `workers`, from the worker of this number on.
fn split(count: u64, workers: u32, first: u32, threads: u32) -> Vec<u64> {
    let (each, rest) = (count / u64::from(workers), count % u64::from(workers));
    (first..first + threads).map(|worker| each + u64::from(u64::from(worker) < rest)).collect()
}

/// Inputs by process, lane and key; their other halves go into verifiers.
fn make_inputs(
    plan: &RowPlan,
    prepared: &mut Prepared,
) -> Result<Vec<Vec<Vec<ForToken>>>, MaterialError> {
    let mut all = Vec::new();
    for process in &prepared.ready {
        let mut lanes = Vec::new();
        let mut lane_verifiers = Vec::new();
        for (lane, ready) in plan.lanes.iter().zip(process) {
            let mut rings = Vec::new();
            let mut verifiers = Vec::new();
            let none = [KeyMaterial::None];
            let materials: Vec<&KeyMaterial> = if ready.keys.is_empty() {
                none.iter().collect()
            } else {
                ready.keys.iter().map(|key| &key.material).collect()
            };
            for (number, material) in materials.into_iter().enumerate() {
                let seed = plan.common.seed.wrapping_add(number as u64);
                let inputs = Inputs::prepare(&lane.variant, material, seed, RING)?;
                rings.push(inputs.for_token);
                verifiers.push(Verifier::new(&lane.variant, material, inputs.for_verifier)?);
            }
            lanes.push(rings);
            lane_verifiers.push(verifiers);
        }
        all.push(lanes);
        prepared.verifiers.push(lane_verifiers);
    }
    Ok(all)
}

/// The lab while a row runs.
struct Steering<'a, 'b> {
    lab: &'a mut Lab,
    plan: &'a RowPlan,
    numbers: &'a [usize],
    threads: u32,
    observer: &'a mut dyn Observer,
    samples: Option<&'b mut dyn SampleSink>,
    gathered: Gathered,
    grid: Grid,
    first_done: usize,
    next_look: Nanos,
    precise: bool,
    lost: Option<Lost>,
    closing: bool,
    interrupted: bool,
    last_progress: Instant,
}

impl Steering<'_, '_> {
    fn start(&mut self) {
        let at = Monotonic.now() + START_NOTICE;
        self.order(&Order::Start { at });
        if matches!(self.plan.stop, Stop::Count(_)) {
            self.gathered.opened = at;
        }
    }

    fn until_done(&mut self) {
        while self.waits() {
            match self.lab.hear(Duration::from_millis(20)) {
                Some((number, word)) => self.take(number, word),
                None => self.check(),
            }
            if self.lab.interrupted_at.is_some() && !self.closing {
                self.interrupted = true;
                self.close(Nanos::ZERO);
            }
            self.look();
        }
        let counted = matches!(self.plan.stop, Stop::Count(_));
        let ended = self.gathered.last_end();
        let now = Monotonic.now();
        let cut_short = self.lost.is_some() || self.everyone_gave_up();
        if counted || cut_short {
            self.gathered.closed = ended.unwrap_or(now).min(self.gathered.closed);
        }
        if self.gathered.opened == Nanos::NEVER {
            (self.gathered.opened, self.gathered.closed) = (now, now);
        }
    }

    /// Someone still measures.
    fn waits(&mut self) -> bool {
        let mut waits = false;
        for (place, number) in self.numbers.iter().enumerate() {
            let alive = self.lab.members[*number].is_some();
            waits |= alive && self.gathered.done[place].is_none();
        }
        waits
    }

    fn everyone_gave_up(&self) -> bool {
        use tapstone_measure::looper::Ended;
        let mut threads = self.gathered.done.iter().flatten().flat_map(|done| &done.threads);
        threads.all(|thread| matches!(thread.ended, Ended::GaveUp(_)))
    }

    fn take(&mut self, number: usize, word: Word) {
        let Some(place) = self.numbers.iter().position(|other| *other == number) else { return };
        match word {
            Word::Report(Report::FirstDone) => {
                self.first_done += 1;
                if self.first_done == self.numbers.len() && !self.closing {
                    self.open();
                }
            }
            Word::Report(Report::Slices(slices)) => {
                for (lane, slice) in slices {
                    self.gathered.take(place, lane, &slice);
                }
            }
            Word::Report(Report::Samples(samples)) => {
                let names: Vec<String> =
                    self.plan.lanes.iter().map(|lane| lane.variant.name.clone()).collect();
                // A file that cannot be written is told by its owner; the row goes on.
                if let Some(sink) = &mut self.samples
                    && sink.take(&names, &samples).is_err()
                {
                    self.samples = None;
                }
            }
            Word::Report(Report::Done(done)) => self.gathered.done[place] = Some(*done),
            Word::Report(_) => {}
            Word::Gone => {
                let lost = self.lab.bury(number, self.threads as usize, None);
                self.lose(lost);
            }
            Word::Garbled(why) => {
                let lost = self.lab.bury(number, self.threads as usize, Some(Lost::Garbled(why)));
                self.lose(lost);
            }
        }
    }

    /// The window is agreed upon: announced ahead, so that all workers cut at the same moment.
    fn open(&mut self) {
        let at = Monotonic.now() + OPEN_NOTICE;
        let closes = match self.plan.stop {
            Stop::Seconds(window) => Some(at + self.grid.whole(window)),
            Stop::Precision { longest, .. } => Some(at + self.grid.whole(longest)),
            Stop::Count(_) => None,
        };
        self.gathered.opened = at;
        self.gathered.closed = closes.unwrap_or(Nanos::NEVER);
        self.order(&Order::Open { at, closes });
    }

    fn close(&mut self, at: Nanos) {
        self.closing = true;
        let now = Monotonic.now();
        self.gathered.closed = self.gathered.closed.min(at.max(now));
        self.order(&Order::Close { at });
    }

    /// A worker is gone: the others end too, and what they measured is kept.
    fn lose(&mut self, lost: Lost) {
        self.lost.get_or_insert(lost);
        if !self.closing {
            self.close(Nanos::ZERO);
        }
    }

    fn check(&mut self) {
        let limit = self.lab.options.timeout;
        for (place, number) in self.numbers.iter().enumerate() {
            if self.gathered.done[place].is_some() || self.lab.members[*number].is_none() {
                continue;
            }
            if let Some(lost) = self.lab.check(*number, self.threads as usize, limit) {
                self.lose(lost);
                return;
            }
        }
    }

    /// Looks at the precision when it is time to, and tells the observer how it goes.
    fn look(&mut self) {
        let opened = self.gathered.opened;
        let now = Monotonic.now();
        if opened == Nanos::NEVER || now < opened || self.closing {
            return;
        }
        let elapsed = now - opened;
        if let Stop::Precision { relative, .. } = self.plan.stop
            && elapsed >= self.next_look + CLOSE_NOTICE
        {
            self.look_at_precision(relative);
        }
        if self.last_progress.elapsed() >= PROGRESS {
            self.last_progress = Instant::now();
            let progress = self.progress(elapsed);
            self.observer.progress(self.plan.name(), &progress);
        }
    }

    fn look_at_precision(&mut self, relative: f64) {
        let workers = self.threads * self.numbers.len() as u32;
        let mut so_far = self.gathered.clone();
        so_far.closed = so_far.opened + self.next_look;
        let step = self.plan.common.clock_step;
        let summary = so_far.summary(&so_far.combined(), None, workers, step);
        if summary.reliable && summary.rate.relative_half_width() <= relative {
            self.precise = true;
            let length = self.gathered.lateness.length().0;
            let at = Monotonic.now() + CLOSE_NOTICE - self.gathered.opened;
            self.close(self.gathered.opened + Nanos(at.0.next_multiple_of(length)));
        } else {
            self.next_look = Nanos(self.next_look.0 * 2);
        }
    }

    fn progress(&self, elapsed: Nanos) -> Progress {
        let mut total = Slice::empty();
        for slice in self.gathered.shares.iter().flatten() {
            total.absorb(slice);
        }
        Progress {
            elapsed,
            window: match self.plan.stop {
                Stop::Seconds(window) => Some(window),
                Stop::Precision { longest, .. } => Some(longest),
                Stop::Count(_) => None,
            },
            completed: total.completed,
            count: match self.plan.stop {
                Stop::Count(count) => Some(count),
                _ => None,
            },
            failed: total.failed,
            rate: PerSecond(total.completed as f64 / elapsed.as_secs_f64().max(1e-9)),
            p50: total.quantile(0.5),
            p99: total.quantile(0.99),
        }
    }

    fn order(&mut self, order: &Order) {
        for number in self.numbers {
            if let Some(member) = self.lab.member(*number) {
                member.process.order(order);
            }
        }
    }
}
