//! What the tests of several crates share: waiting, skipping aloud, records held to their schema.

use std::io::Write;
use std::sync::LazyLock;
use std::thread::{current, sleep};
use std::time::{Duration, Instant};

use jsonschema::Validator;
use serde_json::Value;
use tapstone_record::{Record, SCHEMA_JSON};

/// Between two looks at something that others change.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so; says whether it came to be.
pub fn eventually(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// Says on the terminal that a test is skipped, and what was missing.
pub fn skip(missing: &str) {
    // Not by `eprintln!`, which the test harness keeps to itself.
    let name = current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {missing} is missing");
}

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(SCHEMA_JSON).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
});

/// What the schema has to say against a record, by place.
#[must_use]
pub fn complaints(record: &Value) -> Vec<String> {
    VALIDATOR.iter_errors(record).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// The record of this text.
///
/// # Panics
/// It is none, or the schema has something to say against it.
#[must_use]
#[track_caller]
pub fn record(text: &str) -> Record {
    let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(complaints(&value), [""; 0]);
    Record::from_json(text, "the record of a test").expect("the schema holds")
}
