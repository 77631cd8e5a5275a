//! A program that searches its key before every signature, and its repair.

use tapstone_record::{Finding, FindingKind, Record};

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

fn search(record: &Record) -> Option<&Finding> {
    record.findings.iter().find(|finding| finding.kind == FindingKind::RepeatedSearch)
}

#[test]
fn the_same_search_before_every_signature_is_the_first_finding() {
    let Some(record) = searcher("1000") else { return };
    let finding = &record.findings[0];
    assert_eq!(finding.kind, FindingKind::RepeatedSearch, "{:#?}", record.findings);
    // With the one that is made before the loop.
    assert_eq!((finding.count, finding.trial.as_deref()), (1_000, Some("cache-find")));
    let saving = finding.saving.unwrap();
    assert!(saving.low < saving.high && saving.high < 1.5 * saving.low, "{finding:?}");
    let Some(kept) = searcher("1000 --keep") else { return };
    assert_eq!(search(&kept), None, "{:#?}", kept.findings);
}

/// Every thread waits for the module's lock while another one searches: that more processes would
/// help is true, and not what is to be done.
#[test]
fn threads_that_search_are_not_told_to_be_processes() {
    let Some(record) = searcher("500 --threads 8") else { return };
    let finding = search(&record).unwrap_or_else(|| panic!("{:#?}", record.findings));
    assert!(finding.count >= 8 * 500 - 8, "{finding:?}");
    let serialised = record.findings.iter().find(|it| it.kind == FindingKind::Serialised);
    assert_eq!(serialised, None);
}
