//! docs/python.md: its code runs on a record and samples as they are written, and finds in them
//! what they say.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tapstone_record::Record;
use tapstone_testing::skip;
use tempfile::TempDir;

use crate::support::Tapstone;

const PAGE: &str = include_str!("../../../../docs/python.md");

/// What the test adds, to see what the page's names hold.
const SEEN: &str = r#"
print("SEEN", json.dumps({
    "operations": list(rows["operation"]),
    "rates": list(rows["throughput.estimate"]),
    "good": len(good),
    "everything": len(everything),
    "samples": len(samples),
    "inside": len(inside),
    "rate": rate,
    "slowest_ms": float(slowest.max()),
}))
"#;

/// A Python with pandas and pyarrow: the one that scripts/setup made in the folder of builds, or
/// the system's.
fn python() -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    let pythons = [target.join("tools/python/bin/python3"), PathBuf::from("python3")];
    pythons.into_iter().find(|python| {
        let imported = Command::new(python).args(["-c", "import pandas, pyarrow"]).output();
        imported.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn the_page_of_python_tells_the_truth() {
    let Some(python) = python() else {
        return skip("Python with pandas and pyarrow (scripts/setup test)");
    };
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    Tapstone::on(&[("SERVICE", "300us"), ("WAIT", "sleep")])
        .args("--no-verify --threads 2 --seconds 1 --op rsa1024.sign")
        .arg("--samples")
        .arg(path("samples.parquet"))
        .arg("--output")
        .arg(path("run.json"))
        .without_record()
        .run()
        .exits(0);
    let blocks = PAGE.split("```python\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let script: String = blocks.chain([SEEN]).collect();
    let output =
        Command::new(python).current_dir(folder.path()).args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let seen = printed.lines().find_map(|line| line.strip_prefix("SEEN ")).unwrap();
    let seen: Value = serde_json::from_str(seen).unwrap();

    let record = Record::read(path("run.json")).unwrap();
    let row = &record.results[0];
    assert_eq!(seen["operations"][0], row.operation);
    assert_eq!(seen["rates"][0], row.throughput.unwrap().estimate);
    assert_eq!(seen["good"], record.results.len());
    assert_eq!(seen["everything"], record.results.len());
    assert_eq!(seen["samples"], record.samples.as_ref().unwrap().count);
    assert_eq!(seen["inside"], row.completed);
    // The record's rate is of the same operations and the same window.
    let rate = seen["rate"].as_f64().unwrap();
    let told = row.completed as f64 / row.window.unwrap().seconds.0;
    assert!((rate - told).abs() < 1e-9 * told, "{rate} {told}");
    let longest_ms = row.latency_ns.unwrap().max.0 as f64 / 1e6;
    assert!((seen["slowest_ms"].as_f64().unwrap() - longest_ms).abs() < 1e-9);
}
