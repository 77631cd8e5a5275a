//! All results at once: how fast each is, or how long it takes.

use tapstone_record::{CaseResult, Latency};

use super::{MOST_BARS, bar_chart};
use crate::chart::{Axis, AxisUnit, Bar, BarPart, Bars, Chart, Tone};
use crate::{figures, words};

pub(in super::super) fn results(cases: &[CaseResult]) -> Option<Chart> {
    let cases: Vec<&CaseResult> =
        cases.iter().filter(|case| case.latency_ns.is_some() || rate(case)).collect();
    if cases.len() < 2 {
        return None;
    }
    let rates = cases.iter().all(|case| rate(case));
    let bars = cases.iter().take(MOST_BARS);
    let bars: Vec<Bar> = if rates {
        bars.map(|case| by_rate(case)).collect()
    } else {
        bars.map(|case| by_time(case)).collect()
    };
    let left_out = cases.len() - bars.len();
    let more = match left_out {
        0 => String::new(),
        count => format!(" The first {MOST_BARS}; the table has {count} more."),
    };
    let (title, axis, legend) = match rates {
        true => {
            ("How fast is each?", axis("operations per second", AxisUnit::Rate, &bars), Vec::new())
        }
        false => (
            "How long does each take?",
            axis("time", AxisUnit::Time, &bars),
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

fn axis(name: &str, unit: AxisUnit, bars: &[Bar]) -> Axis {
    let ends = bars.iter().filter_map(|bar| bar.parts.first()).map(|part| part.to);
    Axis::by_spread(name, unit, ends)
}

fn rate(case: &CaseResult) -> bool {
    case.throughput.is_some_and(|rate| rate.estimate > 0.0)
}

fn by_rate(case: &CaseResult) -> Bar {
    let rate = words::rate_of(case).expect("asked for before");
    Bar {
        name: case.operation.clone(),
        parts: vec![BarPart { tone: Tone::First, from: 0.0, to: rate.estimate }],
        interval: Some((rate.low, rate.high)),
        figure: figures::rate(rate.estimate),
    }
}

fn by_time(case: &CaseResult) -> Bar {
    let Some(Latency { mean, p50, p95, max, .. }) = case.latency_ns else {
        return Bar {
            name: case.operation.clone(),
            parts: Vec::new(),
            interval: None,
            figure: figures::NONE.into(),
        };
    };
    let middle = p50.or(mean).map_or(max.0 as f64, |it| it.estimate);
    let high = p95.map_or(middle, |it| it.estimate.max(middle));
    let longest = (max.0 as f64).max(high);
    let mut parts = vec![BarPart { tone: Tone::First, from: 0.0, to: middle }];
    parts.push(BarPart { tone: Tone::Second, from: middle, to: high });
    parts.push(BarPart { tone: Tone::Muted, from: high, to: longest });
    Bar {
        name: case.operation.clone(),
        parts,
        interval: None,
        figure: format!(
            "{} {}",
            if p50.is_some() { "median" } else { "mean" },
            figures::time(middle)
        ),
    }
}
