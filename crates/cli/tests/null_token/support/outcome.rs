//! What a run has left behind.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::Validator;
use tapstone_record::{Record, Row, SCHEMA_JSON};
use tempfile::TempDir;

use super::process::objects;
use super::{Log, PIN};

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA_JSON).unwrap()).unwrap()
});

/// See the module's text.
pub(crate) struct Outcome {
    /// The exit code; none after a signal.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    directory: TempDir,
}

impl Outcome {
    pub(super) fn new(exit: Option<i32>, directory: TempDir) -> Self {
        let read = |name| fs::read_to_string(directory.path().join(name)).unwrap();
        Self { exit, stdout: read("stdout"), stderr: read("stderr"), directory }
    }

    /// The same, once the exit code is as it should be.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The record, which satisfies the schema and holds no PIN.
    pub(crate) fn record(&self) -> Record {
        let path = self.path("record.json");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("no record: {error}\n{}", self.stderr));
        let value = serde_json::from_str(&text).unwrap();
        let complaints: Vec<String> =
            VALIDATOR.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(complaints, [""; 0]);
        let record = Record::from_json(&text, &path).unwrap();
        assert!(record.command.iter().all(|argument| argument != PIN));
        record
    }

    /// The only row of the record.
    pub(crate) fn row(&self) -> Row {
        let mut rows = self.record().results;
        assert_eq!(rows.len(), 1, "one row");
        rows.remove(0)
    }

    /// What the module noted.
    pub(crate) fn log(&self) -> Log {
        Log::read(self.directory.path())
    }

    /// Names of the token objects that are left.
    pub(crate) fn objects(&self) -> Vec<String> {
        objects(&self.path("store"))
    }

    /// Wrong PINs since the last right one; `None`: no PIN was ever given.
    pub(crate) fn wrong_pins(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path("store").join("slot-0.pin-failures")).ok()?;
        Some(text.parse().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
