//! Ctrl-C and SIGTERM while a command runs: it hears of them once, and what complete rounds have
//! measured is written.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tapstone_record::{Record, StoppedBy};
use tapstone_testing::eventually;

use crate::support::{Folder, Outcome, TIME_LIMIT, comparison, row};

/// From its fifth run on it waits for a signal, then notes for a while whether another comes, and
/// ends well.
const WAITS: &str = "
    echo b >> log
    test $(grep -c b log) -lt 5 && exit 0
    trap 'echo INT >> log; heard=1' INT
    trap 'echo TERM >> log; heard=1' TERM
    echo waiting >> log
    until [ -n \"$heard\" ]; do :; done
    i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done
    echo end >> log";

fn interrupted(folder: &Folder, signal: impl Fn(Pid)) -> Outcome {
    let a = folder.work("a", 10);
    let b = folder.script("b", WAITS);
    let child = folder.start(&["--warm-up-rounds", "0", "--format", "json", "--", &a, &b]);
    let waits = eventually(TIME_LIMIT, || folder.log().iter().any(|line| line == "waiting"));
    if waits {
        signal(Pid::from_child(&child));
    }
    let outcome = folder.wait(child);
    assert!(waits, "{}", outcome.stderr);
    outcome
}

fn has_four_rounds(record: &Record) {
    assert_eq!(comparison(record).cases[0].rounds, Some(4));
    for side in ["baseline", "candidate"] {
        let row = row(record, &format!("command.wall[{side}]"));
        assert_eq!((row.latencies_ns.len(), row.stopped_by), (4, Some(StoppedBy::Interrupted)));
    }
    let told = record.warnings.iter().any(|text| text.starts_with("interrupted: 4 of 20"));
    assert!(told, "{:?}", record.warnings);
}

#[test]
fn ctrl_c_reaches_the_command_once_and_what_was_measured_is_written() {
    let folder = Folder::new();
    // A terminal sends it to all processes of the group in the foreground.
    let outcome =
        interrupted(&folder, |tapstone| kill_process_group(tapstone, Signal::INT).unwrap());
    let heard = folder.log().iter().filter(|line| *line == "INT").count();
    assert_eq!((outcome.exit, heard), (Some(2), 1), "{}", outcome.stderr);
    assert_eq!(folder.log().last().map(String::as_str), Some("end"), "it was waited for");
    has_four_rounds(&outcome.record());
}

#[test]
fn sigterm_is_passed_on() {
    let folder = Folder::new();
    let outcome = interrupted(&folder, |tapstone| kill_process(tapstone, Signal::TERM).unwrap());
    let heard = folder.log().iter().filter(|line| *line == "TERM").count();
    assert_eq!((outcome.exit, heard), (Some(2), 1), "{}", outcome.stderr);
    has_four_rounds(&outcome.record());
}

#[test]
fn before_the_first_round_there_is_nothing_to_write() {
    let folder = Folder::new();
    let wait = folder.script("wait", "echo waiting >> log; while :; do :; done");
    let child = folder.start(&["--format", "json", "--", &wait, &wait]);
    let waits = eventually(TIME_LIMIT, || folder.log() == ["waiting"]);
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let outcome = folder.wait(child);
    assert!(waits);
    outcome.is_error(&["interrupted"]);
    assert_eq!(outcome.stdout, "");
}
