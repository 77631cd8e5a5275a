//! CSV as a spreadsheet gets it.

use tapstone_report::csv::render;

use crate::support;

#[test]
fn a_line_for_every_row() {
    insta::assert_snapshot!("suite", render(&support::suite()).unwrap());
}

#[test]
fn an_open_loop_and_an_emulated_token_are_said() {
    insta::assert_snapshot!("open_loop", render(&support::open_loop()).unwrap());
}

#[test]
fn every_line_has_every_column() {
    for record in [support::suite(), support::hostile(), support::record()] {
        let text = render(&record).unwrap();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().len();
        let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), record.results.len());
        assert!(lines.iter().all(|line| line.len() == columns));
    }
}

#[test]
fn a_cell_that_would_be_a_formula_is_text() {
    let mut record = support::suite();
    let names = ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "card\u{202e}"];
    let row = record.results[0].clone();
    record.results = names
        .map(|name| {
            let mut row = row.clone();
            row.operation = name.to_owned();
            row
        })
        .to_vec();
    let text = render(&record).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    let shown: Vec<&str> = lines.iter().map(|line| &line[0]).collect();
    assert_eq!(shown, ["'=1+1", "'+1", "'-1+2", "'@SUM(A1)", "\u{fffd}=1", "card\u{fffd}"]);
}
