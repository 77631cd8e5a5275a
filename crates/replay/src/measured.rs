//! What a replay measured, and a workload made of it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;
use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

use crate::plan::replayed_span;
use crate::steps::{Due, ReplayProcess, ReplayThread};

/// One call as it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedCall {
    /// When it began, since the replay's start.
    pub begin: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// How much later it began than it was due.
    pub late: Nanos,
    /// Of that, what it waited for other threads of the replay: for its turn in a session, or for
    /// what they make.
    pub waited: Nanos,
    /// What the function returned.
    pub result: u64,
    /// False: it was not called, because its session or its object was not there.
    pub is_called: bool,
    /// How long its result is, or how many objects it found.
    pub output: u32,
}

impl ReplayedCall {
    /// Whether it went well when it was recorded and not in the replay.
    #[must_use]
    pub const fn fails_anew(&self, recorded: &WorkloadCall) -> bool {
        !self.is_called || self.result != 0 && recorded.result == 0
    }
}

/// Marks the calls of a recording, the part of it that is replayed, of which one failed in the
/// replay: so that there, too, their operations and transactions are left out of what is compared.
/// `planned` are the processes that the part was made of.
pub fn mark_failures(
    part: &mut Workload,
    planned: &[ReplayProcess],
    processes: &[ReplayProcess],
    replayed: &[Vec<ReplayedThread>],
    recorded: &Workload,
) {
    let mut failed: HashSet<(u32, u32)> = HashSet::new();
    for (process, threads) in processes.iter().zip(replayed) {
        for (thread, went) in process.threads.iter().zip(threads) {
            let Some(origin) = recorded.threads.get(thread.origin as usize) else { continue };
            for (step, time) in thread.steps.iter().zip(&went.times) {
                let call = origin.calls.get(step.origin as usize);
                if call.is_some_and(|call| time.fails_anew(call)) {
                    failed.insert((thread.origin, step.origin));
                }
            }
        }
    }
    let threads = planned.iter().flat_map(|process| &process.threads);
    let threads = threads.filter(|thread| thread.copy == 0);
    for (thread, known) in threads.zip(&mut part.threads) {
        for (step, call) in thread.steps.iter().zip(&mut known.calls) {
            call.fails_anew = failed.contains(&(thread.origin, step.origin));
        }
    }
}

/// The result of one call, kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// A place among the steps of its thread.
    pub step: u32,
    /// What the call gave.
    pub bytes: Vec<u8>,
}

/// A thread as it went: the calls that it made, in the order of its steps. One that was stopped
/// made fewer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedThread {
    /// How each of its calls went.
    pub times: Vec<ReplayedCall>,
    /// Results that were kept, in the same order.
    pub results: Vec<KeptResult>,
}

/// The part of a recording that is replayed, so that like is compared with like: the time of calls
/// that are left out is left out, too. What follows them begins so much earlier, until a call whose
/// moment is fixed.
#[must_use]
pub fn recorded_part(recorded: &Workload, processes: &[ReplayProcess]) -> Workload {
    let mut part = Workload { head: recorded.head.clone(), threads: Vec::new() };
    let threads = processes.iter().flat_map(|process| &process.threads);
    for planned in threads.filter(|thread| thread.copy == 0) {
        let Some(origin) = recorded.threads.get(planned.origin as usize) else { continue };
        let timed: Vec<(Nanos, &WorkloadCall)> = origin.timed_calls().collect();
        let kept = planned.steps.iter().filter_map(|step| {
            let (begin, call) = *timed.get(step.origin as usize)?;
            Some((begin, step.due, call))
        });
        let mut thread = WorkloadThread { process: origin.process, ..WorkloadThread::default() };
        let mut end = None;
        for (recorded_begin, due, call) in kept {
            let (computing, waiting) = match (end, due) {
                (None, _) => (Nanos::ZERO, Nanos::ZERO),
                (Some(_), Due::AfterAnswer(pause)) => (pause, Nanos::ZERO),
                (Some(end), Due::At(_)) => (Nanos::ZERO, recorded_begin - end),
            };
            let begin = match end {
                None => recorded_begin,
                Some(end) => Nanos(end.0.saturating_add(computing.0).saturating_add(waiting.0)),
            };
            if end.is_none() {
                thread.start = begin;
            }
            thread.calls.push(WorkloadCall {
                computing,
                waiting,
                after_wait: end.is_some() && matches!(due, Due::At(_)),
                ..*call
            });
            end = Some(Nanos(begin.0.saturating_add(call.duration.0)));
        }
        part.threads.push(thread);
    }
    part.head.wall_ns = replayed_span(&part);
    part
}

/// A workload of what was measured, so that it is read by what reads the recording. Calls keep what
/// the recording says of them, but for times, results and lengths of results.
///
/// A call whose moment was fixed counts from that moment: a stall is charged to all that it held
/// up, and to the call that waited for it.
#[must_use]
pub fn measured_workload(
    recorded: &Workload,
    processes: &[ReplayProcess],
    replayed: &[Vec<ReplayedThread>],
) -> Workload {
    let mut measured = Workload { head: recorded.head.clone(), threads: Vec::new() };
    let mut last_end = Nanos::ZERO;
    // Each copy of a client, and each process, has sessions of its own.
    let mut first_session = 1;
    for (process, threads) in processes.iter().zip(replayed) {
        for (planned, went) in process.threads.iter().zip(threads) {
            let Some(origin) = recorded.threads.get(planned.origin as usize) else { continue };
            let mut thread =
                WorkloadThread { process: origin.process, ..WorkloadThread::default() };
            let mut end = Nanos::ZERO;
            for (step, time) in planned.steps.iter().zip(&went.times) {
                let Some(call) = origin.calls.get(step.origin as usize) else { continue };
                let is_fixed = matches!(step.due, Due::At(_));
                let due = if is_fixed { time.begin - time.late } else { time.begin };
                let begin = due.max(end);
                if thread.calls.is_empty() {
                    thread.start = begin;
                    end = begin;
                }
                let answered = Nanos(time.begin.0.saturating_add(time.duration.0));
                let pause = begin - end;
                let waits = is_fixed && !thread.calls.is_empty();
                thread.calls.push(WorkloadCall {
                    computing: if waits { Nanos::ZERO } else { pause },
                    waiting: if waits { pause } else { Nanos::ZERO },
                    after_wait: waits,
                    duration: answered - begin,
                    held_up: begin - due,
                    result: time.result,
                    fails_anew: time.fails_anew(call),
                    output_bytes: time.output,
                    session: step.session.map_or(0, |place| first_session + place),
                    ..*call
                });
                end = answered;
            }
            last_end = last_end.max(end);
            measured.threads.push(thread);
        }
        first_session += process.sessions.len() as u32;
    }
    measured.head.wall_ns = last_end;
    measured
}

/// The load of a plan as it would go on a device that answers as the recorded one did: each call
/// when it is meant to come, in the order of [`measured_workload`].
#[must_use]
pub fn planned_workload(recorded: &Workload, processes: &[ReplayProcess]) -> Workload {
    let planned = |process: &ReplayProcess| -> Vec<ReplayedThread> {
        process.threads.iter().map(|thread| planned_thread(recorded, thread)).collect()
    };
    let went: Vec<Vec<ReplayedThread>> = processes.iter().map(planned).collect();
    measured_workload(recorded, processes, &went)
}

fn planned_thread(recorded: &Workload, thread: &ReplayThread) -> ReplayedThread {
    let origin = recorded.threads.get(thread.origin as usize);
    let mut answered = Nanos::ZERO;
    let mut times = Vec::with_capacity(thread.steps.len());
    for step in &thread.steps {
        let call = origin.and_then(|origin| origin.calls.get(step.origin as usize));
        let duration = call.map_or(Nanos::ZERO, |call| call.duration);
        let due = match step.due {
            Due::At(moment) => moment,
            Due::AfterAnswer(pause) => Nanos(answered.0.saturating_add(pause.0)),
        };
        let begin = due.max(answered);
        answered = Nanos(begin.0.saturating_add(duration.0));
        times.push(ReplayedCall {
            begin,
            duration,
            late: begin - due,
            waited: Nanos::ZERO,
            result: call.map_or(0, |call| call.result),
            is_called: true,
            output: call.map_or(0, |call| call.output_bytes),
        });
    }
    ReplayedThread { times, results: Vec::new() }
}
