//! What a run has left behind.

use std::fs;
use std::sync::LazyLock;

use jsonschema::Validator;
use tapstone_record::{Record, Row, SCHEMA_JSON};
use tempfile::TempDir;

use super::PIN;

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA_JSON).unwrap()).unwrap()
});

/// See the module's text.
pub(crate) struct Outcome {
    /// The exit code; none after a signal.
    exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The record's text, if there is one.
    record: Option<String>,
}

impl Outcome {
    /// Reads what is there; the PIN is nowhere.
    pub(super) fn new(exit: Option<i32>, directory: TempDir) -> Self {
        let read = |name| fs::read_to_string(directory.path().join(name));
        let (stdout, stderr) = (read("stdout").unwrap(), read("stderr").unwrap());
        let record = read("record.json").ok();
        for text in [Some(&stdout), Some(&stderr), record.as_ref()].into_iter().flatten() {
            assert!(!text.contains(PIN), "the PIN is no secret any more:\n{text}");
        }
        Self { exit, stdout, stderr, record }
    }

    /// The same, once the exit code is as it should be.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// It could not measure, measured nothing, and says so in exactly these words.
    pub(crate) fn refuses(self, words: &str) {
        let refused = self.exits(2);
        assert_eq!(refused.stderr.trim_end(), words);
        assert_eq!((refused.stdout.as_str(), &refused.record), ("", &None));
    }

    /// The record, which satisfies the schema.
    pub(crate) fn record(&self) -> Record {
        let text = self.record.as_ref();
        let text = text.unwrap_or_else(|| panic!("no record\n{}\n{}", self.stdout, self.stderr));
        parse(text)
    }

    /// The record that went to standard output, which satisfies the schema.
    pub(crate) fn printed_record(&self) -> Record {
        parse(&self.stdout)
    }

    /// The only row of the record.
    pub(crate) fn row(&self) -> Row {
        let mut rows = self.record().results;
        assert_eq!(rows.len(), 1, "one row");
        rows.remove(0)
    }
}

fn parse(text: &str) -> Record {
    let value = serde_json::from_str(text).unwrap();
    let complaints: Vec<String> =
        VALIDATOR.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(complaints, [""; 0]);
    Record::from_json(text, "the record of a test").unwrap()
}
