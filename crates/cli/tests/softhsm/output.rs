//! What goes where: data to standard output, the record to its file, secrets nowhere.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tapstone_record::TargetKind;

use crate::support::{Hsm, Outcome, Tapstone};

fn sign_and_digest(hsm: &Hsm) -> Tapstone {
    hsm.tapstone().args("--op rsa2048.sign --op sha256.digest --count 20")
}

/// Nothing but the format that was asked for is on standard output, nothing at all beside it.
fn quiet(run: Tapstone, format: &str) -> Outcome {
    let outcome = run.args("--format").arg(format).run().exits(0);
    assert_eq!(outcome.stderr, "");
    assert!(!outcome.stdout.contains('\x1b'), "no colours in a pipe");
    outcome
}

#[test]
fn json_is_the_record() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = quiet(sign_and_digest(&hsm), "json");
    let record = outcome.record();
    assert_eq!(outcome.printed_record(), record);
    assert_eq!(record.target.kind, TargetKind::Token);
    let module = record.target.module.unwrap();
    assert_eq!(module.path, hsm.module().to_str().unwrap());
    assert_eq!(module.sha256.len(), 64);
    assert_eq!(record.target.tokens[0].manufacturer, "SoftHSM project");
    assert!(record.target.emulated.is_none());
}

#[test]
fn csv_is_a_header_and_a_line_a_row() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = quiet(sign_and_digest(&hsm), "csv");
    let lines: Vec<Vec<&str>> =
        outcome.stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{lines:?}");
    let column = |name: &str| lines[0].iter().position(|other| *other == name).unwrap();
    let cells = |name: &str| [lines[1][column(name)], lines[2][column(name)]];
    assert_eq!(cells("operation"), ["rsa2048.sign", "sha256.digest"]);
    assert_eq!(cells("completed"), ["20", "20"]);
    assert_eq!(cells("verified_by"), ["software", "software"]);
}

#[test]
fn text_is_a_table() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = quiet(sign_and_digest(&hsm), "text");
    for words in ["hsm · SoftHSM v2", "rsa2048.sign", "sha256.digest", "/s"] {
        assert!(outcome.stdout.contains(words), "{words} in\n{}", outcome.stdout);
    }
    let widest = outcome.stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{widest} columns\n{}", outcome.stdout);
}

#[test]
fn a_record_that_cannot_be_written_is_an_error_before_anything_is_measured() {
    let Some(hsm) = Hsm::new() else { return };
    let file = hsm.path("no-such-folder/record.json");
    let outcome = sign_and_digest(&hsm).arg("--output").arg(&file).without_record().run().exits(2);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains(file.to_str().unwrap()), "{}", outcome.stderr);
}

#[test]
fn a_pin_file_that_others_can_read_is_warned_of_on_standard_error() {
    let Some(hsm) = Hsm::new() else { return };
    fs::set_permissions(hsm.path("pin"), Permissions::from_mode(0o644)).unwrap();
    let outcome = sign_and_digest(&hsm).args("--format json").run().exits(0);
    assert!(outcome.stderr.starts_with("warning: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("chmod 600"), "{}", outcome.stderr);
    outcome.printed_record();
}

#[test]
fn operations_can_be_listed_without_a_module() {
    let Some(hsm) = Hsm::new() else { return };
    let listed = hsm.bare("token").arg("--list-operations").without_record().run().exits(0).stdout;
    assert!(listed.lines().any(|line| line.starts_with("rsa2048.sign ")), "{listed}");
}
