//! Ratios with their intervals, and devices beside each other.

use tapstone_record::{Change, Comparison, Quantity, SideBySide};

use super::{MOST_BARS, bar_chart};
use crate::chart::{Across, Axis, AxisUnit, Bar, Bars, Chart, Mark, Tone};
use crate::{figures, words};

pub(in super::super) fn ratios(comparison: &Comparison) -> Option<Chart> {
    let rows = &comparison.cases;
    if rows.is_empty() {
        return None;
    }
    // What all rows share is said once.
    let first = words::provenance_marks(&rows[0]);
    let shared = rows.len() > 1 && rows.iter().all(|row| words::provenance_marks(row) == first);
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
            let figure = format!("× {} {word}", figures::ratio(row.ratio.estimate));
            let mark = if shared { String::new() } else { words::provenance_marks(row) };
            Bar::dot(format!("{}{item}{mark}", row.operation), tone, &row.ratio, figure)
        })
        .collect();
    let rates = rows.iter().any(|row| row.quantity == Quantity::Throughput);
    let times = rows.iter().any(|row| row.quantity != Quantity::Throughput);
    let name = match (rates, times) {
        (true, false) => "rate of the candidate over that of the baseline",
        (false, _) => "time of the candidate over that of the baseline",
        (true, true) => "candidate over baseline: of rates more is faster, of times slower",
    };
    // Twice as long and half as long are equally far from no change.
    let axis = Axis::log(&format!("{name} (log)"), AxisUnit::Ratio);
    let mut marks = vec![Mark { at: 1.0, across: Across::X, text: "no change".into() }];
    if let Some(threshold) = comparison.threshold {
        let part = figures::share(threshold.fail_above);
        let mark =
            |at, sign| Mark { at, across: Across::X, text: format!("threshold {sign}{part}") };
        marks.extend(times.then(|| mark(1.0 + threshold.fail_above.0, "+")));
        marks.extend(rates.then(|| mark(1.0 - threshold.fail_above.0, "-")));
    }
    let zone = comparison.threshold.map(|it| (1.0 - it.fail_above.0, 1.0 + it.fail_above.0));
    let zone = zone.filter(|(low, _)| *low > 0.0);
    let left_out = rows.len() - bars.len();
    let more = match left_out {
        0 => String::new(),
        count => format!(" The first {MOST_BARS}; the table has {count} more."),
    };
    Some(bar_chart(
        format!(
            "How does the candidate compare with the baseline?{}{more}",
            if shared { first } else { String::new() }
        ),
        Bars {
            axis,
            bars,
            marks,
            zone,
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
    let row = all.cases.first()?;
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
            let name = format!("{}{mark}", side.name);
            let said = format!("{}{more}", unit.print(figure.estimate));
            Some(Bar::dot(name, Tone::First, figure, said))
        })
        .collect();
    let who = words::concurrency(row.concurrency);
    let axis = match unit {
        AxisUnit::Rate => Axis::linear("operations per second", unit),
        _ => Axis::linear("mean time", unit),
    };
    Some(bar_chart(
        format!("{} on each, {who}", row.operation),
        Bars { axis, bars, marks: Vec::new(), zone: None, legend: Vec::new() },
    ))
}
