//! A card at a door: where the time of an authentication goes, step by step, and what the other
//! ways to carry it out bring, beside what was predicted.

use tapstone_record::{CaseResult, Estimate, ModelPrediction, Phase, Record, TargetKind, Trial};

use super::super::charts;
use super::super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use crate::figures;

/// The phases of a step's own case.
const PARTS: [&str; 4] = ["commands", "transfer", "processing", "host"];

pub(in super::super) fn is_one(record: &Record) -> bool {
    record.target.kind == TargetKind::Door
}

/// Whether a case is a step of another, which this table tells. The host's share is none: it is a
/// part of several.
pub(in super::super) fn tells(record: &Record, case: &CaseResult) -> bool {
    let is_step = |whole: &CaseResult| {
        let is_it = |name| whole.phases.iter().any(|phase| phase.call == name);
        step_name(whole, case).is_some_and(is_it)
    };
    is_one(record) && record.results.iter().any(is_step)
}

/// The name of a step: `door.pki-cak.select` is `select` of `door.pki-cak`.
fn step_name<'a>(whole: &CaseResult, case: &'a CaseResult) -> Option<&'a str> {
    case.operation.strip_prefix(&whole.operation)?.strip_prefix('.')
}

pub(super) fn add_dialogue(page: &mut Page, record: &Record) {
    if let Some(whole) = record.results.first().filter(|case| !case.phases.is_empty()) {
        let steps = |phase: &Phase| {
            let name = format!("{}.{}", whole.operation, phase.call);
            record.results.iter().find(|case| case.operation == name)
        };
        page.heading("steps", &whole.operation);
        let mut columns: Vec<Column> = vec![left("step", Keep::Always)];
        columns.extend(["median", "p95", "share"].map(|name| right(name, Keep::Always)));
        columns.extend(PARTS.map(|name| right(name, Keep::Rank(1))));
        let entries = whole.phases.iter().map(|phase| entry(phase, steps(phase)));
        page.grid(&Grid { columns, entries: entries.collect() });
    }
    if !record.trials.is_empty() {
        page.heading("strategies", "beside the baseline, interleaved; mean times and their ratio");
        page.chart(charts::strategies(&record.trials));
        page.grid(&strategies(&record.trials));
        for trial in &record.trials {
            let name = Span::new(format!("  {}: ", trial.fix), Tint::Strong);
            // What was predicted is in the table; the other note is the condition.
            let condition = trial.notes.last().map_or("", String::as_str);
            page.hanging(&name, &Span::plain(condition));
        }
        for text in record.trials.iter().filter_map(undecided) {
            page.hanging(&Span::new("  ? ", Tint::Caution), &Span::plain(text));
        }
    }
    if let Some(first) = record.model_predictions.first() {
        // The first is the baseline, whose changes are those of the card.
        let card = match &first.changes[..] {
            [] => String::new(),
            changes => format!(" with {}", changes.join(", ")),
        };
        let name = &first.scenario.name;
        let of = format!("scenario {name}{card}, beside the mean that was measured");
        page.heading("what the model says", &of);
        page.grid(&model(&record.model_predictions));
    }
}

/// Where it is open whether a strategy is faster: why, and what would decide it.
fn undecided(trial: &Trial) -> Option<String> {
    let Estimate { low, high, .. } = trial.speedup;
    (low <= 1.0 && high >= 1.0).then(|| {
        format!(
            "{}: whether it is faster is open: by these rounds its speed-up is between {} and {}. \
             Four times as many (--rounds) make that about half as wide.",
            trial.fix,
            figures::ratio(low),
            figures::ratio(high)
        )
    })
}

/// What a model says of each way, beside what it took.
fn model(predictions: &[ModelPrediction]) -> Grid {
    let columns = vec![
        left("case", Keep::Always),
        right("model", Keep::Always),
        right("executed", Keep::Always),
        right("off", Keep::Always),
        left("changes", Keep::Rank(1)),
    ];
    let cells = |prediction: &ModelPrediction| {
        Entry::Cells(vec![
            Span::plain(&prediction.operation),
            Span::plain(figures::time(prediction.predicted_ns)),
            Span::new(figures::time(prediction.measured_ns.estimate), Tint::Strong),
            Span::plain(format!("{:+.1} %", 100.0 * prediction.relative_error)),
            Span::faint(prediction.changes.join(", ")),
        ])
    };
    Grid { columns, entries: predictions.iter().map(cells).collect() }
}

fn entry(phase: &Phase, case: Option<&CaseResult>) -> Entry {
    let time = |nanos: Option<f64>| nanos.map_or_else(|| figures::NONE.into(), figures::time);
    let mut cells = vec![
        Span::plain(&phase.call),
        Span::new(time(phase.p50_ns), Tint::Strong),
        Span::plain(time(phase.p95_ns)),
        Span::plain(figures::share(phase.share)),
    ];
    cells.extend(PARTS.map(|name| {
        let parts = case.map_or(&[][..], |case| &case.phases[..]);
        let part = parts.iter().find(|part| part.call == name);
        part.map_or_else(
            || Span::faint(figures::NONE),
            |part| Span::plain(figures::time(part.mean_ns)),
        )
    }));
    Entry::Cells(cells)
}

fn strategies(trials: &[Trial]) -> Grid {
    let columns = vec![
        left("strategy", Keep::Always),
        right("plain", Keep::Rank(2)),
        right("takes", Keep::Always),
        right("saves", Keep::Always),
        right("predicted", Keep::Always),
        right("off", Keep::Always),
        right("speed-up", Keep::Rank(1)),
    ];
    let cells = |trial: &Trial| {
        let before = trial.before_ns.estimate;
        let after = trial.after_ns.estimate;
        let predicted = trial.predicted.map(|range| f64::midpoint(range.low, range.high));
        // Of the time that it takes: the prediction's, against the one that was measured.
        let off = predicted.map(|saved| 100.0 * ((before - saved) / after - 1.0));
        Entry::Cells(vec![
            Span::plain(&trial.fix),
            Span::plain(figures::time(before)),
            Span::new(figures::time(after), Tint::Strong),
            Span::plain(signed(before - after)),
            Span::plain(predicted.map_or_else(|| figures::NONE.into(), signed)),
            Span::faint(off.map_or_else(|| figures::NONE.into(), |off| format!("{off:+.1} %"))),
            Span::plain(figures::ratio(trial.speedup.estimate)),
        ])
    };
    Grid { columns, entries: trials.iter().map(cells).collect() }
}

fn signed(nanos: f64) -> String {
    match nanos < 0.0 {
        true => format!("-{}", figures::time(-nanos)),
        false => figures::time(nanos),
    }
}
