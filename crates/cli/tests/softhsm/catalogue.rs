//! Everything that the catalogue knows, and what SoftHSM2 makes of it. All that it does is
//! verified, result by result.

use std::fmt::Write;

use insta::assert_snapshot;
use tapstone_record::{CaseResult, Outcome};

use crate::support::{Hsm, not_all_verified};

/// A session has no result that could be wrong.
const NOTHING_TO_VERIFY: [&str; 1] = ["session"];

/// Splits the catalogue so that the halves run beside each other: an operation that is added to it
/// is in one of them.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    ShortRsa,
    LongRsa,
    Curves,
    Others,
}

impl Family {
    fn of(operation: &str) -> Self {
        match operation {
            _ if operation.starts_with("rsa4096") || operation.starts_with("rsa3072") => {
                Self::LongRsa
            }
            _ if operation.starts_with("rsa") => Self::ShortRsa,
            _ if operation.starts_with('e') => Self::Curves,
            _ => Self::Others,
        }
    }
}

#[test]
fn rsa_to_2048_bits() {
    check(Family::ShortRsa, "rsa_to_2048_bits");
}

#[test]
fn rsa_from_3072_bits() {
    check(Family::LongRsa, "rsa_from_3072_bits");
}

#[test]
fn elliptic_curves() {
    check(Family::Curves, "elliptic_curves");
}

#[test]
fn everything_else() {
    check(Family::Others, "everything_else");
}

/// Measures a family and holds it against the snapshot of what SoftHSM2 does, and what it does not.
fn check(family: Family, snapshot: &str) {
    let Some(hsm) = Hsm::new() else { return };
    let operations = operations(&hsm, family);
    let suite = hsm.path("suite.toml");
    std::fs::write(&suite, suite_of(&operations)).unwrap();

    // What a suite names and a token lacks is an answer, not an error.
    let outcome = hsm.tapstone().arg("--suite").arg(suite).run().exits(0);
    let rows = outcome.record().results;
    assert_snapshot!(snapshot, table(&rows));
    assert!(rows.iter().map(|row| &row.operation).eq(&operations));

    let measured = rows.iter().filter(|row| row.status.outcome == Outcome::Ok);
    let (verified, not_verified): (Vec<&CaseResult>, _) =
        measured.partition(|row| row.verification.is_some());
    let complaints: Vec<String> = verified.into_iter().filter_map(not_all_verified).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let not_verified: Vec<&str> = not_verified.iter().map(|row| row.operation.as_str()).collect();
    let expected = NOTHING_TO_VERIFY.into_iter().filter(|of| Family::of(of) == family);
    assert_eq!(not_verified, expected.collect::<Vec<_>>());
    assert!(hsm.objects().is_empty(), "session keys were enough");
}

/// The catalogue without `login`, which runs only when named.
fn operations(hsm: &Hsm, family: Family) -> Vec<String> {
    let listed = hsm.anywhere().arg("--list-operations").without_record().run().exits(0).stdout;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "login" && Family::of(name) == family).map(str::to_owned).collect()
}

fn suite_of(operations: &[String]) -> String {
    let mut suite = "name = \"family\"\n".to_owned();
    for operation in operations {
        let count = count(operation);
        writeln!(suite, "[[case]]\noperation = \"{operation}\"\ncount = {count}").unwrap();
    }
    suite
}

/// Of the key pairs that are made four are kept for verification; long RSA keys take seconds.
fn count(operation: &str) -> u32 {
    match (operation.ends_with(".generate"), Family::of(operation)) {
        (true, Family::LongRsa) => 2,
        (true, Family::ShortRsa | Family::Curves) => 4,
        _ => 8,
    }
}

fn table(rows: &[CaseResult]) -> String {
    let mut table = String::new();
    for row in rows {
        let outcome = format!("{:?}", row.status.outcome).to_lowercase();
        let step = row.status.step.as_deref().unwrap_or_default();
        let code = row.status.code.as_deref().unwrap_or_default();
        let line = format!("{:29}{outcome:13}{step:20}{code}", row.operation);
        writeln!(table, "{}", line.trim_end()).unwrap();
    }
    table
}
