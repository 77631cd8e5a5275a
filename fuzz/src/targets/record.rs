//! A record of somebody else, as JSON: read, written again, and shown.

use std::path::Path;

use tapstone_record::Record;
use tapstone_report::terminal::{self, Style};

use crate::FuzzTarget;
use crate::structure::Structure;

/// A record is read as it was written, and shown without a word of it acting on a terminal.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "record",
    reads: "records (JSON)",
    structure: Structure::Lines,
    longest: 16 << 10,
    check,
};

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(record) = Record::from_json(text, Path::new("fuzzed.json")) else { return };
    let written = record.to_json().expect("what was read can be written");
    let again = Record::from_json(&written, Path::new("written.json"));
    assert_eq!(again.expect("what was written can be read"), record);
    let style = Style { width: 80, colour: false, unicode: false, verbose: true };
    let shown = terminal::render(&record, &style);
    let acts = shown.chars().find(|sign| sign.is_control() && *sign != '\n');
    assert_eq!(acts, None, "a control character reaches the terminal");
    tapstone_report::csv::render(&record).expect("CSV goes into memory");
}
