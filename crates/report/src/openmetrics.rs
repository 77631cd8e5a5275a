//! Records as OpenMetrics, for a collector of metrics: gauges with the same labels in every run, and for
//! the interval of each a gauge of its own (`…_ci_lower`, `…_ci_upper`).
//!
//! | family | what it holds |
//! | --- | --- |
//! | `tapstone_record_info` | what was measured, with which version |
//! | `tapstone_record_started_timestamp_seconds` | when |
//! | `tapstone_operation_rate` | completed operations per second |
//! | `tapstone_operation_latency_seconds` | by `statistic`: mean, p50, p90, p95, p99, p99.9 |
//! | `tapstone_operation_interval_reliable` | 0 where the intervals are too narrow to be true |
//! | `tapstone_operation_failed` | operations that failed in the window |
//! | `tapstone_operation_wrong` | results that were checked and wrong |
//! | `tapstone_comparison_ratio` | candidate over baseline, by `quantity` |
//! | `tapstone_comparison_verdict` | all that a comparison can say: 1 for what it says |
//! | `tapstone_comparison_not_compared` | 1 for an operation that cannot be compared |
//! | `tapstone_claim_verdict` | all that can become of a claim: 1 for what became of it |
//!
//! Each sample carries `target`, `kind` and `emulated`; what is measured has `operation`, `threads`,
//! `processes`, `hosts`, `load` and `message_bytes`. No label is a result, so that a series is the same
//! one in every run: verdicts are state sets.

use std::collections::BTreeSet;
use std::fmt::Write;

use tapstone_record::{CaseResult, Change, ComparedCase, Estimate, Record, Verdict};

use crate::text::clean;
use crate::{verdict, words};

const CHANGES: [Change; 3] = [Change::Faster, Change::Slower, Change::Inconclusive];
const VERDICTS: [Verdict; 4] = [Verdict::Met, Verdict::Missed, Verdict::Undecided, Verdict::Void];

type Labels = Vec<(&'static str, String)>;

/// Samples of one name. Of two with the same labels the second says that it is one.
struct Family {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    samples: Vec<(Labels, f64)>,
}

impl Family {
    const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: "gauge", samples: Vec::new() }
    }

    const fn states(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: "stateset", samples: Vec::new() }
    }

    /// One of several states, each with a sample: the label has the family's name (OpenMetrics 1.0,
    /// StateSet).
    fn push_state(&mut self, labels: &Labels, states: &[&str], state: &str) {
        for one in states {
            let mut labels = labels.clone();
            labels.push((self.name, one.to_lowercase()));
            self.samples.push((labels, if *one == state { 1.0 } else { 0.0 }));
        }
    }

    fn write(&self, text: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        let Self { name, help, kind, samples } = self;
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let suffix = if *kind == "info" { "_info" } else { "" };
        let mut seen = BTreeSet::new();
        for (labels, value) in samples {
            let mut labels = labels.clone();
            let mut repeated = 1;
            while !seen.insert(labels.clone()) {
                repeated += 1;
                labels.retain(|(name, _)| *name != "repeated");
                labels.push(("repeated", repeated.to_string()));
            }
            let labels: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            let _ = writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(","));
        }
    }
}

/// A gauge with the two of its interval.
struct Estimated([Family; 3]);

impl Estimated {
    fn push(&mut self, labels: &Labels, of: Estimate, scale: f64) {
        let ends = [of.estimate, of.low, of.high];
        for (family, value) in self.0.iter_mut().zip(ends) {
            if value.is_finite() {
                family.samples.push((labels.clone(), value * scale));
            }
        }
    }
}

macro_rules! estimated {
    ($name:literal, $help:literal) => {
        Estimated([
            Family::gauge($name, $help),
            Family::gauge(concat!($name, "_ci_lower"), "Lower end of the interval."),
            Family::gauge(concat!($name, "_ci_upper"), "Upper end of the interval."),
        ])
    };
}

/// All records as one exposition.
#[must_use]
pub fn render(records: &[&Record]) -> String {
    let mut info = Family {
        kind: "info",
        ..Family::gauge("tapstone_record", "What was measured, and by which version.")
    };
    let mut started = Family::gauge("tapstone_record_started_timestamp_seconds", "When it began.");
    let mut rate = estimated!("tapstone_operation_rate", "Completed operations per second.");
    let mut latency = estimated!("tapstone_operation_latency_seconds", "Latency of an operation.");
    let mut reliable = Family::gauge(
        "tapstone_operation_interval_reliable",
        "0 where the intervals are too narrow to be true.",
    );
    let mut failed = Family::gauge("tapstone_operation_failed", "Operations that failed.");
    let mut wrong = Family::gauge("tapstone_operation_wrong", "Results that were wrong.");
    let mut ratio = estimated!("tapstone_comparison_ratio", "Candidate over baseline.");
    let mut changes = Family::states("tapstone_comparison_verdict", "What a comparison says.");
    let mut lost = Family::gauge("tapstone_comparison_not_compared", "1: cannot be compared.");
    let mut claims = Family::states("tapstone_claim_verdict", "What became of a claim.");
    for record in records {
        let common = common(record);
        let with = |more: Labels| common.iter().cloned().chain(more).collect::<Labels>();
        info.samples.push((with(vec![("version", record.tool.version.clone())]), 1.0));
        let seconds = record.started_at.as_millisecond() as f64 / 1e3;
        started.samples.push((common.clone(), seconds));
        for case in &record.results {
            let labels = with(of_case(case));
            words::rate_of(case).into_iter().for_each(|it| rate.push(&labels, it, 1.0));
            for (name, value) in statistics(case) {
                let mut labels = labels.clone();
                labels.push(("statistic", name.to_owned()));
                latency.push(&labels, value, 1e-9);
            }
            if let Some(interval) = &case.interval {
                reliable.samples.push((labels.clone(), f64::from(u8::from(interval.reliable))));
            }
            if let Some(verification) = case.verification {
                wrong.samples.push((labels.clone(), verification.wrong as f64));
            }
            failed.samples.push((labels, words::failures(case) as f64));
        }
        for row in record.comparison.iter().flat_map(|comparison| &comparison.cases) {
            let labels = with(of_row(row));
            changes.push_state(&labels, &CHANGES.map(words::change), words::change(row.verdict));
            ratio.push(&labels, row.ratio, 1.0);
        }
        for one in record.comparison.iter().flat_map(|of| &of.not_compared) {
            lost.samples.push((with(vec![("operation", one.operation.clone())]), 1.0));
        }
        for claim in &record.claims {
            let labels =
                with(vec![("claim", claim.text.clone()), ("operation", claim.operation.clone())]);
            let states = VERDICTS.map(words::verdict);
            claims.push_state(&labels, &states, words::verdict(claim.verdict));
        }
    }
    let estimated = [rate, latency, ratio].into_iter().flat_map(|Estimated(families)| families);
    let mut text = String::new();
    let plain = [info, started, reliable, failed, wrong, changes, lost, claims];
    for family in plain.into_iter().chain(estimated) {
        family.write(&mut text);
    }
    text + "# EOF\n"
}

fn common(record: &Record) -> Labels {
    let emulated = record.target.emulated.as_ref().map(|it| it.profile.clone());
    vec![
        ("target", verdict::title(record)),
        ("kind", record.target.kind.name().to_owned()),
        ("emulated", emulated.unwrap_or_default()),
    ]
}

fn of_row(row: &ComparedCase) -> Labels {
    let bytes = row.message_bytes.map(|bytes| bytes.to_string());
    vec![
        ("operation", row.operation.clone()),
        ("item", row.item.clone().unwrap_or_default()),
        ("quantity", words::quantity(row.quantity).to_owned()),
        ("concurrency", row.concurrency.map(words::concurrency).unwrap_or_default()),
        ("message_bytes", bytes.unwrap_or_default()),
    ]
}

fn of_case(case: &CaseResult) -> Labels {
    let bytes = case.message_bytes.map(|bytes| bytes.to_string());
    vec![
        ("operation", case.operation.clone()),
        ("threads", case.concurrency.threads.to_string()),
        ("processes", case.concurrency.processes.to_string()),
        ("hosts", case.concurrency.hosts.to_string()),
        ("load", words::load(case.load.kind).to_owned()),
        ("message_bytes", bytes.unwrap_or_default()),
        ("provenance", words::provenance(case.provenance).to_owned()),
    ]
}

fn statistics(case: &CaseResult) -> Vec<(&'static str, Estimate)> {
    let Some(of) = case.latency_ns else { return Vec::new() };
    let all = [
        ("mean", of.mean),
        ("p50", of.p50),
        ("p90", of.p90),
        ("p95", of.p95),
        ("p99", of.p99),
        ("p99.9", of.p99_9),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn escaped(text: &str) -> String {
    clean(text, true).replace('\\', "\\\\").replace('"', "\\\"")
}
