//! Records that cannot be used, and outputs that cannot be written: every verb that reads a record
//! says so in one error with a hint, exits with 2, and prints nothing that looks like a result.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tapstone_testing::private_environment;
use tempfile::TempDir;

/// A record that every verb reads, from the documentation's examples.
const GOOD: &str = include_str!("../../../../docs/examples/old.json");

/// Files that are no usable record, each with what the error must name besides the file.
fn bad_files() -> Vec<(&'static str, Option<Vec<u8>>, &'static str)> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        text(&GOOD.replacen(from, to, 1))
    };
    vec![
        ("missing.json", None, "No such file"),
        ("empty.json", text(""), "is empty"),
        ("cut.json", text(&GOOD[..GOOD.len() / 2]), "results[0]"),
        ("cut-early.json", text("{\"schema\": \"tapstone.rec"), "EOF"),
        ("older.json", with("tapstone.record/2", "tapstone.record/0"), "tapstone.record/0"),
        ("newer.json", with("tapstone.record/2", "tapstone.record/3"), "tapstone.record/3"),
        ("other.json", text("{\"name\": \"something else\"}"), "schema"),
        ("list.json", text("[1, 2, 3]"), "not a Tapstone record"),
        ("binary.json", Some(vec![0xff, 0xfe, 0x00, 0x1b]), "UTF-8"),
        ("deep.json", text(&"[".repeat(100_000)), "not a Tapstone record"),
        ("wrong.json", with("\"completed\": ", "\"completed\": -"), "completed"),
        ("null.json", with("\"started_at\"", "\"started\""), "started_at"),
    ]
}

fn tapstone(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// One error, one hint, exit code 2, no result.
fn is_refused(folder: &Path, arguments: &[&str], says: &[&str]) {
    let output = tapstone(folder, arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    assert!(text.starts_with("error: "), "{arguments:?}: {text}");
    assert_eq!(text.matches("error: ").count(), 1, "{arguments:?}: {text}");
    assert!(text.lines().last().unwrap().starts_with("hint: "), "{arguments:?}: {text}");
    assert_eq!(text.matches("hint: ").count(), 1, "{arguments:?}: {text}");
    for word in says {
        assert!(text.contains(word), "{arguments:?} does not say {word}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{arguments:?}: {text:?}");
    assert!(text.len() < 2_000, "{arguments:?}: {} bytes", text.len());
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("good.json"), GOOD).unwrap();
    folder
}

#[test]
fn every_verb_refuses_what_is_no_record() {
    let here = folder();
    for (file, content, says) in bad_files() {
        if let Some(content) = content {
            fs::write(here.path().join(file), content).unwrap();
        }
        for arguments in [
            &["compare", file, "good.json"][..],
            &["compare", "good.json", file],
            &["compare", "good.json", "good.json", file],
            &["compare", file, "reference:hsm-speed"],
            &["compare", file, "--baseline", "kept"],
            &["report", file],
            &["report", "good.json", file],
            &["report", file, "--output", "page.html"],
            &["door", "budget", "hid-rsa2048", "--card", file],
            &["door", "what-if", "hid-rsa2048", "--card", file],
            &["door", "simulate", "hid-rsa2048", "--people", "100/h", "--card", file],
            &["trial", "--from", file, "--", "true"],
        ] {
            is_refused(here.path(), arguments, &[file, says]);
        }
        assert!(!here.path().join("page.html").exists(), "{file}");
    }
    is_refused(here.path(), &["compare", ".", "good.json"], &["."]);
    is_refused(here.path(), &["report", "."], &["."]);
}

#[test]
fn a_bad_file_among_baselines_is_named() {
    for (file, content, says) in bad_files() {
        let Some(content) = content else { continue };
        let here = folder();
        fs::create_dir(here.path().join("kept")).unwrap();
        fs::write(here.path().join("kept").join(file), content).unwrap();
        is_refused(here.path(), &["compare", "good.json", "--baseline", "kept"], &[file, says]);
    }
}

#[test]
fn what_cannot_be_compared_is_named_on_both_sides() {
    let here = folder();
    let other = GOOD
        .replace("\"rsa1024.sign\"", "\"card.random\"")
        .replace("\"rsa2048.sign\"", "\"card.select\"")
        .replace("\"kind\": \"token\"", "\"kind\": \"card\"");
    fs::write(here.path().join("card.json"), other).unwrap();
    let both = &["rsa1024.sign", "card.random"];
    is_refused(here.path(), &["compare", "good.json", "card.json"], both);
    is_refused(here.path(), &["compare", "good.json", "reference:pcsc-lite"], &["rsa1024.sign"]);
    is_refused(
        here.path(),
        &["door", "budget", "hid-rsa2048", "--card", "good.json"],
        &["good.json"],
    );
    is_refused(here.path(), &["trial", "--from", "good.json", "--", "true"], &["good.json"]);
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_anything_else() {
    let here = folder();
    for output in ["no/such/folder/out", ".", "/proc/out"] {
        for arguments in [
            &["compare", "good.json", "good.json", "--output", output][..],
            &["report", "good.json", "--output", output],
            &["door", "budget", "hid-rsa2048", "--output", output],
            &["import", "jcalgtest", "good.json", "--output", output],
        ] {
            is_refused(here.path(), arguments, &[output]);
        }
    }
}

/// Names of files come from outside, too.
#[test]
fn a_name_does_not_act_on_the_terminal() {
    let here = folder();
    let name = "\u{1b}[31m\u{7}x.json";
    fs::write(here.path().join(name), "{}").unwrap();
    for arguments in [&["compare", name, "good.json"][..], &["report", name]] {
        is_refused(here.path(), arguments, &["x.json"]);
    }
    fs::create_dir(here.path().join("kept")).unwrap();
    fs::write(here.path().join("kept").join(name), GOOD).unwrap();
    let output = tapstone(here.path(), &["compare", "good.json", "--baseline", "kept"]);
    for text in [output.stdout, output.stderr] {
        assert!(!String::from_utf8(text).unwrap().contains('\u{1b}'));
    }
}

/// Whoever closes the pipe has seen enough.
#[test]
fn a_reader_who_leaves_is_no_crash() {
    let here = folder();
    for arguments in [&["report", "good.json", "--verbose"][..], &["completions", "bash"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.current_dir(here.path()).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    }
}
