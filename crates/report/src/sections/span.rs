//! A piece of text and what it means, for whatever shows it.

use super::blocks::bar;

/// What a piece of text means. Colour repeats it, and never says it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tint {
    #[default]
    Plain,
    /// Headings and the figures that one came for.
    Strong,
    /// Labels, intervals, and rows without figures.
    Faint,
    /// As it should be.
    Good,
    /// To be looked at.
    Caution,
    /// A failure or a wrong result.
    Bad,
    /// Bars and lines that are drawn with characters.
    Accent,
}

/// A piece of text of one tint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) tint: Tint,
    /// The text draws a bar of this part of the whole.
    pub(crate) bar: Option<f64>,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, tint: Tint) -> Self {
        Self { text: text.into(), tint, bar: None }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tint::Plain)
    }

    pub(crate) fn faint(text: impl Into<String>) -> Self {
        Self::new(text, Tint::Faint)
    }

    /// A bar of this part of so many columns.
    pub(crate) fn bar(part: f64, width: usize, tint: Tint) -> Self {
        Self { text: bar(part, width), tint, bar: Some(part) }
    }
}
