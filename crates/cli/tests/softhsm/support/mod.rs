//! A SoftHSM2 of a test's own, `tapstone` run on it, and what a run leaves behind.

mod hsm;

use tapstone_record::{CaseResult, Record, Verifier};
pub(crate) use tapstone_testing::{eventually, skip};

pub(crate) use self::hsm::{Hsm, PIN, hostile_module};
pub(crate) use crate::run::{Outcome, Running, Tapstone};

/// The case was measured without a failure, and software checked every single result and found it
/// right.
pub(crate) fn assert_all_verified(row: &CaseResult) {
    assert_eq!(not_all_verified(row), None);
}

/// What there is to say against the same.
pub(crate) fn not_all_verified(row: &CaseResult) -> Option<String> {
    let name = &row.operation;
    let completed = row.completed;
    let Some(verification) = row.verification else { return Some(format!("{name}: not checked")) };
    let (eligible, checked, wrong) =
        (verification.eligible, verification.checked, verification.wrong);
    let is_whole = completed > 0 && row.failed.is_empty() && eligible == completed;
    let is_right = checked == eligible && wrong == 0 && verification.by == Verifier::Software;
    let counts = format!("{completed} completed, {eligible} eligible, {checked} checked");
    let complaint =
        format!("{name}: {counts} by {:?}, {wrong} wrong, {:?}", verification.by, row.failed);
    (!is_whole || !is_right).then_some(complaint)
}

impl Outcome {
    /// It could not measure, measured nothing, and says so in exactly these words.
    pub(crate) fn refuses(self, words: &str) {
        let refused = self.exits(2);
        assert_eq!(refused.stderr.trim_end(), words);
        assert_eq!((refused.stdout.as_str(), refused.record_text()), ("", None));
    }

    /// The record that went to standard output, which satisfies the schema.
    pub(crate) fn printed_record(&self) -> Record {
        tapstone_testing::record(&self.stdout)
    }
}
