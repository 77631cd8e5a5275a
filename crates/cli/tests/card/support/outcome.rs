//! What a run has left behind.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::Validator;
use tapstone_record::{Record, Row, SCHEMA_JSON};
use tempfile::TempDir;

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
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// It measured nothing and wrote nothing: exit code 2, and on standard error one error that
    /// ends with advice.
    #[track_caller]
    pub(crate) fn refusal(self) -> String {
        let refused = self.exits(2);
        assert_eq!(refused.stdout, "", "{}", refused.stderr);
        assert!(!refused.record_path().exists(), "{}", refused.stderr);
        let stderr = refused.stderr;
        assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
        assert!(stderr.lines().last().is_some_and(|line| line.starts_with("hint: ")), "{stderr}");
        stderr
    }

    pub(crate) fn record_path(&self) -> PathBuf {
        self.directory.path().join("record.json")
    }

    /// The record's text, if one was written.
    pub(crate) fn record_text(&self) -> Option<String> {
        fs::read_to_string(self.record_path()).ok()
    }

    /// The record, which satisfies the schema and says that the card was none.
    #[track_caller]
    pub(crate) fn record(&self) -> Record {
        let text = self.record_text();
        let text = text.unwrap_or_else(|| panic!("no record\n{}\n{}", self.stdout, self.stderr));
        let value = serde_json::from_str(&text).unwrap();
        let complaints: Vec<String> =
            VALIDATOR.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(complaints, [""; 0]);
        let record = Record::from_json(&text, "the record of a test").unwrap();
        assert!(record.target.emulated.is_some(), "a virtual card is no card");
        record
    }

    /// The only row of the record.
    #[track_caller]
    pub(crate) fn row(&self) -> Row {
        let mut rows = self.record().results;
        assert_eq!(rows.len(), 1, "one row");
        rows.remove(0)
    }
}
