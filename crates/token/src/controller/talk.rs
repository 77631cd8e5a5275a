//! The lab's side of the talk with its workers: tasks go out, answers are waited for, and a worker
//! that is dead or stuck is noticed.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::error::{LabError, Lost};
use super::{Lab, Word};
use crate::protocol::{Report, Task};

/// After an interrupt, how long a call in flight may go on.
const AFTER_INTERRUPT: Duration = Duration::from_secs(5);

impl Lab {
    /// Gives one worker a task and waits for its answer.
    pub(super) fn ask<T>(
        &mut self,
        number: usize,
        task: Task,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, LabError> {
        if let Some(member) = self.member(number) {
            member.way.give(task);
        }
        self.only_answer(number, self.timeout, pick)
    }

    /// One worker's answer to what it was just told.
    pub(super) fn only_answer<T>(
        &mut self,
        number: usize,
        limit: Duration,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, LabError> {
        match self.answers(&[number], 0, limit, pick).pop() {
            Some(answer) => answer.map_err(|lost| self.lost(lost)),
            None => Err(self.lost(Lost::Garbled("no answer".into()))),
        }
    }

    /// Gives workers a task each and waits for all their answers.
    pub(super) fn ask_all<T>(
        &mut self,
        numbers: &[usize],
        task: impl Fn(usize) -> Task,
        threads: usize,
        limit: Duration,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Vec<Result<T, Lost>> {
        for (place, &number) in numbers.iter().enumerate() {
            if let Some(member) = self.member(number) {
                member.way.give(task(place));
            }
        }
        self.answers(numbers, threads, limit, pick)
    }

    /// Waits for all answers of workers. A worker that is lost is buried; `threads` of each are
    /// watched besides its main one.
    fn answers<T>(
        &mut self,
        numbers: &[usize],
        threads: usize,
        limit: Duration,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Vec<Result<T, Lost>> {
        let mut answers: Vec<Option<Result<T, Lost>>> = numbers.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let heard = self.hear(Duration::from_millis(50));
            match heard {
                Some((number, word)) => {
                    let place = numbers.iter().position(|other| *other == number);
                    let answer = match word {
                        Word::Report(report) => pick(report).map(Ok),
                        Word::Gone => Some(Err(self.bury(number, threads, None))),
                        Word::Garbled(why) => {
                            Some(Err(self.bury(number, threads, Some(Lost::Garbled(why)))))
                        }
                    };
                    // Late words of workers that were not asked mean nothing.
                    if let (Some(place), Some(answer)) = (place, answer) {
                        answers[place].get_or_insert(answer);
                    }
                }
                None => {
                    for (place, &number) in numbers.iter().enumerate() {
                        if answers[place].is_none() {
                            answers[place] = self.check(number, threads, limit).map(Err);
                        }
                    }
                }
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Gives one worker a task and hands over its reports until `take` has had the last of them.
    /// Returns who was lost meanwhile, that worker or another: the first of them.
    pub(super) fn fetch(
        &mut self,
        number: usize,
        task: Task,
        mut take: impl FnMut(Report) -> bool,
    ) -> Option<Lost> {
        self.member(number)?.way.give(task);
        let mut lost = None;
        loop {
            let (from, why) = match self.hear(Duration::from_millis(50)) {
                Some((from, Word::Report(report))) => {
                    if from == number && take(report) {
                        return lost;
                    }
                    continue;
                }
                Some((from, Word::Gone)) => (from, None),
                Some((from, Word::Garbled(why))) => (from, Some(Lost::Garbled(why))),
                None => match self.check(number, 0, self.timeout) {
                    Some(stuck) => return lost.or(Some(stuck)),
                    None => continue,
                },
            };
            // The last word of one that was buried before is no news.
            if self.member(from).is_some() {
                let why = self.bury(from, 0, why);
                lost = lost.or(Some(why));
            }
            if from == number {
                return lost;
            }
        }
    }

    /// Whether a worker is dead or has been in one call for too long; if so, it is buried.
    pub(super) fn check(&mut self, number: usize, threads: usize, limit: Duration) -> Option<Lost> {
        let limit = self.patience(limit);
        match self.member(number) {
            None => Some(Lost::Garbled("the worker process is gone".into())),
            Some(member) => {
                let stuck = member.way.stuck(threads, limit)?;
                Some(self.bury(number, threads, Some(stuck)))
            }
        }
    }

    /// Ends what is left of a worker; says why it was lost if nobody knows better.
    pub(super) fn bury(&mut self, number: usize, threads: usize, why: Option<Lost>) -> Lost {
        let gone = Lost::Garbled("the worker process is gone".into());
        let Some(mut member) = self.members.get_mut(number).and_then(Option::take) else {
            return why.unwrap_or(gone);
        };
        match why {
            Some(why) => {
                member.way.kill();
                why
            }
            None => member.way.post_mortem(threads),
        }
    }

    /// The next word of any worker, or nothing for so long.
    pub(super) fn hear(&mut self, patience: Duration) -> Option<(usize, Word)> {
        if self.interrupted_at.is_none() && self.interrupt.load(Relaxed) {
            self.interrupted_at = Some(Instant::now());
        }
        // The lab holds a sender itself, so the channel never closes.
        self.inbox.recv_timeout(patience).ok()
    }

    /// A call's limit, shorter once the user has asked to end.
    fn patience(&self, limit: Duration) -> Duration {
        match self.interrupted_at {
            Some(at) if at.elapsed() > AFTER_INTERRUPT => AFTER_INTERRUPT.min(limit),
            _ => limit,
        }
    }
}
