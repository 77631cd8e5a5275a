//! The whole conversation of a controller with its workers: they are started, told things, asked,
//! heard, watched, and ended; one that dies or hangs is noticed, wherever it is.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::channel::{Channel, RemoteWorker};
use crate::clean_up::CleanUpTimeouts;
use crate::inbox::{ReportSender, Word};
use crate::lost::Lost;
use crate::process::{WorkerCommand, WorkerProcess};
use crate::protocol::WorkerProtocol;
use crate::timeouts::{Interrupt, Timeouts};
use crate::watch::{ThreadWatch, WorkerSight};

/// Between two looks at what workers are calling, and at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(20);

/// A controller's conversation with workers, which it knows by numbers from 0. A number is never
/// used again, so that a late report is never taken for another worker's.
///
/// A worker is lost when its process ends, when a call takes longer than [`Timeouts`] allow, or when
/// it says something that is no report. It is lost once: whoever hears of it first, by
/// [`hear`](Self::hear) or as the answer to a question, is the only one who does.
pub struct Conversation<P: WorkerProtocol> {
    timeouts: Timeouts,
    /// How long another machine may take to answer.
    remote_timeout: Duration,
    interrupt: Interrupt,
    /// By number; `None` for those that are gone.
    workers: Vec<Option<Worker<P>>>,
    sender: ReportSender<P::Report>,
    inbox: Receiver<(usize, Word<P::Report>)>,
    last_look: Instant,
}

struct Worker<P: WorkerProtocol> {
    channel: Channel<P>,
    watch: ThreadWatch,
}

/// What a controller hears of one of its workers.
#[derive(Debug)]
pub enum Heard<R, C: std::fmt::Display> {
    /// A report of a worker.
    Report(R),
    /// It has been waiting for another program for a second. Said once until it is asked again.
    Waits,
    /// It is no more.
    Lost(Lost<C>),
}

/// What is heard in a conversation by this protocol.
pub type HeardOf<P> = Heard<<P as WorkerProtocol>::Report, <P as WorkerProtocol>::Call>;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered<C: std::fmt::Display> {
    /// The worker is no more.
    Lost(Lost<C>),
    /// The user asked to end; the worker was ended in good order.
    Interrupted,
}

impl<P: WorkerProtocol> Conversation<P> {
    /// A conversation without workers.
    #[must_use]
    pub fn new(timeouts: Timeouts, interrupt: Interrupt) -> Self {
        let (sender, inbox) = mpsc::channel();
        let workers = Vec::new();
        let sender = ReportSender(sender);
        let remote_timeout = Duration::MAX;
        let last_look = Instant::now();
        Self { timeouts, remote_timeout, interrupt, workers, sender, inbox, last_look }
    }

    /// How long workers may take.
    #[must_use]
    pub const fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// How long workers may take from now on. Workers that run already keep their time to clean up.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    /// How long another machine may take to answer a question from now on. Its calls are watched
    /// there, and nobody here sees whether they go on.
    pub const fn set_remote_timeout(&mut self, timeout: Duration) {
        self.remote_timeout = timeout;
    }

    /// The user has asked to end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// The number that the next worker gets.
    #[must_use]
    pub fn next_number(&self) -> usize {
        self.workers.len()
    }

    /// Starts a process of this machine; its number.
    ///
    /// # Errors
    /// What starting a process says.
    pub fn start(&mut self, command: &WorkerCommand) -> io::Result<usize> {
        let number = self.next_number();
        let Timeouts { call, clean_up, .. } = self.timeouts;
        let timeouts = CleanUpTimeouts { in_lasting_call: call.max(clean_up), otherwise: clean_up };
        let process = WorkerProcess::start(command, number, self.sender.clone(), timeouts)?;
        self.add(Some(Channel::Process(process)));
        Ok(number)
    }

    /// Adds a worker of another machine, which reports under [`next_number`](Self::next_number).
    pub fn add_remote(&mut self, remote: Box<dyn RemoteWorker<P>>) {
        self.add(Some(Channel::Remote(remote)));
    }

    /// Uses a number up for a worker that was asked for and never came.
    pub fn add_missing(&mut self) {
        self.add(None);
    }

    fn add(&mut self, channel: Option<Channel<P>>) {
        self.workers.push(channel.map(|channel| Worker { channel, watch: ThreadWatch::new() }));
    }

    /// Where workers of other machines report.
    #[must_use]
    pub fn report_sender(&self) -> ReportSender<P::Report> {
        self.sender.clone()
    }

    /// Where a process finds its board; `None` when there is no such process here.
    #[must_use]
    pub fn board(&mut self, number: usize) -> Option<PathBuf> {
        Some(self.worker(number)?.channel.process()?.board())
    }

    /// Whether this worker lives, as far as is known.
    #[must_use]
    pub fn is_alive(&self, number: usize) -> bool {
        self.workers.get(number).is_some_and(Option::is_some)
    }

    /// The workers that are gone, for whatever reason.
    #[must_use]
    pub fn gone(&self) -> usize {
        self.workers.iter().filter(|worker| worker.is_none()).count()
    }

    /// How many threads of a worker are watched besides its main one.
    pub fn watch_threads(&mut self, number: usize, threads: usize) {
        if let Some(worker) = self.worker(number) {
            worker.watch.set_threads(threads);
        }
    }

    /// Sends a process of this machine an order.
    pub fn send_order(&mut self, number: usize, order: &P::Order) {
        if let Some(process) = self.worker(number).and_then(|worker| worker.channel.process()) {
            process.order(order);
        }
    }

    /// Sends a worker a task. That the worker is gone is heard later.
    pub fn send_task(&mut self, number: usize, task: P::Task) {
        if let Some(worker) = self.worker(number) {
            worker.channel.send_task(task);
        }
    }

    /// What is heard next of any worker; `None` when there was nothing for so long, or when somebody
    /// wakes the controller.
    pub fn hear(&mut self, timeout: Duration) -> Option<(usize, HeardOf<P>)> {
        self.interrupt.look();
        if self.last_look.elapsed() >= LOOK {
            self.last_look = Instant::now();
            if let Some(heard) = self.look() {
                return Some(heard);
            }
        }
        // The conversation holds a sender itself, so the channel never closes.
        let (number, word) = self.inbox.recv_timeout(timeout).ok()?;
        // Late words of those that are gone mean nothing.
        if !self.is_alive(number) {
            return None;
        }
        let heard = match word {
            Word::Report(report) => Heard::Report(report),
            Word::End => Heard::Lost(self.end_lost(number, None)),
            Word::Garbled(why) => Heard::Lost(self.end_lost(number, Some(Lost::Garbled(why)))),
            Word::Wake => return None,
        };
        Some((number, heard))
    }

    /// Waits for the answer of one worker to what it was just told: the first report of which `pick`
    /// makes one. `waits` is called when the worker waits for another program.
    ///
    /// # Errors
    /// The worker was lost, or the user asked to end.
    pub fn answer<T>(
        &mut self,
        number: usize,
        pick: impl FnMut(P::Report) -> Option<T>,
        waits: impl FnMut(),
    ) -> Result<T, Unanswered<P::Call>> {
        let answer = self.answers(&[number], pick, waits).pop();
        answer.unwrap_or_else(|| Err(Unanswered::Lost(no_process())))
    }

    /// The answers of all these workers, in their order. Until then they did nothing: calls of
    /// before are not counted against them.
    pub fn answers<T>(
        &mut self,
        numbers: &[usize],
        mut pick: impl FnMut(P::Report) -> Option<T>,
        mut waits: impl FnMut(),
    ) -> Vec<Result<T, Unanswered<P::Call>>> {
        let mut answers: Vec<Option<Result<T, Unanswered<P::Call>>>> = Vec::new();
        for number in numbers {
            let worker = self.worker(*number).map(|worker| worker.watch.restart());
            let gone = worker.is_none().then(|| Err(Unanswered::Lost(no_process())));
            answers.push(gone);
        }
        let begun = Instant::now();
        while answers.iter().any(Option::is_none) {
            if begun.elapsed() > self.remote_timeout {
                for (answer, number) in answers.iter_mut().zip(numbers) {
                    if answer.is_none() {
                        *answer =
                            self.lose_overdue(*number).map(|lost| Err(Unanswered::Lost(lost)));
                    }
                }
            }
            if let Some((number, heard)) = self.hear(LOOK) {
                // What is heard of workers that were not asked means nothing here.
                let place = numbers.iter().position(|other| *other == number);
                let answer = match heard {
                    Heard::Report(report) if place.is_some() => pick(report).map(Ok),
                    Heard::Report(_) => None,
                    Heard::Waits => {
                        waits();
                        None
                    }
                    Heard::Lost(lost) => Some(Err(Unanswered::Lost(lost))),
                };
                if let (Some(place), Some(answer)) = (place, answer) {
                    answers[place].get_or_insert(answer);
                }
            }
            // A process of this machine is watched, and ended when a call takes too long. Another
            // machine may say nothing for ever.
            if self.interrupt.is_overdue() {
                for (answer, number) in answers.iter_mut().zip(numbers) {
                    if answer.is_none() && self.is_remote(*number) {
                        self.end(*number);
                        *answer = Some(Err(Unanswered::Interrupted));
                    }
                }
            }
            if self.interrupt.gives_up() {
                for (answer, number) in answers.iter_mut().zip(numbers) {
                    if answer.is_none() {
                        self.end(*number);
                        *answer = Some(Err(Unanswered::Interrupted));
                    }
                }
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Gives several workers the same task, and waits for all their answers, in their order.
    pub fn task_all<T>(
        &mut self,
        numbers: &[usize],
        task: &P::Task,
        pick: impl FnMut(P::Report) -> Option<T>,
    ) -> Vec<Result<T, Unanswered<P::Call>>>
    where
        P::Task: Clone,
    {
        for number in numbers {
            self.send_task(*number, task.clone());
        }
        self.answers(numbers, pick, || ())
    }

    /// Gives one worker a task and hands over its reports until `take` has had the last of them.
    /// Returns who was lost meanwhile, that worker or another: the first of them.
    pub fn fetch(
        &mut self,
        number: usize,
        task: P::Task,
        mut take: impl FnMut(P::Report) -> bool,
    ) -> Option<Lost<P::Call>> {
        let worker = self.worker(number)?;
        worker.watch.restart();
        worker.channel.send_task(task);
        let mut first = None;
        let mut last_report = Instant::now();
        loop {
            if last_report.elapsed() > self.remote_timeout
                && let Some(lost) = self.lose_overdue(number)
            {
                return first.or(Some(lost));
            }
            let Some((from, heard)) = self.hear(LOOK) else { continue };
            if from == number {
                last_report = Instant::now();
            }
            let ended = match heard {
                Heard::Report(report) => from == number && take(report),
                Heard::Waits => false,
                Heard::Lost(lost) => {
                    first = first.or(Some(lost));
                    from == number
                }
            };
            if ended {
                return first;
            }
        }
    }

    /// Ends a worker in good order: it cleans up, without standing still for longer than
    /// [`Timeouts::clean_up`].
    pub fn end(&mut self, number: usize) {
        if let Some(worker) = self.workers.get_mut(number) {
            *worker = None;
        }
    }

    /// Ends all workers in good order.
    pub fn end_all(&mut self) {
        for number in 0..self.workers.len() {
            self.end(number);
        }
    }

    /// Ends a worker at once, for a reason that its owner knows: nothing more is heard of it.
    pub fn kill(&mut self, number: usize, why: Lost<P::Call>) {
        self.end_lost(number, Some(why));
    }

    /// Ends a worker that cannot be understood; that it was lost is heard next.
    pub fn give_up(&mut self, number: usize, why: String) {
        // The conversation holds the other end itself.
        let _ = self.sender.0.send((number, Word::Garbled(why)));
    }

    /// Ends a worker of another machine that has not answered in time.
    fn lose_overdue(&mut self, number: usize) -> Option<Lost<P::Call>> {
        let timeout = self.remote_timeout.as_secs();
        let Channel::Remote(remote) = &self.worker(number)?.channel else { return None };
        let machine = remote.machine();
        let why = format!("{machine} was lost: it did not answer within {timeout} s");
        Some(self.end_lost(number, Some(Lost::Unreachable(why))))
    }

    fn is_remote(&self, number: usize) -> bool {
        let worker = self.workers.get(number).and_then(Option::as_ref);
        worker.is_some_and(|worker| matches!(worker.channel, Channel::Remote(_)))
    }

    fn worker(&mut self, number: usize) -> Option<&mut Worker<P>> {
        self.workers.get_mut(number)?.as_mut()
    }

    /// Ends what is left of a worker; says why it was lost if nobody knows better.
    fn end_lost(&mut self, number: usize, why: Option<Lost<P::Call>>) -> Lost<P::Call> {
        let Some(mut worker) = self.workers.get_mut(number).and_then(Option::take) else {
            return why.unwrap_or_else(no_process);
        };
        match why {
            Some(why) => {
                worker.channel.kill();
                why
            }
            None => worker.channel.post_mortem(worker.watch.threads()),
        }
    }

    /// Looks at what the workers of this machine are calling. An agent watches its own workers.
    fn look(&mut self) -> Option<(usize, HeardOf<P>)> {
        let timeouts = self.timeouts;
        let interrupt = &self.interrupt;
        let limit = |call: Option<P::Call>| {
            let waits = call.is_some_and(P::waits_for_others);
            let usual = if waits { timeouts.waiting_call } else { timeouts.call };
            let is_lasting = call.is_some_and(P::outlives_process);
            if is_lasting { usual } else { interrupt.limit(usual) }
        };
        let mut found = None;
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let Some(Worker { channel, watch }) = worker else { continue };
            let Some(process) = channel.process() else { continue };
            match watch.look(process, limit) {
                // It has crashed in that call, and the end of its reports will say so.
                Some(WorkerSight::Hangs(_)) if process.has_ended() => {}
                Some(seen) => {
                    found = Some((number, seen));
                    break;
                }
                None => {}
            }
        }
        let (number, seen) = found?;
        let heard = match seen {
            WorkerSight::Waits => Heard::Waits,
            WorkerSight::Hangs(lost) => Heard::Lost(self.end_lost(number, Some(lost))),
        };
        Some((number, heard))
    }
}

/// Why a worker cannot be asked that is gone already.
fn no_process<C: std::fmt::Display>() -> Lost<C> {
    Lost::Garbled("the worker process is gone".into())
}
