//! Counts are exact, whatever the program does.

use tapstone_command::run::Exit;
use tapstone_events::system_calls::Observed;
use tapstone_observe::syscalls::TracingOptions;

use crate::support::{
    calls, count, file_of_its_own, fixture, name, observed, observed_with, of_fixture, plain,
};

const FILES: &str = "openat,read,close";

/// Opens and closes of a path, which must be equal in number.
fn opens(seen: &Observed, path: &str) -> usize {
    let opens = count(seen, "openat", path);
    assert_eq!(count(seen, "close", path), opens, "a close for each");
    opens
}

#[test]
fn every_call_is_seen_once() {
    let (_directory, path) = file_of_its_own();
    let (seen, outcome) = observed(&of_fixture(&["opens", "1000", &path]), FILES);
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(opens(&seen, &path), 1000);
    assert_eq!((seen.dropped, &seen.warnings[..]), (0, &[][..]));
    let mut last = seen.started;
    for call in calls(&seen, "openat").filter(|call| name(&seen, call).as_deref() == Some(&path)) {
        assert!(call.result.is_some_and(|descriptor| descriptor >= 3), "{call:?}");
        assert!(last <= call.start && call.start < call.end && call.end <= seen.ended, "{call:?}");
        assert_eq!(&call.arguments[2..], [0; 4], "openat without O_CREAT has three: {call:?}");
        last = call.end;
    }
}

#[test]
fn calls_of_threads_and_children_are_seen() {
    let (_directory, path) = file_of_its_own();
    for (arguments, expected, processes) in [
        (["threads", "8", "200", &path], 1600, 1),
        (["forks", "8", "50", &path], 400, 9),
        (["processes", "8", "50", &path], 400, 9),
    ] {
        let (seen, outcome) = observed(&of_fixture(&arguments), FILES);
        assert_eq!(outcome.exit, Exit::Code(0), "{arguments:?}");
        assert_eq!(opens(&seen, &path), expected, "{arguments:?}");
        assert_eq!(seen.processes.len(), processes, "{arguments:?}");
        let program = seen.processes.last().unwrap();
        assert_eq!((program.parent, program.program.as_path()), (None, fixture()));
        for child in &seen.processes[..processes - 1] {
            assert_eq!(child.parent, Some(program.process), "{child:?}");
            assert_eq!(child.exit, Exit::Code(0), "{child:?}");
        }
        let threads: std::collections::BTreeSet<u32> =
            calls(&seen, "openat").map(|call| call.thread).collect();
        assert_eq!(threads.len(), 9, "{arguments:?}: the first, and eight others");
    }
}

#[test]
fn a_crash_loses_nothing_and_shows_what_was_under_way() {
    let (_directory, path) = file_of_its_own();
    let (seen, outcome) = observed(&of_fixture(&["crash", "20", &path]), FILES);
    assert_eq!(outcome.exit, Exit::Signal(libc::SIGSEGV));
    assert_eq!(opens(&seen, &path), 20);
    let (seen, outcome) = observed(&of_fixture(&["crash-in-sleep"]), "clock_nanosleep");
    assert_eq!(outcome.exit, Exit::Signal(libc::SIGSEGV));
    let results: Vec<Option<i64>> = calls(&seen, "clock_nanosleep").map(|c| c.result).collect();
    assert_eq!(results, [Some(0), None], "the second thread's sleep, and the first's");
}

#[test]
fn processes_that_leave_or_become_another_are_followed() {
    let (_directory, path) = file_of_its_own();
    let (seen, outcome) = observed(&of_fixture(&["exit-early"]), "clock_nanosleep");
    assert_eq!(outcome.exit, Exit::Code(5));
    let unfinished = calls(&seen, "clock_nanosleep").filter(|call| call.result.is_none());
    assert_eq!(unfinished.count(), 4, "the threads that ran on");
    let (seen, outcome) = observed(&of_fixture(&["exec-from-thread", "30", &path]), FILES);
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(opens(&seen, &path), 30);
    assert_eq!(seen.processes.len(), 1);
    let (seen, outcome) = observed(&of_fixture(&["daemon", "100", "7", &path]), FILES);
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(opens(&seen, &path), 7, "of a child that goes on after the program's end");
    let [program, child] = &seen.processes[..] else { panic!("{:?}", seen.processes) };
    assert!(program.ended < child.ended && seen.ended == program.ended);
}

#[test]
fn an_interrupted_call_is_one_call() {
    let waits = "poll,clock_nanosleep";
    for (handled, expected) in [("0", 0), ("1", -libc::EINTR)] {
        let command = of_fixture(&["interrupted", handled]);
        let (seen, outcome) = observed(&command, waits);
        assert_eq!(outcome, plain(&command));
        let process = seen.processes.last().unwrap().process;
        for call in ["poll", "clock_nanosleep"] {
            let own = calls(&seen, call).filter(|call| call.process == process);
            let results: Vec<Option<i64>> = own.map(|call| call.result).collect();
            assert_eq!(results, [Some(i64::from(expected))], "{call}, handler: {handled}");
        }
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let (_directory, path) = file_of_its_own();
    let command = of_fixture(&["opens", "20000", &path]);
    let options = TracingOptions { set: FILES.parse().unwrap(), most_bytes: 256 << 10 };
    let (seen, outcome) = observed_with(&command, &options);
    assert_eq!(outcome.exit, Exit::Code(0));
    assert!(seen.dropped > 0);
    // What ld.so does is a handful more.
    let all = seen.dropped + seen.calls.len();
    assert!((40_000..41_000).contains(&all), "{all}");
    assert_eq!(seen.calls.iter().count() as u64, seen.calls.len());
}

#[test]
fn sockets_are_called_by_what_they_were_connected_to() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let socket = socket.to_str().unwrap();
    let (seen, outcome) = observed(&of_fixture(&["connect", socket]), "default");
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(count(&seen, "connect", socket), 1);
    assert_eq!(count(&seen, "sendto", socket), 1);
    let received = calls(&seen, "recvfrom").next().unwrap();
    assert_eq!(received.result, Some(1));
    assert!(name(&seen, &received).unwrap().starts_with("socket:["));
}

/// Seven of the fixture's modes that end in different ways, again and again.
fn run_in_a_row(rounds: usize) {
    let (_directory, path) = file_of_its_own();
    for round in 0..rounds {
        for (arguments, expected, exit) in [
            (vec!["threads", "8", "20", &path], 160, Exit::Code(0)),
            (vec!["processes", "4", "5", &path], 20, Exit::Code(0)),
            (vec!["forks", "4", "5", &path], 20, Exit::Code(0)),
            (vec!["crash", "5", &path], 5, Exit::Signal(libc::SIGSEGV)),
            (vec!["exit-early"], 0, Exit::Code(5)),
            (vec!["exec-from-thread", "5", &path], 5, Exit::Code(0)),
            (vec!["stopped", "5", &path], 5, Exit::Code(4)),
        ] {
            let (seen, outcome) = observed(&of_fixture(&arguments), FILES);
            assert_eq!(outcome.exit, exit, "round {round}: {arguments:?}");
            assert_eq!(opens(&seen, &path), expected, "round {round}: {arguments:?}");
        }
    }
}

#[test]
fn thirty_rounds_are_as_one() {
    run_in_a_row(30);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_rounds_are_as_one() {
    run_in_a_row(200);
}
