//! A skipped test is seen from outside, whatever the test harness does with its output.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::env;
use std::fs;
use std::process::{Command, Output};

use tapstone_testing::{SKIPS, skip};

/// Runs tests of this program that are ignored otherwise, with a file for skips.
fn run_ignored(skips: &std::path::Path, tests: &str) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", tests]).env(SKIPS, skips);
    command.env("CARGO_PKG_NAME", "some-package").output().unwrap()
}

#[test]
#[ignore = "skips, for the tests below"]
fn skipping_one() {
    skip("the first thing");
}

#[test]
#[ignore = "skips, for the tests below"]
fn skipping_another() {
    skip("the second thing");
}

#[test]
fn skips_are_lines_in_the_file_that_the_environment_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skips");
    let output = run_ignored(&path, "skipping");
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "some-package/skip skipping_another: the second thing",
            "some-package/skip skipping_one: the first thing",
        ]
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("SKIPPED some-package/skip skipping_one: the first thing\n"), "{said}");
}

#[test]
fn a_skip_that_cannot_be_written_down_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_ignored(&folder.path().join("missing/skips"), "skipping_one");
    assert_eq!(output.status.code(), Some(101), "{output:?}");
}
