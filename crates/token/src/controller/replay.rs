//! A recorded load, replayed: a process of its own for each recorded one, all started at one moment.

use std::time::Duration;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_replay::{ReplayEvidence, ReplayProcess, ReplayedThread};
use tapstone_worker::Heard;

use super::TokenController;
use super::error::TokenMeasureError;
use crate::protocol::{Order, ReplayJob, Report, Task, Trouble};

/// From the order to start to the start: the time for it to reach all workers.
const START_NOTICE: Nanos = Nanos::from_millis(50);
/// Between two looks at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// What came of a replay.
#[derive(Debug, Default)]
pub struct ReplayOutcome {
    /// What the threads of each process did, in the order of the plan; nothing for one that was
    /// lost.
    pub threads: Vec<Vec<ReplayedThread>>,
    /// What each process told of its keys, in the same order.
    pub evidence: Vec<ReplayEvidence>,
    /// The user ended it.
    pub interrupted: bool,
    /// What failed beside the calls: threads that were not started, keys that are left, a lost process.
    pub trouble: Vec<TokenMeasureError>,
}

impl TokenController {
    /// Replays a load, each process on the token of its device's number. Keys are gone afterwards,
    /// whatever happened.
    ///
    /// # Errors
    /// A process cannot be started or cannot log in, or the token makes no such keys.
    pub fn replay(
        &mut self,
        processes: &[ReplayProcess],
    ) -> Result<ReplayOutcome, TokenMeasureError> {
        let numbers = self.workers_of_replay(processes)?;
        let prepared = self.prepare_replay(&numbers, processes);
        if prepared.is_err() || self.workers.is_interrupted() {
            self.end_replay(&numbers);
            self.clean_up_after_the_lost()?;
            prepared?;
            return Err(TokenMeasureError::Interrupted);
        }
        let evidence = prepared?;
        for (number, process) in numbers.iter().zip(processes) {
            self.workers.watch_threads(*number, process.threads.len());
        }
        let at = Monotonic.now() + START_NOTICE;
        for number in &numbers {
            self.workers.send_task(*number, Task::Start { at });
        }
        let outcome = ReplayOutcome { evidence, ..self.hear_replay(&numbers) };
        for number in &numbers {
            self.workers.watch_threads(*number, 0);
        }
        self.clean_up_after_the_lost()?;
        Ok(outcome)
    }

    /// A worker for each process, on its token.
    fn workers_of_replay(
        &mut self,
        processes: &[ReplayProcess],
    ) -> Result<Vec<usize>, TokenMeasureError> {
        let on = |device| processes.iter().filter(|process| process.device == device).count();
        let tokens = processes.iter().map(|process| process.device + 1).max().unwrap_or_default();
        let most = (0..tokens).map(on).max().unwrap_or_default();
        let by_token = self.ensure(tokens as usize, most as u32)?;
        let mut free: Vec<_> = by_token.into_iter().map(Vec::into_iter).collect();
        Ok(processes.iter().filter_map(|process| free[process.device as usize].next()).collect())
    }

    fn prepare_replay(
        &mut self,
        numbers: &[usize],
        processes: &[ReplayProcess],
    ) -> Result<Vec<ReplayEvidence>, TokenMeasureError> {
        let mut evidence = Vec::new();
        for (number, process) in numbers.iter().zip(processes) {
            let run = self.run.clone();
            let first_worker = self.fresh.worker();
            let job = ReplayJob { run, first_worker, process: process.clone() };
            let order = Order::Replay(Box::new(job));
            let ready = self.ask_here(*number, &order, |report| match report {
                Report::ReplayReady(ready) => Some(ready),
                _ => None,
            })?;
            match ready {
                Ok(known) => evidence.push(known),
                Err(Trouble::Call { failure, .. }) => {
                    let what = self.describe(process.device as usize);
                    return Err(TokenMeasureError::Call { what, failure });
                }
                Err(trouble) => return Err(TokenMeasureError::Keys { trouble }),
            }
        }
        Ok(evidence)
    }

    /// Processes that are ready do not begin; their keys go.
    fn end_replay(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.workers.send_task(*number, Task::Close { at: Nanos::ZERO });
        }
    }

    fn hear_replay(&mut self, numbers: &[usize]) -> ReplayOutcome {
        let mut outcome = ReplayOutcome::default();
        let mut replayed: Vec<Option<Vec<ReplayedThread>>> = numbers.iter().map(|_| None).collect();
        while replayed.iter().any(Option::is_none) {
            let heard = self.workers.hear(LOOK);
            if self.workers.is_interrupted() && !outcome.interrupted {
                outcome.interrupted = true;
                self.end_replay(numbers);
            }
            let Some((number, heard)) = heard else { continue };
            let Some(place) = numbers.iter().position(|other| *other == number) else { continue };
            match heard {
                Heard::Report(Report::Replayed { threads, keys, failure }) => {
                    replayed[place] = Some(threads);
                    let failure = failure.map(std::io::Error::other);
                    outcome.trouble.extend(failure.map(TokenMeasureError::Spawn));
                    outcome.trouble.extend(keys.err().map(TokenMeasureError::KeysLeft));
                }
                Heard::Lost(lost) => {
                    replayed[place] = Some(Vec::new());
                    outcome.trouble.push(self.lost(lost));
                }
                Heard::Report(_) | Heard::Waits => {}
            }
        }
        outcome.threads = replayed.into_iter().flatten().collect();
        outcome
    }
}
