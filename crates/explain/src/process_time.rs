//! What each process did with its time: its first thread on a processor, without one though it was
//! ready, or in which kind of wait.
//!
//! Waits are calls of libc, from their entry to their return. How long the thread ran is what the
//! kernel says at the end of the process. What is left is not known, and said so.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tapstone_measure::units::Nanos;
use tapstone_record::{Fraction, ProcessTime, TimeKind, TimePart};

use crate::findings::waited;
use crate::timeline::{Family, Kind, Leaf, Timeline};

/// All processes, the one in front whose first thread worked longest.
#[must_use]
pub(crate) fn process_times(timeline: &Timeline) -> Vec<ProcessTime> {
    let mut lives: BTreeMap<u32, Life<'_>> = BTreeMap::new();
    for program in &timeline.processes {
        let new = || Life { start: program.started, end: program.started, program: "" };
        let life = lives.entry(program.id).or_insert_with(new);
        life.start = life.start.min(program.started).max(timeline.started);
        if !program.program.is_empty() {
            life.program = program.program.rsplit('/').next().unwrap_or_default();
        }
    }
    let thread_ends = timeline.threads.iter().map(|thread| (thread.process, thread.end));
    let ends = timeline.ends.iter().map(|end| (end.process, end.at));
    for (process, end) in thread_ends.chain(ends) {
        if let Some(life) = lives.get_mut(&process) {
            life.end = life.end.max(end);
        }
    }
    if let Some(root) = lives.get_mut(&timeline.root) {
        root.start = timeline.started;
        root.end = timeline.ended;
    }
    let mut times: Vec<ProcessTime> = lives
        .into_iter()
        // A daemon that is traced too was there before.
        .filter(|(_, life)| life.end > timeline.started)
        .map(|(process, life)| process_time(timeline, process, &life))
        .collect();
    times.sort_by_key(|time| Reverse(worked(time)));
    times
}

/// How long its first thread did something other than waiting for somebody else.
fn worked(time: &ProcessTime) -> Nanos {
    let waits = time
        .parts
        .iter()
        .filter(|part| matches!(part.kind, TimeKind::Children | TimeKind::Lock | TimeKind::Input));
    let waited: Nanos = waits.map(|part| part.time_ns).sum();
    Nanos(time.wall_ns.0.saturating_sub(waited.0))
}

/// When a process was there, and the file name of the last program that it ran.
struct Life<'a> {
    start: Nanos,
    end: Nanos,
    program: &'a str,
}

fn process_time(timeline: &Timeline, process: u32, life: &Life<'_>) -> ProcessTime {
    let wall = life.end - life.start;
    let mut parts: BTreeMap<TimeKind, Nanos> = BTreeMap::new();
    let first = timeline.threads.iter().find(|it| it.process == process && it.id == process);
    for leaf in first.into_iter().flat_map(|thread| &thread.leaves) {
        if let Some(kind) = kind_of_wait(timeline, leaf) {
            *parts.entry(kind).or_default() += leaf.time;
        }
    }
    let end = timeline.ends.iter().rev().find(|end| end.process == process);
    if let Some(scheduled) = end.and_then(|end| end.first_thread) {
        parts.insert(TimeKind::Running, scheduled.ran);
        parts.insert(TimeKind::Runnable, scheduled.waited);
    }
    let known: Nanos = parts.values().copied().sum();
    parts.insert(TimeKind::Unknown, Nanos(wall.0.saturating_sub(known.0)));
    let share = |time: Nanos| Fraction(time.0 as f64 / wall.0.max(1) as f64);
    let mut parts: Vec<TimePart> = parts
        .into_iter()
        .filter(|(_, time)| *time > Nanos::ZERO)
        .map(|(kind, time)| TimePart { kind, time_ns: time, share: share(time) })
        .collect();
    parts.sort_by_key(|part| Reverse(part.time_ns));
    ProcessTime {
        process,
        program: life.program.to_owned(),
        wall_ns: wall,
        processor_ns: end.map(|end| end.processor),
        parts,
    }
}

/// What a call of libc waited for; nothing where it did not.
fn kind_of_wait(timeline: &Timeline, leaf: &Leaf) -> Option<TimeKind> {
    let Family::Libc(kind) = timeline.call(leaf.call).family else { return None };
    if !waited(timeline, leaf) {
        return None;
    }
    match kind {
        Kind::Sleep => Some(TimeKind::Sleeping),
        Kind::Poll | Kind::Read | Kind::Connect => Some(TimeKind::Input),
        Kind::Lock => Some(TimeKind::Lock),
        Kind::Children => Some(TimeKind::Children),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tapstone_events::{ProcessEnd, Program, Scheduled};

    use super::*;
    use crate::synthetic::{Story, millis};

    fn parts(time: &ProcessTime) -> Vec<(TimeKind, Nanos)> {
        time.parts.iter().map(|part| (part.kind.clone(), part.time_ns)).collect()
    }

    #[test]
    fn a_thread_sleeps_waits_runs_or_nobody_knows() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.leaf("nanosleep", millis(40)).leaf("waitpid", millis(20));
                told.leaf("poll", millis(10)).with(|leaf| leaf.b = u64::MAX);
                // It asks, and waits for nothing.
                told.leaf("poll", millis(5)).advance(millis(25));
            })
            .timeline();
        let process = timeline.threads[0].process;
        timeline.threads[0].id = process;
        timeline.root = process;
        timeline.processes =
            vec![Program { id: process, parent: 0, program: "/bin/p".into(), started: Nanos(0) }];
        let waits = [
            (TimeKind::Sleeping, millis(40)),
            (TimeKind::Unknown, millis(30)),
            (TimeKind::Children, millis(20)),
            (TimeKind::Input, millis(10)),
        ];
        let times = process_times(&timeline);
        assert_eq!((parts(&times[0]), times[0].processor_ns), (waits.to_vec(), None));
        assert_eq!(times[0].program, "p");
        timeline.ends.push(ProcessEnd {
            process,
            at: timeline.ended,
            first_thread: Some(Scheduled { ran: millis(22), waited: millis(3) }),
            processor: millis(29),
        });
        let times = process_times(&timeline);
        assert_eq!(times[0].processor_ns, Some(millis(29)));
        let known = [
            (TimeKind::Running, millis(22)),
            (TimeKind::Runnable, millis(3)),
            (TimeKind::Unknown, millis(5)),
        ];
        assert!(known.iter().all(|part| parts(&times[0]).contains(part)), "{:?}", times[0]);
    }
}
