//! Who reads: what fits on a line, and how much of everything is wanted.

/// The terminal and what its reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// How many columns a line has. Fewer than 20 are taken for 20.
    pub width: usize,
    /// Whether escape sequences may set colours.
    pub colour: bool,
    /// Whether the terminal shows more than ASCII.
    pub unicode: bool,
    /// Show every result in full. A record with a single result always does.
    pub verbose: bool,
}

impl Style {
    /// A page that scrolls: everything is shown, and no column is left out.
    pub(crate) const PAPER: Self = Self { width: 400, colour: false, unicode: true, verbose: true };
}
