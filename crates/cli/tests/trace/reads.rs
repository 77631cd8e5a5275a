//! A program that reads the same attributes of its key before every signature, and its repair.

use tapstone_record::{Finding, FindingKind, Record};
use tapstone_testing::{figures, hold};

use crate::fixtures;
use crate::program::Program;
use crate::softhsm::Hsm;

/// `None`, which has been said then: something is missing.
fn searcher(options: &str) -> Option<Record> {
    let (searcher, hsm) = fixtures::built("searcher").zip(Hsm::new())?;
    let program = Program::new(searcher).arg(hsm.module()).args(options);
    let program = program.env("SOFTHSM2_CONF", hsm.path("softhsm2.conf"));
    Some(program.unchanged().exits(0).whole())
}

fn read(record: &Record) -> Option<&Finding> {
    record.findings.iter().find(|finding| finding.kind == FindingKind::RepeatedRead)
}

#[test]
fn the_same_attributes_before_every_signature_are_a_finding() {
    // What the program does between two reads takes less than watching them on a busy machine.
    figures(|| {
        let Some(record) = searcher("500 --keep --read 8") else { return Ok(()) };
        let finding = read(&record).unwrap_or_else(|| panic!("{:#?}", record.findings));
        assert_eq!((finding.count, finding.trial.as_deref()), (3_999, Some("cache-attributes")));
        assert_eq!(finding.place, "C_GetAttributeValue");
        let saving = finding.saving.unwrap();
        hold(saving.low < saving.high, format_args!("{finding:?}"))
    });
    let Some(kept) = searcher("500 --keep") else { return };
    assert_eq!(read(&kept), None, "{:#?}", kept.findings);
}

/// Between two reads the label becomes another: only what is read again without that counts.
#[test]
fn reads_of_attributes_that_change_are_no_repetition() {
    let Some(record) = searcher("100 --keep --relabel") else { return };
    let reads = record.findings.iter().filter(|it| it.kind == FindingKind::RepeatedRead);
    // Of three reads between two changes the first is needed, and of the two ways only the public
    // ones that succeed are compared. Each was asked as often as it was changed.
    for finding in reads {
        assert!(finding.count <= 2 * 2 * 100, "{finding:?}");
    }
}
