//! A door: the budget as a waterfall to the target, what changes bring, strategies, and waits.

use tapstone_record::{Budget, BudgetPart, Estimate, PartKind, Queue, Trial, WhatIf, WhatIfSet};

use super::{bar_chart, stacked};
use crate::chart::{
    Across, Axis, AxisUnit, Bar, BarPart, Bars, Chart, ChartSize, Mark, Plot, Point, Series, Shape,
    Tone, Xy, Zoom,
};
use crate::{figures, words};

fn kind(of: PartKind) -> (Tone, &'static str) {
    match of {
        PartKind::Transfer => (Tone::First, "transfer"),
        PartKind::Processing => (Tone::Second, "processing"),
        PartKind::Waiting => (Tone::Muted, "waiting"),
    }
}

fn target(at: f64) -> Mark {
    Mark { at, across: Across::X, text: format!("target {}", figures::ms(at)) }
}

/// Each part begins where the one before it ends.
pub(in super::super) fn budget(budget: &Budget) -> Option<Chart> {
    if budget.parts.is_empty() {
        return None;
    }
    let mut from = 0.0;
    let mut bar = |part: &BudgetPart| {
        let (tone, word) = kind(part.kind);
        let to = from + part.time_ns.estimate;
        let parts = vec![BarPart { tone, from, to }];
        from = to;
        let said = words::provenance(part.provenance);
        let figure = format!("{} {said}", figures::ms(part.time_ns.estimate));
        Bar::of_parts(format!("{}: {word}", part.component), parts, figure)
    };
    let mut bars: Vec<Bar> = budget.parts.iter().chain(&budget.self_check).map(&mut bar).collect();
    let whole = budget.total_with_self_check_ns.as_ref().unwrap_or(&budget.total_ns);
    bars.push(total("in all", whole));
    let kinds = [PartKind::Transfer, PartKind::Processing, PartKind::Waiting];
    let shown = |of: &&PartKind| budget.parts.iter().any(|part| part.kind == **of);
    let legend = kinds.iter().filter(shown).map(|of| kind(*of));
    Some(Chart {
        title: "Where does the time go?".into(),
        says: format!("{} in all, in {} parts", figures::ms(whole.estimate), budget.parts.len()),
        size: ChartSize::Whole,
        plot: Plot::Bars(Bars {
            axis: Axis::linear("time since the card came", AxisUnit::Millis),
            bars,
            marks: budget.limit_ns.map(|limit| target(limit.0 as f64)).into_iter().collect(),
            zone: None,
            legend: legend.map(|(tone, name)| (tone, name.to_owned())).collect(),
        }),
    })
}

fn total(name: &str, time: &Estimate) -> Bar {
    let interval = (time.high > time.low).then_some((time.low, time.high));
    Bar {
        name: name.into(),
        parts: vec![BarPart { tone: Tone::Fourth, from: 0.0, to: time.estimate }],
        dots: Vec::new(),
        interval,
        figure: figures::ms(time.estimate),
    }
}

/// What is left after each change of a set.
pub(in super::super) fn what_if(what_if: &WhatIf) -> Option<Chart> {
    let set: &WhatIfSet = what_if.sets.first().unwrap_or(&what_if.fastest);
    let limit = what_if.target_ns.0 as f64;
    let left = |name: &str, left: f64, saves: f64| {
        let tone = if left <= limit { Tone::Good } else { Tone::First };
        let parts = stacked([(tone, left), (Tone::Muted, saves)]);
        Bar::of_parts(name, parts, figures::ms(left))
    };
    let mut bars = vec![left("now", what_if.base_ns, 0.0)];
    bars.extend(set.waterfall.iter().map(|step| left(&step.change, step.left_ns, step.saves_ns)));
    Some(bar_chart(
        "Which changes reach the target with the least effort?",
        Bars {
            axis: Axis::linear("time", AxisUnit::Millis),
            bars,
            marks: vec![target(limit)],
            zone: None,
            legend: vec![
                (Tone::First, "left".into()),
                (Tone::Good, "left, within the target".into()),
                (Tone::Muted, "saved by this change".into()),
            ],
        },
    ))
}

/// What each way takes, with what was predicted of it.
pub(in super::super) fn strategies(trials: &[Trial]) -> Option<Chart> {
    let plain = trials.first()?.before_ns;
    let mut bars = vec![Bar::dot("plain", Tone::Fourth, &plain, figures::time(plain.estimate))];
    for trial in trials {
        let after = &trial.after_ns;
        bars.push(Bar::dot(&trial.fix, Tone::First, after, figures::time(after.estimate)));
        let Some(saved) = trial.predicted else { continue };
        let before = trial.before_ns.estimate;
        let predicted = Estimate {
            estimate: before - f64::midpoint(saved.low, saved.high),
            low: before - saved.high,
            high: before - saved.low,
        };
        let name = format!("{}, predicted", trial.fix);
        bars.push(Bar::dot(name, Tone::Muted, &predicted, figures::time(predicted.estimate)));
    }
    Some(bar_chart(
        "How long does each way take?",
        Bars {
            axis: Axis::linear("time", AxisUnit::Time),
            bars,
            marks: Vec::new(),
            zone: None,
            legend: vec![
                (Tone::Fourth, "plain".into()),
                (Tone::First, "measured, with interval".into()),
                (Tone::Muted, "predicted".into()),
            ],
        },
    ))
}

/// How many wait longer than how long.
pub(in super::super) fn queue(queue: &Queue) -> Option<Chart> {
    let series = |name: &str, tone, of: &tapstone_record::Latency| {
        let points =
            [(0.5, of.p50), (0.9, of.p90), (0.95, of.p95), (0.99, of.p99), (0.999, of.p99_9)];
        let points = points.iter().filter_map(|(part, value)| {
            Some(Point::estimated(1.0 / (1.0 - part), value.as_ref()?))
        });
        Series { name: name.into(), tone, shape: Shape::DotsAndLine, points: points.collect() }
    };
    let waits = series("waiting time", Tone::First, &queue.wait_ns);
    let wholes = series("time in system", Tone::Second, &queue.time_in_system_ns);
    if waits.points.is_empty() {
        return None;
    }
    let at = |value: &Option<Estimate>| {
        value.as_ref().map_or(figures::NONE.into(), |value| figures::time(value.estimate))
    };
    Some(Chart {
        title: "How long do people wait?".into(),
        says: format!(
            "half wait {}, one of a hundred {}",
            at(&queue.wait_ns.p50),
            at(&queue.wait_ns.p99)
        ),
        size: ChartSize::Whole,
        plot: Plot::Xy(Xy {
            x: Axis::log("one of so many people waits longer (log)", AxisUnit::Count),
            y: Axis::linear("time", AxisUnit::Time),
            series: vec![waits, wholes],
            marks: Vec::new(),
            zoom: Zoom::Never,
        }),
    })
}
