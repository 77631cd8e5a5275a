//! What a command costs, a byte, and a computation on the card: transfer apart from processing.

use tapstone_record::{Cost, Estimate};

use super::charts;
use super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::span::{Span, Tint};
use crate::figures;

/// A fit that misses a case by more than this is no description of the card.
const POOR: f64 = 0.05;

/// A part of a cost.
type BarPart = fn(&Cost) -> Option<Estimate>;

pub(super) fn add_costs(page: &mut Page, costs: &[Cost]) {
    if costs.is_empty() {
        return;
    }
    let parts: [(&str, BarPart, Keep); 5] = [
        ("fixed", |cost| Some(cost.fixed_ns), Keep::Always),
        ("byte", |cost| cost.byte_ns, Keep::Rank(4)),
        ("set-up", |cost| cost.set_up_ns, Keep::Rank(5)),
        ("operation", |cost| cost.operation_ns, Keep::Always),
        ("byte worked", |cost| cost.operation_byte_ns, Keep::Rank(3)),
    ];
    let mut columns: Vec<Column> = vec![left("operation", Keep::Always)];
    columns.extend(parts.iter().map(|(name, _, keep)| left(name, *keep)));
    columns.push(right("commands", Keep::Rank(1)));
    columns.push(right("worst fit", Keep::Rank(2)));
    let entries = costs.iter().map(|cost| {
        let mut cells = vec![Span::plain(cost.operation.clone())];
        cells.extend(parts.iter().map(|(_, part, _)| cell(part(cost))));
        cells.push(Span::plain(cost.commands.to_string()));
        let poor = cost.worst_residual.0 > POOR;
        let tint = if poor { Tint::Caution } else { Tint::Faint };
        cells.push(Span::new(figures::share(cost.worst_residual), tint));
        Entry::Cells(cells)
    });
    let grid = Grid { columns, entries: entries.collect() };
    page.heading("transfer and processing", "time = fixed + bytes + set-ups + operations");
    page.chart(charts::costs(costs));
    page.grid(&grid);
}

/// A part with its interval; one that may as well be nothing, with how much it is at most.
fn cell(part: Option<Estimate>) -> Span {
    match part {
        None => Span::faint(figures::NONE),
        Some(part) if part.low > 0.0 => {
            let interval = figures::interval(&part, figures::time);
            Span::new(format!("{} {interval}", figures::time(part.estimate)), Tint::Strong)
        }
        Some(part) if part.high > 0.0 => {
            Span::faint(format!("≈ 0, < {}", figures::time(part.high)))
        }
        Some(_) => Span::faint("≈ 0"),
    }
}
