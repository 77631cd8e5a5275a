//! Sessions that several threads use, as those of a pool: their calls keep the order in which they
//! began.
//!
//! An operation that has begun is a state of its session, and what becomes of two calls at once in
//! one session is not defined (PKCS#11 2.20, 6.6.6 and 13.1).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tapstone_measure::units::Nanos;
use tapstone_workload::Workload;

use crate::steps::ReplayThread;

/// One thread, or several.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhichThreads {
    One(usize),
    Several,
}

impl WhichThreads {
    pub(super) fn add(&mut self, thread: usize) {
        if *self != Self::One(thread) {
            *self = Self::Several;
        }
    }
}

/// Gives each call of a session that several threads of a process use its turn, but for the one that
/// opens it, for which others wait anyway. A call waits for those that were over when it began: all of
/// them began before, so that no thread waits for one that waits for it. Calls that were made at the
/// same time can be so again.
pub(super) fn take_turns(threads: &mut [ReplayThread], workload: &Workload) {
    let mut users: HashMap<u32, WhichThreads> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for session in thread.steps.iter().filter_map(|step| step.session) {
            users.entry(session).or_insert(WhichThreads::One(number)).add(number);
        }
    }
    users.retain(|_, threads| *threads == WhichThreads::Several);
    if users.is_empty() {
        return;
    }
    let mut calls = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        let recorded = workload.threads.get(thread.origin as usize);
        let mut recorded = recorded.into_iter().flat_map(|it| it.timed_calls()).enumerate();
        for (place, step) in thread.steps.iter().enumerate() {
            let found = recorded.find(|(origin, _)| *origin == step.origin as usize);
            let is_shared = step.session.is_some_and(|session| users.contains_key(&session));
            if let (true, Some((_, (begin, call)))) = (is_shared && !step.opens_session(), found) {
                let end = Nanos(begin.0.saturating_add(call.duration.0));
                calls.push(SharedCall { begin, thread: number, place, end });
            }
        }
    }
    calls.sort_unstable();
    let mut sessions: HashMap<u32, SharedSession> = HashMap::new();
    for call in calls {
        let step = &mut threads[call.thread].steps[call.place];
        let session = sessions.entry(step.session.unwrap_or_default()).or_default();
        (step.turn, step.is_interrupted) = session.turn_of(call);
    }
}

/// A call of a session that several threads use, in the order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SharedCall {
    begin: Nanos,
    thread: usize,
    place: usize,
    end: Nanos,
}

#[derive(Default)]
struct SharedSession {
    ended: u32,
    /// The ends of calls that are not over yet.
    running: BinaryHeap<Reverse<Nanos>>,
    /// Whose call began last.
    last: Option<usize>,
}

impl SharedSession {
    /// The turn of a call that begins, and whether it does not simply follow its own thread's.
    fn turn_of(&mut self, call: SharedCall) -> (Option<u32>, bool) {
        while self.running.peek().is_some_and(|Reverse(end)| *end <= call.begin) {
            self.running.pop();
            self.ended += 1;
        }
        let is_interrupted = self.last != Some(call.thread) || !self.running.is_empty();
        self.running.push(Reverse(call.end));
        self.last = Some(call.thread);
        (Some(self.ended), is_interrupted)
    }
}
