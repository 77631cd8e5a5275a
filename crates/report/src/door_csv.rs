//! A door's model as CSV: the parts of a budget, the changes of a what-if, or a queue.
//!
//! Times are in nanoseconds, shares are parts of 1. A cell is empty where there is no figure.

use ::csv::{ReaderBuilder, Writer};
use serde::Serialize;
use tapstone_record::{BudgetPart, PartKind, Record};

use crate::csv::{CsvError, harmless_cell};
use crate::words;

/// The lines of a record that holds a model; `None` for any other.
///
/// # Errors
/// When the encoder refuses a line, which would be a defect.
pub fn render(record: &Record) -> Result<Option<String>, CsvError> {
    if let Some(budget) = &record.budget {
        let parts = budget.parts.iter().map(|part| BudgetLine::from_part(part, false));
        let self_check = budget.self_check.iter().map(|part| BudgetLine::from_part(part, true));
        return lines(parts.chain(self_check)).map(Some);
    }
    if let Some(what_if) = &record.what_if {
        let sets = what_if.sets.iter().enumerate().flat_map(|(at, set)| {
            set.waterfall.iter().map(move |step| StepLine {
                set: at + 1,
                effort: set.effort,
                change: &step.change,
                saves_ns: step.saves_ns,
                left_ns: step.left_ns,
                met_share: set.probability.as_ref().map(|chance| chance.met.estimate),
            })
        });
        return lines(sets).map(Some);
    }
    let Some(queue) = &record.queue else { return Ok(None) };
    let of = |estimate: &Option<tapstone_record::Estimate>| estimate.as_ref().map(|it| it.estimate);
    lines(std::iter::once(QueueLine {
        arrivals: queue.arrivals,
        arrivals_per_hour: queue.arrivals_per_hour,
        seed: queue.seed,
        throughput_per_minute: queue.throughput_per_minute.estimate,
        capacity_per_minute: queue.capacity_per_minute,
        utilisation: queue.utilisation.0,
        overloaded: queue.overloaded,
        wait_mean_ns: of(&queue.wait_ns.mean),
        wait_p50_ns: of(&queue.wait_ns.p50),
        wait_p90_ns: of(&queue.wait_ns.p90),
        wait_p95_ns: of(&queue.wait_ns.p95),
        wait_p99_ns: of(&queue.wait_ns.p99),
        wait_max_ns: queue.wait_ns.mean.map(|_| queue.wait_ns.max.0),
        gave_up_share: queue.gave_up.estimate,
        removed_early_share: queue.removed_early.estimate,
    }))
    .map(Some)
}

#[derive(Serialize)]
struct BudgetLine<'a> {
    component: &'a str,
    kind: &'static str,
    extra: bool,
    time_ns: f64,
    share: f64,
    provenance: &'static str,
    source: &'a str,
}

impl<'a> BudgetLine<'a> {
    fn from_part(part: &'a BudgetPart, extra: bool) -> Self {
        Self {
            component: &part.component,
            kind: match part.kind {
                PartKind::Transfer => "transfer",
                PartKind::Processing => "processing",
                PartKind::Waiting => "waiting",
            },
            extra,
            time_ns: part.time_ns.estimate,
            share: part.share.0,
            provenance: words::provenance(part.provenance),
            source: part.source.as_deref().unwrap_or_default(),
        }
    }
}

#[derive(Serialize)]
struct StepLine<'a> {
    set: usize,
    effort: u64,
    change: &'a str,
    saves_ns: f64,
    left_ns: f64,
    met_share: Option<f64>,
}

#[derive(Serialize)]
struct QueueLine {
    arrivals: u64,
    arrivals_per_hour: f64,
    seed: u64,
    throughput_per_minute: f64,
    capacity_per_minute: f64,
    utilisation: f64,
    overloaded: bool,
    wait_mean_ns: Option<f64>,
    wait_p50_ns: Option<f64>,
    wait_p90_ns: Option<f64>,
    wait_p95_ns: Option<f64>,
    wait_p99_ns: Option<f64>,
    wait_max_ns: Option<u64>,
    gave_up_share: f64,
    removed_early_share: f64,
}

/// A header from the names of the fields, then the lines.
fn lines(lines: impl Iterator<Item = impl Serialize>) -> Result<String, CsvError> {
    let mut serialized = Writer::from_writer(Vec::new());
    for line in lines {
        serialized.serialize(line)?;
    }
    let serialized = serialized.into_inner().map_err(|error| error.into_error());
    let serialized = serialized.map_err(::csv::Error::from)?;
    let mut text = Vec::new();
    let mut writer = Writer::from_writer(&mut text);
    for record in ReaderBuilder::new().has_headers(false).from_reader(&serialized[..]).records() {
        writer.write_record(record?.iter().map(harmless_cell))?;
    }
    writer.flush().map_err(::csv::Error::from)?;
    drop(writer);
    Ok(String::from_utf8(text).expect("every cell was a string"))
}
