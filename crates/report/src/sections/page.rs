//! The page as its sections make it: headings, facts, sentences, tables, charts, in their order.
//! What it looks like is not known here: a terminal and a browser show the same blocks.

use tapstone_record::Emulated;

use super::grid::Grid;
use super::span::{Span, Tint};
use crate::chart::Chart;
use crate::style::Style;

/// A narrower terminal cannot show a figure beside its name.
const NARROWEST: usize = 20;

/// Where a section stands where there is room for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// What one came for.
    First,
    /// What it rests on.
    Then,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// What follows, what qualifies it, and whether it was emulated.
    Heading { title: String, more: String, emulated: Option<String>, weight: Weight },
    /// Pieces of text beside each other.
    Line(Vec<Span>),
    /// A label and what is said under it: `load        4 threads × 1 process`.
    Fact { label: String, value: Span },
    /// A label, a drawing of characters, and what it ranges over.
    Drawing { label: String, drawing: Span, range: String },
    /// Room between two blocks: an empty line on a terminal.
    Blank,
    /// A sentence behind a mark.
    Hanging { mark: Span, text: Span },
    /// A command to be copied, behind a mark.
    Command { mark: Span, words: Vec<String> },
    /// A command with gaps to be filled in, behind a mark.
    Template { mark: Span, words: Vec<String> },
    /// A table with a header and aligned columns.
    Grid(Grid),
    /// What only a browser shows: the table beside it says the same.
    Chart(Box<Chart>),
}

/// Blocks for one reader.
pub(crate) struct Page {
    style: Style,
    emulated: Option<String>,
    blocks: Vec<Block>,
}

impl Page {
    pub(crate) fn new(style: Style, emulated: Option<&Emulated>) -> Self {
        let style = Style { width: style.width.max(NARROWEST), ..style };
        let emulated = emulated.map(|profile| format!("emulated: {}", profile.profile));
        Self { style, emulated, blocks: Vec::new() }
    }

    pub(crate) const fn width(&self) -> usize {
        self.style.width
    }

    pub(crate) const fn style(&self) -> &Style {
        &self.style
    }

    /// A heading with what qualifies all that follows. The mark of an emulated device stands beside
    /// every one, so that no section can forget it.
    pub(super) fn heading(&mut self, title: &str, more: &str) {
        self.weighted(title, more, Weight::Then);
    }

    /// A heading of what one came for: on a terminal it stands near the end, where the eye is.
    pub(super) fn heading_of_conclusions(&mut self, title: &str, more: &str) {
        self.weighted(title, more, Weight::First);
    }

    fn weighted(&mut self, title: &str, more: &str, weight: Weight) {
        let title = title.to_owned();
        let more = more.to_owned();
        let emulated = self.emulated.clone();
        self.blocks.push(Block::Heading { title, more, emulated, weight });
    }

    /// A line, cut off where it is too wide.
    pub(super) fn line(&mut self, spans: &[Span]) {
        self.blocks.push(Block::Line(spans.to_vec()));
    }

    /// A label and what is said under it.
    pub(super) fn fact(&mut self, label: &str, value: Span) {
        self.blocks.push(Block::Fact { label: label.to_owned(), value });
    }

    /// A label, a drawing, and what it ranges over: `rate        ▇▇█▇▆▇  4,960 … 5,000/s`.
    pub(super) fn drawing(&mut self, label: &str, drawing: &str, range: &str, tint: Tint) {
        let label = label.to_owned();
        let range = range.to_owned();
        self.blocks.push(Block::Drawing { label, drawing: Span::new(drawing, tint), range });
    }

    pub(super) fn blank(&mut self) {
        self.blocks.push(Block::Blank);
    }

    /// A sentence behind a mark, its further lines below its first word.
    pub(super) fn hanging(&mut self, mark: &Span, text: &Span) {
        self.blocks.push(Block::Hanging { mark: mark.clone(), text: text.clone() });
    }

    /// A command behind a mark, to be copied.
    pub(super) fn command(&mut self, mark: &Span, words: &[String]) {
        self.blocks.push(Block::Command { mark: mark.clone(), words: words.to_vec() });
    }

    /// A command behind a mark, of which the record does not keep all words.
    pub(super) fn template(&mut self, mark: &Span, words: &[String]) {
        self.blocks.push(Block::Template { mark: mark.clone(), words: words.to_vec() });
    }

    pub(super) fn grid(&mut self, grid: &Grid) {
        self.blocks.push(Block::Grid(grid.clone()));
    }

    pub(super) fn chart(&mut self, chart: Option<Chart>) {
        self.blocks.extend(chart.map(|chart| Block::Chart(Box::new(chart))));
    }

    pub(crate) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }
}
