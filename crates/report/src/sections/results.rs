//! The table: a row for each result, and below it in words what went wrong.

use tapstone_record::{
    CaseResult, Estimate, Fraction, Latency, LimitedBy, LoadKind, Outcome, Provenance, Verification,
};
use tapstone_text::thousands;

use super::blocks::sparkline;
use super::charts;
use super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::head::{limits, measured};
use super::mix::{Item, Place, is_whole, ordered};
use super::page::{Page, Span, Tint};
use super::shared::differ;
use crate::{bins, figures, words};

/// What lies beyond this quantile shares the last column of the small histogram.
const BODY: Fraction = Fraction(0.99);

/// From here on there is room for the wider histogram.
const WIDE: usize = 100;

pub(super) fn add_results(page: &mut Page, rows: &[CaseResult]) {
    let items = ordered(rows);
    let fields = fields(rows, &items, page.width() >= WIDE);
    let mut columns = vec![left("operation", Keep::Always)];
    columns.extend(fields.iter().map(|field| field.column.clone()));
    let entries = items.iter().flat_map(|item| entries(item, &fields)).collect();
    page.heading("results", "");
    page.chart(charts::results(rows));
    page.grid(&Grid { columns, entries });
}

/// What a row has in a column.
type Cell = fn(&CaseResult) -> Span;

/// A column and its cells.
struct Field {
    column: Column,
    cell: Cell,
}

/// The columns that these rows need. What they share stands above the table.
fn fields(rows: &[CaseResult], items: &[Item<'_>], wide: bool) -> Vec<Field> {
    let sizes = differ(measured(rows).filter_map(|row| row.message_bytes));
    let workers_differ = differ(rows.iter().map(|row| row.concurrency));
    let loads = differ(rows.iter().map(|row| row.load));
    let failures = rows.iter().any(|row| words::failures(row) > 0);
    let tail = measured(rows).any(|row| p999(row).is_some());
    let checks = rows.iter().any(|row| row.verification.is_some());
    let limits = differ(limits(items));
    // Without a rate, as of calls that need others before them, the mean says how long one takes.
    let rates = rows.iter().all(|row| row.throughput.is_some() || !has_figures(row));
    let published = measured(rows).any(|row| words::published_mean(row).is_some());
    let all: [(bool, Column, Cell); 15] = [
        (sizes, right("message", message_keep(rows)), message),
        (workers_differ, left("workers", Keep::Always), workers),
        (loads, right("load", Keep::Always), load),
        (rates, right("rate", Keep::Always), rate),
        (!rates, right("mean", Keep::Always), mean),
        (published, right("published", Keep::Always), published_mean),
        (true, left("interval", Keep::Rank(7)), if rates { interval } else { mean_interval }),
        (failures, right("failed", Keep::Always), failed),
        (true, right("p50", Keep::Rank(8)), |row| quantile(row, |latency| latency.p50)),
        (true, right("p99", Keep::Rank(6)), |row| quantile(row, |latency| latency.p99)),
        (tail, right("p99.9", Keep::Rank(2)), |row| quantile(row, |latency| latency.p999)),
        (!tail, right("max", Keep::Rank(2)), longest),
        (true, left("latency", Keep::Rank(3)), if wide { large_shape } else { small_shape }),
        (checks, left("verified", Keep::Rank(5)), if wide { verified } else { verified_briefly }),
        (limits, left("limited by", Keep::Rank(1)), limit),
    ];
    let needed = all.into_iter().filter(|(needed, ..)| *needed);
    needed.map(|(_, column, cell)| Field { column, cell }).collect()
}

/// The size tells rows of one operation apart, and is then not left out.
fn message_keep(rows: &[CaseResult]) -> Keep {
    let other = |row: &CaseResult, with: &CaseResult| {
        row.operation == with.operation && row.message_bytes != with.message_bytes
    };
    let apart = rows.iter().any(|row| rows.iter().any(|with| other(row, with)));
    if apart { Keep::Always } else { Keep::Rank(4) }
}

/// A row of figures, and below it in words what went wrong.
fn entries(item: &Item<'_>, fields: &[Field]) -> Vec<Entry> {
    let Item { row, place } = item;
    let branch = match place {
        Place::Alone | Place::Whole => "",
        Place::Part => "├ ",
        Place::LastPart => "└ ",
    };
    let origin = match row.provenance {
        // What was emulated is in every heading.
        Provenance::Measured | Provenance::Emulated => String::new(),
        other => format!(" ({})", words::provenance(other)),
    };
    let name = format!("{branch}{}{origin}", row.operation);
    let sentence = sentence(row);
    if !has_figures(row) {
        let faint = row.status.outcome == Outcome::Unsupported;
        let name = Span::new(name, if faint { Tint::Faint } else { Tint::Plain });
        let text = sentence.unwrap_or_else(|| Span::faint("no figures"));
        return vec![Entry::Sentence(name, text)];
    }
    let mut cells = vec![Span::plain(name)];
    cells.extend(fields.iter().map(|field| (field.cell)(row)));
    let below = sentence.map(|text| Entry::Sentence(Span::default(), text));
    [Entry::Cells(cells)].into_iter().chain(below).collect()
}

/// A row that failed before its first operation has a rate of nothing, which is no figure.
fn has_figures(row: &CaseResult) -> bool {
    let tried = row.completed > 0 || row.status.outcome == Outcome::Ok;
    (row.throughput.is_some() || row.latency_ns.is_some()) && tried
}

/// What is to be said of a row that is not simply `ok`.
fn sentence(row: &CaseResult) -> Option<Span> {
    let wrong = row.verification.is_some_and(|of| of.wrong > 0);
    let tint = match row.status.outcome {
        Outcome::Failed => Tint::Bad,
        _ if wrong => Tint::Bad,
        Outcome::Ok | Outcome::Partial => Tint::Caution,
        Outcome::Unsupported => Tint::Faint,
    };
    words::trouble(row).map(|text| Span::new(text, tint))
}

fn message(row: &CaseResult) -> Span {
    Span::plain(row.message_bytes.map_or(figures::NONE.into(), figures::bytes))
}

fn workers(row: &CaseResult) -> Span {
    let threads = row.concurrency.threads;
    let processes = row.concurrency.processes;
    Span::plain(match row.concurrency.hosts {
        1 => format!("{threads} × {processes}"),
        hosts => format!("{threads} × {processes} × {hosts}"),
    })
}

fn load(row: &CaseResult) -> Span {
    let rate = row.load.rate_per_second.map(|rate| figures::rate(rate.0));
    Span::plain(match row.load.kind {
        LoadKind::Closed => "closed".into(),
        LoadKind::Open => rate.unwrap_or_else(|| "open".into()),
    })
}

fn rate(row: &CaseResult) -> Span {
    let rate = words::rate_of(row).map(|rate| figures::rate(rate.estimate));
    Span::new(rate.unwrap_or_else(|| figures::NONE.into()), Tint::Strong)
}

/// How long one operation takes.
fn mean(row: &CaseResult) -> Span {
    let mean = row.latency_ns.and_then(|latency| latency.mean);
    let mean = mean.map(|mean| figures::time(mean.estimate));
    Span::new(mean.unwrap_or_else(|| figures::NONE.into()), Tint::Strong)
}

fn published_mean(row: &CaseResult) -> Span {
    Span::faint(words::published_mean(row).unwrap_or_else(|| figures::NONE.into()))
}

fn interval(row: &CaseResult) -> Span {
    let interval = words::rate_of(row).map(|rate| figures::interval(&rate, figures::rate));
    doubted(row, interval)
}

fn mean_interval(row: &CaseResult) -> Span {
    let mean = row.latency_ns.and_then(|latency| latency.mean);
    doubted(row, mean.map(|mean| figures::interval(&mean, figures::time)))
}

/// An interval, with a `?` when it is too narrow to be true.
fn doubted(row: &CaseResult, interval: Option<String>) -> Span {
    let interval = interval.unwrap_or_default();
    match row.interval.as_ref().is_none_or(|of| of.reliable) {
        true => Span::faint(interval),
        false => Span::new(format!("{interval} ?"), Tint::Caution),
    }
}

fn failed(row: &CaseResult) -> Span {
    match words::failures(row) {
        0 => Span::faint("0"),
        failed => Span::new(thousands(failed), Tint::Bad),
    }
}

fn p999(row: &CaseResult) -> Option<Estimate> {
    row.latency_ns.and_then(|latency| latency.p999)
}

fn quantile(row: &CaseResult, which: fn(Latency) -> Option<Estimate>) -> Span {
    let quantile = row.latency_ns.and_then(which);
    quantile
        .map_or_else(|| Span::faint(figures::NONE), |of| Span::plain(figures::time(of.estimate)))
}

fn longest(row: &CaseResult) -> Span {
    let longest = row.latency_ns.map(|latency| latency.max.to_string());
    Span::plain(longest.unwrap_or_else(|| figures::NONE.into()))
}

fn large_shape(row: &CaseResult) -> Span {
    shape(row, 12)
}

fn small_shape(row: &CaseResult) -> Span {
    shape(row, 7)
}

/// How latencies are spread, from the shortest to the longest, on a logarithmic scale.
fn shape(row: &CaseResult, columns: usize) -> Span {
    let bins = row.histogram.as_ref().map(|histogram| bins::log_bins(histogram, columns, BODY));
    match bins {
        None => Span::default(),
        Some(Err(_)) => Span::new("broken", Tint::Caution),
        Some(Ok(bins)) => {
            Span::new(sparkline(bins.iter().map(|bin| bin.count as f64)), Tint::Accent)
        }
    }
}

/// Of a mix, the components are verified.
fn verified(row: &CaseResult) -> Span {
    if is_whole(row) && row.verification.is_none() {
        return Span::faint("see below");
    }
    // A command without a result is right when its status word is.
    if row.verification.is_none() && row.throughput.is_none() {
        return Span::faint(figures::NONE);
    }
    let tint = match row.verification {
        Some(Verification { wrong: 1.., .. }) => Tint::Bad,
        Some(Verification { checked: 1.., .. }) => Tint::Good,
        _ => Tint::Faint,
    };
    Span::new(words::verified(row.verification.as_ref()), tint)
}

fn verified_briefly(row: &CaseResult) -> Span {
    let full = verified(row);
    match row.verification {
        None => full,
        Some(_) => Span { text: words::verified_briefly(row.verification.as_ref()), ..full },
    }
}

fn limit(row: &CaseResult) -> Span {
    if row.client_cpu.is_none() && row.limited_by == LimitedBy::Unknown {
        return Span::default();
    }
    let tint = match row.limited_by {
        LimitedBy::Device => Tint::Plain,
        LimitedBy::Unknown => Tint::Faint,
        _ => Tint::Caution,
    };
    Span::new(words::limited_by(row.limited_by), tint)
}
