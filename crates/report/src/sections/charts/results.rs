//! All results at once: how fast each is, or how long it takes.

use tapstone_record::{CaseResult, Latency};

use super::{MOST_BARS, bar_chart};
use crate::chart::{Axis, Bar, Bars, Chart, Part, Tone, Unit};
use crate::{figures, words};

pub(in super::super) fn results(rows: &[CaseResult]) -> Option<Chart> {
    let rows: Vec<&CaseResult> =
        rows.iter().filter(|row| row.latency_ns.is_some() || rate(row)).collect();
    if rows.len() < 2 {
        return None;
    }
    let rates = rows.iter().all(|row| rate(row));
    let bars = rows.iter().take(MOST_BARS);
    let bars: Vec<Bar> = if rates {
        bars.map(|row| by_rate(row)).collect()
    } else {
        bars.map(|row| by_time(row)).collect()
    };
    let left_out = rows.len() - bars.len();
    let more = match left_out {
        0 => String::new(),
        count => format!(" The first {MOST_BARS}; the table has {count} more."),
    };
    let (title, axis, legend) = match rates {
        true => ("How fast is each?", axis("operations per second", Unit::Rate, &bars), Vec::new()),
        false => (
            "How long does each take?",
            axis("time", Unit::Time, &bars),
            vec![
                (Tone::First, "up to the median, or the mean".into()),
                (Tone::Second, "median to p95".into()),
                (Tone::Muted, "p95 to the longest".into()),
            ],
        ),
    };
    let drawn = |tone: Tone| {
        let parts = bars.iter().flat_map(|bar| &bar.parts);
        parts.clone().any(|part| part.tone == tone && part.to > part.from)
    };
    let legend = legend.into_iter().filter(|(tone, _): &(Tone, String)| drawn(*tone)).collect();
    Some(bar_chart(format!("{title}{more}"), Bars { axis, bars, marks: Vec::new(), legend }))
}

fn axis(name: &str, unit: Unit, bars: &[Bar]) -> Axis {
    let ends = bars.iter().filter_map(|bar| bar.parts.first()).map(|part| part.to);
    Axis::by_spread(name, unit, ends)
}

fn rate(row: &CaseResult) -> bool {
    row.throughput.is_some_and(|rate| rate.estimate > 0.0)
}

fn by_rate(row: &CaseResult) -> Bar {
    let rate = words::rate_of(row).expect("asked for before");
    Bar {
        name: row.operation.clone(),
        parts: vec![Part { tone: Tone::First, from: 0.0, to: rate.estimate }],
        interval: Some((rate.low, rate.high)),
        figure: figures::rate(rate.estimate),
    }
}

fn by_time(row: &CaseResult) -> Bar {
    let Some(Latency { mean, p50, p95, max, .. }) = row.latency_ns else {
        return Bar {
            name: row.operation.clone(),
            parts: Vec::new(),
            interval: None,
            figure: figures::NONE.into(),
        };
    };
    let middle = p50.or(mean).map_or(max.0 as f64, |it| it.estimate);
    let high = p95.map_or(middle, |it| it.estimate.max(middle));
    let longest = (max.0 as f64).max(high);
    let mut parts = vec![Part { tone: Tone::First, from: 0.0, to: middle }];
    parts.push(Part { tone: Tone::Second, from: middle, to: high });
    parts.push(Part { tone: Tone::Muted, from: high, to: longest });
    Bar {
        name: row.operation.clone(),
        parts,
        interval: None,
        figure: format!(
            "{} {}",
            if p50.is_some() { "median" } else { "mean" },
            figures::time(middle)
        ),
    }
}
