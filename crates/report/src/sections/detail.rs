//! One result in full: its latencies, their spread, its course in time, and how it came about.

mod course;
mod facts;
mod latencies;
mod spread;
mod values;

pub(super) use course::is_drift;

use tapstone_record::{CaseResult, Provenance};

use super::charts;
use super::page::Page;
use super::span::{Span, Tint};
use crate::{figures, words};

/// Whether there is more to show of a case than the table has said.
pub(super) const fn has_any(case: &CaseResult) -> bool {
    case.throughput.is_some() || case.latency_ns.is_some()
}

pub(super) fn add_detail(page: &mut Page, case: &CaseResult) {
    page.heading(&case.operation, &about(case));
    if let Some(trouble) = words::trouble(case) {
        page.fact("status", Span::new(trouble, Tint::Bad));
    }
    facts::before(page, case);
    page.chart(charts::percentiles(case));
    latencies::add_latencies(page, case);
    page.chart(charts::spread(case));
    spread::add_spread(page, case);
    page.chart(charts::values(case).or_else(|| charts::course(case)));
    match values::has_any(case) {
        true => values::add_values(page, case),
        false => course::add_course(page, case),
    }
    facts::after(page, case);
}

/// Under which conditions, in the heading.
fn about(case: &CaseResult) -> String {
    let mut parts: Vec<String> = case.message_bytes.map(figures::bytes).into_iter().collect();
    parts.push(words::concurrency(case.concurrency));
    parts.push(format!("{} loop", words::load(case.load.kind)));
    if !matches!(case.provenance, Provenance::Measured | Provenance::Emulated) {
        parts.push(words::provenance(case.provenance).into());
    }
    parts.join(" · ")
}
