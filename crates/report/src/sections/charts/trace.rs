//! A traced program: whose time it was, and what fixes brought.

use tapstone_record::{Behaviour, Change, Layer, Trial};

use super::bar_chart;
use crate::chart::{Across, Axis, AxisUnit, Bar, BarPart, Bars, Chart, Mark, Tone};
use crate::{figures, words};

/// The layers of one thread.
pub(in super::super) fn layers(layers: &[&Layer]) -> Option<Chart> {
    if layers.len() < 2 {
        return None;
    }
    let bar = |layer: &&Layer| {
        let parts = vec![BarPart { tone: Tone::First, from: 0.0, to: layer.time_ns.0 as f64 }];
        let figure = format!("{} · {}", layer.time_ns, figures::share(layer.share));
        Bar::of_parts(words::layer(&layer.layer), parts, figure)
    };
    let bars: Vec<Bar> = layers.iter().map(bar).collect();
    Some(bar_chart(
        "Whose time was it?",
        Bars {
            axis: Axis::linear("self time", AxisUnit::Time),
            bars,
            marks: Vec::new(),
            zone: None,
            legend: Vec::new(),
        },
    ))
}

pub(in super::super) fn trials(trials: &[Trial]) -> Option<Chart> {
    if trials.is_empty() {
        return None;
    }
    let bar = |trial: &Trial| {
        let speedup = &trial.speedup;
        let tone = match (trial.behaviour, trial.verdict) {
            (Behaviour::Differs, _) | (_, Change::Slower) => Tone::Bad,
            (_, Change::Faster) => Tone::Good,
            (_, Change::Inconclusive) => Tone::Muted,
        };
        let differs = if trial.behaviour == Behaviour::Differs { ", differs" } else { "" };
        let figure = format!("× {}{differs}", figures::ratio(speedup.estimate));
        Bar::dot(&trial.fix, tone, speedup, figure)
    };
    let bars: Vec<Bar> = trials.iter().map(bar).collect();
    let axis = Axis::log("time without the fix over time with it (log)", AxisUnit::Ratio);
    Some(bar_chart(
        "How many times as fast is the program with the fix?",
        Bars {
            axis,
            bars,
            marks: vec![Mark { at: 1.0, across: Across::X, text: "no change".into() }],
            zone: None,
            legend: Vec::new(),
        },
    ))
}
