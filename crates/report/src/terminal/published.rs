//! A reference on its own: its figures by item, and what its source concludes beside what follows
//! from them.

use tapstone_record::Provenance;
use tapstone_record::reference::{Figure, Item, Reference, Value};

use super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::page::{Page, Span, Tint};
use crate::{figures, words};

pub(super) fn show(page: &mut Page, reference: &Reference) {
    page.heading(&format!("reference:{}", reference.name), words::provenance(reference.provenance));
    page.fact("source", Span::plain(&reference.source));
    for item in reference.series() {
        page.heading(&item.name, "");
        page.grid(&table(&item));
    }
    page.heading("what the source concludes", "and what its figures give when computed");
    let columns = vec![
        left("about", Keep::Always),
        left("source", Keep::Rank(1)),
        left("computed", Keep::Always),
    ];
    let cells = |it: tapstone_record::reference::Conclusion| {
        Entry::Cells(vec![
            Span::plain(it.subject),
            Span::plain(it.says),
            Span::new(it.computed, Tint::Strong),
        ])
    };
    let entries = reference.conclusions().into_iter().map(cells).collect();
    page.grid(&Grid { columns, entries });
}

fn table(item: &Item) -> Grid {
    let derived = item.figures.iter().any(|figure| figure.provenance != Provenance::Published);
    let mut columns = vec![left("operation", Keep::Always), right("figure", Keep::Always)];
    columns.extend(derived.then(|| left("", Keep::Always)));
    let cells = |figure: &Figure| {
        let mut cells =
            vec![Span::plain(&figure.operation), Span::new(value(figure.value), Tint::Strong)];
        cells.extend(derived.then(|| Span::faint(words::provenance(figure.provenance))));
        Entry::Cells(cells)
    };
    Grid { columns, entries: item.figures.iter().map(cells).collect() }
}

fn value(of: Value) -> String {
    match of {
        Value::MeanSeconds(seconds) | Value::WallSeconds(seconds) => figures::seconds(seconds),
        Value::PerSecond(rate) => figures::rate(rate.0),
    }
}
