//! The charts of sections: what a browser shows above the table that says the same.

mod case;
mod comparison;
mod costs;
mod door;
mod knee;
mod results;
mod trace;
mod within;

pub(crate) use case::loops;
pub(super) use case::{course, percentiles, spread, values};
pub(super) use comparison::{ratios, side_by_side};
pub(super) use costs::costs;
pub(super) use door::{budget, queue, strategies, what_if};
pub(super) use knee::knee;
pub(super) use results::results;
pub(super) use trace::{layers, trials};
pub(super) use within::rate_within;

use crate::chart::{Bar, BarPart, Bars, Chart, ChartSize, Plot, Tone};

/// A chart of more bars than this is no picture any more: the table has the others.
const MOST_BARS: usize = 40;

/// A chart of bars.
fn bar_chart(title: impl Into<String>, bars: Bars) -> Chart {
    let title = title.into();
    let says = said(&bars.bars);
    Chart { title, says, size: ChartSize::Whole, plot: Plot::Bars(bars) }
}

/// All bars with their figures, for those who do not see them.
fn said(bars: &[Bar]) -> String {
    let bars: Vec<String> =
        bars.iter().map(|bar| format!("{}: {}", bar.name, bar.figure)).collect();
    bars.join("; ")
}

/// Parts one after the other, from zero.
fn stacked(lengths: impl IntoIterator<Item = (Tone, f64)>) -> Vec<BarPart> {
    let mut from = 0.0;
    let part = |(tone, length): (Tone, f64)| {
        let part = BarPart { tone, from, to: from + length.max(0.0) };
        from = part.to;
        part
    };
    lengths.into_iter().map(part).collect()
}
