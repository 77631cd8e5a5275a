//! The loop of a worker: make ready, time, undo, and hand on what was seen.
//!
//! Only the operation itself lies between the two readings of the clock. What was seen is handed
//! on between operations, at once where they are slow, so that a card that hangs takes nothing
//! with it.

use std::fs::File;
use std::io;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_worker::send;

use super::orders::Orders;
use crate::protocol::{Exchange, Fault, Ready, Report, Sample};

/// What a worker measures.
pub trait Work {
    /// Everything that the operation of this number needs, outside the timed section.
    ///
    /// # Errors
    /// What went wrong; the operation then does not take place.
    fn prepare(&mut self, number: u64) -> Result<(), Fault>;

    /// The operation.
    ///
    /// # Errors
    /// What went wrong.
    fn perform(&mut self) -> Result<(), Fault>;

    /// Undoes it, outside the timed section.
    ///
    /// # Errors
    /// What went wrong; the worker then gives up.
    fn undo(&mut self, failed: bool) -> Result<(), Fault>;

    /// Which case the operation of this number belongs to.
    fn lane(&self, _number: u64) -> u16 {
        0
    }

    /// How many cases a round goes through; a count is one of rounds.
    fn lanes(&self) -> u64 {
        1
    }

    /// The exchanges of the last operation, and what is to be verified of it.
    fn seen(&mut self) -> (Vec<Exchange>, Vec<u8>) {
        (Vec::new(), Vec::new())
    }

    /// What was saved while it was made ready, and what this card cannot do.
    fn prepared(&mut self) -> Ready {
        Ready { lanes: 1, ..Ready::default() }
    }

    /// Cleans up for good.
    ///
    /// # Errors
    /// What is left.
    fn end(self) -> Result<(), Fault>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Failures in a row after which nothing is to be hoped for.
const MOST_FAILURES: u32 = 10;

/// Samples leave after so long: seldom enough not to disturb fast calls.
const OUTLET_INTERVAL: Nanos = Nanos::from_millis(50);

/// Samples that leave together at most.
const BATCH: usize = 4096;

/// Where samples go: to the controller, at once or in batches.
pub(super) struct Outlet<'a> {
    pipe: &'a mut File,
    waiting: Vec<Sample>,
    last: Nanos,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(pipe: &'a mut File) -> Self {
        Self { pipe, waiting: Vec::with_capacity(BATCH), last: Monotonic.now() }
    }

    fn take(&mut self, sample: Sample, now: Nanos) -> io::Result<()> {
        self.waiting.push(sample);
        if now - self.last >= OUTLET_INTERVAL || self.waiting.len() == BATCH {
            self.flush(now)?;
        }
        Ok(())
    }

    fn flush(&mut self, now: Nanos) -> io::Result<()> {
        self.last = now;
        if self.waiting.is_empty() {
            return Ok(());
        }
        let samples = std::mem::replace(&mut self.waiting, Vec::with_capacity(BATCH));
        send(self.pipe, &Report::Samples(samples))
    }
}

/// Operations that do not count; their durations.
pub(super) fn warm_up<W: Work>(work: &mut W, length: Nanos) -> Result<Vec<Nanos>, Fault> {
    let mut durations = Vec::new();
    let until = Monotonic.now() + length;
    for number in 0.. {
        if Monotonic.now() >= until {
            break;
        }
        work.prepare(number)?;
        let start = Monotonic.now();
        let outcome = work.perform();
        let duration = Monotonic.now() - start;
        work.undo(outcome.is_err())?;
        outcome?;
        durations.push(duration);
    }
    Ok(durations)
}

/// Operations until the count is done or the controller has closed; why it gave up, if it did.
pub(super) fn run_rounds<W: Work>(
    work: &mut W,
    count: Option<u64>,
    orders: &mut Orders,
    outlet: &mut Outlet<'_>,
) -> io::Result<Option<Fault>> {
    let count = count.map(|count| count * work.lanes());
    let mut failures = 0;
    let mut number = 0;
    let mut now = Monotonic.now();
    let gave_up = loop {
        if count == Some(number) || orders.closed_at(now) {
            break None;
        }
        let prepared = work.prepare(number);
        let start = Monotonic.now();
        let outcome = prepared.and_then(|()| work.perform());
        let end = Monotonic.now();
        now = end;
        let undone = work.undo(outcome.is_err());
        let fault = outcome.err();
        let (exchanges, output) = work.seen();
        let lane = work.lane(number);
        let latency = end - start;
        let last = fault.clone();
        outlet.take(Sample { lane, number, start, latency, fault, exchanges, output }, end)?;
        failures = if last.is_some() { failures + 1 } else { 0 };
        if let Err(fault) = undone {
            break Some(fault);
        }
        if let Some(fault) = last.filter(|fault| fault.is_final() || failures >= MOST_FAILURES) {
            break Some(fault);
        }
        number += 1;
    };
    outlet.flush(Monotonic.now())?;
    Ok(gave_up)
}
