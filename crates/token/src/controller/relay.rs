//! A controller whose cases are steered from another machine: it starts workers, logs in and watches over
//! them as ever, but the tasks come from elsewhere and the reports go there.
//!
//! It owns everything that may not travel: the module's path, the PIN, the label of the run's keys.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tapstone_measure::units::Nanos;
use tapstone_worker::Heard;
use tapstone_worker::{BOARD_THREADS, HeardOf, ReportSender};

use super::agent_case::AgentCase;
use super::error::{Lost, TokenMeasureError};
use super::{TokenController, TokenOptions, TokenTarget};
use crate::module::LibraryInfo;
use crate::protocol::{Report, Ring, Task, TokenProtocol};

/// See the module's text.
pub struct Relay {
    controller: TokenController,
    first: First,
    /// The case of each worker.
    cases: BTreeMap<usize, AgentCase>,
    fresh_nonce: FreshNonce,
    /// What this process says itself, of a worker.
    own_reports: VecDeque<(usize, Report)>,
}

/// Draws what the inputs of a case come from, so that nobody chooses what a key signs: another one
/// each time, and random.
pub type FreshNonce = fn() -> [u8; 32];

/// What became of the first worker, which tries the PIN.
#[derive(Clone, Debug, PartialEq, Eq)]
enum First {
    NotAsked,
    Entered,
    /// For this reason, which does not go away: nothing is tried again in this run.
    Refused(String),
}

/// How long the results of a case are judged, whatever is asked for.
const LONGEST_JUDGING: Nanos = Nanos::from_secs(1);

/// Wakes a relay that listens.
#[derive(Clone, Debug)]
pub struct Waker(ReportSender<Report>);

impl Waker {
    /// Lets a waiting [`Relay::hear`] return with nothing.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl Relay {
    /// A relay for the run of this number, in which nothing runs yet. The options name one token.
    ///
    /// # Errors
    /// The module is not there.
    pub fn new(
        options: TokenOptions,
        run: u64,
        fresh_nonce: FreshNonce,
    ) -> Result<Self, TokenMeasureError> {
        let controller = TokenController::idle(options, run)?;
        let own_reports = VecDeque::new();
        let cases = BTreeMap::new();
        Ok(Self { controller, first: First::NotAsked, cases, fresh_nonce, own_reports })
    }

    /// One more worker that has loaded the module and entered the token; its number.
    ///
    /// # Errors
    /// The module, the token or the PIN does not allow it.
    pub fn join(&mut self) -> Result<usize, TokenMeasureError> {
        let number = self.controller.workers.next_number();
        match &self.first {
            First::Entered => self.controller.join_here(0)?,
            First::Refused(text) => {
                let host = self.controller.module().display().to_string();
                return Err(TokenMeasureError::Host { host, text: text.clone() });
            }
            First::NotAsked => {
                let opened = self.controller.open_here();
                self.first = match &opened {
                    Ok(()) => First::Entered,
                    Err(error) => First::Refused(error.to_string()),
                };
                opened?;
                self.tell_of_removed_keys();
            }
        }
        Ok(number)
    }

    /// What a killed agent left goes with the next run; that it cannot be removed ends none.
    fn tell_of_removed_keys(&mut self) {
        let told = match self.controller.remove_keys_of_dead_runs() {
            Ok(keys) if keys.is_empty() => return,
            Ok(keys) => format!("removed {} keys that a killed run left", keys.len()),
            Err(error) => format!("warning: keys that a killed run left: {error}"),
        };
        self.controller.announce(&told);
    }

    /// The module, as it describes itself, and the token.
    #[must_use]
    pub fn facts(&self) -> Option<(&LibraryInfo, &TokenTarget)> {
        Some((&self.controller.library, self.controller.targets.first()?))
    }

    /// Gives a worker a task. One that asks for too much is lost, which is heard. Keys are labelled, and looked for, by the label of this run alone.
    pub fn give(&mut self, number: usize, task: Task) {
        let label = self.controller.run.clone();
        let task = match task {
            Task::Prepare(mut job) => {
                job.run = label;
                self.cases.insert(number, AgentCase::new((*job).clone()));
                Task::Prepare(job)
            }
            Task::MakeInputs { seed, ring } => match self.make_inputs(number, seed, ring) {
                Ok(inputs) => Task::Inputs(inputs),
                Err(why) => return self.controller.workers.give_up(number, why),
            },
            Task::Judge { seed, at_most } => {
                let workers = self.cases.len().max(1) as u32;
                if let Some(case) = self.cases.get_mut(&number) {
                    let at_most = Duration::from(at_most.min(LONGEST_JUDGING)) / workers;
                    case.expect_outputs(seed, at_most);
                }
                Task::Outputs
            }
            Task::Show { drawn } => {
                let case = self.cases.get_mut(&number);
                let shown = case.map(|case| case.show(&drawn));
                let shown = shown.unwrap_or_else(|| Report::Shown(Box::default()));
                return self.own_reports.push_back((number, shown));
            }
            Task::Leftovers { remove, .. } => Task::Leftovers { remove, run: Some(label) },
            // A board has no cells for more.
            Task::Run(run) if run.threads as usize >= BOARD_THREADS => {
                let why = "more threads than a process can have".to_owned();
                return self.controller.workers.give_up(number, why);
            }
            Task::Run(run) => {
                self.controller.workers.watch_threads(number, run.threads as usize);
                Task::Run(run)
            }
            task => task,
        };
        self.controller.workers.send_task(number, task);
    }

    /// What is heard next of a worker, or nothing for so long. Workers that hang are ended.
    pub fn hear(&mut self, patience: Duration) -> Option<(usize, HeardOf<TokenProtocol>)> {
        if let Some((number, report)) = self.own_reports.pop_front() {
            return Some((number, Heard::Report(report)));
        }
        let (number, heard) = self.controller.workers.hear(patience)?;
        let report = match heard {
            Heard::Report(report) => report,
            Heard::Lost(lost) => {
                self.cases.remove(&number);
                return Some((number, Heard::Lost(lost)));
            }
            Heard::Waits => return Some((number, Heard::Waits)),
        };
        let report = match (report, self.cases.get_mut(&number)) {
            (Report::Outputs { lane, outputs, broken }, Some(case)) => {
                case.take_outputs(lane, outputs, broken)?
            }
            (Report::Prepared(Ok(ready)), Some(case)) => {
                Report::Prepared(Ok(case.keep_ready(ready)))
            }
            // What a worker made, or read of its keys, goes nowhere without a case to judge it.
            (Report::Outputs { .. } | Report::Prepared(Ok(_)), None) => return None,
            // What became of results is never a worker's word, nor its module's.
            (Report::Judged { .. } | Report::Shown(_), _) => return None,
            (report, _) => report,
        };
        Some((number, Heard::Report(report)))
    }

    fn make_inputs(
        &mut self,
        number: usize,
        seed: u64,
        ring: u32,
    ) -> Result<Vec<Vec<Ring>>, String> {
        let case = self.cases.get_mut(&number).ok_or("no case was prepared")?;
        let made = case.make_inputs(seed, ring, (self.fresh_nonce)());
        made.map_err(|error| error.to_string())
    }

    /// A worker lives, as far as is known.
    #[must_use]
    pub fn is_there(&self, number: usize) -> bool {
        self.controller.workers.is_alive(number)
    }

    /// Wakes this relay from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(self.controller.workers.report_sender())
    }

    /// Ends a worker at once.
    pub fn kill(&mut self, number: usize) {
        self.cases.remove(&number);
        self.controller.workers.kill(number, Lost::Garbled("ended by its coordinator".into()));
    }

    /// Ends all workers in good order, and removes what dead ones left on the token.
    ///
    /// # Errors
    /// Something may still be there.
    pub fn close(mut self) -> Result<(), TokenMeasureError> {
        let cleaned = match self.first {
            First::Entered => self.controller.clean_up_after_the_lost(),
            First::NotAsked | First::Refused(_) => Ok(()),
        };
        self.controller.close();
        cleaned
    }
}
