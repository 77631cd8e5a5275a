//! Ratios with their intervals, and devices beside each other.

use tapstone_record::{Change, Comparison, Estimate, Quantity, SideBySide};

use super::{MOST_BARS, bar_chart};
use crate::chart::{Across, Axis, AxisUnit, Bar, BarPart, Bars, Chart, Mark, Tone};
use crate::{figures, words};

pub(in super::super) fn ratios(comparison: &Comparison) -> Option<Chart> {
    let rows = &comparison.rows;
    if rows.is_empty() {
        return None;
    }
    let bars: Vec<Bar> = rows
        .iter()
        .take(MOST_BARS)
        .map(|row| {
            let item = row.item.as_deref().map(|item| format!(", {item}")).unwrap_or_default();
            let (tone, word) = match row.verdict {
                Change::Faster => (Tone::Good, "faster"),
                Change::Slower => (Tone::Bad, "slower"),
                Change::Inconclusive => (Tone::Muted, "inconclusive"),
            };
            // The ratio of the table: a figure that is turned over would contradict it.
            let Estimate { estimate, low, high } = row.ratio;
            let from = estimate.min(1.0);
            let to = estimate.max(1.0);
            Bar {
                name: format!("{}{item}{}", row.operation, words::provenance_marks(row)),
                parts: vec![BarPart { tone, from, to }],
                interval: Some((low, high)),
                figure: format!("× {} {word}", figures::ratio(estimate)),
            }
        })
        .collect();
    let ends = bars.iter().flat_map(|bar| bar.parts.iter().flat_map(|part| [part.from, part.to]));
    let rates = rows.iter().any(|row| row.quantity == Quantity::Throughput);
    let times = rows.iter().any(|row| row.quantity != Quantity::Throughput);
    let name = match (rates, times) {
        (true, false) => "rate of the candidate over that of the baseline",
        (false, _) => "time of the candidate over that of the baseline",
        (true, true) => "candidate over baseline: of rates more is faster, of times slower",
    };
    let axis = Axis::by_spread(name, AxisUnit::Ratio, ends);
    let mut marks = vec![Mark { at: 1.0, across: Across::X, text: "no change".into() }];
    if let Some(threshold) = comparison.threshold {
        let part = figures::share(threshold.fail_above);
        let mark =
            |at, sign| Mark { at, across: Across::X, text: format!("threshold {sign}{part}") };
        marks.extend(times.then(|| mark(1.0 + threshold.fail_above.0, "+")));
        marks.extend(rates.then(|| mark(1.0 - threshold.fail_above.0, "-")));
    }
    let left_out = rows.len() - bars.len();
    let more = match left_out {
        0 => String::new(),
        count => format!(" The first {MOST_BARS}; the table has {count} more."),
    };
    Some(bar_chart(
        format!("How does the candidate compare with the baseline?{more}"),
        Bars {
            axis,
            bars,
            marks,
            legend: vec![
                (Tone::Good, "faster".into()),
                (Tone::Bad, "slower".into()),
                (Tone::Muted, "inconclusive".into()),
            ],
        },
    ))
}

/// The operations that most devices have, a bar for each device.
pub(in super::super) fn side_by_side(all: &SideBySide) -> Option<Chart> {
    let row = all.rows.first()?;
    let unit = if row.quantity == Quantity::Throughput { AxisUnit::Rate } else { AxisUnit::Time };
    let bars: Vec<Bar> = all
        .sides
        .iter()
        .zip(&row.figures)
        .zip(&row.excess)
        .enumerate()
        .filter_map(|(at, ((side, figure), excess))| {
            let figure = figure.as_ref()?;
            let mark = words::provenance_mark(row.provenance.get(at).copied().flatten());
            let more = excess.filter(|excess| excess.0 > 0.0);
            let more = more.map_or(" fastest".into(), |it| format!(" +{}", figures::share(it)));
            Some(Bar {
                name: format!("{}{mark}", side.name),
                parts: vec![BarPart { tone: Tone::First, from: 0.0, to: figure.estimate }],
                interval: Some((figure.low, figure.high)),
                figure: format!("{}{more}", unit.print(figure.estimate)),
            })
        })
        .collect();
    let who = words::concurrency(row.concurrency);
    let axis = match unit {
        AxisUnit::Rate => Axis::linear("operations per second", unit),
        _ => Axis::linear("mean time", unit),
    };
    Some(bar_chart(
        format!("{} on each, {who}", row.operation),
        Bars { axis, bars, marks: Vec::new(), legend: Vec::new() },
    ))
}
