//! How much a process can have worked beside what a fix would remove: its processor time is known,
//! and of the removed calls how much of their time they had a processor.
//!
//! Threads of which nothing is seen between two calls may have worked all the time, or not at all:
//! a Go program has some for its runtime. All of them together worked no longer than this.

use std::collections::BTreeSet;

use tapstone_measure::units::Nanos;

use super::stretches::Stretches;
use crate::timeline::{Thread, Timeline};

/// What was worked outside of these stretches, by thread, at most. `None` where that is not known,
/// or several processes would have some removed.
pub(super) fn remaining_work(timeline: &Timeline, removed: &[Stretches]) -> Option<Nanos> {
    let with_some = timeline.threads.iter().zip(removed).filter(|(_, set)| !set.is_empty());
    let processes: BTreeSet<u32> = with_some.clone().map(|(thread, _)| thread.process).collect();
    let [process] = processes.into_iter().collect::<Vec<_>>()[..] else { return None };
    let ran: f64 = with_some.map(|(thread, set)| ran_within(timeline, thread, set)).sum();
    Some(processor_time(timeline, process)? - Nanos(ran as u64))
}

/// The processor time of a process: as it told when it ended, or as whoever waited for it heard.
fn processor_time(timeline: &Timeline, process: u32) -> Option<Nanos> {
    let told = timeline.ends.iter().rfind(|end| end.process == process);
    let heard = timeline.processor.filter(|_| timeline.root == process);
    told.map(|end| end.processor).or(heard)
}

/// For how long a thread had a processor in the calls of these stretches, in nanoseconds. Of what
/// was not asked nothing is known: it may have waited.
fn ran_within(timeline: &Timeline, thread: &Thread, set: &Stretches) -> f64 {
    let outermost = thread.spans.iter().filter(|span| span.parent.is_none());
    let ran = outermost.map(|span| {
        let share = timeline.running.get(&span.call).map_or(0.0, |running| running.share());
        set.within(span.start, span.end).0 as f64 * share
    });
    ran.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, millis};
    use crate::timeline::{FunctionId, RunningTime};

    fn timeline() -> Timeline {
        let mut timeline = Story::new()
            .thread(|told| {
                told.call("C_FindObjectsInit", 2, millis(8)).call("C_Sign", 2, millis(2));
            })
            .process("daemon")
            .thread(|told| {
                told.call("C_Sign", 2, millis(2));
            })
            .timeline();
        timeline.processor = Some(millis(9));
        timeline
    }

    fn removed(sets: [&[(u64, u64)]; 2]) -> [Stretches; 2] {
        sets.map(|set| set.iter().map(|(start, end)| (millis(*start), millis(*end))).collect())
    }

    #[test]
    fn what_was_worked_in_removed_calls_does_not_remain() {
        let mut timeline = timeline();
        let search = removed([&[(0, 8)], &[]]);
        assert_eq!(remaining_work(&timeline, &search), Some(millis(9)), "it may have waited");
        timeline.running.insert(FunctionId(0), RunningTime { time: millis(2), ran: millis(1) });
        assert_eq!(remaining_work(&timeline, &search), Some(millis(5)));
        assert_eq!(remaining_work(&timeline, &removed([&[(6, 10)], &[]])), Some(millis(8)));
        // The kernel's clocks are not one.
        timeline.running.insert(FunctionId(0), RunningTime { time: millis(2), ran: millis(3) });
        assert_eq!(remaining_work(&timeline, &search), Some(millis(1)));
    }

    #[test]
    fn of_several_processes_or_of_one_that_nobody_waited_for_it_is_not_known() {
        let timeline = timeline();
        assert_eq!(remaining_work(&timeline, &removed([&[(0, 8)], &[(0, 1)]])), None);
        assert_eq!(remaining_work(&timeline, &removed([&[], &[(0, 1)]])), None);
        assert_eq!(remaining_work(&timeline, &removed([&[], &[]])), None);
    }
}
