//! A published baseline of several items: a legend, their figures beside the measured one, and
//! the ratios. Tables hold as many items as fit, and go on below.

use tapstone_record::{ComparedCase, Comparison, Concurrency, Quantity};

use super::super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::{ends, figure, judgement, tint};
use crate::text::width;
use crate::{figures, words};

/// What items are called in tables.
const LETTERS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S",
    "T", "U", "V", "W", "X", "Y", "Z",
];

/// Between two columns, as the grid has it.
const GAP: usize = 2;

/// The items that rows name, each once.
pub(super) fn item_names(rows: &[ComparedCase]) -> Vec<&str> {
    let mut items: Vec<&str> = Vec::new();
    for item in rows.iter().filter_map(|row| row.item.as_deref()) {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

pub(super) fn add_items(page: &mut Page, comparison: &Comparison, items: &[&str]) {
    for (letter, item) in LETTERS.iter().zip(items) {
        let published = comparison.cases.iter().find(|row| row.item.as_deref() == Some(item));
        let provenance = published.and_then(|row| row.baseline_provenance);
        let mark = provenance.map(|it| format!(" · {}", words::provenance(it)));
        let text = format!("{item}{}", mark.unwrap_or_default());
        page.hanging(&Span::new(format!("  {letter}  "), Tint::Strong), &Span::plain(text));
    }
    let beyond = items.len().saturating_sub(LETTERS.len());
    if beyond > 0 {
        page.line(&[Span::faint(format!("  and {beyond} more, which only JSON and CSV show"))]);
    }
    let lines = lines(&comparison.cases);
    let letters: Vec<(&'static str, &str)> =
        LETTERS.iter().copied().zip(items.iter().copied()).collect();
    for (title, cell, measured) in
        [("figures", published as Cell, true), ("candidate over each", ratio as Cell, false)]
    {
        page.blank();
        page.line(&[Span::faint(format!("  {title}"))]);
        let parts = fitting(page.width(), &letters, &lines, cell, measured);
        for (place, part) in parts.into_iter().enumerate() {
            if place > 0 {
                page.blank();
            }
            page.grid(&table(part, &lines, cell, measured));
        }
    }
}

/// What a row has in the column of its item.
type Cell = fn(&ComparedCase) -> Span;

fn published(row: &ComparedCase) -> Span {
    Span::plain(figure(row.quantity, row.baseline))
}

fn ratio(row: &ComparedCase) -> Span {
    let judged = row.threshold.map(|it| format!(" {}", judgement(it).text)).unwrap_or_default();
    let ratio = figures::ratio(row.ratio.estimate);
    let text = format!("{ratio} {} {}{judged}", ends(row.ratio), words::change(row.verdict));
    Span::new(text, tint(row.verdict))
}

/// The rows of one operation by one number of workers: one line of the tables.
struct ComparisonLine<'a> {
    name: String,
    rows: Vec<&'a ComparedCase>,
}

fn lines(rows: &[ComparedCase]) -> Vec<ComparisonLine<'_>> {
    type Key<'a> = (&'a str, Option<Concurrency>, Quantity, Option<u64>);
    let key = |row: &ComparedCase| (row.concurrency, row.quantity, row.message_bytes);
    let mut lines: Vec<(Key<'_>, ComparisonLine<'_>)> = Vec::new();
    for row in rows {
        let (workers, quantity, bytes) = key(row);
        let key = (row.operation.as_str(), workers, quantity, bytes);
        match lines.iter_mut().find(|(known, _)| *known == key) {
            Some((_, line)) => line.rows.push(row),
            None => {
                lines.push((key, ComparisonLine { name: row.operation.clone(), rows: vec![row] }))
            }
        }
    }
    let mut lines: Vec<ComparisonLine<'_>> = lines.into_iter().map(|(_, line)| line).collect();
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    for line in &mut lines {
        // Told apart by who asked, where the name alone does not.
        let again = names.iter().filter(|name| **name == line.name).count() > 1;
        if let Some(workers) = line.rows.first().and_then(|row| row.concurrency).filter(|_| again) {
            line.name = format!("{}, {}", line.name, words::concurrency(workers));
        }
    }
    lines
}

fn cell(line: &ComparisonLine<'_>, item: &str, of: Cell) -> Span {
    let row = line.rows.iter().find(|row| row.item.as_deref() == Some(item));
    row.map_or_else(|| Span::faint(figures::NONE), |row| of(row))
}

/// Runs of items that fit beside the operation.
fn fitting<'a>(
    room: usize,
    letters: &'a [(&'static str, &'a str)],
    lines: &[ComparisonLine<'_>],
    of: Cell,
    measured: bool,
) -> Vec<&'a [(&'static str, &'a str)]> {
    let name = lines.iter().map(|line| width(&line.name)).max().unwrap_or(0);
    let beside = if measured { "candidate".len() + GAP } else { 0 };
    let needed = |item: &str| {
        lines.iter().map(|line| width(&cell(line, item, of).text)).max().unwrap_or(0) + GAP
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut used = GAP + name + beside;
    for (place, (_, item)) in letters.iter().enumerate() {
        let needed = needed(item);
        if place > start && used + needed > room {
            parts.push(&letters[start..place]);
            start = place;
            used = GAP + name + beside;
        }
        used += needed;
    }
    parts.push(&letters[start..]);
    parts
}

fn table(
    letters: &[(&'static str, &str)],
    lines: &[ComparisonLine<'_>],
    of: Cell,
    measured: bool,
) -> Grid {
    let mut columns = vec![left("operation", Keep::Always)];
    columns.extend(measured.then(|| right("candidate", Keep::Always)));
    let item = |letter| match measured {
        true => right(letter, Keep::Always),
        false => left(letter, Keep::Always),
    };
    columns.extend(letters.iter().map(|(letter, _)| item(*letter)));
    let entry = |line: &ComparisonLine<'_>| {
        let mut cells = vec![Span::new(&line.name, Tint::Strong)];
        let candidate = line.rows.first().map(|row| {
            let mark = words::provenance_mark(row.candidate_provenance);
            format!("{}{mark}", figure(row.quantity, row.candidate))
        });
        let candidate = Span::new(candidate.unwrap_or_default(), Tint::Strong);
        cells.extend(measured.then_some(candidate));
        cells.extend(letters.iter().map(|(_, item)| cell(line, item, of)));
        Entry::Cells(cells)
    };
    Grid { columns, entries: lines.iter().map(entry).collect() }
}
