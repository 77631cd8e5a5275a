//! The APDUs, by what they are called and what they are about.

use std::collections::BTreeMap;

use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;
use tapstone_names::apdu::status_text;
use tapstone_record::{Apdu, Call};
use tapstone_text::thousands;

use super::super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::{Cell, table};
use crate::figures;
use crate::style::Style;

const LINES: usize = 15;

/// All exchanges of one command about one object.
#[derive(Default)]
struct ApduLine<'a> {
    name: &'a str,
    object: Option<&'a str>,
    count: u64,
    repeats: u64,
    time: Nanos,
    /// Bytes of all commands and responses.
    bytes: u64,
    status: BTreeMap<&'a str, u64>,
}

pub(super) fn add_apdus(page: &mut Page, apdus: &[Apdu], calls: &[Call], style: &Style) {
    if apdus.is_empty() {
        return;
    }
    let lines = lines(apdus);
    let shown = super::shown(lines.len(), LINES, style);
    let count = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.count));
    let time: Nanos = lines.iter().map(|line| line.time).sum();
    page.heading("APDUs", &format!("{} in {time}", exchanges(count, calls)));
    page.grid(&grid(&lines[..shown], page.width() >= super::WIDE));
    super::left_out(page, lines.len() - shown);
}

/// `37 exchanges`, or of how many they are: of calls that were only counted nobody knows what was
/// sent.
fn exchanges(count: u64, calls: &[Call]) -> String {
    let transmits = calls.iter().filter(|call| call.function == "SCardTransmit");
    let made = transmits.fold(0_u64, |sum, call| sum.saturating_add(call.count));
    let counted = |count| tapstone_text::counted(count, "exchange", "exchanges");
    if made > count { format!("{} of {}", thousands(count), counted(made)) } else { counted(count) }
}

/// One for each name and object, whatever their headers: a file is read in many pieces. What took
/// longest comes first.
fn lines(apdus: &[Apdu]) -> Vec<ApduLine<'_>> {
    let mut lines: Vec<ApduLine<'_>> = Vec::new();
    for apdu in apdus {
        let name = apdu.name.as_str();
        let object = apdu.object.as_deref();
        let known = lines.iter().position(|line| (line.name, line.object) == (name, object));
        let at = known.unwrap_or_else(|| {
            lines.push(ApduLine { name, object, ..ApduLine::default() });
            lines.len() - 1
        });
        let line = &mut lines[at];
        line.count = line.count.saturating_add(apdu.count);
        line.repeats = line.repeats.saturating_add(apdu.repeats);
        line.time += apdu.time_ns;
        line.bytes = line.bytes.saturating_add(apdu.sent_bytes).saturating_add(apdu.received_bytes);
        for (word, count) in &apdu.status {
            let sum = line.status.entry(word).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.time));
    lines
}

fn grid(lines: &[ApduLine<'_>], wide: bool) -> Grid {
    let repeats = lines.iter().any(|line| line.repeats > 0);
    let name: Cell<ApduLine<'_>> = if wide { |line| Span::plain(line.name) } else { whole_name };
    let all: [(bool, Column, Cell<ApduLine<'_>>); 7] = [
        (true, left("command", Keep::Always), name),
        (wide, left("object", Keep::Rank(7)), object),
        (true, right("count", Keep::Always), |line| Span::plain(thousands(line.count))),
        (repeats, right("repeats", Keep::Always), repeated),
        (true, right("time", Keep::Always), |line| Span::new(line.time.to_string(), Tint::Strong)),
        (true, right("mean", Keep::Rank(3)), mean),
        (true, right("bytes", Keep::Always), |line| Span::plain(figures::bytes(line.bytes))),
    ];
    let Grid { columns, entries } = table(lines, all);
    let entries = entries.into_iter().zip(lines);
    let entries = entries.flat_map(|(cells, line)| [cells].into_iter().chain(refusals(line)));
    Grid { columns, entries: entries.collect() }
}

fn whole_name(line: &ApduLine<'_>) -> Span {
    Span::plain(match line.object {
        Some(object) => format!("{} {object}", line.name),
        None => line.name.to_owned(),
    })
}

fn object(line: &ApduLine<'_>) -> Span {
    line.object.map_or_else(Span::default, Span::plain)
}

fn repeated(line: &ApduLine<'_>) -> Span {
    match line.repeats {
        0 => Span::faint("0"),
        repeats => Span::new(thousands(repeats), Tint::Caution),
    }
}

fn mean(line: &ApduLine<'_>) -> Span {
    Span::plain(figures::time(line.time.0 as f64 / line.count as f64))
}

/// Status words that are no success, in words: `3 × 6A82 file, object or application not found`.
fn refusals<'a>(line: &'a ApduLine<'_>) -> impl Iterator<Item = Entry> + 'a {
    let good = |word: &str| word == "9000" || word.starts_with("61");
    let refused = line.status.iter().filter(move |(word, _)| !good(word));
    refused.map(|(word, count)| {
        let meaning = u16::from_str_radix(word, 16).ok().map(|word| status_text(StatusWord(word)));
        let text = format!("{} × {word} {}", thousands(*count), meaning.unwrap_or_default());
        Entry::Sentence(Span::default(), Span::new(text.trim_end(), Tint::Caution))
    })
}
