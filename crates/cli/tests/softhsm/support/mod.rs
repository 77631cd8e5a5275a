//! A SoftHSM2 of a test's own, `tapstone` run on it, and what a run leaves behind.

mod hsm;
mod outcome;
mod run;

pub(crate) use self::hsm::{Hsm, PIN};
pub(crate) use self::outcome::Outcome;
pub(crate) use self::run::{Running, Tapstone, eventually};

use tapstone_record::{Row, Verifier};

/// The row was measured without a failure, and software checked every single result and found it
/// right.
pub(crate) fn assert_all_verified(row: &Row) {
    assert_eq!(not_all_verified(row), None);
}

/// What there is to say against the same.
pub(crate) fn not_all_verified(row: &Row) -> Option<String> {
    let (name, completed) = (&row.operation, row.completed);
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

/// Says on the terminal that a test is skipped.
#[expect(clippy::explicit_write, reason = "the test harness keeps `eprintln!` to itself")]
pub(crate) fn skip(missing: &str) {
    use std::io::Write;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    writeln!(std::io::stderr(), "SKIPPED {name}: {missing} is missing").unwrap();
}
