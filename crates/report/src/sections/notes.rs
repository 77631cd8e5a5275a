//! What to know before believing the figures: the warnings that the record carries, and what
//! follows from the rows themselves. A suite of twenty rows can have the same to say of each, so
//! notes that differ only in their numbers are one, told by the first row that has it.

use tapstone_record::{CaseResult, ClockReadings, LimitedBy, RateBasis, Record, Verifier};

use super::head::limits;
use super::mix::{is_whole, ordered};
use super::page::{Page, Span, Tint};
use super::shared::differ;

/// Rows named with one note; more are counted.
const NAMED: usize = 3;

const CLIENT: &str = "limited by the client: the rate is this machine's limit, not the device's";

/// Shows the notes; those that `said` holds for stand elsewhere already.
pub(super) fn add_notes(
    page: &mut Page,
    record: &Record,
    said: impl Fn(&CaseResult, &str) -> bool,
) {
    let notes = gather(&record.results, said);
    if record.warnings.is_empty() && notes.is_empty() {
        return;
    }
    page.heading("notes", "");
    let alone = record.results.len() == 1;
    let of_rows = notes.iter().map(|note| if alone { note.text.into() } else { note.sentence() });
    for text in record.warnings.iter().cloned().chain(of_rows) {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
    }
}

fn gather(rows: &[CaseResult], said: impl Fn(&CaseResult, &str) -> bool) -> Vec<Note<'_>> {
    let mut notes = Vec::new();
    let limits_differ = differ(limits(&ordered(rows)));
    for row in rows {
        let client = limits_differ && row.limited_by == LimitedBy::Client;
        let warnings = row.warnings.iter().map(String::as_str);
        let all = client.then_some(CLIENT).into_iter().chain(remarks(row)).chain(warnings);
        for text in all.filter(|text| !said(row, text)) {
            add(&mut notes, &row.operation, text);
        }
    }
    notes
}

/// A note, and the rows that it is about.
struct Note<'a> {
    /// As the first row has it.
    text: &'a str,
    /// The text of the warning without its numbers: equal texts are shown once.
    kind: String,
    rows: Vec<&'a str>,
    /// The other rows have it with numbers of their own.
    varies: bool,
}

fn add<'a>(notes: &mut Vec<Note<'a>>, row: &'a str, text: &'a str) {
    let kind = kind(text);
    let Some(known) = notes.iter_mut().find(|note| note.kind == kind) else {
        return notes.push(Note { text, kind, rows: vec![row], varies: false });
    };
    known.varies |= known.text != text;
    if known.rows.last() != Some(&row) {
        known.rows.push(row);
    }
}

/// A sentence without its numbers and their units.
fn kind(text: &str) -> String {
    let unit =
        |word: &str| matches!(word.trim_end_matches([',', ':', ';']), "ns" | "µs" | "ms" | "s");
    let digit = |c: char| c.is_ascii_digit();
    let words = text.split_whitespace().filter(|word| !unit(word) && !word.contains(digit));
    words.collect::<Vec<_>>().join(" ")
}

impl Note<'_> {
    fn sentence(&self) -> String {
        match (&self.rows[..], self.varies) {
            ([first, others @ ..], true) if !others.is_empty() => {
                format!("{first}: {} (likewise {})", self.text, names(others))
            }
            (rows, _) => format!("{}: {}", names(rows), self.text),
        }
    }
}

/// `rsa2048.sign, ecdsa-p256.sign and 4 more`.
fn names(rows: &[&str]) -> String {
    let (named, more) = rows.split_at(rows.len().min(NAMED));
    let named = named.join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}

/// What the fields of a row mean for whoever believes its figures.
fn remarks(row: &CaseResult) -> impl Iterator<Item = &str> {
    let ends = row.throughput.is_some_and(|rate| rate.over == RateBasis::FirstToLast);
    let chained = row.clock_readings == ClockReadings::Chained;
    let by_token = row.verification.is_some_and(|of| of.by == Verifier::Token && of.checked > 0);
    // A call of PC/SC has no result that could be wrong, and a command has its status word.
    let results = !row.operation.starts_with("pcsc.") && !row.operation.starts_with("card.");
    let checkable = row.throughput.is_some() && results && !is_whole(row);
    let unchecked = checkable && row.verification.is_none_or(|of| of.checked == 0);
    [
        (
            ends,
            "few operations in the window: the rate is taken from the first to the last of them",
        ),
        (chained, "one clock reading for each operation, so the loop's own cost is in the latency"),
        (by_token, "checked by the token itself, which could be wrong in the same way twice"),
        (unchecked, "results were not checked"),
    ]
    .into_iter()
    .filter_map(|(applies, text)| applies.then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(of: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut notes = Vec::new();
        of.iter().for_each(|(row, text)| add(&mut notes, row, text));
        notes.iter().map(Note::sentence).collect()
    }

    #[test]
    fn notes_that_differ_in_numbers_only_are_one() {
        let slow = "the longest call took 1.59 ms, 71.6 times the median";
        let slower = "the longest call took 486 µs, 48.7 times the median";
        let told = sentences(&[("rsa", slow), ("aes", slower), ("rsa", "not checked")]);
        assert_eq!(told, [format!("rsa: {slow} (likewise aes)"), "rsa: not checked".into()]);
        let same = sentences(&[("a", slow), ("b", slow), ("c", slow), ("d", slow)]);
        assert_eq!(same, [format!("a, b, c and 1 more: {slow}")]);
    }
}
