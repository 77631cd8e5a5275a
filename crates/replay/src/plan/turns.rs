//! Sessions that several threads use, as those of a pool: their calls keep the order in which they
//! began.
//!
//! An operation that has begun is a state of its session, and what becomes of two calls at once in
//! one session is not defined (PKCS#11 2.20, 6.6.6 and 13.1).

use std::collections::HashMap;

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

/// Gives each call of a session that several threads of a process use its turn. All turns together
/// are in the order of time, so that no thread waits for one that waits for it.
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
    // When it began; its thread; its place there.
    let mut calls: Vec<(Nanos, usize, usize)> = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        let recorded = workload.threads.get(thread.origin as usize);
        let begins = recorded.into_iter().flat_map(|it| it.timed_calls()).map(|(begin, _)| begin);
        let mut begins = begins.enumerate();
        for (place, step) in thread.steps.iter().enumerate() {
            let begin = begins.find(|(origin, _)| *origin == step.origin as usize);
            if let (true, Some((_, begin))) =
                (step.session.is_some_and(|it| users.contains_key(&it)), begin)
            {
                calls.push((begin, number, place));
            }
        }
    }
    calls.sort_unstable();
    let mut turns: HashMap<u32, u32> = HashMap::new();
    for (_, number, place) in calls {
        let step = &mut threads[number].steps[place];
        let next = turns.entry(step.session.unwrap_or_default()).or_default();
        step.turn = Some(*next);
        *next += 1;
    }
}
