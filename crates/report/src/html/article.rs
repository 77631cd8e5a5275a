//! One record on the page: the verdict and what to know before believing it, then a chart and a
//! table for each question, each result in full behind its heading, and the environment.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{Markup, html};
use tapstone_record::Record;

use super::blocks::{self, Fold, Link, badge};
use super::environment::{self, Several};
use super::{Fill, PageEntry};
use crate::sections::page::{Block, Page};
use crate::sections::{Sections, ShownCases};
use crate::style::Style;
use crate::text::clean;
use crate::{figures, verdict, words};

/// A record that is larger than this is not put into the page as it is.
const LARGEST_COPY: usize = 400_000;

/// So many notes are read before the first chart.
const NOTES: usize = 3;

/// What is shown of a record, and where its parts stand.
pub(super) struct Article {
    pub(super) title: String,
    /// The whole of it.
    pub(super) id: String,
    /// Its sections, by their titles.
    pub(super) sections: Vec<Link>,
    pub(super) markup: Markup,
}

/// When it was measured, with its zone.
pub(super) fn when(record: &Record) -> String {
    record.started_at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

pub(super) fn article(
    entry: &PageEntry<'_>,
    number: usize,
    fill: Fill,
    several: Several,
) -> Article {
    let record = entry.record;
    let prefix = format!("r{number}");
    let shown = Sections::new(record, &Style::PAPER, ShownCases::Untold);
    let blocks = |show: &dyn Fn(&mut Page)| -> Vec<Block> {
        let mut page = Page::new(Style::PAPER, record.target.emulated.as_ref());
        show(&mut page);
        page.into_blocks()
    };
    let head = blocks(&|page| shown.head(page));
    let notes = blocks(&|page| shown.notes(page));
    let results = blocks(&|page| {
        shown.results(page);
        shown.conclusions(page);
    });
    let mut details = blocks(&|page| shown.details(page));
    let detailed = !details.is_empty();
    match fill {
        Fill::Everything => {}
        Fill::Less => details.retain(|block| match block {
            Block::Chart(_) => false,
            Block::Grid(grid) => !grid.has_bars(),
            _ => true,
        }),
        Fill::Least => details.clear(),
    }
    let (main, links) = blocks::sections(&results, &format!("{prefix}-s"), Fold::Open);
    // A record on its own is what one came for, and its only result is shown.
    let alone = several == Several::No && shown.is_alone();
    let fold = if alone { Fold::Open } else { Fold::Folded };
    let (full, _) = blocks::sections(&details, &format!("{prefix}-d"), fold);
    let title = verdict::title(record);
    let markup = html! {
        article id=(prefix) {
            header {
                h2 { (clean(&title, true)) }
                p.faint { (when(record)) " · " (clean(entry.name.rsplit(['/', '\\']).next().unwrap_or_default(), true)) }
                @if let Some(emulated) = &record.target.emulated {
                    p { (badge(&format!("emulated: {}", emulated.profile)))
                        " a virtual card: no figure here is a real device's" }
                }
                @if let Some(origin) = words::common_provenance(record) { p { (badge(origin)) } }
                @if several == Several::Yes {
                    @for sentence in verdict::verdict_spans(record) { p.verdict { (blocks::span(&sentence)) } }
                }
                (notes_of(after_heading(&notes)))
                @if let Some(note) = entry.note { p.item { span.caution { "!" } " " (clean(note, true)) } }
                @if links.len() > 2 { (contents(&links, number)) }
            }
            @if let Some(timeline) = entry.timeline { (super::timeline::section(timeline, &record.findings, &prefix)) }
            (main)
            @if detailed {
                @if fold == Fold::Folded { h3 { "Each result in full"
                    @if let Some(emulated) = &record.target.emulated {
                        " " (badge(&format!("emulated: {}", emulated.profile)))
                    }
                } }
                @match fill {
                    Fill::Everything => {},
                    Fill::Less => p.faint { "Charts of single results were left out: the page would \
                        be too large. A page of fewer records has them." },
                    Fill::Least => p.faint { "It was left out: the page would be too large. A page \
                        of fewer records has it." },
                }
                (full)
            }
            (environment::section(record, entry.again.unwrap_or(&record.command), after_heading(&head), &prefix, several))
            (copy(entry, fill))
        }
    };
    Article { title, id: prefix, sections: links, markup }
}

/// The first notes; the others behind a line that counts them.
fn notes_of(notes: &[Block]) -> Markup {
    let (first, rest) = notes.split_at(notes.len().min(NOTES));
    html! {
        (blocks::body(first))
        @if !rest.is_empty() {
            details.notes {
                summary { (tapstone_text::counted(rest.len() as u64, "more note", "more notes")) }
                (blocks::body(rest))
            }
        }
    }
}

fn contents(links: &[Link], number: usize) -> Markup {
    html! {
        nav.contents aria-label={ "sections of record " (number) } {
            ul { @for link in links { li { a href=(format!("#{}", link.to)) { (link.text) } } } }
        }
    }
}

fn after_heading(blocks: &[Block]) -> &[Block] {
    let is_heading = |block: &&Block| matches!(block, Block::Heading { .. });
    let headings = blocks.iter().take_while(is_heading).count();
    &blocks[headings..]
}

/// The record itself, to be saved: a link that needs neither a script nor a server.
fn copy(entry: &PageEntry<'_>, fill: Fill) -> Markup {
    let (text, without) = bounded(entry.record, fill);
    let name = entry.name.rsplit(['/', '\\']).next().unwrap_or("record.json");
    let name = if name.is_empty() { "record.json" } else { name };
    html! {
        p.save {
            a download=(clean(name, true))
                href=(format!("data:application/json;base64,{}", BASE64.encode(&text))) {
                "Save this record (" (figures::bytes_about(text.len() as u64)) ", JSON)"
            }
            @if without { " " small { "without single values, series and histograms: the file itself has them" } }
        }
    }
}

/// The record as JSON; one that is too large without what makes records large.
fn bounded(record: &Record, fill: Fill) -> (String, bool) {
    let json = |record: &Record| serde_json::to_string(record).unwrap_or_default();
    let whole = json(record);
    if whole.len() <= LARGEST_COPY && fill == Fill::Everything {
        return (whole, false);
    }
    let mut record = record.clone();
    for case in &mut record.results {
        case.latencies_ns.clear();
        case.series.clear();
        case.histogram = None;
    }
    (json(&record), true)
}
