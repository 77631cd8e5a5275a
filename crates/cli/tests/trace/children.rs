//! Threads and processes that come and go.

use std::collections::BTreeMap;

use tapstone_explain::timeline::End;

use crate::program::{counts, spans, stdout};
use crate::{said, trouble};

const MODULE: &str = "stand-in.so";

/// More threads than the probe has places for, one after the other.
#[test]
fn five_thousand_threads_lose_nothing() {
    let Some(program) = trouble("threads", 5_000) else { return };
    let record = program.unchanged().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 5_000);
    let seen = program.seen();
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for (thread, span) in spans(&seen, "C_Digest") {
        assert_eq!((span.end_kind, span.parent), (End::Returned, None));
        *threads.entry(thread.id).or_default() += 1;
    }
    assert_eq!(threads.len(), 5_000);
    assert!(threads.values().all(|digests| *digests == 1));
}

/// Children of a process in which other threads are in the middle of calls.
#[test]
fn children_of_a_process_with_threads_are_seen() {
    let Some(program) = trouble("fork", 50) else { return };
    assert!(program.bare().exits(0).stdout.ends_with(" digests\n"));
    let seen = program.seen();
    assert_eq!(seen.timeline.dropped, 0);
    let digests = spans(&seen, "C_Digest");
    assert_eq!(digests.len() as u64, said(&stdout(&seen)));
    let root = seen.timeline.root;
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (thread, span) in digests {
        assert_eq!((span.end_kind, span.parent), (End::Returned, None));
        if thread.process != root {
            children.entry(thread.process).or_default().push(thread.id);
        }
    }
    assert_eq!(children.len(), 50);
    for (child, mut threads) in children {
        assert_eq!(threads.len(), 3, "{child}: {threads:?}");
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 2, "{child}: {threads:?}");
    }
}

/// vfork(2) and posix_spawn(3): the child runs on its parent's memory until it executes.
#[test]
fn spawned_programs_are_seen_and_their_parent_stays_whole() {
    let Some(program) = trouble("spawn", 20) else { return };
    let record = program.unchanged().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 20 + 20 * 3);
    let seen = program.seen();
    let of_root = |process| process == seen.timeline.root;
    let digests = spans(&seen, "C_Digest");
    assert_eq!(digests.iter().filter(|(thread, _)| of_root(thread.process)).count(), 20);
    let processes = seen.timeline.processes.iter().filter(|process| !of_root(process.id));
    assert_eq!(processes.count(), 20);
}

/// The first in the memory of a child is a child of its own, which is another program at once.
#[test]
fn children_that_begin_with_a_child_of_their_own_are_told_from_it() {
    let Some(program) = trouble("fork-spawn", 20) else { return };
    let record = program.unchanged().exits(0).whole();
    assert_eq!(counts(&record, MODULE)["C_Digest"], 20 + 20 * 3);
    let seen = program.seen();
    let root = seen.timeline.root;
    let (forked, programs): (Vec<_>, Vec<_>) =
        seen.timeline.processes.iter().partition(|process| process.program.is_empty());
    assert_eq!(forked.len(), 20);
    for child in forked {
        assert_eq!(child.parent, root);
        let of_child = |process| process == child.id;
        let digests = spans(&seen, "C_Digest");
        assert_eq!(digests.iter().filter(|(thread, _)| of_child(thread.process)).count(), 1);
        assert_eq!(programs.iter().filter(|program| of_child(program.parent)).count(), 1);
    }
}
