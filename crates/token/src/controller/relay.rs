//! A lab whose rows are steered from another machine: it starts workers, logs in and watches over
//! them as ever, but the tasks come from elsewhere and the reports go there.
//!
//! It owns everything that may not travel: the module's path, the PIN, the label of the run's keys.

use std::sync::mpsc::Sender;
use std::time::Duration;

use tapstone_worker::PLACES;

use super::error::{LabError, Lost};
use super::{Lab, Options, Target, Word};
use crate::module::LibraryInfo;
use crate::protocol::{Report, Task};

/// See the module's text.
pub struct Relay {
    lab: Lab,
    first: First,
    /// The most threads that a worker was told to start.
    threads: usize,
}

/// What became of the first worker, which tries the PIN.
#[derive(Clone, Debug, PartialEq, Eq)]
enum First {
    NotAsked,
    Entered,
    /// For this reason, which does not go away: nothing is tried again in this run.
    Refused(String),
}

/// What a worker said, or that it says no more.
#[derive(Debug)]
pub enum Heard {
    /// A report.
    Report(Report),
    /// It is gone.
    Lost(Lost),
}

/// Wakes a relay that listens.
#[derive(Clone, Debug)]
pub struct Waker(Sender<(usize, Word)>);

/// The number of no worker.
const NOBODY: usize = usize::MAX;

impl Waker {
    /// Lets [`Relay::hear`] return.
    pub fn wake(&self) {
        let _ = self.0.send((NOBODY, Word::Gone));
    }
}

impl Relay {
    /// A relay for the run of this number, in which nothing runs yet. The options name one token.
    ///
    /// # Errors
    /// The module is not there.
    pub fn new(options: Options, run: u64) -> Result<Self, LabError> {
        Ok(Self { lab: Lab::idle(options, run)?, first: First::NotAsked, threads: 0 })
    }

    /// One more worker that has loaded the module and entered the token; its number.
    ///
    /// # Errors
    /// The module, the token or the PIN does not allow it.
    pub fn join(&mut self) -> Result<usize, LabError> {
        let number = self.lab.members.len();
        match &self.first {
            First::Entered => self.lab.join_here(0)?,
            First::Refused(text) => {
                let host = self.lab.module().display().to_string();
                return Err(LabError::Host { host, text: text.clone() });
            }
            First::NotAsked => {
                let opened = self.lab.open_here();
                self.first = match &opened {
                    Ok(()) => First::Entered,
                    Err(error) => First::Refused(error.to_string()),
                };
                opened?;
            }
        }
        Ok(number)
    }

    /// The module, as it describes itself, and the token.
    #[must_use]
    pub fn facts(&self) -> Option<(&LibraryInfo, &Target)> {
        Some((&self.lab.library, self.lab.targets.first()?))
    }

    /// Gives a worker a task. Keys are labelled, and looked for, by the label of this run alone.
    pub fn give(&mut self, number: usize, task: Task) {
        let label = self.lab.run.clone();
        let task = match task {
            Task::Prepare(mut job) => {
                job.run = label;
                Task::Prepare(job)
            }
            Task::Leftovers { remove, .. } => Task::Leftovers { remove, run: Some(label) },
            // A board has no place for more.
            Task::Run(run) if run.threads as usize >= PLACES => return self.refuse(number),
            Task::Run(run) => {
                self.threads = self.threads.max(run.threads as usize);
                Task::Run(run)
            }
            task => task,
        };
        if let Some(member) = self.lab.member(number) {
            member.way.give(task);
        }
    }

    /// The next word of a worker, or nothing for so long. Workers that are stuck are ended.
    pub fn hear(&mut self, patience: Duration) -> Option<(usize, Heard)> {
        match self.lab.hear(patience) {
            Some((NOBODY, _)) => None,
            Some((number, Word::Report(report))) => Some((number, Heard::Report(report))),
            Some((number, Word::Gone)) => self.bury(number, None),
            Some((number, Word::Garbled(why))) => self.bury(number, Some(Lost::Garbled(why))),
            None => self.stuck(),
        }
    }

    /// A worker lives, as far as is known.
    #[must_use]
    pub fn is_there(&self, number: usize) -> bool {
        matches!(self.lab.members.get(number), Some(Some(_)))
    }

    /// Wakes this relay from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(self.lab.sender.clone())
    }

    /// Ends a worker at once.
    pub fn kill(&mut self, number: usize) {
        self.bury(number, Some(Lost::Garbled("ended by its coordinator".into())));
    }

    /// Ends all workers in good order, and removes what dead ones left on the token.
    ///
    /// # Errors
    /// Something may still be there.
    pub fn close(mut self) -> Result<(), LabError> {
        let cleaned = match self.first {
            First::Entered => self.lab.replace_the_dead(),
            First::NotAsked | First::Refused(_) => Ok(()),
        };
        self.lab.close();
        cleaned
    }

    fn refuse(&mut self, number: usize) {
        self.bury(number, Some(Lost::Garbled("more threads than a process can have".into())));
    }

    fn bury(&mut self, number: usize, why: Option<Lost>) -> Option<(usize, Heard)> {
        self.lab.member(number)?;
        Some((number, Heard::Lost(self.lab.bury(number, self.threads, why))))
    }

    fn stuck(&mut self) -> Option<(usize, Heard)> {
        let limit = self.lab.timeout;
        let living = |(number, member): (usize, &Option<_>)| member.as_ref().map(|_| number);
        let numbers: Vec<usize> = self.lab.members.iter().enumerate().filter_map(living).collect();
        let threads = self.threads;
        let lost = |number: usize| Some((number, self.lab.check(number, threads, limit)?));
        let (number, lost) = numbers.into_iter().find_map(lost)?;
        Some((number, Heard::Lost(lost)))
    }
}
