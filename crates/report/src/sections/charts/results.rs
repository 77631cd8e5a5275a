//! All results at once: how fast each is, or how long it takes.

use tapstone_record::{CaseResult, Latency};

use super::{MOST_BARS, bar_chart};
use crate::chart::{Axis, AxisUnit, Bar, Bars, Chart, Dot, Tone};
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
                (Tone::First, "median (or mean), with interval".into()),
                (Tone::Second, "p95".into()),
                (Tone::Muted, "longest".into()),
            ],
        ),
    };
    let drawn =
        |tone: Tone| bars.iter().flat_map(|bar| &bar.dots).any(|dot: &Dot| dot.tone == tone);
    let legend = legend.into_iter().filter(|(tone, _): &(Tone, String)| drawn(*tone)).collect();
    let bars = Bars { axis, bars, marks: Vec::new(), zone: None, legend };
    Some(bar_chart(format!("{title}{more}"), bars))
}

fn axis(name: &str, unit: AxisUnit, bars: &[Bar]) -> Axis {
    let ends = bars.iter().flat_map(|bar| &bar.dots).map(|dot| dot.at);
    Axis::by_spread(name, unit, ends)
}

fn rate(case: &CaseResult) -> bool {
    case.throughput.is_some_and(|rate| rate.estimate > 0.0)
}

fn by_rate(case: &CaseResult) -> Bar {
    let rate = words::rate_of(case).expect("asked for before");
    Bar::dot(&case.operation, Tone::First, &rate, figures::rate(rate.estimate))
}

/// The middle with its interval, and how far from it the slow ones are: lengths would not add up.
fn by_time(case: &CaseResult) -> Bar {
    let Some(Latency { mean, p50, p95, max, .. }) = case.latency_ns else {
        return Bar::of_parts(&case.operation, Vec::new(), figures::NONE);
    };
    let name = if p50.is_some() { "median" } else { "mean" };
    let middle = p50.or(mean);
    let at = middle.map_or(max.0 as f64, |it| it.estimate);
    let mut dots = vec![Dot { tone: Tone::First, at, name }];
    dots.extend(p95.map(|it| Dot { tone: Tone::Second, at: it.estimate, name: "p95" }));
    dots.push(Dot { tone: Tone::Muted, at: max.0 as f64, name: "longest" });
    Bar {
        name: case.operation.clone(),
        parts: Vec::new(),
        dots,
        interval: middle.map(|it| (it.low, it.high)),
        figure: format!("{name} {}", figures::time(at)),
    }
}
