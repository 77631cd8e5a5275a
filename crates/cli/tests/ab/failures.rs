//! A run that fails is the last one: with a wrong PIN the next ones would block a card.

use tapstone_record::{Outcome, StoppedBy};

use crate::support::{Folder, compared, row};

#[test]
fn nothing_is_run_after_a_failure() {
    let folder = Folder::new();
    let a = folder.work("a", 10);
    let b = folder.script(
        "b",
        "echo b >> log; echo first >&2; echo 'C_Login failed: \x1b[31mCKR_PIN_INCORRECT' >&2; exit 3",
    );
    let outcome = folder.ab(&["--format", "json", "--output", "out.json", "--", &a, &b]);
    outcome.is_error(&["B, warm-up round 1 of 1", "`./b`", "exit code 3", "CKR_PIN_INCORRECT"]);
    assert!(!outcome.stderr.contains('\x1b'), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
    let log = folder.log().concat();
    assert!(["ab", "b"].contains(&log.as_str()), "once, and never again: {log}");
    assert!(!folder.path("out.json").exists());
}

#[test]
fn a_failure_in_the_first_round_leaves_no_record() {
    let folder = Folder::new();
    let a = folder.work("a", 10);
    let outcome =
        folder.ab(&["--warm-up-rounds", "0", "--name", "old", "--name", "new", "--", "false", &a]);
    outcome.is_error(&["old, round 1 of 20", "`false`", "exit code 1", "nothing to its standard"]);
    assert!(folder.log().len() <= 1, "the other side at most once, and nothing after the failure");
}

#[test]
fn what_complete_rounds_measured_stays() {
    let folder = Folder::new();
    let a = folder.work("a", 10);
    let b = folder.script("b", "echo b >> log; test $(grep -c b log) -lt 6");
    let arguments = ["--format", "json", "--warm-up-rounds", "0", "--", &a, &b];
    let outcome = folder.ab(&arguments);
    outcome.is_error(&["B, round 6 of 20", "exit code 1"]);
    assert_eq!(folder.log().iter().filter(|line| *line == "b").count(), 6);
    let record = outcome.record();
    assert_eq!(compared(&record, "command.wall").rounds, Some(5));
    let failed = row(&record, "command.wall[candidate]");
    assert_eq!((failed.status.outcome, failed.completed), (Outcome::Partial, 5));
    assert_eq!(failed.status.step.as_deref(), Some("B, round 6 of 20"));
    assert_eq!(failed.status.code.as_deref(), Some("exit code 1"));
    let other = row(&record, "command.wall[baseline]");
    assert_eq!((other.status.outcome, other.latencies_ns.len()), (Outcome::Ok, 5));
    assert_eq!(other.stopped_by, Some(StoppedBy::Failures));
    assert!(record.warnings.iter().any(|text| text.contains("5 of 20")), "{:?}", record.warnings);
}

#[test]
fn a_single_complete_round_has_no_ratio() {
    let folder = Folder::new();
    let a = folder.work("a", 10);
    let b = folder.script("b", "echo b >> log; test $(grep -c b log) -lt 2");
    let outcome = folder.ab(&["--format", "json", "--warm-up-rounds", "0", "--", &a, &b]);
    outcome.is_error(&["B, round 2 of 20"]);
    let record = outcome.record();
    assert!(record.comparison.is_none());
    assert_eq!(row(&record, "command.cpu[baseline]").latencies_ns.len(), 1);
    let text = folder.ab(&["--warm-up-rounds", "0", "--", &a, &b]);
    text.is_error(&["B, round 1 of 20"]);
}

#[test]
fn a_killed_command_is_told_by_its_signal() {
    let folder = Folder::new();
    let b = folder.script("b", "kill -SEGV $$");
    folder.ab(&["--", "true", &b]).is_error(&["B, warm-up round 1 of 1", "SIGSEGV"]);
}

#[test]
fn a_preparation_that_fails_ends_it_too() {
    let folder = Folder::new();
    let a = folder.work("a", 10);
    let outcome = folder.ab(&["--prepare", "sh -c 'echo no >&2; exit 9'", "--", &a, &a]);
    outcome.is_error(&["before A, warm-up round 1 of 1", "exit code 9", "no"]);
    assert_eq!(folder.log(), [""; 0]);
}

#[test]
fn a_secret_on_the_command_line_is_not_told() {
    let folder = Folder::new();
    let a = format!("{} --pin 471147", folder.work("a", 10));
    let b = format!("{} --pin=471147", folder.script("b", "echo b >> log; test ! -e fail"));
    let good = folder.ab(&["--rounds", "2", "--format", "json", "--", &a, &b]).exits(0);
    assert!(good.record().command.iter().any(|word| word == "./a --pin …"));
    std::fs::write(folder.path("fail"), "").unwrap();
    let bad = folder.ab(&["--", &a, &b]);
    bad.is_error(&["`./b --pin=…`"]);
    std::fs::remove_file(folder.path("fail")).unwrap();
    let whole = folder.ab(&["--record-command", "--rounds", "2", "--format", "json", "--", &a, &b]);
    assert!(whole.exits(0).record().command.contains(&a), "asked for, it is kept whole");
    for told in [&good.stdout, &good.stderr, &bad.stdout, &bad.stderr] {
        assert!(!told.contains("471147"), "{told}");
    }
}
