//! The measuring loop of one worker: wait for the next start, perform the operation, read the clock,
//! count.
//!
//! What happens before the window opens is warm-up. An operation that the end of the window cuts off
//! counts as time in a call, but not as an operation.

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::gate::Gate;
use crate::pace::{OperationStart, Pace};
use crate::recorder::{OperationSample, Recorder, Sink};
use crate::units::Nanos;

/// What is measured, as the loop sees it. Everything is prepared: performing allocates nothing,
/// locks nothing and makes exactly the interface calls that the operation needs.
pub trait MeasuredWork {
    /// Performs the operation of this number; the error is the device's code.
    ///
    /// # Errors
    /// The code that the device answered with, whatever numbering it uses.
    fn perform(&mut self, operation: u64) -> Result<(), u64>;

    /// Looks at what the operation gave, after its time was taken, and makes ready for the next one:
    /// an answer that cannot be is a failure.
    ///
    /// # Errors
    /// The code of `outcome`, or the work's own number for what is wrong with the answer.
    #[inline]
    fn settle(&mut self, _operation: u64, outcome: Result<(), u64>) -> Result<(), u64> {
        outcome
    }

    /// The index of the case that the operation belongs to.
    #[inline]
    fn lane(&self, _operation: u64) -> usize {
        0
    }

    /// The window has opened: operations count from this one on, which has just ended.
    fn opened(&mut self, _operation: u64) {}

    /// This operation ended after the window had closed and does not count.
    fn cut_off(&mut self, _operation: u64) {}

    /// Cleans up after a failure, outside the sample.
    fn failed(&mut self, _operation: u64, _code: u64) -> Onward {
        Onward::Continue
    }
}

/// What a worker does after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// It goes on with the next operation.
    Continue,
    /// Nothing: the device is of no more use to this worker.
    GiveUp,
}

/// Why a worker's loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoopEnd {
    /// The window closed before its count was done.
    Window,
    /// It had done its count.
    Count,
    /// It gave up after this code.
    GaveUp(u64),
}

/// Which operations one worker performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationRange {
    /// The number of the first; numbers are never used twice, warm-up included.
    pub first: u64,
    /// How many, counted from the window's opening; without it the gate's closing ends the loop.
    pub limit: Option<u64>,
}

/// Runs one worker until its window closes, its share is done or it gives up.
pub fn run_worker_loop<C: Clock, W: MeasuredWork, S: Sink, P: Pace>(
    clock: &C,
    gate: &Gate,
    pace: &mut P,
    work: &mut W,
    recorder: &mut Recorder<S>,
    share: OperationRange,
) -> LoopEnd {
    let mut operation = share.first;
    let mut current = match until_open(clock, gate, pace, work, &mut operation) {
        Ok(step) => step,
        Err(ended) => return ended,
    };
    let opens = gate.opens();
    let last = share.limit.map_or(u64::MAX, |limit| operation.saturating_add(limit - 1));
    recorder.open(opens);
    work.opened(operation);
    let mut boundary = recorder.boundary();
    let mut held: Option<HeldSample> = None;

    loop {
        let TimedOperation { turn, end, outcome } = current;
        if let Some(before) = held.take() {
            before.record_in(recorder);
        }
        let closes = gate.closes();
        if end >= boundary.min(closes) {
            if end >= closes {
                recorder.cut_off(work.lane(operation), closes - turn.start.max(opens));
                work.cut_off(operation);
                return LoopEnd::Window;
            }
            recorder.roll(end);
            boundary = recorder.boundary();
        }
        let sample = OperationSample {
            lane: work.lane(operation),
            start: turn.intended,
            latency: end - turn.intended,
            failure: outcome.err(),
        };
        let in_call = end - turn.start.max(opens);
        if let Some(delay) = turn.scheduling_delay {
            recorder.scheduling_delay(delay, end);
        }
        match outcome {
            Ok(()) => held = Some(HeldSample { sample, in_call, end }),
            Err(code) => {
                recorder.failed(sample, in_call, code);
                if work.failed(operation, code) == Onward::GiveUp {
                    return LoopEnd::GaveUp(code);
                }
            }
        }
        let next = if operation == last {
            Err(LoopEnd::Count)
        } else {
            operation += 1;
            step(clock, gate, pace, work, operation, end).ok_or(LoopEnd::Window)
        };
        match next {
            Ok(step) => current = step,
            Err(ended) => {
                if let Some(before) = held {
                    before.record_in(recorder);
                }
                return ended;
            }
        }
    }
}

/// A completed operation that is not recorded yet.
///
/// It is recorded after the next one has ended. What is made of its moments (a bucket, sums) is then
/// done beside that reading of the clock; between this operation's end and the next one's start the
/// reading would wait for it.
struct HeldSample {
    sample: OperationSample,
    in_call: Nanos,
    end: Nanos,
}

impl HeldSample {
    #[inline(always)]
    fn record_in<S: Sink>(self, recorder: &mut Recorder<S>) {
        recorder.completed(self.sample, self.in_call, self.end);
    }
}

/// One operation with its two moments.
struct TimedOperation {
    turn: OperationStart,
    end: Nanos,
    outcome: Result<(), u64>,
}

/// Inlined wherever it is called: given back through memory, an operation's moments would reach the
/// recorder some nanoseconds later, and the next reading of the clock waits for that.
#[inline(always)]
fn step<C: Clock, W: MeasuredWork, P: Pace>(
    clock: &C,
    gate: &Gate,
    pace: &mut P,
    work: &mut W,
    operation: u64,
    previous_end: Nanos,
) -> Option<TimedOperation> {
    let turn = pace.next(clock, gate, previous_end)?;
    let performed = work.perform(operation);
    let end = clock.now();
    Some(TimedOperation { turn, end, outcome: work.settle(operation, performed) })
}

/// Performs operations that do not count, until one ends after the window has opened.
fn until_open<C: Clock, W: MeasuredWork, P: Pace>(
    clock: &C,
    gate: &Gate,
    pace: &mut P,
    work: &mut W,
    operation: &mut u64,
) -> Result<TimedOperation, LoopEnd> {
    let mut previous_end = clock.now();
    let mut noted = false;
    loop {
        let step =
            step(clock, gate, pace, work, *operation, previous_end).ok_or(LoopEnd::Window)?;
        if !noted {
            gate.note_first_done();
            noted = true;
        }
        if step.end >= gate.opens() {
            return Ok(step);
        }
        if step.end >= gate.closes() {
            work.cut_off(*operation);
            return Err(LoopEnd::Window);
        }
        if let Err(code) = step.outcome
            && work.failed(*operation, code) == Onward::GiveUp
        {
            return Err(LoopEnd::GaveUp(code));
        }
        previous_end = step.end;
        *operation += 1;
    }
}

/// What a worker did in its warm-up, apart from its window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpResult {
    /// How many operations there were.
    pub operations: u64,
    /// How long they took together.
    pub length: Nanos,
    /// The latencies of the first ones, in order.
    pub first: Vec<Nanos>,
    /// Codes of those that failed.
    pub failures: Vec<u64>,
    /// It ended because the work gave up.
    pub gave_up: bool,
}

/// Latencies of a warm-up that are kept one by one.
const FIRST_KEPT: usize = 16;

/// Performs operations, numbered from `first` on, for `length`: at least one, unless told to stop.
pub fn warm_up<C: Clock, W: MeasuredWork>(
    clock: &C,
    work: &mut W,
    length: Nanos,
    first: u64,
    stop: impl Fn() -> bool,
) -> WarmUpResult {
    let mut warm_up =
        WarmUpResult { first: Vec::with_capacity(FIRST_KEPT), ..WarmUpResult::default() };
    let begin = clock.now();
    while !stop() {
        let operation = first + warm_up.operations;
        let start = clock.now();
        let performed = work.perform(operation);
        let end = clock.now();
        let outcome = work.settle(operation, performed);
        if warm_up.first.len() < FIRST_KEPT {
            warm_up.first.push(end - start);
        }
        warm_up.operations += 1;
        if let Err(code) = outcome {
            warm_up.failures.push(code);
            if work.failed(operation, code) == Onward::GiveUp {
                warm_up.gave_up = true;
                break;
            }
        }
        if end - begin >= length {
            break;
        }
    }
    warm_up.length = clock.now() - begin;
    warm_up
}

#[cfg(test)]
#[path = "looper_tests.rs"]
mod tests;
