//! A plan's thread: orders of the coordinator go to local workers, their reports go back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_token::controller::{Lost, Relay, TokenMeasureError};
use tapstone_token::protocol::{Report, Task, TokenProtocol, Trouble};
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
        backlog: Arc<AtomicUsize>,
        (target, refused): (String, RefusedPins),
        policy: Policy,
    ) -> Self {
        let workers = BTreeMap::new();
        Self { relay, orders, run, news, backlog, target, refused, policy, workers }
    }

    /// Serves until nobody has orders any more; then everything is cleaned up.
    pub(super) fn serve(mut self) {
        while self.obey() {
            if let Some((number, heard)) = self.relay.hear(TICK) {
                self.pass_on(number, heard);
            }
            self.end_the_overdue();
        }
        let trouble = self.relay.close().err();
        let _ = self.news.send((self.run, News::Ended(trouble)));
    }

    /// Carries out the orders that are there; whether there will be more.
    fn obey(&mut self) -> bool {
        loop {
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
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Gives a worker a task, if the policy lets it.
    fn give(&mut self, worker: u32, task: Task) {
        let Some(known) = self.workers.get_mut(&worker) else { return };
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
                if let Report::Done(done) = &mut report {
                    known.deadline = None;
                    self.policy.forget(worker);
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
        let news = &self.news;
        let run = self.run;
        let backlog = &self.backlog;
        let send = |samples| {
            let report = Box::new(Report::Samples(samples));
            let _ = news.send((run, News::Message(FromAgent::Report { worker, report })));
        };
        if let Some(known) = self.workers.get_mut(&worker) {
            known.samples.empty(|samples| {
                send(samples);
                // The other thread says how much is under way a little later.
                thread::sleep(Duration::from_millis(1));
                while backlog.load(Relaxed) > BACKLOG_BYTES && !news.is_closed() {
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        send(Vec::new());
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
