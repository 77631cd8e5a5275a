//! What a run has left behind.

use std::fs;
use std::path::PathBuf;

use tapstone_record::{CaseResult, Record, TargetKind};
use tempfile::TempDir;

/// See the module's text.
pub(crate) struct Outcome {
    /// The exit code; none after a signal.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    directory: TempDir,
}

impl Outcome {
    /// Reads what is there; the secrets are nowhere.
    pub(super) fn new(exit: Option<i32>, directory: TempDir, secrets: &[String]) -> Self {
        let read = |name| fs::read_to_string(directory.path().join(name)).unwrap();
        let outcome = Self { exit, stdout: read("stdout"), stderr: read("stderr"), directory };
        let record = outcome.record_text().unwrap_or_default();
        for text in [&outcome.stdout, &outcome.stderr, &record] {
            let told = secrets.iter().any(|secret| text.contains(secret));
            assert!(!told, "a secret is none any more:\n{text}");
        }
        outcome
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn record_path(&self) -> PathBuf {
        self.path("record.json")
    }

    /// The record's text, if one was written.
    pub(crate) fn record_text(&self) -> Option<String> {
        fs::read_to_string(self.record_path()).ok()
    }

    /// The record, which satisfies the schema, and says of a virtual card that it is none.
    #[track_caller]
    pub(crate) fn record(&self) -> Record {
        let text = self.record_text();
        let text = text.unwrap_or_else(|| panic!("no record\n{}\n{}", self.stdout, self.stderr));
        let record = tapstone_testing::record(&text);
        match record.target.kind {
            TargetKind::Token | TargetKind::Command => {}
            _ => assert!(record.target.emulated.is_some(), "a virtual card is no card"),
        }
        record
    }

    /// The only case of the record.
    #[track_caller]
    pub(crate) fn row(&self) -> CaseResult {
        let mut rows = self.record().results;
        assert_eq!(rows.len(), 1, "one case");
        rows.remove(0)
    }
}
