//! Files: whole or not at all, and errors that say where and what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tapstone_files::Access;
use tapstone_record::{Record, RecordError};

use crate::token_example;

fn record() -> Record {
    let (path, text) = token_example();
    Record::from_json(&text, path).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_replaced_as_a_whole_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    fs::write(&path, "an older and much, much longer record".repeat(10_000)).unwrap();
    record().write(&path, Access::Everybody).unwrap();
    assert_eq!(Record::read(&path).unwrap(), record());
    assert!(fs::read_to_string(&path).unwrap().ends_with("}\n"));
    assert_eq!(names(folder.path()), ["run.json"]);
}

#[test]
fn others_may_read_it_as_far_as_the_umask_allows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let plain = folder.path().join("plain");
    record().write(&path, Access::Everybody).unwrap();
    fs::write(&plain, "").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn what_cannot_be_written_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    record().write(&path, Access::Everybody).unwrap();
    let mut broken = record();
    broken.results[0].throughput.as_mut().unwrap().estimate = f64::NAN;
    let error = broken.write(&path, Access::Everybody).unwrap_err();
    assert!(
        matches!(&error, RecordError::Unwritable { field, .. }
        if field == "results[0].throughput.estimate"),
        "{error}"
    );
    assert_eq!(Record::read(&path).unwrap(), record());

    let missing = folder.path().join("no/such/folder/run.json");
    let text = record().write(&missing, Access::Everybody).unwrap_err().to_string();
    assert!(text.contains("no/such/folder/run.json: No such file") && text.contains("\nhint: "));
}

#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let link = folder.path().join("latest.json");
    fs::write(&path, "").unwrap();
    symlink(&path, &link).unwrap();
    record().write(&link, Access::Everybody).unwrap();
    assert!(link.is_symlink());
    assert_eq!(Record::read(&path).unwrap(), record());

    record().write("/dev/null", Access::Everybody).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// The error of a record with one value changed.
fn error_with(place: &str, value: Value) -> String {
    let mut json = serde_json::to_value(record()).unwrap();
    *json.pointer_mut(place).unwrap() = value;
    let text = serde_json::to_string_pretty(&json).unwrap();
    Record::from_json(&text, "run.json").unwrap_err().to_string()
}

#[test]
fn a_malformed_field_is_named_with_file_and_line() {
    let text = error_with("/results/0/window/seconds", json!("ten"));
    let (place, rest) = text.split_once(": ").unwrap();
    assert!(
        place.strip_prefix("run.json:").unwrap().split(':').all(|n| n.parse::<u32>().unwrap() > 0)
    );
    assert_eq!(
        rest.lines().next().unwrap(),
        "results[0].window.seconds: invalid type: string \"ten\", expected f64"
    );
    assert!(rest.lines().last().unwrap().starts_with("hint: "));

    let text = error_with("/started_at", json!("yesterday"));
    assert!(text.contains(": started_at: "), "{text}");
    let text = error_with("/target/kind", json!("hsm"));
    assert!(text.contains("target.kind: unknown variant `hsm`"), "{text}");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused_and_never_misread() {
    let text = record().to_json().unwrap();
    for end in (1..text.trim_end().len()).step_by(97) {
        let error = Record::from_json(&text[..end], "cut.json").unwrap_err();
        assert!(matches!(error, RecordError::Malformed { .. }), "{end}: {error}");
    }
    for (nothing, says) in [("", "is empty"), (" \n", "is empty"), ("[]", "no JSON object")] {
        let error = Record::from_json(nothing, "cut.json").unwrap_err();
        assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = Record::from_json(&(text + "{}"), "two.json").unwrap_err();
    assert!(error.to_string().contains("after the record"), "{error}");
}

#[test]
fn another_version_is_refused_with_a_way_on() {
    let text = error_with("/schema", json!("tapstone.record/3"));
    assert!(text.starts_with(
        "run.json is a \"tapstone.record/3\", and this version reads \"tapstone.record/2\" and \"tapstone.record/1\""
    ));
    assert!(text.contains("\nhint: ") && text.contains("newer"));
    // Even when nothing else of it is known.
    let error = Record::from_json(r#"{"schema": "tapstone.record/9"}"#, "-").unwrap_err();
    assert!(matches!(error, RecordError::OtherSchema { .. }));
}

#[test]
fn other_json_is_no_record() {
    for text in ["[]", "{}", r#"{"schema": 1}"#, "3"] {
        let error = Record::from_json(text, "other.json").unwrap_err();
        assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
        assert!(error.to_string().contains("\nhint: "));
    }
    let error = Record::read("/no/such/file").unwrap_err();
    assert!(error.to_string().starts_with("cannot read /no/such/file: No such file"));
}
