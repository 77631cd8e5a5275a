//! A record on a terminal: what was measured, a table with a row for each result, whatever needs
//! more room, and at the end what to know before believing any of it.
//!
//! What all rows share is said once, at the top; what they differ in is a column. Colour only ever
//! repeats what a word or a sign says. No line is wider than the terminal, and no character of a
//! label can act on it: `page.rs` sees to both.

mod blocks;
mod claims;
mod comparison;
mod costs;
mod detail;
mod grid;
mod head;
mod knee;
mod mix;
mod notes;
mod page;
mod published;
mod results;
mod shared;
mod text;
mod trace;

use tapstone_record::reference::Reference;
use tapstone_record::{Comparison, Cost, Outcome, Pairing, Record, Row};

use page::Page;

/// The terminal and what its reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// How many columns a line has. Fewer than 20 are taken for 20.
    pub width: usize,
    /// Whether escape sequences may set colours.
    pub colour: bool,
    /// Whether the terminal shows more than ASCII.
    pub unicode: bool,
    /// Show every result in full. A record with a single result always does.
    pub verbose: bool,
}

/// The record as lines of text, each of which ends with a new line.
#[must_use]
pub fn render(record: &Record, style: &Style) -> String {
    let mut page = Page::new(*style, record.target.emulated.as_ref());
    head::show(&mut page, record);
    // What the tables of a trace tell is shown once more only when asked for.
    let traced = |row: &Row| !style.verbose && trace::tells(record, row);
    let results: Vec<Row> = record.results.iter().filter(|row| !traced(row)).cloned().collect();
    let alone = matches!(&results[..], [only] if detail::has_any(only));
    // The sides of a comparison in turns, like the points of a cost, are rows that something else
    // puts together: they are shown one by one only when asked for.
    let in_turns = |of: &Comparison| of.pairing == Pairing::Interleaved && !style.verbose;
    let compared = record.comparison.as_ref().is_some_and(in_turns);
    if !alone && !results.is_empty() && !compared {
        head::show_shared(&mut page, &results);
        let told =
            |row: &&Row| !style.verbose && record.costs.iter().any(|cost| is_part(cost, row));
        let rows: Vec<Row> = results.iter().filter(|row| !told(row)).cloned().collect();
        if !rows.is_empty() {
            results::show(&mut page, &rows);
        }
    }
    let in_full = |row: &Row| (alone || style.verbose) && detail::has_any(row);
    for row in results.iter().filter(|row| in_full(row)) {
        detail::show(&mut page, row);
    }
    if let Some(knee) = &record.knee {
        knee::show(&mut page, knee, &record.results);
    }
    if let Some(comparison) = &record.comparison {
        comparison::show(&mut page, comparison);
    }
    trace::show(&mut page, record, style);
    costs::show(&mut page, &record.costs);
    claims::show(&mut page, &record.claims, &record.results);
    let said = |row: &Row, note: &str| traced(row) || (in_full(row) && detail::is_drift(note));
    notes::show(&mut page, record, said);
    page.finish()
}

/// Whether a row is one of those that a cost was fitted over: it went well, and is called after it.
fn is_part(cost: &Cost, row: &Row) -> bool {
    let varied = row.operation.strip_prefix(&cost.operation);
    row.status.outcome == Outcome::Ok && varied.is_some_and(|point| point.starts_with('['))
}

/// A reference on its own as lines of text: its figures, and its conclusions beside computed ones.
#[must_use]
pub fn render_reference(reference: &Reference, style: &Style) -> String {
    let mut page = Page::new(*style, None);
    published::show(&mut page, reference);
    page.finish()
}
