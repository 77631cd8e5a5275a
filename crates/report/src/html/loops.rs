//! The same operation in a closed loop and in an open one: how fast it can go, and how long one
//! waits at a rate. Two runs, so two records.

use maud::{Markup, html};
use tapstone_record::{CaseResult, Latency, LoadKind};

use super::{PageEntry, draw};
use crate::sections::charts;
use crate::text::clean;
use crate::{figures, words};

/// A section for each operation that was measured in both.
pub(super) fn sections(entries: &[PageEntry<'_>]) -> Markup {
    let cases = || entries.iter().flat_map(|entry| &entry.record.results);
    let kind = |kind: LoadKind| cases().filter(move |case| case.load.kind == kind);
    let open_of =
        |closed: &&CaseResult| kind(LoadKind::Open).find(|case| case.operation == closed.operation);
    let pairs: Vec<(&CaseResult, &CaseResult)> =
        kind(LoadKind::Closed).filter_map(|closed| Some((closed, open_of(&closed)?))).collect();
    html! {
        @if !pairs.is_empty() {
            article #loops {
                header {
                    h2 { "Closed against open loop" }
                    p { "A closed loop asks again as soon as it has its answer: it shows how fast \
                        the device can go. An open loop asks at a given rate, and counts the wait." }
                }
                @for (closed, open) in &pairs { (pair(closed, open)) }
            }
        }
    }
}

fn pair(closed: &CaseResult, open: &CaseResult) -> Markup {
    html! {
        section {
            h3 { (clean(&closed.operation, true)) }
            @if let Some(chart) = charts::loops(closed, open) { (draw::figure(&chart)) }
            div.scroll tabindex="0" role="group" aria-label="closed and open loop" {
                table {
                    thead { tr {
                        th.words scope="col" { "loop" }
                        th.words scope="col" { "workers" }
                        @for title in ["rate", "p50", "p90", "p99", "longest"] {
                            th.figures scope="col" { (title) }
                        }
                    } }
                    tbody { (line("closed", closed)) (line("open", open)) }
                }
            }
        }
    }
}

fn line(name: &str, case: &CaseResult) -> Markup {
    let rate = words::rate_of(case).map(|rate| figures::with_interval(&rate, figures::rate));
    let Latency { p50, p90, p99, max, .. } = case.latency_ns.unwrap_or_default();
    let quantile = |value: Option<tapstone_record::Estimate>| {
        value.map_or_else(|| figures::NONE.into(), |it| figures::with_interval(&it, figures::time))
    };
    html! {
        tr {
            th scope="row" { (name) }
            td { (words::concurrency(case.concurrency)) }
            td.figures { (rate.unwrap_or_else(|| figures::NONE.into())) }
            @for value in [p50, p90, p99] { td.figures { (quantile(value)) } }
            td.figures { (max) }
        }
    }
}
