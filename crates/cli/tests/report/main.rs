//! `tapstone report`: records as a page and on the terminal, and whatever is no record.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod action;
mod formats;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tapstone_files::Access;
use tapstone_record::Record;
use tapstone_testing::private_environment;
use tempfile::TempDir;

const EXAMPLES: [&str; 6] = ["token", "card", "pcsc", "trace", "comparison", "door"];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../record/tests/examples/{name}.json"))
}

fn report(records: &[&Path], options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    command.arg("report").args(records).args(options).output().unwrap()
}

/// The page of these records.
fn page(records: &[&Path], folder: &TempDir) -> String {
    let file = folder.path().join("report.html");
    let output = report(records, &["--output", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    fs::read_to_string(file).unwrap()
}

fn refused(records: &[&Path], options: &[&str]) -> String {
    let output = report(records, options);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    said
}

#[test]
fn every_kind_of_record_is_a_page_that_asks_nobody() {
    let folder = TempDir::new().unwrap();
    for name in EXAMPLES {
        let page = page(&[&example(name)], &folder);
        assert!(page.starts_with("<!DOCTYPE html>"), "{name}");
        assert!(page.contains("default-src 'none'"), "{name}");
        // Links within the page, and the record itself.
        let addresses = page.match_indices("href=\"").chain(page.match_indices("src=\""));
        for (at, attribute) in addresses {
            let target = &page[at + attribute.len()..];
            let inside = target.starts_with('#') || target.starts_with("data:application/json;");
            assert!(inside, "{name}: {}", &target[..target.len().min(60)]);
        }
        assert!(page.contains("<table") && page.len() < 2_000_000, "{name}");
    }
}

#[test]
fn all_records_on_one_page_have_ids_of_their_own() {
    let folder = TempDir::new().unwrap();
    let examples = EXAMPLES.map(example);
    let records: Vec<&Path> = examples.iter().map(PathBuf::as_path).collect();
    let page = page(&records, &folder);
    let mut ids: Vec<&str> = page
        .match_indices(" id=\"")
        .map(|(at, _)| page[at + 5..].split('"').next().unwrap())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is there twice");
    assert!(all > EXAMPLES.len());
}

#[test]
fn the_record_can_be_taken_out_of_the_page() {
    use base64::Engine;
    let folder = TempDir::new().unwrap();
    let page = page(&[&example("token")], &folder);
    let start = "data:application/json;base64,";
    let data = page.split(start).nth(1).unwrap().split('"').next().unwrap();
    let json = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let saved = Record::from_json(&String::from_utf8(json).unwrap(), "saved").unwrap();
    assert_eq!(saved, Record::read(example("token")).unwrap());
}

#[test]
fn a_page_of_many_records_stays_small_and_says_what_it_left_out() {
    let folder = TempDir::new().unwrap();
    let token = example("token");
    let many: Vec<&Path> = vec![&token; 120];
    let page = page(&many, &folder);
    assert!(page.contains("left out: the page would be too large"));
    let few = self::page(&many[..2], &folder);
    assert!(!few.contains("left out: the page would be too large"));
}

#[test]
fn without_an_output_it_is_what_the_verb_has_shown() {
    let shown = report(&[&example("door")], &[]);
    assert_eq!(shown.status.code(), Some(0));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("budget") && !text.contains('<'), "{text}");
}

#[test]
fn what_is_no_record_is_one_error_with_a_hint() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let whole = fs::read_to_string(example("token")).unwrap();
    let newer = whole.replace("tapstone.record/2", "tapstone.record/3");
    let cases = [
        (write("empty.json", ""), "empty.json"),
        (write("cut.json", &whole[..whole.len() / 2]), "cut.json"),
        (write("newer.json", &newer), "tapstone.record/3"),
        (write("other.json", "{\"schema\": 7}"), "other.json"),
        (write("text.json", "no record at all"), "text.json"),
        (folder.path().join("missing.json"), "missing.json"),
        (folder.path().to_owned(), folder.path().to_str().unwrap()),
    ];
    let output = folder.path().join("report.html");
    for (path, expected) in &cases {
        let said = refused(&[&example("door"), path], &["--output", output.to_str().unwrap()]);
        assert!(said.contains(expected), "{said}");
        assert!(!output.exists(), "a page was written all the same");
        refused(&[path], &[]);
    }
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_is_read() {
    let said = refused(&[Path::new("missing.json")], &["--output", "/no/such/folder/report.html"]);
    assert!(said.contains("/no/such/folder/report.html"), "{said}");
}

#[test]
fn events_that_are_gone_are_told_and_others_are_refused() {
    let folder = TempDir::new().unwrap();
    let mut record = Record::read(example("trace")).unwrap();
    record.events = Some(tapstone_record::DataFile { file: "gone.events".into(), count: 7 });
    let path = folder.path().join("trace.json");
    record.write(&path, Access::Everybody).unwrap();
    assert!(page(&[&path], &folder).contains("gone.events, are not there any more"));
    let events = folder.path().join("nonsense.events");
    fs::write(&events, "nonsense").unwrap();
    let output = folder.path().join("report.html");
    let options = ["--output", output.to_str().unwrap(), "--events", events.to_str().unwrap()];
    assert!(refused(&[&path], &options).contains("nonsense.events"));
}
