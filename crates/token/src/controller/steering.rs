//! A case while it runs: all workers start together, the window opens once each has completed an
//! operation, closes at a moment announced ahead, and ends early for whoever asks or dies.

use std::time::Duration;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::looper::LoopEnd;
use tapstone_measure::recorder::SliceGrid;
use tapstone_measure::slice::Slice;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_worker::{Heard, HeardOf, PROGRESS_INTERVAL, Periodic};

use super::error::Lost;
use super::gather::{Gathered, SampleSink};
use super::outcome::CaseNotMeasured;
use super::plan::{CasePlan, CaseStop, LoadPlan};
use super::prepare::Prepared;
use super::ran_case::RanCase;
use super::{Site, TokenController};
use crate::protocol::{CaseRun, Pace, RawSample, Report, Task, TokenProtocol};

/// Watches a case while it runs.
pub trait TokenObserver {
    /// Something is being done before or after the measuring.
    fn stage(&mut self, case: &str, stage: &str);

    /// Something that the user should know before it begins, such as how long it takes.
    fn notice(&mut self, _text: &str) {}

    /// A level of a search, or a round, begins; what is said until the next one is about it.
    fn begin_part(&mut self, _part: &SearchPart) {}

    /// Called a few times a second while a case is measured.
    fn progress(&mut self, case: &str, progress: &CaseProgress);
}

/// A part of a search, or of a case in rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPart {
    /// Which: `4 threads, pass 2`.
    pub name: String,
    /// When the whole will be over.
    pub left: TimeLeft,
}

/// How long something will still take, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLeft {
    /// No longer than about this, and often less.
    UpTo(Duration),
    /// About this.
    About(Duration),
    /// Nothing is known of it yet.
    Unknown,
}

/// How a case stands.
#[derive(Clone, Copy, Debug)]
pub struct CaseProgress {
    /// Since the window opened.
    pub elapsed: Nanos,
    /// How long it will be at most; `None`: until a count is done.
    pub window: Option<Nanos>,
    /// Operations that have completed so far.
    pub completed: u64,
    /// Of how many, if they are counted.
    pub count: Option<u64>,
    /// Operations that have failed so far.
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

/// From the order to open the window to its opening, at least.
const OPEN_NOTICE: Nanos = Nanos::from_millis(10);

/// From a decision to close to the closing: the time for it to reach all workers.
const CLOSE_NOTICE: Nanos = Nanos::from_millis(30);

/// How long after the end of its window, beyond the time limit of a call, another machine may take
/// to say that it has ended.
const GRACE: Nanos = Nanos::from_secs(5);

/// The same once the user has asked to end.
const GRACE_AFTER_INTERRUPT: Nanos = Nanos::from_secs(2);

/// A connection may be away for so long, and its host takes part all the same.
const LONGEST_BREAK: Nanos = Nanos::from_secs(5);

/// When the rate's interval is first looked at; then at twice that, and so on. Looking all the
/// time and stopping at the first narrow interval would believe luck.
const FIRST_LOOK: Nanos = Nanos::from_secs(2);

/// Memory for results to be verified, all workers together.
const KEEP_BYTES: u64 = 256 << 20;

impl TokenController {
    /// Runs a prepared case on some of its processes.
    pub(super) fn run_case(
        &mut self,
        plan: &CasePlan,
        prepared: &Prepared,
        numbers: &[usize],
        threads: u32,
        observer: &mut dyn TokenObserver,
        samples: Option<&mut dyn SampleSink>,
    ) -> Result<RanCase, CaseNotMeasured> {
        observer.stage(plan.name(), "warming up");
        let runs = self.runs(plan, numbers.len() as u32, threads);
        let order = |place: usize| Task::Run(Box::new(runs[place].clone()));
        for number in numbers {
            self.workers.watch_threads(*number, threads as usize);
        }
        let ready = self.ask_all(numbers, order, |report| match report {
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
                Ok(Err(failure)) => refused = refused.or(Some(CaseNotMeasured::Refused(failure))),
                Err(error) => refused = refused.or(Some(error.into())),
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
        if let Site::Hosts(hosts) = &mut self.site {
            hosts.set_clocks();
        }
        let mut steering = CaseSteering {
            controller: self,
            plan,
            numbers,
            threads,
            observer,
            samples,
            gathered,
            grid,
            first_done: 0,
            pinged: Nanos::ZERO,
            pongs: 0,
            known_to_all: Nanos::ZERO,
            next_look: FIRST_LOOK,
            precise: false,
            lost: None,
            lost_afterwards: None,
            lost_places: Vec::new(),
            closing: false,
            interrupted: false,
            interrupted_at: Nanos::NEVER,
            progress_report: Periodic::new(PROGRESS_INTERVAL),
        };
        let begun = Monotonic.now();
        let used = own_processor_time();
        steering.start();
        steering.until_done();
        let own = (own_processor_time() - used).as_secs_f64();
        let own_cores = own / (Monotonic.now() - begun).as_secs_f64().max(1e-9);
        if plan.common.samples {
            steering.fetch_samples();
        }
        let CaseSteering { gathered, precise, lost, lost_afterwards, interrupted, .. } = steering;
        let clocks = match &mut self.site {
            Site::Here(_) => Vec::new(),
            Site::Hosts(hosts) => hosts.clocks(),
        };
        Ok(RanCase {
            gathered,
            warm_ups,
            took_part,
            threads,
            own_cores,
            precise,
            lost,
            lost_afterwards,
            refuted: Vec::new(),
            broken_when_read: Vec::new(),
            clocks,
            interrupted,
        })
    }

    /// Ends threads that are warm for a run that will not be.
    fn call_off(&mut self, warm: &[usize]) {
        self.ask_all(
            warm,
            |_| Task::Close { at: Nanos::ZERO },
            |report| matches!(report, Report::Done(_)).then_some(()),
        );
    }

    fn runs(&mut self, plan: &CasePlan, processes: u32, threads: u32) -> Vec<CaseRun> {
        let grid = match plan.stop {
            CaseStop::Seconds(window) => SliceGrid::for_window(window),
            CaseStop::Precision { .. } | CaseStop::Count(_) => SliceGrid::default(),
        };
        let pace = match plan.load {
            LoadPlan::Closed => Pace::Closed,
            LoadPlan::Chained => Pace::Chained,
            LoadPlan::Open { rate, poisson } => {
                let share = PerSecond(rate.0 / f64::from(processes));
                if poisson { Pace::Poisson(share) } else { Pace::Constant(share) }
            }
        };
        let run = |place: u32| CaseRun {
            threads,
            pace,
            first: self.fresh.operation(),
            counts: match plan.stop {
                CaseStop::Count(count) => {
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
}

/// The shares of `count` for `threads` of `workers`, from the worker of this number on.
fn split(count: u64, workers: u32, first: u32, threads: u32) -> Vec<u64> {
    let each = count / u64::from(workers);
    let rest = count % u64::from(workers);
    (first..first + threads).map(|worker| each + u64::from(u64::from(worker) < rest)).collect()
}

/// The latest moment at which another machine can have opened a window that was announced for
/// `announced`, if it says so `now`: none that is still to come, and none after a break of its
/// connection that costs nothing. `slack` is for its clock, and for words on their way.
fn latest_opening(announced: Nanos, now: Nanos, slack: Nanos) -> Nanos {
    if announced == Nanos::NEVER {
        return Nanos::ZERO;
    }
    announced.max(now).min(announced + LONGEST_BREAK) + slack
}

/// Processor time of this process, which measures nothing itself.
fn own_processor_time() -> Nanos {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}

/// Hands samples on. A file that cannot be written is told by its owner; the case goes on.
fn keep(plan: &CasePlan, sink: &mut Option<&mut dyn SampleSink>, samples: &[RawSample]) {
    let names: Vec<String> = plan.lanes.iter().map(|lane| lane.variant.name.clone()).collect();
    if sink.as_mut().is_some_and(|sink| sink.take(&names, samples).is_err()) {
        *sink = None;
    }
}

/// The controller while a case runs.
struct CaseSteering<'a, 'b> {
    controller: &'a mut TokenController,
    plan: &'a CasePlan,
    numbers: &'a [usize],
    threads: u32,
    observer: &'a mut dyn TokenObserver,
    samples: Option<&'b mut dyn SampleSink>,
    gathered: Gathered,
    grid: SliceGrid,
    first_done: usize,
    pinged: Nanos,
    pongs: usize,
    /// When the last worker knew that the window was open.
    known_to_all: Nanos,
    next_look: Nanos,
    precise: bool,
    lost: Option<Lost>,
    lost_afterwards: Option<Lost>,
    /// Which workers are gone.
    lost_places: Vec<usize>,
    closing: bool,
    interrupted: bool,
    interrupted_at: Nanos,
    progress_report: Periodic,
}

impl CaseSteering<'_, '_> {
    fn start(&mut self) {
        let at = Monotonic.now() + self.controller.notice(START_NOTICE);
        self.gathered.started = at;
        self.send_to_all(&Task::Start { at });
        if matches!(self.plan.stop, CaseStop::Count(_)) {
            self.gathered.opened = at;
        }
    }

    fn until_done(&mut self) {
        while self.waits() {
            if let Some((number, heard)) = self.controller.workers.hear(Duration::from_millis(20)) {
                self.take(number, heard);
            }
            if self.controller.workers.is_interrupted() && !self.closing {
                self.interrupted = true;
                self.interrupted_at = Monotonic.now();
                self.close_soon();
            }
            self.look();
            self.give_up_the_overdue();
        }
        let counted = matches!(self.plan.stop, CaseStop::Count(_));
        let ended = self.gathered.last_end();
        let now = Monotonic.now();
        let cut_short = self.lost.is_some() || self.everyone_gave_up();
        if counted || cut_short {
            let end = match self.lost {
                None => ended.unwrap_or_else(|| self.gathered.last_slice()),
                // What other machines did without the lost one is no common window.
                Some(_) if self.controller.hosts().is_some() => {
                    self.gathered.last_of(&self.lost_places)
                }
                Some(_) => self.gathered.last_slice(),
            };
            self.gathered.closed = end.min(self.gathered.closed);
        }
        if self.gathered.opened == Nanos::NEVER {
            self.gathered.opened = now;
            self.gathered.closed = now;
        }
        if self.controller.hosts().is_some() {
            self.gathered.end_with_window();
        }
        if self.known_to_all > self.gathered.opened {
            self.gathered.open_later(self.known_to_all);
        }
    }

    /// Whether some worker still measures.
    fn waits(&mut self) -> bool {
        let mut waits = false;
        for (place, number) in self.numbers.iter().enumerate() {
            let alive = self.controller.workers.is_alive(*number);
            waits |= alive && self.gathered.done[place].is_none();
        }
        waits
    }

    /// Whether a slice can be of this case. A machine that is not ours may say anything, and what it
    /// says must not take our memory or overflow a sum.
    fn can_be(&self, slice: &Slice) -> bool {
        const MOST: u64 = 1 << 40;
        const LONGEST: Nanos = Nanos::from_secs(400 * 86_400);
        self.controller.hosts().is_none()
            || (slice.start + slice.length <= LONGEST
                && slice.length > Nanos::ZERO
                && slice.completed <= MOST
                && slice.failed <= MOST)
    }

    /// When other machines have to have ended, on this machine's clock and whatever they say.
    fn deadline(&self) -> Nanos {
        let call = Nanos(self.controller.workers.timeouts().call.as_nanos() as u64);
        match (self.interrupted, self.gathered.opened, self.gathered.closed) {
            (true, ..) => self.interrupted_at + GRACE_AFTER_INTERRUPT,
            // Each thread completes an operation before the window opens.
            (false, Nanos::NEVER, _) => self.gathered.started + call + call + GRACE,
            (false, _, closed) => closed + call + GRACE,
        }
    }

    /// Other machines that have not ended in time are not waited for.
    fn give_up_the_overdue(&mut self) {
        if self.controller.hosts().is_none() || Monotonic.now() <= self.deadline() {
            return;
        }
        for (place, number) in self.numbers.iter().enumerate() {
            if self.gathered.done[place].is_none() && self.controller.workers.is_alive(*number) {
                self.give_up_host(place, "it did not end its load in time after the window");
            }
        }
    }

    fn everyone_gave_up(&self) -> bool {
        let mut threads = self.gathered.done.iter().flatten().flat_map(|done| &done.threads);
        threads.all(|thread| matches!(thread.ended, LoopEnd::GaveUp(_)))
    }

    fn take(&mut self, number: usize, heard: HeardOf<TokenProtocol>) {
        let Some(place) = self.numbers.iter().position(|other| *other == number) else { return };
        let report = match heard {
            Heard::Report(report) => report,
            Heard::Lost(lost) => return self.lose(place, lost),
            Heard::Waits => return,
        };
        match report {
            Report::FirstDone => {
                self.first_done += 1;
                if self.first_done == self.numbers.len() && !self.closing {
                    self.pinged = Monotonic.now();
                    self.send_to_all(&Task::Ping);
                }
            }
            Report::Pong => {
                self.pongs += 1;
                if self.pongs == self.numbers.len() && !self.closing {
                    self.open();
                }
            }
            Report::Opened { from } => self.take_opening(place, from),
            Report::Slices(slices) => {
                for (lane, slice) in slices {
                    if !self.can_be(&slice) {
                        continue;
                    }
                    self.gathered.take(place, lane, &slice);
                }
            }
            Report::Samples(some) => keep(self.plan, &mut self.samples, &some),
            Report::Done(done) => self.gathered.done[place] = Some(*done),
            _ => {}
        }
    }

    /// A worker knew that the window was open from this moment on. Another machine may say anything,
    /// and would shorten the window of all.
    fn take_opening(&mut self, place: usize, from: Nanos) {
        let slack = self.controller.notice(OPEN_NOTICE);
        let latest = latest_opening(self.gathered.opened, Monotonic.now(), slack);
        if self.controller.hosts().is_some() && from > latest {
            return self.give_up_host(place, "it opened its window at a moment that cannot be");
        }
        // Nothing opens after it has closed.
        self.known_to_all = self.known_to_all.max(from.min(self.gathered.closed));
    }

    /// Ends a worker of another machine, and says which machine that is.
    fn give_up_host(&mut self, place: usize, why: &str) {
        let number = self.numbers[place];
        let name = self.controller.host_name(number);
        let lost = Lost::Unreachable(format!("{name} was lost: {why}"));
        self.controller.workers.kill(number, lost.clone());
        self.lose(place, lost);
    }

    /// Samples that were kept where they were made, now that nobody measures any more.
    fn fetch_samples(&mut self) {
        let Self { controller, plan, numbers, samples, gathered, .. } = self;
        // The window may have been opened later, or closed earlier, than a worker knew.
        let window = gathered.opened..gathered.closed;
        for &number in *numbers {
            let lost = controller.workers.fetch(number, Task::Samples, |report| {
                let Report::Samples(mut some) = report else { return false };
                let is_last = some.is_empty();
                some.retain(|sample| window.contains(&(sample.start + sample.latency)));
                keep(plan, samples, &some);
                is_last
            });
            self.lost_afterwards = self.lost_afterwards.take().or(lost);
        }
    }

    /// The window is agreed upon: announced ahead, so that all workers cut at the same moment.
    fn open(&mut self) {
        // Workers with more threads than cores hear late: four times as long as they just took.
        let heard = Nanos(4 * (Monotonic.now() - self.pinged).0);
        let at = Monotonic.now() + self.controller.notice(OPEN_NOTICE).max(heard);
        let closes = match self.plan.stop {
            CaseStop::Seconds(window) => Some(at + self.grid.whole(window)),
            CaseStop::Precision { longest, .. } => Some(at + self.grid.whole(longest)),
            CaseStop::Count(_) => None,
        };
        self.gathered.opened = at;
        self.gathered.closed = closes.unwrap_or(Nanos::NEVER);
        self.send_to_all(&Task::Open { at, closes });
    }

    /// As early as all workers can hear of it; where that takes a while, between two slices, so that
    /// what is done after it can be told apart.
    fn close_soon(&mut self) {
        let notice = self.controller.notice(CLOSE_NOTICE);
        let mut at = Monotonic.now() + notice;
        if notice > CLOSE_NOTICE && self.gathered.opened < at {
            at = self.gathered.between_slices(at);
        }
        self.close(at);
    }

    fn close(&mut self, at: Nanos) {
        self.closing = true;
        self.gathered.closed = self.gathered.closed.min(at);
        self.send_to_all(&Task::Close { at });
    }

    /// A worker is gone: the others end too, and what they measured is kept.
    fn lose(&mut self, place: usize, lost: Lost) {
        self.lost_places.push(place);
        self.lost.get_or_insert(lost);
        if !self.closing {
            self.close_soon();
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
        if let CaseStop::Precision { relative, .. } = self.plan.stop
            && elapsed >= self.next_look + self.controller.notice(CLOSE_NOTICE)
        {
            self.look_at_precision(relative);
        }
        if self.progress_report.is_due() {
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
            let at = Monotonic.now() + self.controller.notice(CLOSE_NOTICE);
            self.close(self.gathered.between_slices(at));
        } else {
            self.next_look = Nanos(self.next_look.0 * 2);
        }
    }

    fn progress(&self, elapsed: Nanos) -> CaseProgress {
        let total = &self.gathered.so_far;
        CaseProgress {
            elapsed,
            window: match self.plan.stop {
                CaseStop::Seconds(window) => Some(window),
                CaseStop::Precision { longest, .. } => Some(longest),
                CaseStop::Count(_) => None,
            },
            completed: total.completed,
            count: match self.plan.stop {
                CaseStop::Count(count) => Some(count),
                _ => None,
            },
            failed: total.failed,
            rate: PerSecond(total.completed as f64 / elapsed.as_secs_f64().max(1e-9)),
            p50: total.quantile(0.5),
            p99: total.quantile(0.99),
        }
    }

    fn send_to_all(&mut self, task: &Task) {
        for number in self.numbers {
            self.controller.workers.send_task(*number, task.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_not_opened_in_the_future_nor_long_after_it_was_announced() {
        let second = |n| Nanos::from_secs(n);
        let slack = Nanos::from_millis(10);
        // Told ahead: at the moment itself.
        assert_eq!(latest_opening(second(10), second(9), slack), second(10) + slack);
        // Heard late, and not later than it says so.
        assert_eq!(latest_opening(second(10), second(12), slack), second(12) + slack);
        assert_eq!(latest_opening(second(10), second(60), slack), second(15) + slack);
        assert_eq!(latest_opening(Nanos::NEVER, second(60), slack), Nanos::ZERO);
    }

    #[test]
    fn a_count_is_split_among_all_threads_of_all_workers() {
        // What is left over goes to the first.
        assert_eq!(split(10, 4, 0, 4), [3, 3, 2, 2]);
        assert_eq!(split(8, 4, 0, 4), [2, 2, 2, 2]);
        assert_eq!(split(3, 4, 0, 4), [1, 1, 1, 0]);
        // Each process has its threads' shares.
        let processes = [split(11, 4, 0, 2), split(11, 4, 2, 2)];
        assert_eq!(processes, [[3, 3], [3, 2]]);
        assert_eq!(processes.concat().iter().sum::<u64>(), 11);
    }
}
