//! The blocks of a page as HTML: a section for each heading, facts as a list, tables that a script
//! can sort. Everything from the outside is escaped, and cleaned of what changes the direction of
//! text.

use maud::{Markup, html};

use super::draw;
use crate::chart::ChartSize;
use crate::sections::grid::{Column, Entry, Grid, Lean};
use crate::sections::page::{Block, Weight};
use crate::sections::span::{Span, Tint};
use crate::text::clean;

/// A heading and all that stands below it.
struct Section<'a> {
    /// What was said before the first heading.
    preface: &'a [Block],
    title: &'a str,
    more: &'a str,
    emulated: Option<&'a str>,
    weight: Weight,
    blocks: &'a [Block],
}

impl<'a> Section<'a> {
    fn headed(run: &'a [Block]) -> Option<Self> {
        let (Block::Heading { title, more, emulated, weight }, blocks) = run.split_first()? else {
            return None;
        };
        Some(Self {
            preface: &[],
            title,
            more,
            emulated: emulated.as_deref(),
            weight: *weight,
            blocks,
        })
    }
}

/// A table of more rows scrolls by itself on a screen.
const LONG: usize = 18;

/// What belongs to something numbered stands in by so much.
const CARD: &str = "     ";

/// How sections are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Every section is shown at once.
    Open,
    /// Each behind its heading.
    Folded,
}

/// All sections, with ids that begin with `prefix`; and their titles for a list of contents.
pub(super) fn sections(blocks: &[Block], prefix: &str, fold: Fold) -> (Markup, Vec<Link>) {
    let sections = split(blocks);
    let id = |place: usize| format!("{prefix}-{place}");
    let links = sections
        .iter()
        .enumerate()
        .map(|(place, section)| Link { to: id(place), text: clean(section.title, true) });
    let links = links.collect();
    let markup = html! {
        @for (place, section) in sections.iter().enumerate() {
            @match fold {
                Fold::Open => section id=(id(place)) {
                    (heading(section, fold)) (body(section.preface)) (body(section.blocks))
                },
                Fold::Folded => details id=(id(place)) {
                    summary { (heading(section, fold)) }
                    (body(section.blocks))
                },
            }
        }
    };
    (markup, links)
}

/// A place on the page.
pub(super) struct Link {
    pub(super) to: String,
    pub(super) text: String,
}

fn split(blocks: &[Block]) -> Vec<Section<'_>> {
    let is_heading = |block: &Block| matches!(block, Block::Heading { .. });
    let (preface, rest) =
        blocks.split_at(blocks.iter().position(is_heading).unwrap_or(blocks.len()));
    let mut sections: Vec<Section<'_>> =
        rest.chunk_by(|_, next| !is_heading(next)).filter_map(Section::headed).collect();
    sections.first_mut().into_iter().for_each(|first| first.preface = preface);
    sections.sort_by_key(|section| section.weight);
    sections
}

/// Of folded sections, which are one below the other, the mark stands above all of them.
fn heading(section: &Section<'_>, fold: Fold) -> Markup {
    let mark = section.emulated.filter(|_| fold == Fold::Open);
    html! {
        h3 {
            (clean(section.title, true))
            @if !section.more.is_empty() { " " small { (clean(section.more, true)) } }
            @if let Some(mark) = mark { " " (badge(mark)) }
        }
    }
}

/// What did not come from a real device, wherever it appears.
pub(super) fn badge(mark: &str) -> Markup {
    html! { span.badge { (clean(mark, true)) } }
}

/// What stands below a heading. Charts come first: they are what one looks at.
pub(super) fn body(blocks: &[Block]) -> Markup {
    let charts = || {
        blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    };
    let rest: Vec<&Block> = blocks
        .iter()
        // Drawings of characters stand in for charts.
        .filter(|block| !matches!(block, Block::Chart(_) | Block::Drawing { .. } | Block::Blank))
        .collect();
    html! {
        @for chart in charts().filter(|chart| chart.size == ChartSize::Whole) {
            (draw::figure(chart))
        }
        @if charts().any(|chart| chart.size == ChartSize::Half) {
            div.halves { @for chart in charts().filter(|chart| chart.size == ChartSize::Half) {
                (draw::figure(chart))
            } }
        }
        @for run in rest.chunk_by(|one, next| belong(one, next)) {
            @match run {
                [Block::Fact { .. }, ..] => dl { @for block in run { (fact(block)) } },
                [only] => (alone(only)),
                _ => div.card { @for block in run { (alone(block)) } },
            }
        }
    }
}

/// Facts are one list. What is numbered is a card, with all that is said of it.
fn belong(one: &Block, next: &Block) -> bool {
    let said = |block: &Block| {
        matches!(block, Block::Hanging { .. } | Block::Command { .. } | Block::Template { .. })
    };
    let numbered = |block: &Block| match block {
        Block::Hanging { mark, .. } => mark.text.trim().parse::<u32>().is_ok(),
        _ => false,
    };
    let stands_in = |block: &Block| match block {
        Block::Hanging { mark, .. }
        | Block::Command { mark, .. }
        | Block::Template { mark, .. } => mark.text.starts_with(CARD) || numbered(block),
        _ => false,
    };
    match (one, next) {
        (Block::Fact { .. }, Block::Fact { .. }) => true,
        _ => said(one) && stands_in(one) && stands_in(next) && !numbered(next),
    }
}

fn fact(block: &Block) -> Markup {
    let Block::Fact { label, value } = block else { return html! {} };
    html! {
        // A label that is not repeated belongs to the one above.
        @if !label.trim().is_empty() { dt { (clean(label.trim(), true)) } }
        dd { (span(value)) }
    }
}

fn alone(block: &Block) -> Markup {
    match block {
        Block::Line(spans) => html! {
            p { @for piece in spans { (span(piece)) } }
        },
        Block::Hanging { mark, text } => {
            let lead = mark.text.trim();
            // A mark of blanks is how far text stands in.
            let deep = mark.text.starts_with("    ");
            html! {
                p.deep[deep].item[!lead.is_empty() && !deep] {
                    @if !lead.is_empty() { (span(&Span::new(lead, mark.tint))) " " }
                    (span(text))
                }
            }
        }
        // Words that cannot be shown as they are could not be copied either.
        Block::Command { mark, words } if clean(&words.join(" "), true) == words.join(" ") => {
            html! {
                p.deep { (span(mark)) }
                pre.command tabindex="0" { code { (words.join(" ")) } }
            }
        }
        // The page's script puts a button for copying behind commands only.
        Block::Command { mark, words } | Block::Template { mark, words } => html! {
            p.deep { (span(mark)) }
            pre.template tabindex="0" { code { (clean(&words.join(" "), true)) } }
        },
        Block::Grid(grid) => table(grid),
        Block::Heading { .. }
        | Block::Fact { .. }
        | Block::Drawing { .. }
        | Block::Blank
        | Block::Chart(_) => html! {},
    }
}

fn table(grid: &Grid) -> Markup {
    if grid.entries.is_empty() {
        return html! {};
    }
    let titled = grid.columns.iter().any(|column| !column.title.is_empty());
    html! {
        div.scroll.long[grid.entries.len() > LONG] tabindex="0" role="group" aria-label="table" {
            table.sortable[titled] {
                @if titled {
                    thead { tr { @for column in &grid.columns { (head(column)) } } }
                }
                tbody { @for entry in &grid.entries { (row(grid, entry)) } }
            }
        }
    }
}

fn head(column: &Column) -> Markup {
    html! {
        @if column.title.is_empty() {
            td {}
        } @else {
            th scope="col" class=(lean(column)) { (column.title) }
        }
    }
}

const fn lean(column: &Column) -> &'static str {
    match column.lean {
        Lean::Left => "words",
        Lean::Right => "figures",
    }
}

fn row(grid: &Grid, entry: &Entry) -> Markup {
    match entry {
        Entry::Cells(cells) => html! {
            tr {
                @for (column, cell) in grid.columns.iter().zip(cells) {
                    (table_cell(column, cell))
                }
            }
        },
        Entry::Sentence(name, text) => {
            let rest = grid.columns.len().saturating_sub(1).max(1);
            html! {
                tr.sentence {
                    // Without a name it belongs to the row above.
                    @if name.text.is_empty() { td {} } @else { th scope="row" { (span(name)) } }
                    td colspan=(rest) { (span(text)) }
                }
            }
        }
    }
}

fn table_cell(column: &Column, cell: &Span) -> Markup {
    let key = value(&cell.text).map(|value| value.to_string());
    html! { td class=(lean(column)) data-sort=[key] { (span(cell)) } }
}

/// Text in its tint; a bar as a drawing, which says what the figure beside it says.
pub(super) fn span(span: &Span) -> Markup {
    let class = match span.tint {
        Tint::Plain => "",
        Tint::Strong => "strong",
        Tint::Faint => "faint",
        Tint::Good => "good",
        Tint::Caution => "caution",
        Tint::Bad => "bad",
        Tint::Accent => "accent",
    };
    if let Some(part) = span.bar {
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        return html! {
            svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                rect width=(format!("{:.1}", 100.0 * part)) height="10" {}
            }
        };
    }
    let text = clean(&span.text, true);
    html! { @if class.is_empty() { (text) } @else { span class=(class) { (text) } } }
}

/// The number that a figure begins with, in its base unit, to sort a table by.
fn value(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches(['≈', '<', '×', ' ']);
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".,-+".contains(c)));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.replace(',', "").parse().ok()?;
    let scale = match unit.split_whitespace().next() {
        Some("µs") => 1e3,
        Some("ms") => 1e6,
        Some("s") => 1e9,
        Some("min") => 60e9,
        Some("h") => 3600e9,
        Some("KiB") => 1024.0,
        Some("MiB") => 1024.0 * 1024.0,
        _ => 1.0,
    };
    Some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_sort_by_what_they_are_not_by_how_they_are_written() {
        let cases = [
            ("43.1 µs", Some(43_100.0)),
            ("1.20 ms ± 1.0 %", Some(1.2e6)),
            ("39,353/s", Some(39_353.0)),
            ("1 KiB", Some(1024.0)),
            ("50.4 %", Some(50.4)),
            ("≈ 0, < 3 ns", Some(0.0)),
            ("–", None),
            ("", None),
            ("rsa2048.sign", None),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
    }
}
