//! The record as others meet it: example files, the published schema, and files on a disk.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod examples;
mod files;
mod format_page;
mod round_trip;
mod samples;
mod verification;
mod version_1;

use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;
use tapstone_record::SCHEMA_JSON;

/// The page that explains the format.
const PAGE: &str = include_str!("../../../../docs/FORMAT.md");

/// The example records: what each verb writes, with every field used at least once.
fn examples() -> Vec<(PathBuf, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples");
    let mut examples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    examples.sort();
    assert!(examples.len() >= 3, "the examples are where they are looked for");
    examples
}

/// The example with the most cases.
fn token_example() -> (PathBuf, String) {
    examples().into_iter().find(|(path, _)| path.ends_with("token.json")).unwrap()
}

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA_JSON).unwrap()).unwrap()
});

/// What the schema has to say against a record, by place.
fn complaints(record: &Value) -> Vec<String> {
    VALIDATOR.iter_errors(record).map(|e| format!("{}: {e}", e.instance_path())).collect()
}
