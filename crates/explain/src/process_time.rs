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
        if let Some(kind) = kind_of_leaf(timeline, leaf) {
            *parts.entry(kind).or_default() += leaf.time;
        }
    }
    add_summed(timeline, process, &mut parts);
    let end = timeline.ends.iter().rev().find(|end| end.process == process);
    if let Some(scheduled) = end.and_then(|end| end.first_thread) {
        shorten_waits(&mut parts, wall - scheduled.ran - scheduled.waited);
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

/// Adds the waits of its first thread in calls that were only counted. Of those that may be for
/// input nobody knows which did wait: then all such waits of the process are not known.
fn add_summed(timeline: &Timeline, process: u32, parts: &mut BTreeMap<TimeKind, Nanos>) {
    let of_first = timeline.summed.iter().filter(|it| [it.process, it.thread] == [process; 2]);
    let mut input_is_known = true;
    for summed in of_first {
        match kind_of_wait(timeline.call(summed.function).family) {
            Some(TimeKind::Input) => input_is_known = false,
            Some(kind) => *parts.entry(kind).or_default() += summed.time,
            None => {}
        }
    }
    if !input_is_known {
        parts.remove(&TimeKind::Input);
    }
}

/// A thread that is woken is ready, and still in the call in which it waited: waits are no longer
/// than what is left when it neither ran nor was ready.
fn shorten_waits(waits: &mut BTreeMap<TimeKind, Nanos>, left: Nanos) {
    let all: Nanos = waits.values().copied().sum();
    if all > left {
        let part = left.0 as f64 / all.0 as f64;
        waits.values_mut().for_each(|time| *time = Nanos((time.0 as f64 * part) as u64));
    }
}

/// What a call of libc waited for; nothing where it did not.
fn kind_of_leaf(timeline: &Timeline, leaf: &Leaf) -> Option<TimeKind> {
    waited(timeline, leaf).then(|| kind_of_wait(timeline.call(leaf.call).family))?
}

/// What calls of libc of a kind wait for, if they do.
fn kind_of_wait(family: Family) -> Option<TimeKind> {
    let Family::Libc(kind) = family else { return None };
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
    use tapstone_events::{ProcessEnd, Program, Scheduled, SummedCalls, SummedDetails};

    use super::*;
    use crate::synthetic::{Story, millis};

    fn parts(time: &ProcessTime) -> Vec<(TimeKind, Nanos)> {
        time.parts.iter().map(|part| (part.kind.clone(), part.time_ns)).collect()
    }

    /// Makes its only thread the first one of the command, whose process it names.
    fn as_command(timeline: &mut Timeline) -> u32 {
        let process = timeline.threads[0].process;
        timeline.threads[0].id = process;
        timeline.root = process;
        timeline.processes =
            vec![Program { id: process, parent: 0, program: "/bin/p".into(), started: Nanos(0) }];
        process
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
        let process = as_command(&mut timeline);
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
        // Woken, it was ready for 51 ms before the calls returned: of 100 ms 35 ms are left.
        timeline.ends[0].first_thread = Some(Scheduled { ran: millis(14), waited: millis(51) });
        let ready = [
            (TimeKind::Runnable, millis(51)),
            (TimeKind::Sleeping, millis(20)),
            (TimeKind::Running, millis(14)),
            (TimeKind::Children, millis(10)),
            (TimeKind::Input, millis(5)),
        ];
        assert_eq!(parts(&process_times(&timeline)[0]), ready);
    }

    #[test]
    fn waits_in_calls_that_were_only_counted_are_waits_too() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.leaf("nanosleep", millis(4)).leaf("recv", millis(1)).advance(millis(95));
            })
            .timeline();
        let process = as_command(&mut timeline);
        let summed = |thread, leaf: usize, time| SummedCalls {
            process,
            thread,
            function: timeline.threads[0].leaves[leaf].call,
            count: 10,
            unfinished: 0,
            time,
            timed: 10,
            own: time,
            failed: Vec::new(),
            other_failures: 0,
            details: SummedDetails::default(),
        };
        // Those of another thread are not its own.
        let sleeps = [summed(process, 0, millis(40)), summed(process + 1, 0, millis(7))];
        let receives = summed(process, 1, millis(20));
        timeline.summed = sleeps.to_vec();
        let known = [
            (TimeKind::Unknown, millis(55)),
            (TimeKind::Sleeping, millis(44)),
            (TimeKind::Input, millis(1)),
        ];
        assert_eq!(parts(&process_times(&timeline)[0]), known);
        timeline.summed.push(receives);
        let known = [(TimeKind::Unknown, millis(56)), (TimeKind::Sleeping, millis(44))];
        assert_eq!(parts(&process_times(&timeline)[0]), known, "which of them waited?");
    }
}
