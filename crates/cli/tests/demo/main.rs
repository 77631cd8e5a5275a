//! `tapstone demo`: all parts on the real components, what is missing, and what is left behind.
//!
//! Without pcscd or its virtual readers the tests that need them skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

#[path = "../pcscd/mod.rs"]
#[allow(dead_code, reason = "each of these programs needs a part of it")]
mod pcscd;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tapstone_record::Record;
use tempfile::TempDir;

/// The whole takes a minute and a half on a quiet machine.
const TIME_LIMIT: Duration = Duration::from_secs(600);

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    command.arg("demo").arg("--output").arg(folder.join("demo")).args(arguments);
    // What it leaves in the place for temporary files is seen there.
    let scratch = folder.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    command.env("TMPDIR", scratch).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_nothing_left(folder: &Path) {
    let left: Vec<_> = fs::read_dir(folder.join("scratch")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn every_part_is_shown_and_one_page_has_them_all() {
    let Some(_turn) = pcscd::NoPcscd::take_turn() else { return };
    let folder = TempDir::new().unwrap();
    let output = demo(folder.path(), &[]).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("5 of 5 parts"), "{said}");
    let page = String::from_utf8(output.stdout).unwrap();
    let page = fs::read_to_string(page.trim()).unwrap();
    for title in [
        "Token tapstone-demo",
        "Closed against open loop",
        "PC/SC on Virtual PCD 00 00",
        "Program pkcs11-tool",
        "Timeline",
        "emulated: jcop41-v2.2",
        "against jcop-cards",
        "Door: PKI-CAK with RSA 2048",
        "A card at a door",
    ] {
        assert!(page.contains(title), "{title} is not on the page: {said}");
    }
    // It can be sent as a mail, and what it offers for copying names nothing that is gone by now.
    assert!(page.len() <= 600_000, "{} bytes", page.len());
    for command in page.split("<pre class=\"command\"").skip(1) {
        let command = command.split("</pre>").next().unwrap();
        assert!(!command.contains("/tmp") && !command.contains("tapstone-demo"), "{command}");
    }
    let record = |name: &str| Record::read(folder.path().join("demo").join(name)).unwrap();
    assert!(record("token.json").knee.is_some());
    assert_eq!(record("token.json").claims.len(), 1);
    let traced = record("trace.json");
    let fixes = traced.findings.iter().filter_map(|finding| finding.trial.as_deref());
    assert!(fixes.clone().any(|fix| fix.starts_with("no-busy-wait")), "{:?}", traced.findings);
    assert_eq!(record("trial.json").trials.len(), 1);
    assert_eq!(record("door.json").trials.len(), 4);
    assert!(!pcscd::answers(), "pcscd was left running");
    assert_nothing_left(folder.path());
}

#[test]
fn what_is_missing_is_skipped_aloud() {
    let Some(_turn) = pcscd::NoPcscd::take_turn() else { return };
    let folder = TempDir::new().unwrap();
    let nothing = folder.path().join("scratch");
    let without =
        |parts: &[&str]| demo(folder.path(), parts).env("PATH", &nothing).output().unwrap();
    let output = without(&["token", "trace", "card"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("SKIPPED: there is no softhsm2-util (Debian: softhsm2)"), "{said}");
    assert!(said.contains("SKIPPED: there is no pkcs11-tool (Debian: opensc)"), "{said}");
    assert!(said.contains("1 of 3 parts"), "{said}");
    let none = without(&["token", "trace"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(self::said(&none).contains("nothing could be shown here\nhint:"), "{none:?}");
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing() {
    let Some(_turn) = pcscd::NoPcscd::take_turn() else { return };
    let folder = TempDir::new().unwrap();
    let child = demo(folder.path(), &["door"]).stderr(Stdio::piped()).spawn().unwrap();
    // The card is in its reader, and the dialogue has begun.
    let door = folder.path().join("demo/what-if.json");
    wait_until(|| door.exists());
    wait_until(pcscd::answers);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = ended(child);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("interrupted; the records that were made are kept"), "{said}");
    assert!(folder.path().join("demo/budget.json").exists());
    assert!(!pcscd::answers(), "pcscd was left running");
    assert_nothing_left(folder.path());
}

fn wait_until(is: impl Fn() -> bool) {
    let until = Instant::now() + TIME_LIMIT;
    while !is() {
        assert!(Instant::now() < until, "it takes too long");
        sleep(Duration::from_millis(50));
    }
}

fn ended(mut child: Child) -> Output {
    let until = Instant::now() + TIME_LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_folder_that_cannot_be_made_is_one_error() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("demo"), "a file").unwrap();
    let output = demo(folder.path(), &["door"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("hint: --output names another"), "{}", said(&output));
}
