//! Since when a worker's threads have been in the calls that they are in.

use std::time::{Duration, Instant};

use crate::board::InFlight;
use crate::lost::Lost;
use crate::process::WorkerProcess;
use crate::protocol::WorkerProtocol;

/// A wait for another program that a user wonders about.
pub const NOTABLE_WAIT: Duration = Duration::from_secs(1);

/// What was seen of a worker's threads: its main thread, then those that it was told to start.
#[derive(Debug)]
pub(crate) struct ThreadWatch {
    threads: usize,
    seen: Vec<(InFlight, Instant)>,
    told: bool,
}

/// What a look at a worker shows.
pub(crate) enum WorkerSight<C: std::fmt::Display> {
    /// A call has not returned within its limit.
    Hangs(Lost<C>),
    /// For the first time, a call waits for another program, and has done so for a while.
    Waits,
}

impl ThreadWatch {
    pub(crate) const fn new() -> Self {
        Self { threads: 0, seen: Vec::new(), told: false }
    }

    /// The threads besides the main one.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// So many threads besides the main one are watched from now on.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// An idle worker is about to be told something: no call of before counts.
    pub(crate) fn restart(&mut self) {
        self.seen.clear();
        self.told = false;
    }

    /// Looks at the worker's board. `limit` says how long a call may take.
    pub(crate) fn look<P: WorkerProtocol>(
        &mut self,
        process: &WorkerProcess<P>,
        limit: impl Fn(Option<P::Call>) -> Duration,
    ) -> Option<WorkerSight<P::Call>> {
        let now = Instant::now();
        self.seen.resize_with(1 + self.threads, || (InFlight::NONE, now));
        for (thread, (seen, since)) in self.seen.iter_mut().enumerate() {
            let in_flight = process.in_flight(thread);
            if in_flight != *seen || in_flight.call().is_none() {
                *seen = in_flight;
                *since = now;
                continue;
            }
            let call = in_flight.call().and_then(P::call_of_number);
            let limit = limit(call);
            if now - *since >= limit {
                return Some(WorkerSight::Hangs(Lost::Hung { after: limit, call }));
            }
            let waits = call.is_some_and(P::waits_for_others);
            if waits && !self.told && now - *since >= NOTABLE_WAIT {
                self.told = true;
                return Some(WorkerSight::Waits);
            }
        }
        None
    }
}
