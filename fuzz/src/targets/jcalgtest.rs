//! Result files of JCAlgTest.

use std::path::Path;

use tapstone_import::jcalgtest;
use tapstone_record::Record;

use super::tool;
use crate::FuzzTarget;
use crate::structure::Structure;

/// What is made of a file is a record that can be written, without negative times.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "jcalgtest",
    reads: "JCAlgTest logs",
    structure: Structure::Lines,
    longest: 8192,
    check,
};

fn check(input: &[u8]) {
    let Ok(imported) = jcalgtest::from_bytes(input, Path::new("card.csv"), tool()) else { return };
    let lines = 1 + input.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(
        imported.skipped.iter().all(|it| (1..=lines).contains(&it.line)),
        "a line that is none"
    );
    is_sound(&imported.record);
}

/// It can be written and read again, and no latency is below zero.
pub(super) fn is_sound(record: &Record) {
    let text = record.to_json().expect("an imported record can be written");
    let again = Record::from_json(&text, Path::new("imported.json"));
    assert_eq!(&again.expect("an imported record can be read"), record);
    for latency in record.results.iter().filter_map(|case| case.latency_ns.as_ref()) {
        let least = latency.mean.as_ref().map_or(0.0, |mean| mean.estimate);
        assert!(least >= 0.0, "a mean of {least} ns");
    }
}
