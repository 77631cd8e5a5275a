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

/// A column of figures.
pub(crate) const fn figures(title: &'static str, keep: Keep) -> Column {
    Column { title, lean: Lean::Right, keep }
}

/// A column of words.
pub(crate) const fn words(title: &'static str, keep: Keep) -> Column {
    Column { title, lean: Lean::Left, keep }
}
