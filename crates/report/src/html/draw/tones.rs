//! The colours of charts. The four for things were chosen to stay apart for all kinds of colour
//! vision (after Okabe and Ito); none is the only sign of anything.

use plotters::style::RGBColor;

use crate::chart::Tone;

/// The colour of text and axes.
pub(super) const INK: RGBColor = RGBColor(0x4d, 0x55, 0x60);
/// Lines to read values by.
pub(super) const LINE: RGBColor = RGBColor(0xe2, 0xe5, 0xe9);
/// Marks across a chart.
pub(super) const MARK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
/// Intervals on top of bars.
pub(super) const WHISKER: RGBColor = RGBColor(0x1b, 0x1f, 0x25);

pub(super) const fn colour(tone: Tone) -> RGBColor {
    match tone {
        Tone::First => RGBColor(0x1f, 0x62, 0xa8),
        Tone::Second => RGBColor(0xc4, 0x5f, 0x0b),
        Tone::Third => RGBColor(0x00, 0x7f, 0x6b),
        Tone::Fourth => RGBColor(0x8a, 0x4f, 0x8f),
        Tone::Good => RGBColor(0x1d, 0x7a, 0x3a),
        Tone::Bad => RGBColor(0xb4, 0x23, 0x2a),
        Tone::Muted => RGBColor(0x9a, 0xa3, 0xad),
    }
}

/// The name of a tone in the page's style.
pub(super) const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::First => "first",
        Tone::Second => "second",
        Tone::Third => "third",
        Tone::Fourth => "fourth",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Muted => "muted",
    }
}
