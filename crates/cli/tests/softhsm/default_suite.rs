//! `tapstone token` without an operation: the usual ones, to the end.

use tapstone_record::Outcome;

use crate::support::{Hsm, assert_all_verified};

const SUITE: &str = include_str!("../../../../suites/token-default.toml");

#[test]
fn the_default_suite_runs_to_its_end() {
    let Some(hsm) = Hsm::new() else { return };
    let outcome = hsm.tapstone().args("--count 4").run().exits(0);
    assert_eq!(outcome.stderr, "");
    let rows = outcome.record().results;
    let asked = SUITE.lines().filter_map(|line| line.strip_prefix("operation = "));
    assert!(rows.iter().map(|row| row.operation.as_str()).eq(asked.map(|of| of.trim_matches('"'))));
    for row in rows {
        match row.operation.as_str() {
            "ml-dsa-65.sign" => assert_eq!(row.status.outcome, Outcome::Unsupported),
            "session" => assert_eq!((row.completed, row.verification), (4, None)),
            _ => assert_all_verified(&row),
        }
    }
    assert!(hsm.objects().is_empty());
}
