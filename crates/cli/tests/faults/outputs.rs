//! Outputs that fail: full, closed, too large, on a disk without room.

use std::process::Command;

use tapstone_testing::skip;

use crate::verbs::{VERBS, Verb};
use crate::workplace::Workplace;

#[test]
fn a_full_standard_output_is_told_and_loses_nothing() {
    for verb in VERBS.iter().filter(|verb| verb.prints()) {
        let left = Workplace::new(verb).run(verb, "exec >/dev/full");
        let unwritten = left.holds(&[2]);
        assert!(unwritten.is_empty(), "{}: {unwritten:?}", verb.name);
        let told = left.stderr.contains("error: standard output: No space left on device");
        assert!(told, "{}: {}", verb.name, left.stderr);
    }
}

/// Nobody asked for a file, and what was measured is in none but this one.
#[test]
fn what_was_measured_for_a_full_standard_output_is_put_aside() {
    for format in ["text", "json", "csv"] {
        let arguments = format!("ab --rounds 2 --warm-up-rounds 0 --format {format} -- true true");
        let verb = Verb { name: "ab", arguments: arguments.leak(), outputs: &[], exit: 0 };
        let left = Workplace::new(&verb).run(&verb, "exec >/dev/full");
        left.holds(&[2]);
        let record = left.rescued().unwrap_or_else(|| panic!("{format}: {}", left.stderr));
        assert!(record.comparison.is_some());
    }
}

/// The reader of the record has gone, and its file cannot be written either.
#[test]
fn a_file_that_fails_beside_a_closed_output_is_put_aside() {
    let arguments =
        "ab --rounds 2 --warm-up-rounds 0 --format json --output /dev/full -- true true";
    let verb = Verb { name: "ab", arguments, outputs: &[], exit: 0 };
    let left = Workplace::new(&verb).run(&verb, "exec > >(exec true); sleep 0.1");
    left.holds(&[2]);
    assert!(left.rescued().is_some(), "{}", left.stderr);
}

/// `>&-`: the standard library would write into /dev/null, without an error.
#[test]
fn without_a_standard_output_nothing_is_begun() {
    for verb in VERBS {
        let left = Workplace::new(verb).run(verb, "exec >&-");
        let written = left.holds(&[2]);
        assert_eq!(written.len(), verb.outputs.len(), "{}: something was written", verb.name);
        let told = left.stderr.contains("error: standard output is closed (EBADF)");
        assert!(told, "{}: {}", verb.name, left.stderr);
    }
}

#[test]
fn a_full_standard_error_ends_no_run() {
    for verb in VERBS {
        let left = Workplace::new(verb).run(verb, "exec 2>/dev/full");
        let unwritten = left.holds(&[verb.exit, 2]);
        assert!(unwritten.is_empty(), "{}: {unwritten:?}", verb.name);
    }
}

#[test]
fn who_has_read_enough_is_told_nothing() {
    for verb in VERBS.iter().filter(|verb| verb.prints()) {
        let left = Workplace::new(verb).run(verb, "exec > >(exec true); sleep 0.1");
        let unwritten = left.holds(&[141]);
        assert!(unwritten.is_empty(), "{}: {unwritten:?}", verb.name);
        assert!(!left.stderr.contains("error:"), "{}: {}", verb.name, left.stderr);
    }
}

/// `ulimit -f`: SIGXFSZ would end a program that has not arranged for it.
#[test]
fn a_limit_of_file_sizes_is_an_error_of_writing() {
    for verb in VERBS.iter().filter(|verb| !verb.outputs.is_empty()) {
        let left = Workplace::new(verb).run(verb, "ulimit -f 1");
        let unwritten = left.holds(&[verb.exit, 2]);
        let has_failed = left.status.code() == Some(2);
        assert!(has_failed || unwritten.is_empty(), "{}: {}", verb.name, left.stderr);
    }
}

/// The working directory becomes a disk with so many free pages, and a run on it is copied back.
pub(crate) fn on_a_disk_with(pages: u32) -> String {
    format!(
        r#"
        set -e
        work=$PWD
        cp -a . ../before
        unshare --mount bash -c '
            mount -t tmpfs -o size=8M disk .
            cd "$PWD"
            cp -a ../before/. .
            free=$(stat --file-system --format=%f .)
            fallocate --length $(((free - {pages}) * 4096)) filler
            "$@"
            code=$?
            rm filler
            cp -a . ../after
            exit $code' bash "$@" || code=$?
        rm -rf "$work" && mv ../after "$work" && exit ${{code:-0}}"#
    )
}

#[test]
fn a_disk_that_fills_up_leaves_old_files_and_says_where_the_record_is() {
    if !may_mount() {
        return skip("the right to mount in a name space of its own (unshare --mount)");
    }
    for verb in VERBS.iter().filter(|verb| verb.outputs.contains(&"record.json")) {
        for pages in [0, 1, 2, 16] {
            let left = Workplace::new(verb).run(verb, &on_a_disk_with(pages));
            let unwritten = left.holds(&[verb.exit, 2]);
            let has_failed = left.status.code() == Some(2);
            assert!(has_failed || unwritten.is_empty(), "{}: {}", verb.name, left.stderr);
            // Without events and exports it fits into the room that a trace leaves.
            if unwritten.contains(&"record.json") && left.stderr.contains("record.json: ") {
                assert!(left.rescued().is_some(), "{}: {}", verb.name, left.stderr);
            }
        }
    }
}

pub(crate) fn may_mount() -> bool {
    let mut mount = Command::new("unshare");
    mount.args(["--mount", "mount", "-t", "tmpfs", "disk", "/mnt"]);
    mount.status().is_ok_and(|status| status.success())
}
