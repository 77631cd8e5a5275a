//! Latencies: quantiles and mean with their intervals, and the extremes, which are exact.

use tapstone_record::{CaseResult, Estimate, Latency};

use crate::figures;
use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};

pub(super) fn add_latencies(page: &mut Page, case: &CaseResult) {
    let Some(latency) = case.latency_ns else { return };
    let level = case.interval.as_ref().map(|interval| interval.level.0);
    let columns = vec![
        left("latency", Keep::Always),
        right("", Keep::Always),
        left(if level == Some(0.95) { "95 % interval" } else { "interval" }, Keep::Always),
    ];
    page.blank();
    page.grid(&Grid { columns, entries: entries(&latency) });
}

fn entries(latency: &Latency) -> Vec<Entry> {
    let Latency { mean, p50, p90, p95, p99, p99_9, min, max } = *latency;
    let quantiles = [("p50", p50), ("p90", p90), ("p95", p95), ("p99", p99), ("p99.9", p99_9)];
    let mut entries = vec![entry("shortest", Span::plain(min.to_string()), "")];
    entries.extend(quantiles.map(|(name, value)| estimated(name, value)));
    entries.push(entry("longest", Span::plain(max.to_string()), ""));
    entries.push(estimated("mean", mean));
    entries
}

fn estimated(name: &str, value: Option<Estimate>) -> Entry {
    match value {
        None => entry(name, Span::faint(figures::NONE), "too few or too uneven samples"),
        Some(value) => {
            let interval = figures::interval(&value, figures::time);
            entry(name, Span::new(figures::time(value.estimate), Tint::Strong), &interval)
        }
    }
}

fn entry(name: &str, value: Span, interval: &str) -> Entry {
    // The label column is as wide as that of the facts, so that all values start in one line.
    Entry::Cells(vec![Span::plain(format!("{name:<10}")), value, Span::faint(interval)])
}
