//! A table: which columns must be seen, and a row without figures is a sentence across all of them.

use super::span::Span;

/// To which side cells lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lean {
    Left,
    Right,
}

/// How long a column is kept when room runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// Kept by this number, the highest first.
    Rank(u8),
    /// Without it the table would mislead.
    Always,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) lean: Lean,
    pub(crate) keep: Keep,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A cell for each column.
    Cells(Vec<Span>),
    /// A name, and a sentence across all the other columns.
    Sentence(Span, Span),
}

/// A table: its columns and, below them, its entries.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) entries: Vec<Entry>,
}

impl Grid {
    /// Whether it draws: a histogram, or shares of a whole.
    pub(crate) fn has_bars(&self) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Cells(cells) => cells.iter().any(|cell| cell.bar.is_some()),
            Entry::Sentence(..) => false,
        })
    }
}

/// A column of figures.
pub(crate) const fn figures(title: &'static str, keep: Keep) -> Column {
    Column { title, lean: Lean::Right, keep }
}

/// A column of words.
pub(crate) const fn words(title: &'static str, keep: Keep) -> Column {
    Column { title, lean: Lean::Left, keep }
}
