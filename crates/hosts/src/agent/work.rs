//! A plan's thread: orders of the coordinator go to local workers, their reports go back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_token::controller::{Lost, Relay, TokenMeasureError};
use tapstone_token::protocol::{RawSample, Report, Task, TokenProtocol, Trouble};
use tapstone_worker::{Heard, HeardOf};
use tokio::sync::mpsc::UnboundedSender;

use super::news::News;
use super::spool::Spool;
use super::{RefusedPins, is_refused, refuse};
use crate::policy::Policy;
use crate::wire::{Entered, FromAgent, Refusal, ToAgent};

/// How often workers are looked at when nothing happens.
const TICK: Duration = Duration::from_millis(50);

/// How long after the end of its window a worker may still be at its last calls, before it is ended:
/// calls of the module have a time limit of their own.
const OVERTIME: Nanos = Nanos::from_secs(30);

/// Samples wait while the coordinator lacks so many bytes.
const BACKLOG_BYTES: usize = 8 << 20;

/// See the module's text.
pub(super) struct Work {
    relay: Relay,
    orders: Receiver<ToAgent>,
    run: u64,
    news: UnboundedSender<(u64, News)>,
    backlog: Arc<AtomicUsize>,
    /// The plan is being dropped: nothing is waited for.
    abandon: Arc<AtomicBool>,
    target: String,
    refused: RefusedPins,
    policy: Policy,
    workers: BTreeMap<u32, NumberedWorker>,
}

/// A worker, by the coordinator's number.
struct NumberedWorker {
    /// The number by which the relay knows this worker.
    number: usize,
    samples: Spool,
    /// When its case has to be over, on this machine's clock and whatever the coordinator says.
    deadline: Option<Nanos>,
}

impl Work {
    pub(super) fn new(
        relay: Relay,
        orders: Receiver<ToAgent>,
        (run, news): (u64, UnboundedSender<(u64, News)>),
        (backlog, abandon): (Arc<AtomicUsize>, Arc<AtomicBool>),
        (target, refused): (String, RefusedPins),
        policy: Policy,
    ) -> Self {
        let workers = BTreeMap::new();
        Self { relay, orders, run, news, backlog, abandon, target, refused, policy, workers }
    }

    /// Serves until nobody has orders any more; then everything is cleaned up.
    pub(super) fn serve(mut self) {
        while let Some(patience) = self.obey() {
            if let Some((number, heard)) = self.relay.hear(patience) {
                self.pass_on(number, heard);
            }
            self.end_the_overdue();
        }
        let trouble = self.relay.close().err();
        let _ = self.news.send((self.run, News::Ended(trouble)));
    }

    /// Carries out one order, if one is there, so that deadlines are looked at between any two. How
    /// long workers may be listened to then; `None`: there will be no more orders.
    fn obey(&mut self) -> Option<Duration> {
        match self.orders.try_recv() {
            Ok(ToAgent::Join { worker }) => self.join(worker),
            Ok(ToAgent::Task { worker, task: Task::Samples }) => self.hand_over(worker),
            Ok(ToAgent::Task { worker, task }) => self.give(worker, task),
            Ok(ToAgent::Kill { worker }) => {
                if let Some(known) = self.workers.remove(&worker) {
                    self.relay.kill(known.number);
                    self.policy.forget(worker);
                }
            }
            Err(TryRecvError::Empty) => return Some(TICK),
            Err(TryRecvError::Disconnected) => return None,
        }
        Some(Duration::ZERO)
    }

    /// Gives a worker a task, if the policy lets it.
    fn give(&mut self, worker: u32, task: Task) {
        let Some(known) = self.workers.get_mut(&worker) else { return };
        if matches!(task, Task::Run(_) | Task::Prepare(_)) && self.policy.has_case(worker) {
            let why = "its worker was given a case before the one that it has ended";
            return self.lose(worker, why.into());
        }
        let now = Monotonic.now();
        let refusal = self
            .policy
            .refusal(worker, &task)
            .or_else(|| self.policy.refusal_of_window(now, &task));
        if let Some(text) = refusal {
            return self.refuse(worker, &task, text);
        }
        match &task {
            Task::Run(_) => known.deadline = Some(now + self.policy.longest_case()),
            Task::Open { closes: Some(closes), .. } => {
                let end = *closes + OVERTIME;
                known.deadline = known.deadline.map(|deadline| deadline.min(end));
            }
            _ => {}
        }
        self.relay.give(known.number, task);
    }

    /// Tells the coordinator why; a worker that was to do more than prepare is ended.
    fn refuse(&mut self, worker: u32, task: &Task, text: String) {
        if matches!(task, Task::Prepare(_)) {
            let report = Box::new(Report::Prepared(Err(Trouble::NotAllowed { text })));
            return self.send(FromAgent::Report { worker, report });
        }
        self.lose(worker, text);
    }

    fn lose(&mut self, worker: u32, why: String) {
        if let Some(known) = self.workers.remove(&worker) {
            self.relay.kill(known.number);
        }
        self.policy.forget(worker);
        self.send(FromAgent::Lost { worker, lost: Lost::Unreachable(why) });
    }

    /// A load ends at the agent's own deadline: its threads are told to, and then its process.
    fn end_the_overdue(&mut self) {
        let now = Monotonic.now();
        let is_overdue = |known: &NumberedWorker| known.deadline.is_some_and(|end| now > end);
        let overdue = self.workers.iter().filter(|(_, known)| is_overdue(known));
        let overdue: Vec<u32> = overdue.map(|(worker, _)| *worker).collect();
        for worker in overdue {
            self.lose(worker, "its load was ended by its agent, at the end of its time".into());
        }
    }

    fn join(&mut self, worker: u32) {
        let joined = self.try_to_join(worker).map(Box::new);
        self.send(FromAgent::Joined { worker, joined });
        // Words of other workers were not listened to meanwhile: who is gone is told of now.
        let relay = &self.relay;
        let gone = |(worker, known): (&u32, &NumberedWorker)| {
            (!relay.is_there(known.number)).then_some(*worker)
        };
        let gone: Vec<u32> = self.workers.iter().filter_map(gone).collect();
        for worker in gone {
            self.workers.remove(&worker);
            let lost = Lost::Garbled("the worker process is gone".into());
            self.send(FromAgent::Lost { worker, lost });
        }
    }

    fn try_to_join(&mut self, worker: u32) -> Result<Entered, Refusal> {
        if is_refused(&self.refused, &self.target) {
            let text = format!(
                "the PIN of target {} was refused before, and is not tried again\n\
                 hint: correct the agent's PIN source, then start the agent anew",
                self.target
            );
            return Err(Refusal { text });
        }
        if let Some(text) = self.policy.refusal_of_process(self.workers.len()) {
            return Err(Refusal { text });
        }
        match self.relay.join() {
            Ok(number) => {
                let samples = Spool::default();
                self.workers.insert(worker, NumberedWorker { number, samples, deadline: None });
                let (library, target) = self.relay.facts().ok_or_else(nothing_entered)?;
                Ok(Entered { library: library.clone(), target: target.clone() })
            }
            Err(error) => {
                if matches!(&error, TokenMeasureError::Call { failure, .. } if failure.code.is_pin())
                {
                    refuse(&self.refused, &self.target);
                }
                Err(Refusal { text: in_agents_words(&error) })
            }
        }
    }

    fn pass_on(&mut self, number: usize, heard: HeardOf<TokenProtocol>) {
        let of_it = self.workers.iter_mut().find(|(_, known)| known.number == number);
        let Some((&worker, known)) = of_it else { return };
        match heard {
            Heard::Report(Report::Samples(samples)) => known.samples.keep(&samples),
            Heard::Report(mut report) => {
                if matches!(report, Report::Done(_) | Report::Ready(Err(_))) {
                    known.deadline = None;
                    self.policy.forget(worker);
                }
                if let Report::Done(done) = &mut report {
                    done.samples_dropped += known.samples.lost();
                }
                self.send(FromAgent::Report { worker, report: Box::new(report) });
            }
            Heard::Waits => {}
            Heard::Lost(lost) => {
                self.workers.remove(&worker);
                self.policy.forget(worker);
                self.send(FromAgent::Lost { worker, lost });
            }
        }
    }

    /// Sends a worker's samples, no faster than they are taken; an empty batch ends them.
    fn hand_over(&mut self, worker: u32) {
        let samples = self.workers.get_mut(&worker).map(|known| known.samples.batches());
        for batch in samples.into_iter().flatten() {
            self.send_samples(worker, batch);
            // The other thread says how much is under way a little later.
            thread::sleep(Duration::from_millis(1));
            while self.backlog.load(Relaxed) > BACKLOG_BYTES && !self.is_abandoned() {
                self.end_the_overdue();
                thread::sleep(Duration::from_millis(5));
            }
            if self.is_abandoned() {
                return;
            }
        }
        self.send_samples(worker, Vec::new());
    }

    /// Whether nobody takes anything any more.
    fn is_abandoned(&self) -> bool {
        self.abandon.load(Relaxed) || self.news.is_closed()
    }

    fn send_samples(&self, worker: u32, samples: Vec<RawSample>) {
        self.send(FromAgent::Report { worker, report: Box::new(Report::Samples(samples)) });
    }

    fn send(&self, message: FromAgent) {
        let _ = self.news.send((self.run, News::Message(message)));
    }
}

fn nothing_entered() -> Refusal {
    Refusal { text: "no token was entered\nhint: please report it".into() }
}

/// An error of the controller, worded for a user of another machine.
fn in_agents_words(error: &TokenMeasureError) -> String {
    error
        .to_string()
        .replace("say --accept-low-count", "set accept-low-count in the agent's configuration")
        .replace(
            "choose one by --token-label, --token-serial or --slot",
            "name one in the agent's configuration",
        )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Sender};
    use std::time::Instant;

    use tapstone_measure::recorder::SliceGrid;
    use tapstone_token::controller::{TokenChoice, TokenOptions, WorkerCommand};
    use tapstone_token::protocol::{CaseRun, Login, Pace};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// A plan's thread with one worker of number 7, which has no process.
    fn work() -> (Work, Sender<ToAgent>, UnboundedReceiver<(u64, News)>) {
        let abandon = Arc::new(AtomicBool::new(false));
        let options = TokenOptions {
            worker: WorkerCommand { program: "none".into(), arguments: vec![], hidden: vec![] },
            module: "none.so".into(),
            module_arguments: None,
            tokens: vec![TokenChoice::Only],
            login: Login::None,
            accept_low_count: false,
            timeout: Duration::from_secs(1),
            interrupt: Arc::clone(&abandon),
            announce: |_| (),
        };
        let relay = Relay::new(options, 1, || [0; 32]).unwrap();
        let (orders, inbox) = mpsc::channel();
        let (news, told) = unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let policy = Policy::new("t", &toml::from_str("module = 'none.so'").unwrap());
        let names = ("t".to_owned(), RefusedPins::default());
        let mut work = Work::new(relay, inbox, (1, news), (backlog, abandon), names, policy);
        let samples = Spool::default();
        work.workers.insert(7, NumberedWorker { number: 0, samples, deadline: None });
        (work, orders, told)
    }

    fn run_task() -> Task {
        Task::Run(Box::new(CaseRun {
            threads: 1,
            pace: Pace::Closed,
            first: 0,
            counts: None,
            grid: SliceGrid::default(),
            warm_up: Nanos::ZERO,
            keep_bytes: 0,
            seed: 0,
            mix: Vec::new(),
            samples: true,
            phases: false,
            max_failures: 1,
            reconnect: false,
        }))
    }

    #[test]
    fn a_second_load_before_the_first_has_ended_loses_its_worker() {
        let (mut work, _orders, mut told) = work();
        work.give(7, run_task());
        let deadline = work.workers[&7].deadline.unwrap();
        work.give(7, Task::Open { at: Nanos::ZERO, closes: Some(Nanos::ZERO) });
        assert!(work.workers[&7].deadline.unwrap() < deadline);
        work.give(7, run_task());
        assert!(work.workers.is_empty() && !work.policy.has_case(7));
        let Ok((1, News::Message(FromAgent::Lost { worker: 7, lost }))) = told.try_recv() else {
            panic!("the coordinator is told");
        };
        assert!(lost.to_string().contains("before the one that it has ended"), "{lost}");
    }

    #[test]
    fn a_load_that_cannot_begin_has_ended() {
        let (mut work, _orders, _told) = work();
        work.give(7, run_task());
        let failure = serde_json::from_str(r#"{"call":"C_Sign","code":5}"#).unwrap();
        work.pass_on(0, Heard::Report(Report::Ready(Err(failure))));
        assert!(work.workers[&7].deadline.is_none() && !work.policy.has_case(7));
        work.give(7, run_task());
        assert!(work.workers.contains_key(&7), "it may be tried again");
    }

    #[test]
    fn samples_that_nobody_takes_hold_nothing_up() {
        let (mut work, orders, _told) = work();
        work.give(7, run_task());
        let known = work.workers.get_mut(&7).unwrap();
        known.deadline = Some(Nanos::ZERO);
        known.samples.keep(&Vec::new());
        work.backlog.store(BACKLOG_BYTES + 1, Relaxed);
        let abandon = Arc::clone(&work.abandon);
        let ender = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            abandon.store(true, Relaxed);
        });
        orders.send(ToAgent::Task { worker: 7, task: Task::Samples }).unwrap();
        let begun = Instant::now();
        assert_eq!(work.obey(), Some(Duration::ZERO));
        assert!(begun.elapsed() >= Duration::from_millis(100));
        assert!(work.workers.is_empty(), "its time was over meanwhile");
        ender.join().unwrap();
    }

    #[test]
    fn orders_come_one_by_one() {
        let (mut work, orders, _told) = work();
        for _ in 0..2 {
            orders.send(ToAgent::Task { worker: 7, task: Task::Ping }).unwrap();
        }
        assert_eq!(work.obey(), Some(Duration::ZERO));
        drop(orders);
        assert_eq!(work.obey(), Some(Duration::ZERO));
        assert_eq!(work.obey(), None);
    }
}
