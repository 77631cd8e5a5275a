//! A measured card in the place of the scenario's.

use std::path::Path;

use serde_json::{Value, json};
use tapstone_record::Provenance;

use crate::{Said, folder, tapstone};

/// A record of `tapstone door measure` with these cases, in milliseconds.
fn record(rows: &[(&str, f64)], emulated: bool) -> String {
    let row = |(operation, ms): &(&str, f64)| {
        let exactly = json!({ "estimate": ms * 1e6, "low": ms * 1e6, "high": ms * 1e6 });
        let values = [ms - 1.0, *ms, ms + 1.0].map(|ms| (ms * 1e6) as u64);
        json!({
            "operation": operation,
            "status": { "outcome": "ok" },
            "concurrency": { "threads": 1, "processes": 1, "hosts": 1 },
            "load": { "kind": "closed" },
            "completed": 3,
            "latency_ns": { "mean": exactly, "p50": exactly, "p90": null, "p95": null,
                "p99": null, "p99_9": null, "min": values[0], "max": values[2] },
            "latencies_ns": values,
        })
    };
    let mut record: Value = json!({
        "schema": "tapstone.record/2",
        "tool": { "name": "tapstone", "version": "0.1.0" },
        "command": ["tapstone", "door", "measure"],
        "started_at": "2026-01-15T09:30:00Z",
        "environment": {
            "cpu": null, "cores": null, "kernel": null, "clock": null,
            "load": { "average_1m": null, "average_5m": null, "average_15m": null,
                "other_cores": null, "steal_share": null },
        },
        "target": { "kind": "door" },
        "results": rows.iter().map(row).collect::<Vec<_>>(),
    });
    if emulated {
        record["target"]["emulated"] = json!({ "profile": "piv-card-1", "sha256": "00" });
    }
    record.to_string()
}

const STEPS: [(&str, f64); 4] = [
    ("door.pki-cak.select", 30.0),
    ("door.pki-cak.read-certificate", 300.0),
    ("door.pki-cak.challenge", 500.0),
    ("door.pki-cak.validate", 3.0),
];

fn budget(here: &Path, card: &str) -> Said {
    tapstone(here, &["door", "budget", "hid-rsa2048", "--card", card, "--format", "json"])
}

#[test]
fn measured_steps_take_the_place_of_the_card_and_its_link() {
    let here = folder(&[("run.json", &record(&STEPS, false))]);
    let record = budget(here.path(), "run.json").record();
    let budget = record.budget.unwrap();
    let part = |name: &str| budget.parts.iter().find(|part| part.component == name).unwrap();
    assert!((part("card").time_ns.estimate - 830e6).abs() < 10.0);
    assert_eq!(part("card").provenance, Provenance::Measured);
    assert_eq!(part("card-reader").time_ns.estimate, 0.0);
    // The host's validation is not the module's, which stays as it was.
    assert_eq!(part("module").time_ns.estimate, 1200e6);
    assert!((budget.total_ns.estimate - (3678e6 - 1567e6 + 830e6)).abs() < 10.0);
    assert!(budget.probability.is_some(), "measured times have a spread");
    let said = "card and its link are measured: select, read-certificate, challenge of run.json";
    assert!(record.warnings[0].starts_with(said), "{:?}", record.warnings);
}

#[test]
fn what_is_missing_is_the_scenarios_and_said() {
    let here = folder(&[("run.json", &record(&STEPS[2..3], true))]);
    let record = budget(here.path(), "run.json").record();
    let card = record.budget.unwrap().parts[0].clone();
    assert_eq!(card.provenance, Provenance::Derived);
    // 33 % of the scenario's 1367 ms are not signing.
    assert!((card.time_ns.estimate / 1e6 - (0.33 * 1367.0 + 500.0)).abs() < 0.01);
    assert!(record.warnings[1].contains("451.1 ms, is the scenario's"), "{:?}", record.warnings);
    assert!(record.target.emulated.is_some(), "an emulated card is marked");
}

#[test]
fn a_record_without_steps_gives_its_whole_and_another_none() {
    let here = folder(&[
        ("whole.json", &record(&[("door.pki-cak", 900.0)], false)),
        ("other.json", &record(&[("rsa2048.sign", 1.0)], false)),
    ]);
    let whole = budget(here.path(), "whole.json").record();
    assert!((whole.budget.unwrap().parts[0].time_ns.estimate - 900e6).abs() < 10.0);
    let other = budget(here.path(), "other.json");
    assert_eq!(other.code, 2);
    let says = "other.json has no times of door.pki-cak: it holds rsa2048.sign\nhint: ";
    assert!(other.err.contains(says), "{}", other.err);
}

#[test]
fn the_other_verbs_take_a_card_too() {
    let here = folder(&[("run.json", &record(&STEPS, true))]);
    let what_if = ["door", "what-if", "hid-rsa2048", "--card", "run.json"];
    let said = tapstone(here.path(), &what_if);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("emulated: piv-card-1"), "{}", said.out);
    let simulate = ["door", "simulate", "hid-rsa2048", "--card", "run.json", "--people", "300/h"];
    let said = tapstone(here.path(), &[&simulate[..], &["--count", "1000"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("M/G/1"), "{}", said.out);
}
