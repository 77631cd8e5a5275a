//! One result in full: its latencies, their spread, its course in time, and how it came about.

mod course;
mod facts;
mod latencies;
mod spread;
mod values;

pub(super) use course::is_drift;

use tapstone_record::{CaseResult, Provenance};

use super::charts;
use super::page::{Page, Span, Tint};
use crate::{figures, words};

/// Whether there is more to show of a row than the table has said.
pub(super) const fn has_any(row: &CaseResult) -> bool {
    row.throughput.is_some() || row.latency_ns.is_some()
}

pub(super) fn add_detail(page: &mut Page, row: &CaseResult) {
    page.heading(&row.operation, &about(row));
    if let Some(trouble) = words::trouble(row) {
        page.fact("status", Span::new(trouble, Tint::Bad));
    }
    facts::before(page, row);
    page.chart(charts::percentiles(row));
    latencies::add_latencies(page, row);
    page.chart(charts::spread(row));
    spread::add_spread(page, row);
    page.chart(charts::values(row).or_else(|| charts::course(row)));
    match values::has_any(row) {
        true => values::add_values(page, row),
        false => course::add_course(page, row),
    }
    facts::after(page, row);
}

/// Under which conditions, in the heading.
fn about(row: &CaseResult) -> String {
    let mut parts: Vec<String> = row.message_bytes.map(figures::bytes).into_iter().collect();
    parts.push(words::concurrency(row.concurrency));
    parts.push(format!("{} loop", words::load(row.load.kind)));
    if !matches!(row.provenance, Provenance::Measured | Provenance::Emulated) {
        parts.push(words::provenance(row.provenance).into());
    }
    parts.join(" · ")
}
