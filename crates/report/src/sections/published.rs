//! A reference on its own: its figures by item, and what its source concludes beside what follows
//! from them.

use tapstone_record::Provenance;
use tapstone_reference::{
    PublishedFigure, PublishedItem, PublishedValue, Reference, SourceConclusion,
};

use super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::span::{Span, Tint};
use crate::{figures, words};

pub(super) fn add_published(page: &mut Page, reference: &Reference) {
    page.heading(&format!("reference:{}", reference.name), words::provenance(reference.provenance));
    page.fact("source", Span::plain(&reference.source));
    let items = reference.items();
    if items.iter().all(|item| item.figures.len() == 1) {
        page.blank();
        page.grid(&one_table(&items));
    } else {
        for item in items {
            page.heading(&item.name, "");
            page.grid(&table(&item));
        }
    }
    page.heading("what the source concludes", "and what its figures give when computed");
    for SourceConclusion { subject, says, computed } in reference.conclusions() {
        page.line(&[Span::plain(format!("  {subject}"))]);
        page.hanging(&Span::faint("    source    "), &Span::plain(says));
        page.hanging(&Span::faint("    computed  "), &Span::new(computed, Tint::Strong));
    }
}

/// Items of a single figure each share a table.
fn one_table(items: &[PublishedItem]) -> Grid {
    let columns = vec![
        left("item", Keep::Always),
        left("operation", Keep::Always),
        right("figure", Keep::Always),
        left("", Keep::Rank(1)),
    ];
    let cells = |item: &PublishedItem| {
        let figure = &item.figures[0];
        Entry::Cells(vec![
            Span::plain(&item.name),
            Span::plain(&figure.operation),
            Span::new(value(figure.value), Tint::Strong),
            Span::faint(words::provenance(figure.provenance)),
        ])
    };
    Grid { columns, entries: items.iter().map(cells).collect() }
}

fn table(item: &PublishedItem) -> Grid {
    let derived = item.figures.iter().any(|figure| figure.provenance != Provenance::Published);
    let mut columns = vec![left("operation", Keep::Always), right("figure", Keep::Always)];
    columns.extend(derived.then(|| left("", Keep::Always)));
    let cells = |figure: &PublishedFigure| {
        let mut cells =
            vec![Span::plain(&figure.operation), Span::new(value(figure.value), Tint::Strong)];
        cells.extend(derived.then(|| Span::faint(words::provenance(figure.provenance))));
        Entry::Cells(cells)
    };
    Grid { columns, entries: item.figures.iter().map(cells).collect() }
}

fn value(of: PublishedValue) -> String {
    match of {
        PublishedValue::MeanSeconds(seconds) | PublishedValue::WallSeconds(seconds) => {
            figures::seconds(seconds)
        }
        PublishedValue::PerSecond(rate) => figures::rate(rate.0),
    }
}
