//! Checks many results on several threads: all of them, or as many as a time allows, drawn in
//! a random order from the recorded seed so that what was not checked is no worse than the rest.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::seeded::{Purpose, Seeded};
use super::verifier::{Output, Verdict, Verifier};

/// How far checking may go.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How long, from the first check on; `None` checks everything.
    pub at_most: Option<Duration>,
    /// How many threads check.
    pub threads: NonZeroUsize,
    /// Settles the order in which results are checked in a limited time.
    pub seed: u64,
}

/// The part of a record that says how far its results were verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// How many results there were.
    pub eligible: u64,
    /// How many were judged.
    pub checked: u64,
    /// How many of those were wrong.
    pub wrong: u64,
    /// Who judged the results.
    pub by: By,
    /// The first wrong result, in the order of workers and operations.
    pub first_wrong: Option<OperationId>,
}

/// Who found the results right or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Software that the device has no part in.
    Software,
    /// The token itself, in a round trip.
    Token,
    /// Nobody judged them: no share of them is known to be right.
    None,
}

/// One operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationId {
    /// The number of the worker.
    pub worker: u32,
    /// The number of the operation at that worker, from 0.
    pub operation: u64,
}

/// Checks `outputs`. Random numbers and new keys must also differ from each other.
#[must_use]
pub fn verify_all(verifier: &Verifier, outputs: &[Output], effort: Effort) -> Verification {
    let queue = Queue::new(verifier, outputs, effort);
    let tallies: Vec<VerifiedCount> = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, || queue.work()).ok();
        let threads: Vec<_> = (0..effort.threads.get()).filter_map(start).collect();
        // There may be no thread to be had (`ulimit -u`).
        if threads.is_empty() {
            return vec![queue.work()];
        }
        let join = |thread: thread::ScopedJoinHandle<'_, VerifiedCount>| match thread.join() {
            Ok(tally) => tally,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    let checked = tallies.iter().map(|tally| tally.checked).sum();
    Verification {
        eligible: outputs.len() as u64,
        checked,
        wrong: tallies.iter().map(|tally| tally.wrong).sum(),
        by: if checked > 0 { By::Software } else { By::None },
        first_wrong: tallies.iter().filter_map(|tally| tally.first_wrong).min(),
    }
}

/// What one thread found.
#[derive(Default)]
struct VerifiedCount {
    checked: u64,
    wrong: u64,
    first_wrong: Option<OperationId>,
}

/// The results, handed out one by one to whoever is free.
struct Queue<'a> {
    verifier: &'a Verifier,
    outputs: &'a [Output],
    /// The order to check in; empty for the order of `outputs`.
    order: Vec<usize>,
    deadline: Option<Instant>,
    next: AtomicUsize,
    seen: Mutex<HashSet<&'a [u8]>>,
}

impl<'a> Queue<'a> {
    fn new(verifier: &'a Verifier, outputs: &'a [Output], effort: Effort) -> Self {
        let shuffled = || Seeded::new(effort.seed, Purpose::Order).order(outputs.len());
        Self {
            verifier,
            outputs,
            order: effort.at_most.map_or_else(Vec::new, |_| shuffled()),
            // After the shuffling: among a million results that takes its time.
            deadline: effort.at_most.map(|time| Instant::now() + time),
            next: AtomicUsize::new(0),
            seen: Mutex::default(),
        }
    }

    fn work(&self) -> VerifiedCount {
        let mut tally = VerifiedCount::default();
        while let Some(output) = self.take() {
            let wrong = match self.verifier.check(output) {
                Verdict::NotPossible => continue,
                Verdict::Wrong => true,
                Verdict::Right => self.is_repeated(output),
            };
            tally.checked += 1;
            if wrong {
                let this = OperationId { worker: output.worker, operation: output.operation };
                tally.wrong += 1;
                tally.first_wrong = Some(tally.first_wrong.map_or(this, |first| first.min(this)));
            }
        }
        tally
    }

    fn take(&self) -> Option<&'a Output> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let place = if self.order.is_empty() { turn } else { *self.order.get(turn)? };
        self.outputs.get(place)
    }

    /// Was a result that must be unique seen before?
    fn is_repeated(&self, output: &'a Output) -> bool {
        if !self.verifier.wants_distinct(output) {
            return false;
        }
        let mut seen = self.seen.lock().expect("no thread panics while it holds this lock");
        !seen.insert(&output.bytes)
    }
}
