//! The controller's questions to its workers, and what it makes of those that have no answer.

use std::time::Duration;

use tapstone_names::pkcs11::Pkcs11Function;
use tapstone_worker::{Conversation, Interrupt, OnInterrupt, Timeouts, Unanswered};

use super::TokenController;
use super::error::{Lost, TokenMeasureError};
use crate::protocol::{Order, Report, Task, TokenProtocol};

/// A conversation with workers that have loaded a module.
pub(super) type Workers = Conversation<TokenProtocol>;

/// After an interrupt, how long a call in flight may go on: keys have to be removed. One that makes or
/// removes keys has its usual time.
const AFTER_INTERRUPT: Duration = Duration::from_secs(5);

/// How long a worker that cleans up may stand still, in C_Logout or C_Finalize for example.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// A conversation in which calls may take so long, until `interrupt` says that the user wants to
/// end.
pub(super) fn conversation(timeout: Duration, interrupt: super::InterruptFlag) -> Workers {
    let interrupt = Interrupt::new(interrupt, OnInterrupt::Shorten(AFTER_INTERRUPT));
    Workers::new(timeouts(timeout), interrupt)
}

/// No call of a module waits for another program.
pub(super) const fn timeouts(call: Duration) -> Timeouts {
    Timeouts { call, waiting_call: call, clean_up: CLEAN_UP }
}

impl TokenController {
    /// Gives one worker a task and waits for its answer.
    pub(super) fn ask<T>(
        &mut self,
        number: usize,
        task: Task,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, TokenMeasureError> {
        self.workers.send_task(number, task);
        self.answer(number, pick)
    }

    /// Sends a worker an order that only this machine gives, and waits for its answer.
    pub(super) fn ask_here<T>(
        &mut self,
        number: usize,
        order: &Order,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, TokenMeasureError> {
        self.workers.send_order(number, order);
        self.answer(number, pick)
    }

    /// Gives workers a task each, by their place in `numbers`, and waits for all their answers.
    pub(super) fn ask_all<T>(
        &mut self,
        numbers: &[usize],
        task: impl Fn(usize) -> Task,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Vec<Result<T, TokenMeasureError>> {
        for (place, &number) in numbers.iter().enumerate() {
            self.workers.send_task(number, task(place));
        }
        let answers = self.workers.answers(numbers, pick, || ());
        answers.into_iter().map(|answer| answer.map_err(|why| self.unanswered(why))).collect()
    }

    /// Gives each of these workers a task of its own; an answer for each, in order.
    pub(super) fn answers_to<T>(
        &mut self,
        numbers: &[usize],
        tasks: Vec<Task>,
        pick: impl FnMut(Report) -> Option<T>,
    ) -> Vec<Result<T, Unanswered<Pkcs11Function>>> {
        for (number, task) in numbers.iter().zip(tasks) {
            self.workers.send_task(*number, task);
        }
        self.workers.answers(numbers, pick, || ())
    }

    fn answer<T>(
        &mut self,
        number: usize,
        pick: impl Fn(Report) -> Option<T>,
    ) -> Result<T, TokenMeasureError> {
        let answer = self.workers.answer(number, pick, || ());
        answer.map_err(|why| self.unanswered(why))
    }

    fn unanswered(&self, why: Unanswered<Pkcs11Function>) -> TokenMeasureError {
        match why {
            Unanswered::Lost(lost) => self.lost(lost),
            Unanswered::Interrupted => TokenMeasureError::Interrupted,
        }
    }

    /// A worker is no more: after an interrupt that is no surprise.
    pub(super) fn lost(&self, lost: Lost) -> TokenMeasureError {
        if self.workers.is_interrupted() {
            return TokenMeasureError::Interrupted;
        }
        let module = match self.hosts() {
            // The error names the machine, and the target is what machines have in common.
            Some(hosts) => hosts.target().into(),
            None => self.module().to_owned(),
        };
        TokenMeasureError::Lost { module, lost }
    }
}
