//! `tapstone compare` on records written here, and on published figures.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod baseline;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tapstone_testing::private_environment;
use tempfile::TempDir;

/// A folder with records of made-up cards.
struct Cards {
    folder: TempDir,
}

/// An operation with its mean and the half-width of its interval, in milliseconds.
type Times<'a> = &'a [(&'a str, f64, f64)];

impl Cards {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// Writes a record, and gives its file's name.
    fn write(&self, name: &str, kernel: &str, times: Times<'_>) -> String {
        let row = |(operation, mean, half_width): &(&str, f64, f64)| {
            let ns = |ms: f64| ms * 1e6;
            json!({
                "operation": operation,
                "status": { "outcome": "ok" },
                "concurrency": { "threads": 1, "processes": 1, "hosts": 1 },
                "load": { "kind": "closed" },
                "completed": 100,
                "latency_ns": {
                    "mean": {
                        "estimate": ns(*mean),
                        "low": ns(mean - half_width),
                        "high": ns(mean + half_width)
                    },
                    "min": 1, "max": 2
                }
            })
        };
        let record = json!({
            "schema": "tapstone.record/2",
            "tool": { "name": "tapstone", "version": env!("CARGO_PKG_VERSION") },
            "command": [],
            "started_at": "2026-01-15T09:30:00Z",
            "environment": {
                "cpu": "Example CPU", "cores": 2, "kernel": kernel, "load": {},
                "clock": { "step_ns": 1, "cost_ns": 20.0 }
            },
            "target": { "kind": "card", "card": { "atr": "3B00", "name": "Example\u{1b}[31m card" } },
            "results": times.iter().map(row).collect::<Vec<Value>>()
        });
        let file = format!("{name}.json");
        fs::write(self.path(&file), record.to_string()).unwrap();
        file
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn compare(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.current_dir(self.folder.path()).arg("compare").args(arguments);
        command.output().unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_threshold_acts_on_the_interval() {
    let cards = Cards::new();
    let old = cards.write("old", "6.12", &[("card.simple_apdu", 5.0, 0.01)]);
    for (name, mean, half_width, code, word) in [
        ("same", 5.0, 0.01, 0, "HELD"),
        ("slower", 6.0, 0.01, 1, "EXCEEDED"),
        ("noisy", 5.3, 0.4, 0, "UNDECIDED"),
    ] {
        let new = cards.write(name, "6.12", &[("card.simple_apdu", mean, half_width)]);
        let output = cards.compare(&[&old, &new, "--fail-above", "5%"]);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", stderr(&output));
        assert!(stdout(&output).contains(word), "{}", stdout(&output));
    }
    // Undecided says what would decide: the interval reaches about 10 times as far as it may.
    let output = cards.compare(&[&old, "noisy.json", "--fail-above", "5%", "--format", "json"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let more = record["comparison"]["cases"][0]["more_samples"].as_u64().unwrap();
    assert!(more > 1000, "{more}");
}

/// A gate that passes because there is nothing left to compare is none.
#[test]
fn a_threshold_does_not_hold_for_an_operation_that_failed() {
    let cards = Cards::new();
    let times = [("card.simple_apdu", 5.0, 0.01), ("card.get_data", 1.0, 0.01)];
    let old = cards.write("old", "6.12", &times);
    let new = cards.write("new", "6.12", &times);
    let text = fs::read_to_string(cards.path(&new)).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["results"][1]["status"] = json!({ "outcome": "failed", "code": "SW_6F00" });
    fs::write(cards.path(&new), record.to_string()).unwrap();
    let told = "not compared: card.get_data: failed: SW_6F00";
    for (threshold, code) in [(&["--fail-above", "5%"][..], 2), (&[], 0)] {
        let output = cards.compare(&[&[old.as_str(), &new], threshold].concat());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stdout(&output).contains(told), "{}", stdout(&output));
        assert_eq!(stdout(&output).contains("VOID"), code == 2, "{}", stdout(&output));
    }
    for (format, told) in [
        ("junit", "<error type=\"not measured\" message=\"not compared: failed: SW_6F00\">"),
        ("github", "::error "),
        ("markdown", "not compared"),
        ("openmetrics", "tapstone_comparison_not_compared{"),
    ] {
        let output = cards.compare(&[&old, &new, "--fail-above", "5%", "--format", format]);
        assert_eq!(output.status.code(), Some(2), "{format}: {}", stderr(&output));
        assert!(stdout(&output).contains(told), "{format}: {}", stdout(&output));
    }
}

#[test]
fn what_differs_and_what_is_missing_is_said() {
    let cards = Cards::new();
    let old =
        cards.write("old", "6.11", &[("card.simple_apdu", 5.0, 0.01), ("card.gone", 1.0, 0.1)]);
    let new =
        cards.write("new", "6.12", &[("card.simple_apdu", 5.0, 0.01), ("card.added", 1.0, 0.1)]);
    let output = cards.compare(&[&old, &new]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("the kernel differs: 6.11 and 6.12"), "{text}");
    assert!(text.contains("only in the baseline: card.gone"), "{text}");
    assert!(text.contains("only in the candidate: card.added"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_card_beside_the_published_ones() {
    let cards = Cards::new();
    let card = cards.write("card", "6.12", &[("card.simple_apdu", 28.13, 0.1)]);
    // Wherever it stands, what is published is the baseline.
    for order in [[card.as_str(), "reference:jcop-cards"], ["reference:jcop-cards", &card]] {
        let output =
            cards.compare(&[order[0], order[1], "--format", "json", "--output", "out.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        let written: Value =
            serde_json::from_str(&fs::read_to_string(cards.path("out.json")).unwrap()).unwrap();
        assert_eq!(record, written);
        let rows = record["comparison"]["cases"].as_array().unwrap();
        assert_eq!(rows.len(), 4);
        let jcop31 = rows.iter().find(|row| row["item"] == "NXP JCOP31 v2.2").unwrap();
        assert_eq!(jcop31["verdict"], "inconclusive");
        assert_eq!(jcop31["baseline_provenance"], "published");
        assert!((jcop31["ratio"]["estimate"].as_f64().unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(rows.iter().filter(|row| row["verdict"] == "slower").count(), 3);
    }
    let one =
        cards.compare(&[&card, "reference:jcop-cards", "--item", "jcop31", "--format", "csv"]);
    assert_eq!(stdout(&one).lines().count(), 2, "{}", stdout(&one));
}

#[test]
fn the_schema_holds_for_what_is_written() {
    let cards = Cards::new();
    let card = cards.write("card", "6.12", &[("card.simple_apdu", 28.13, 0.1)]);
    let output = cards.compare(&[&card, "reference:jcop-cards", "--format", "json"]);
    let _ = tapstone_testing::record(&stdout(&output));
}

#[test]
fn a_reference_alone_is_shown_with_its_conclusions() {
    let cards = Cards::new();
    let output = cards.compare(&["reference:jcop-cards"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("1.03 to 3.28 times"), "{}", stdout(&output));
    let json = cards.compare(&["reference:pcsc-lite", "--format", "json"]);
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["items"][0]["figures"][0]["operation"], "pcsc.end_transaction");
    assert_eq!(value["items"][0]["figures"][0]["value"]["mean_seconds"], 0.006);
}

#[test]
fn bad_input_is_one_error_with_a_hint() {
    let cards = Cards::new();
    let card = cards.write("card", "6.12", &[("card.simple_apdu", 28.13, 0.1)]);
    let other = cards.write("other", "6.12", &[("card.random", 1.0, 0.1)]);
    fs::write(cards.path("cut.json"), "{\"schema\": \"tapstone.record/2\", \"tool\"").unwrap();
    fs::write(cards.path("old.json"), "{\"schema\": \"tapstone.record/0\"}").unwrap();
    fs::write(cards.path("empty.json"), "").unwrap();
    for (arguments, says) in [
        (&["missing.json", &card][..], "missing.json"),
        (&[&card, "cut.json"], "cut.json"),
        (&[&card, "old.json"], "tapstone.record/0"),
        (&[&card, "empty.json"], "empty.json"),
        (&[&card, &other], "card.simple_apdu"),
        (&[&card, "reference:hsm-speed"], "no comparable operation"),
        (&[&card, "reference:nothing"], "\"nothing\""),
        (&[&card, "reference:jcop-cards", "--item", "P71"], "NXP JCOP31 v2.2"),
        (&["reference:jcop-cards", "reference:pcsc-lite"], "both published"),
        (&[&card], "nothing to be compared with"),
        (&[&card, &card, "--output", "no/such/folder.json"], "no/such/folder.json"),
    ] {
        let output = cards.compare(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(says), "{arguments:?}: {text}");
        assert!(text.lines().last().unwrap().starts_with("hint: "), "{arguments:?}: {text}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    let percent = cards.compare(&[&card, &card, "--fail-above", "5"]);
    assert_eq!(percent.status.code(), Some(2));
}

/// The published comparison of five contact cards: each one's excess over the fastest.
#[test]
fn several_cards_stand_beside_one_another() {
    let cards = Cards::new();
    let totals = [1291.0, 2504.0, 1993.0, 2148.0, 2137.0];
    let files: Vec<String> = totals
        .iter()
        .enumerate()
        .map(|(number, total)| {
            let mut times = vec![("door.contact", *total, 1.0)];
            if number < 2 {
                times.push(("door.contact.sign", 700.0 + number as f64, 1.0));
            }
            cards.write(&format!("card-{}", number + 1), "6.1", &times)
        })
        .collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut arguments = names.clone();
    arguments.extend(["--format", "json"]);
    let output = cards.compare(&arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = record["side_by_side"]["cases"].as_array().unwrap();
    let excess: Vec<f64> =
        rows[0]["excess"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    for (excess, published) in excess.iter().zip([0.0, 0.94, 0.54, 0.66, 0.66]) {
        assert!((excess - published).abs() < 0.006, "{excess} {published}");
    }
    assert_eq!(rows[1]["figures"][2], Value::Null);
    let text = String::from_utf8(cards.compare(&names).stdout).unwrap();
    assert!(text.contains("+94.0 %") && text.contains("fastest"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    arguments.truncate(names.len());
    arguments.extend(["--format", "csv"]);
    let csv = String::from_utf8(cards.compare(&arguments).stdout).unwrap();
    // A header, five totals, two signatures.
    assert_eq!(csv.lines().count(), 8, "{csv}");
}

/// What was emulated, and what another program measured, is marked wherever its figures stand.
#[test]
fn figures_that_were_not_measured_are_marked_side_by_side() {
    let cards = Cards::new();
    let change = |name: &str, change: fn(&mut Value)| {
        let file = cards.write(name, "6.1", &[("a", 1.0, 0.1)]);
        let mut record: Value =
            serde_json::from_slice(&fs::read(cards.path(&file)).unwrap()).unwrap();
        change(&mut record);
        fs::write(cards.path(&file), record.to_string()).unwrap();
        file
    };
    let real = change("real", |_| {});
    let emulate = |record: &mut Value| {
        record["target"]["emulated"] = json!({ "profile": "piv-card-1", "sha256": "00" });
    };
    let emulated = change("emulated", emulate);
    let imported = change("imported", |record| {
        record["imported"] = json!({ "format": "panel-log", "file": "log.csv", "sha256": "00",
            "made_by": "Panel 9", "lines_skipped": 0 });
    });
    let names = [real.as_str(), &emulated, &imported];
    let text = stdout(&cards.compare(&names));
    for said in [
        "emulated: piv-card-1 (1 of 3)",
        "emulated, profile piv-card-1",
        "(emulated)",
        "made by Panel 9",
        "not by Tapstone",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let csv = stdout(&cards.compare(&[names[0], names[1], names[2], "--format", "csv"]));
    assert!(csv.lines().next().unwrap().ends_with(",provenance,emulated,made_by"), "{csv}");
    assert!(
        csv.contains(",emulated,piv-card-1,\n") && csv.contains(",measured,,Panel 9\n"),
        "{csv}"
    );
    let page = cards.path("page.json");
    let page = page.to_str().unwrap();
    assert_eq!(
        cards.compare(&[names[0], names[1], names[2], "--output", page]).status.code(),
        Some(0)
    );
    let two = stdout(&cards.compare(&[&imported, &emulated]));
    assert!(two.contains("made by Panel 9") && two.contains("piv-card-1"), "{two}");
}

#[test]
fn several_records_are_records() {
    let cards = Cards::new();
    let [one, two] = ["one", "two"].map(|name| cards.write(name, "6.1", &[("a", 1.0, 0.1)]));
    let other = cards.write("other", "6.1", &[("b", 1.0, 0.1)]);
    for (arguments, says) in [
        (vec![&*one, &two, "reference:jcop-cards"], "is published"),
        (vec![&*one, &other, "none.json"], "none.json"),
        (vec![&*one, &two, &other, "--fail-above", "5%"], "--fail-above"),
    ] {
        let output = cards.compare(&arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    let third = cards.write("third", "6.1", &[("c", 1.0, 0.1)]);
    let output = cards.compare(&[&one, &other, &third]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no comparable operation") && stderr.contains("\nhint: "), "{stderr}");
}
