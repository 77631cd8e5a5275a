//! The table: a row for each case, and below it in words what went wrong.

use tapstone_record::{
    CaseResult, Estimate, Fraction, Latency, LimitedBy, LoadKind, Outcome, Provenance, Verification,
};
use tapstone_text::thousands;

use super::blocks::sparkline;
use super::charts;
use super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::head::{limits, measured};
use super::mix::{Item, Place, is_whole, ordered};
use super::page::Page;
use super::shared::differ;
use super::span::{Span, Tint};
use crate::{bins, figures, words};

/// What lies beyond this quantile shares the last column of the small histogram.
const BODY: Fraction = Fraction(0.99);

/// From here on there is room for the wider histogram.
const WIDE: usize = 100;

pub(super) fn add_results(page: &mut Page, cases: &[CaseResult]) {
    let items = ordered(cases);
    let fields = fields(cases, &items, page.width() >= WIDE);
    let mut columns = vec![left("operation", Keep::Always)];
    columns.extend(fields.iter().map(|field| field.column.clone()));
    let entries = items.iter().flat_map(|item| entries(item, &fields)).collect();
    page.heading("results", "");
    page.chart(charts::results(cases));
    page.grid(&Grid { columns, entries });
}

/// What a case has in a column.
type Cell = fn(&CaseResult) -> Span;

/// A column and its cells.
struct Field {
    column: Column,
    cell: Cell,
}

/// The columns that these cases need. What they share stands above the table.
fn fields(cases: &[CaseResult], items: &[Item<'_>], wide: bool) -> Vec<Field> {
    let sizes = differ(measured(cases).filter_map(|case| case.message_bytes));
    let workers_differ = differ(cases.iter().map(|case| case.concurrency));
    let loads = differ(cases.iter().map(|case| case.load));
    let failures = cases.iter().any(|case| words::failures(case) > 0);
    let tail = measured(cases).any(|case| p99_9(case).is_some());
    let checks = cases.iter().any(|case| case.verification.is_some());
    let limits = differ(limits(items));
    // Without a rate, as of calls that need others before them, the mean says how long one takes.
    let rates = cases.iter().all(|case| case.throughput.is_some() || !has_figures(case));
    let published = measured(cases).any(|case| words::published_mean(case).is_some());
    let all: [(bool, Column, Cell); 15] = [
        (sizes, right("message", message_keep(cases)), message),
        (workers_differ, left("workers", Keep::Always), workers),
        (loads, right("load", Keep::Always), load),
        (rates, right("rate", Keep::Always), rate),
        (!rates, right("mean", Keep::Always), mean),
        (published, right("published", Keep::Always), published_mean),
        (true, left("interval", Keep::Rank(7)), if rates { interval } else { mean_interval }),
        (failures, right("failed", Keep::Always), failed),
        (true, right("p50", Keep::Rank(8)), |case| quantile(case, |latency| latency.p50)),
        (true, right("p99", Keep::Rank(6)), |case| quantile(case, |latency| latency.p99)),
        (tail, right("p99.9", Keep::Rank(2)), |case| quantile(case, |latency| latency.p99_9)),
        (!tail, right("max", Keep::Rank(2)), longest),
        (true, left("latency", Keep::Rank(3)), if wide { large_shape } else { small_shape }),
        (checks, left("verified", Keep::Rank(5)), if wide { verified } else { verified_briefly }),
        (limits, left("limited by", Keep::Rank(1)), limit),
    ];
    let needed = all.into_iter().filter(|(needed, ..)| *needed);
    needed.map(|(_, column, cell)| Field { column, cell }).collect()
}

/// The size tells cases of one operation apart, and is then not left out.
fn message_keep(cases: &[CaseResult]) -> Keep {
    let other = |case: &CaseResult, with: &CaseResult| {
        case.operation == with.operation && case.message_bytes != with.message_bytes
    };
    let apart = cases.iter().any(|case| cases.iter().any(|with| other(case, with)));
    if apart { Keep::Always } else { Keep::Rank(4) }
}

/// A row of figures, and below it in words what went wrong.
fn entries(item: &Item<'_>, fields: &[Field]) -> Vec<Entry> {
    let Item { case, place } = item;
    let branch = match place {
        Place::Alone | Place::Whole => "",
        Place::Part => "├ ",
        Place::LastPart => "└ ",
    };
    let origin = match case.provenance {
        // What was emulated is in every heading.
        Provenance::Measured | Provenance::Emulated => String::new(),
        other => format!(" ({})", words::provenance(other)),
    };
    let name = format!("{branch}{}{origin}", case.operation);
    let sentence = sentence(case);
    if !has_figures(case) {
        let faint = case.status.outcome == Outcome::Unsupported;
        let name = Span::new(name, if faint { Tint::Faint } else { Tint::Plain });
        let text = sentence.unwrap_or_else(|| Span::faint("no figures"));
        return vec![Entry::Sentence(name, text)];
    }
    let mut cells = vec![Span::plain(name)];
    cells.extend(fields.iter().map(|field| (field.cell)(case)));
    let below = sentence.map(|text| Entry::Sentence(Span::default(), text));
    [Entry::Cells(cells)].into_iter().chain(below).collect()
}

/// A case that failed before its first operation has a rate of nothing, which is no figure.
fn has_figures(case: &CaseResult) -> bool {
    let tried = case.completed > 0 || case.status.outcome == Outcome::Ok;
    (case.throughput.is_some() || case.latency_ns.is_some()) && tried
}

/// What is to be said of a case that is not simply `ok`.
fn sentence(case: &CaseResult) -> Option<Span> {
    let wrong = case.verification.is_some_and(|of| of.wrong > 0);
    let tint = match case.status.outcome {
        Outcome::Failed => Tint::Bad,
        _ if wrong => Tint::Bad,
        Outcome::Ok | Outcome::Partial => Tint::Caution,
        Outcome::Unsupported => Tint::Faint,
    };
    words::trouble(case).map(|text| Span::new(text, tint))
}

fn message(case: &CaseResult) -> Span {
    Span::plain(case.message_bytes.map_or(figures::NONE.into(), figures::bytes))
}

fn workers(case: &CaseResult) -> Span {
    let threads = case.concurrency.threads;
    let processes = case.concurrency.processes;
    Span::plain(match case.concurrency.hosts {
        1 => format!("{threads} × {processes}"),
        hosts => format!("{threads} × {processes} × {hosts}"),
    })
}

fn load(case: &CaseResult) -> Span {
    let rate = case.load.rate_per_second.map(|rate| figures::rate(rate.0));
    Span::plain(match case.load.kind {
        LoadKind::Closed => "closed".into(),
        LoadKind::Open => rate.unwrap_or_else(|| "open".into()),
    })
}

fn rate(case: &CaseResult) -> Span {
    let rate = words::rate_of(case).map(|rate| figures::rate(rate.estimate));
    Span::new(rate.unwrap_or_else(|| figures::NONE.into()), Tint::Strong)
}

/// How long one operation takes.
fn mean(case: &CaseResult) -> Span {
    let mean = case.latency_ns.and_then(|latency| latency.mean);
    let mean = mean.map(|mean| figures::time(mean.estimate));
    Span::new(mean.unwrap_or_else(|| figures::NONE.into()), Tint::Strong)
}

fn published_mean(case: &CaseResult) -> Span {
    Span::faint(words::published_mean(case).unwrap_or_else(|| figures::NONE.into()))
}

fn interval(case: &CaseResult) -> Span {
    let interval = words::rate_of(case).map(|rate| figures::interval(&rate, figures::rate));
    doubted(case, interval)
}

fn mean_interval(case: &CaseResult) -> Span {
    let mean = case.latency_ns.and_then(|latency| latency.mean);
    doubted(case, mean.map(|mean| figures::interval(&mean, figures::time)))
}

/// An interval, with a `?` when it is too narrow to be true.
fn doubted(case: &CaseResult, interval: Option<String>) -> Span {
    let interval = interval.unwrap_or_default();
    match words::doubt(case) {
        "" => Span::faint(interval),
        doubt => Span::new(format!("{interval}{doubt}"), Tint::Caution),
    }
}

fn failed(case: &CaseResult) -> Span {
    match words::failures(case) {
        0 => Span::faint("0"),
        failed => Span::new(thousands(failed), Tint::Bad),
    }
}

fn p99_9(case: &CaseResult) -> Option<Estimate> {
    case.latency_ns.and_then(|latency| latency.p99_9)
}

fn quantile(case: &CaseResult, which: fn(Latency) -> Option<Estimate>) -> Span {
    let quantile = case.latency_ns.and_then(which);
    quantile
        .map_or_else(|| Span::faint(figures::NONE), |of| Span::plain(figures::time(of.estimate)))
}

fn longest(case: &CaseResult) -> Span {
    let longest = case.latency_ns.map(|latency| latency.max.to_string());
    Span::plain(longest.unwrap_or_else(|| figures::NONE.into()))
}

fn large_shape(case: &CaseResult) -> Span {
    shape(case, 12)
}

fn small_shape(case: &CaseResult) -> Span {
    shape(case, 7)
}

/// How latencies are spread, from the shortest to the longest, on a logarithmic scale.
fn shape(case: &CaseResult, columns: usize) -> Span {
    let bins = case.histogram.as_ref().map(|histogram| bins::log_bins(histogram, columns, BODY));
    match bins {
        None => Span::default(),
        Some(Err(_)) => Span::new("broken", Tint::Caution),
        Some(Ok(bins)) => {
            Span::new(sparkline(bins.iter().map(|bin| bin.count as f64)), Tint::Accent)
        }
    }
}

/// Of a mix, the components are verified.
fn verified(case: &CaseResult) -> Span {
    if is_whole(case) && case.verification.is_none() {
        return Span::faint("see below");
    }
    // A command without a result is right when its status word is.
    if case.verification.is_none() && case.throughput.is_none() {
        return Span::faint(figures::NONE);
    }
    let tint = match case.verification {
        Some(Verification { wrong: 1.., .. }) => Tint::Bad,
        Some(of) if of.is_unproven() => Tint::Bad,
        Some(Verification { checked: 1.., .. }) => Tint::Good,
        _ => Tint::Faint,
    };
    Span::new(words::verified(case.verification.as_ref()), tint)
}

fn verified_briefly(case: &CaseResult) -> Span {
    let full = verified(case);
    match case.verification {
        None => full,
        Some(_) => Span { text: words::verified_briefly(case.verification.as_ref()), ..full },
    }
}

fn limit(case: &CaseResult) -> Span {
    if case.client_cpu.is_none() && case.limited_by == LimitedBy::Unknown {
        return Span::default();
    }
    let tint = match case.limited_by {
        LimitedBy::Device => Tint::Plain,
        LimitedBy::Unknown => Tint::Faint,
        _ => Tint::Caution,
    };
    Span::new(words::limited_by(case.limited_by), tint)
}
