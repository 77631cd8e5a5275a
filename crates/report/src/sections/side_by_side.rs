//! Several devices beside one another: what each takes, and how much more than the fastest.

use tapstone_record::{Estimate, Fraction, Provenance, Quantity, SideBySide, SideBySideCase};

use super::charts;
use super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::shared::{common, differ};
use super::span::{Span, Tint};
use crate::{figures, words};

/// What devices are called in tables; more are only in JSON and CSV.
const LETTERS: [&str; 12] = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L"];

pub(super) fn add_side_by_side(page: &mut Page, all: &SideBySide) {
    page.heading(
        "side by side",
        "mean times and rates, each in a run of its own; below, the excess over the fastest",
    );
    page.chart(charts::side_by_side(all));
    for (at, (letter, side)) in LETTERS.iter().zip(&all.sides).enumerate() {
        let source =
            if side.source == side.name { String::new() } else { format!(" · {}", side.source) };
        let emulated =
            side.emulated.as_ref().map(|profile| format!(" · emulated, profile {profile}"));
        let made_by = side.made_by.as_ref().map(|made_by| format!(" · made by {made_by}"));
        let origin = origin(all, at).map(|origin| format!(" · {}", words::provenance(origin)));
        let text = [Some(side.name.clone()), emulated, origin, made_by, Some(source)];
        let text: String = text.into_iter().flatten().collect();
        page.hanging(&Span::new(format!("  {letter}  "), Tint::Strong), &Span::plain(text));
    }
    let beyond = all.sides.len().saturating_sub(LETTERS.len());
    if beyond > 0 {
        page.line(&[Span::faint(format!("  and {beyond} more, which only JSON and CSV show"))]);
    }
    page.blank();
    let sizes = differ(all.cases.iter().filter_map(|row| row.message_bytes));
    let mut columns: Vec<Column> = vec![left("operation", Keep::Always)];
    columns.extend(LETTERS.iter().zip(&all.sides).map(|(letter, _)| right(letter, Keep::Always)));
    let entries = all.cases.iter().flat_map(|row| [values(row, sizes), excess(row)]).collect();
    page.grid(&Grid { columns, entries });
}

/// Where all figures of a side come from, unless it was measured here or its profile says so.
fn origin(all: &SideBySide, side: usize) -> Option<Provenance> {
    let origins = all.cases.iter().filter_map(|row| *row.provenance.get(side)?);
    common(origins).filter(|it| !matches!(it, Provenance::Measured | Provenance::Emulated))
}

fn values(row: &SideBySideCase, sizes: bool) -> Entry {
    let size = row.message_bytes.filter(|_| sizes).map(figures::bytes);
    let name = match size {
        Some(size) => format!("{} {size}", row.operation),
        None => row.operation.clone(),
    };
    let value = |(at, figure): (usize, &Option<Estimate>)| {
        let Some(figure) = figure else { return Span::faint(figures::NONE) };
        let print = match row.quantity {
            Quantity::Throughput => figures::rate,
            _ => figures::time,
        };
        let mark = words::provenance_mark(row.provenance.get(at).copied().flatten());
        Span::plain(format!("{}{mark}", print(figure.estimate)))
    };
    let cells = row.figures.iter().enumerate().take(LETTERS.len()).map(value);
    Entry::Cells([Span::plain(name)].into_iter().chain(cells).collect())
}

fn excess(row: &SideBySideCase) -> Entry {
    let cell = |excess: &Option<Fraction>| match excess {
        None => Span::default(),
        Some(Fraction(0.0)) => Span::new("fastest", Tint::Good),
        Some(excess) => Span::new(format!("+{}", figures::share(*excess)), Tint::Caution),
    };
    let cells = row.excess.iter().take(LETTERS.len()).map(cell);
    Entry::Cells([Span::default()].into_iter().chain(cells).collect())
}
