//! What to know before believing the figures: the warnings that the record carries, and what
//! follows from the cases themselves. A suite of twenty cases can have the same to say of each, so
//! notes that differ only in their numbers are one, told by the first case that has it.

use tapstone_record::{CaseResult, ClockReadings, LimitedBy, RateBasis, Record, Verifier};

use super::head::limits;
use super::mix::{is_whole, ordered};
use super::page::Page;
use super::shared::differ;
use super::span::{Span, Tint};

/// Cases named with one note; more are counted.
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
    let of_cases = notes.iter().map(|note| if alone { note.text.into() } else { note.sentence() });
    for text in record.warnings.iter().cloned().chain(of_cases) {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
    }
}

fn gather(cases: &[CaseResult], said: impl Fn(&CaseResult, &str) -> bool) -> Vec<Note<'_>> {
    let mut notes = Vec::new();
    let limits_differ = differ(limits(&ordered(cases)));
    for case in cases {
        let client = limits_differ && case.limited_by == LimitedBy::Client;
        let warnings = case.warnings.iter().map(String::as_str);
        let all = client.then_some(CLIENT).into_iter().chain(remarks(case)).chain(warnings);
        for text in all.filter(|text| !said(case, text)) {
            add(&mut notes, &case.operation, text);
        }
    }
    notes
}

/// A note, and the cases that it is about.
struct Note<'a> {
    /// As the first case has it.
    text: &'a str,
    /// The text of the warning without its numbers: equal texts are shown once.
    kind: String,
    cases: Vec<&'a str>,
    /// The other cases have it with numbers of their own.
    varies: bool,
}

fn add<'a>(notes: &mut Vec<Note<'a>>, case: &'a str, text: &'a str) {
    let kind = kind(text);
    let Some(known) = notes.iter_mut().find(|note| note.kind == kind) else {
        return notes.push(Note { text, kind, cases: vec![case], varies: false });
    };
    known.varies |= known.text != text;
    if known.cases.last() != Some(&case) {
        known.cases.push(case);
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
        match (&self.cases[..], self.varies) {
            ([first, others @ ..], true) if !others.is_empty() => {
                format!("{first}: {} (likewise {})", self.text, names(others))
            }
            (cases, _) => format!("{}: {}", names(cases), self.text),
        }
    }
}

/// `rsa2048.sign, ecdsa-p256.sign and 4 more`.
fn names(cases: &[&str]) -> String {
    let (named, more) = cases.split_at(cases.len().min(NAMED));
    let named = named.join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}

/// What the fields of a case mean for whoever believes its figures.
fn remarks(case: &CaseResult) -> impl Iterator<Item = &str> {
    let ends = case.throughput.is_some_and(|rate| rate.over == RateBasis::FirstToLast);
    let chained = case.clock_readings == ClockReadings::Chained;
    let by_token = case.verification.is_some_and(|of| of.by == Verifier::Token && of.checked > 0);
    // A call of PC/SC has no result that could be wrong, and a command has its status word.
    let results = !case.operation.starts_with("pcsc.") && !case.operation.starts_with("card.");
    let checkable = case.throughput.is_some() && results && !is_whole(case);
    let unchecked = checkable && case.verification.is_none_or(|of| of.checked == 0);
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
        of.iter().for_each(|(case, text)| add(&mut notes, case, text));
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
