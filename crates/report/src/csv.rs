//! A record as CSV: a header, then one line for each result, unsupported and failed ones too.
//!
//! Times are in nanoseconds and rates in operations per second. A cell is empty where there is no
//! figure; empty is never zero. Words are those of the record. A text that a spreadsheet would take for
//! a formula (it begins with `=`, `+`, `-` or `@`) has an apostrophe in front.
//!
//! | columns | what they hold |
//! | --- | --- |
//! | `operation`, `message_bytes` | one documented variant, and the length of its input |
//! | `threads`, `processes`, `hosts` | threads in each process, processes on each host, hosts |
//! | `load`, `offered_per_second`, `achieved_per_second` | `closed` or `open`; of an open loop the rate that was to be and the rate that was |
//! | `status`, `step`, `code` | `ok`, `partial`, `unsupported` or `failed`; the call and its return code |
//! | `provenance`, `emulated` | where the figures came from; the profile when it was no real device |
//! | `completed`, `failed` | operations that ended well in the window, and those that did not |
//! | `window_seconds`, `stopped_by` | the window's length, and why it ended |
//! | `throughput_per_second`, `throughput_low`, `throughput_high` | completed operations per second with the ends of the interval |
//! | `latency_…_ns`, `latency_…_low_ns`, `latency_…_high_ns` | mean and quantiles with the ends of their intervals |
//! | `latency_min_ns`, `latency_max_ns` | the shortest and the longest, exact |
//! | `interval_level`, `interval_reliable` | the confidence level; `false` when intervals are too narrow |
//! | `busy_share`, `client_utilisation` | parts of 1: of the workers' time, and of the client's processors |
//! | `eligible`, `verified`, `wrong`, `verified_by` | results that could be checked, that were, that were wrong, and by whom |
//! | `limited_by` | `device`, `client` (this machine), `other programs`, `process lock`, `process connection`, `process lock or connection`, `network`, `search cap`, `interruption` or `unknown` |

use ::csv::Writer;
use tapstone_measure::units::Nanos;
use tapstone_record::{CaseResult, Estimate, Latency, Record};
use tapstone_text::{Foreign, csv_cell};
use thiserror::Error;

use crate::words;

/// CSV could not be made.
#[derive(Debug, Error)]
pub enum CsvError {
    /// The encoder refused a line.
    #[error("cannot write CSV: {0}\nhint: please report this as a defect of Tapstone")]
    Encode(#[from] ::csv::Error),
}

/// A cell that does nothing, neither to a terminal nor to a spreadsheet: labels and names in it come
/// from outside. Numbers stay as they are.
pub(crate) fn harmless_cell(text: &str) -> String {
    csv_cell(&Foreign::new(text).to_string()).into_owned()
}

/// The results of a record, one line each, below a header.
///
/// # Errors
/// When the encoder refuses a line, which would be a defect.
pub fn render(record: &Record) -> Result<String, CsvError> {
    let mut text = Vec::new();
    let mut writer = Writer::from_writer(&mut text);
    writer.write_record(COLUMNS.iter().map(|(name, _)| name))?;
    for case in &record.results {
        writer.write_record(COLUMNS.iter().map(|(_, cell)| harmless_cell(&cell(record, case))))?;
    }
    writer.flush().map_err(::csv::Error::from)?;
    drop(writer);
    Ok(String::from_utf8(text).expect("every cell was a string"))
}

/// A column: its name, and what a case has in it.
type Column = (&'static str, fn(&Record, &CaseResult) -> String);

/// All columns, in their order. New ones are added at the end, so that scripts which count columns
/// go on working.
const COLUMNS: &[Column] = &[
    ("operation", |_, case| case.operation.clone()),
    ("message_bytes", |_, case| text(case.message_bytes)),
    ("threads", |_, case| case.concurrency.threads.to_string()),
    ("processes", |_, case| case.concurrency.processes.to_string()),
    ("hosts", |_, case| case.concurrency.hosts.to_string()),
    ("load", |_, case| words::load(case.load.kind).into()),
    ("offered_per_second", |_, case| number(offered(case))),
    ("achieved_per_second", |_, case| number(case.achieved_rate.map(|rate| rate.0))),
    ("status", |_, case| words::outcome(case.status.outcome).into()),
    ("step", |_, case| text(case.status.step.clone())),
    ("code", |_, case| text(case.status.code.clone())),
    ("provenance", |_, case| words::provenance(case.provenance).into()),
    ("emulated", |record, _| text(record.target.emulated.as_ref().map(|it| it.profile.clone()))),
    ("completed", |_, case| case.completed.to_string()),
    ("failed", |_, case| words::failures(case).to_string()),
    ("window_seconds", |_, case| number(case.window.map(|window| window.seconds.0))),
    ("stopped_by", |_, case| text(case.stopped_by.map(words::stopped_by))),
    ("throughput_per_second", |_, case| throughput(case, value)),
    ("throughput_low", |_, case| throughput(case, low)),
    ("throughput_high", |_, case| throughput(case, high)),
    ("latency_mean_ns", |_, case| quantile(case, |latency| latency.mean, value)),
    ("latency_mean_low_ns", |_, case| quantile(case, |latency| latency.mean, low)),
    ("latency_mean_high_ns", |_, case| quantile(case, |latency| latency.mean, high)),
    ("latency_p50_ns", |_, case| quantile(case, |latency| latency.p50, value)),
    ("latency_p50_low_ns", |_, case| quantile(case, |latency| latency.p50, low)),
    ("latency_p50_high_ns", |_, case| quantile(case, |latency| latency.p50, high)),
    ("latency_p90_ns", |_, case| quantile(case, |latency| latency.p90, value)),
    ("latency_p90_low_ns", |_, case| quantile(case, |latency| latency.p90, low)),
    ("latency_p90_high_ns", |_, case| quantile(case, |latency| latency.p90, high)),
    ("latency_p95_ns", |_, case| quantile(case, |latency| latency.p95, value)),
    ("latency_p95_low_ns", |_, case| quantile(case, |latency| latency.p95, low)),
    ("latency_p95_high_ns", |_, case| quantile(case, |latency| latency.p95, high)),
    ("latency_p99_ns", |_, case| quantile(case, |latency| latency.p99, value)),
    ("latency_p99_low_ns", |_, case| quantile(case, |latency| latency.p99, low)),
    ("latency_p99_high_ns", |_, case| quantile(case, |latency| latency.p99, high)),
    ("latency_p99_9_ns", |_, case| quantile(case, |latency| latency.p99_9, value)),
    ("latency_p99_9_low_ns", |_, case| quantile(case, |latency| latency.p99_9, low)),
    ("latency_p99_9_high_ns", |_, case| quantile(case, |latency| latency.p99_9, high)),
    ("latency_min_ns", |_, case| extreme(case, |latency| latency.min)),
    ("latency_max_ns", |_, case| extreme(case, |latency| latency.max)),
    ("interval_level", |_, case| number(case.interval.as_ref().map(|of| of.level.0))),
    ("interval_reliable", |_, case| text(case.interval.as_ref().map(|of| of.reliable))),
    ("busy_share", |_, case| number(case.busy_share.map(|share| share.0))),
    ("client_utilisation", |_, case| number(case.client_cpu.map(|cpu| cpu.utilisation.0))),
    ("eligible", |_, case| text(case.verification.map(|of| of.eligible))),
    ("verified", |_, case| text(case.verification.map(|of| of.checked))),
    ("wrong", |_, case| text(case.verification.map(|of| of.wrong))),
    ("verified_by", |_, case| text(case.verification.map(|of| words::verifier(of.by)))),
    ("limited_by", |_, case| words::limited_by(case.limited_by).into()),
];

fn offered(case: &CaseResult) -> Option<f64> {
    case.offered_rate.or(case.load.rate_per_second).map(|rate| rate.0)
}

fn throughput(case: &CaseResult, end: fn(Estimate) -> f64) -> String {
    number(words::rate_of(case).map(end))
}

fn quantile(
    case: &CaseResult,
    which: fn(Latency) -> Option<Estimate>,
    end: fn(Estimate) -> f64,
) -> String {
    number(case.latency_ns.and_then(which).map(end))
}

fn extreme(case: &CaseResult, which: fn(Latency) -> Nanos) -> String {
    text(case.latency_ns.map(|latency| which(latency).0))
}

const fn value(of: Estimate) -> f64 {
    of.estimate
}

const fn low(of: Estimate) -> f64 {
    of.low
}

const fn high(of: Estimate) -> f64 {
    of.high
}

/// With all digits, so that it can be computed with; empty when there is none.
fn number(value: Option<f64>) -> String {
    text(value.filter(|value| value.is_finite()))
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_documented_in_its_group() {
        let documentation = include_str!("csv.rs").split("use ::csv").next().unwrap();
        for (name, _) in COLUMNS {
            let documented = documentation.contains(&format!("`{name}`"));
            assert!(documented || name.starts_with("latency_"), "{name}");
        }
    }
}
