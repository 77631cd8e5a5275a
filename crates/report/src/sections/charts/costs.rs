//! What a card's time is made of: transfer apart from processing.

use tapstone_record::{Cost, Estimate};

use super::{MOST_BARS, bar_chart, stacked};
use crate::chart::{Axis, AxisUnit, Bar, Bars, Chart, Tone};
use crate::figures;

/// The bytes of the example: what fits into a short command with its response.
const BYTES: f64 = 128.0;

pub(in super::super) fn costs(costs: &[Cost]) -> Option<Chart> {
    if costs.is_empty() {
        return None;
    }
    let bar = |cost: &Cost| {
        let of = |part: Option<Estimate>, times: f64| part.map_or(0.0, |it| it.estimate * times);
        let commands = cost.commands.max(1) as f64;
        let parts = stacked([
            (Tone::First, cost.fixed_ns.estimate / commands),
            (Tone::Second, of(cost.byte_ns, BYTES)),
            (Tone::Fourth, of(cost.set_up_ns, 1.0)),
            (Tone::Third, of(cost.operation_ns, 1.0)),
        ]);
        let whole = parts.last().map_or(0.0, |part| part.to);
        Bar::of_parts(&cost.operation, parts, figures::time(whole))
    };
    let bars: Vec<Bar> = costs.iter().take(MOST_BARS).map(bar).collect();
    Some(bar_chart(
        format!("What is one command with {BYTES} bytes, one set-up and one operation made of?"),
        Bars {
            axis: Axis::linear("time", AxisUnit::Time),
            bars,
            marks: Vec::new(),
            zone: None,
            legend: vec![
                (Tone::First, "the command itself".into()),
                (Tone::Second, format!("transfer of {BYTES} bytes")),
                (Tone::Fourth, "set-up on the card".into()),
                (Tone::Third, "operation on the card".into()),
            ],
        },
    ))
}
