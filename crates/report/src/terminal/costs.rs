//! What a command costs, a byte, and a computation on the card: transfer apart from processing.

use tapstone_record::{Cost, Estimate};

use super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::page::{Page, Span, Tint};
use crate::figures;

/// A fit that misses a row by more than this is no description of the card.
const POOR: f64 = 0.05;

/// A part of a cost.
type Part = fn(&Cost) -> Option<Estimate>;

pub(super) fn show(page: &mut Page, costs: &[Cost]) {
    if costs.is_empty() {
        return;
    }
    let parts: [(&str, Part, Keep); 5] = [
        ("fixed", |cost| Some(cost.fixed_ns), Keep::Always),
        ("byte sent", |cost| cost.byte_ns, Keep::Rank(3)),
        ("set-up", |cost| cost.set_up_ns, Keep::Rank(4)),
        ("operation", |cost| cost.operation_ns, Keep::Always),
        ("byte worked", |cost| cost.operation_byte_ns, Keep::Rank(2)),
    ];
    let mut columns: Vec<Column> = vec![left("operation", Keep::Always)];
    columns.push(right("commands", Keep::Rank(1)));
    for (name, _, keep) in &parts {
        columns.push(right(name, *keep));
        columns.push(left("", *keep));
    }
    columns.push(right("worst fit", Keep::Rank(5)));
    let entries = costs.iter().map(|cost| {
        let mut cells = vec![Span::plain(cost.operation.clone())];
        cells.push(Span::plain(cost.commands.to_string()));
        for (_, part, _) in &parts {
            let [value, interval] = cells_of(part(cost));
            cells.push(value);
            cells.push(interval);
        }
        let poor = cost.worst_residual.0 > POOR;
        let tint = if poor { Tint::Caution } else { Tint::Faint };
        cells.push(Span::new(figures::share(cost.worst_residual), tint));
        Entry::Cells(cells)
    });
    page.heading("transfer and processing", "time = fixed + bytes + set-ups + operations");
    page.grid(&Grid { columns, entries: entries.collect() });
}

fn cells_of(part: Option<Estimate>) -> [Span; 2] {
    match part {
        None => [Span::faint(figures::NONE), Span::default()],
        Some(part) => {
            let sure = part.low > 0.0;
            let value = if sure { figures::time(part.estimate) } else { "≈ 0".into() };
            let interval = if sure {
                figures::interval(&part, figures::time)
            } else {
                format!("< {}", figures::time(part.high.max(0.0)))
            };
            let tint = if sure { Tint::Strong } else { Tint::Faint };
            [Span::new(value, tint), Span::faint(interval)]
        }
    }
}
