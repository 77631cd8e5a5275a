//! Two things against one another: what they are, a table with a ratio for each operation, what
//! the threshold says, and what to know before believing it.
//!
//! A published baseline can have several items (cards, devices, versions): each gets a letter, a
//! column of figures beside the measured one, and a column of ratios.

use tapstone_record::{
    Change, ComparedCase, Comparison, Estimate, Judgement, Pairing, Provenance, Quantity, Side,
    Variation,
};

use super::charts;
use super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::shared::differ;
use super::span::{Span, Tint};
use crate::style::Style;
use crate::{figures, words};

mod calls;
mod items;
mod threshold;

/// Names listed on one line; more are counted.
const NAMED: usize = 8;

pub(super) fn add_comparison(page: &mut Page, comparison: &Comparison, style: &Style) {
    page.heading("comparison", &pairing(comparison));
    let of = |side: fn(&ComparedCase) -> Option<Provenance>| {
        super::shared::common(comparison.cases.iter().map(side)).flatten()
    };
    page.fact("baseline", side(&comparison.baseline, of(|row| row.baseline_provenance)));
    page.fact("candidate", side(&comparison.candidate, of(|row| row.candidate_provenance)));
    page.fact("ratio", Span::faint(meaning(comparison)));
    if let Some(variation) = variation(comparison) {
        page.fact("intervals", Span::faint(variation));
    }
    page.fact("verdicts", Span::plain(summary(&comparison.cases)));
    page.chart(charts::ratios(comparison));
    page.blank();
    let items = items::item_names(&comparison.cases);
    if items.is_empty() {
        page.grid(&table(&comparison.cases, comparison.pairing));
    } else {
        items::add_items(page, comparison, &items);
    }
    calls::add_call_changes(page, &comparison.calls, style);
    left_out(page, comparison);
    add_not_compared(page, comparison);
    threshold::add_threshold(page, comparison);
    for warning in &comparison.warnings {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(warning));
    }
}

fn pairing(comparison: &Comparison) -> String {
    let rounds = super::shared::common(comparison.cases.iter().map(|row| row.rounds)).flatten();
    match (comparison.pairing, rounds) {
        (Pairing::Interleaved, Some(rounds)) => {
            format!("interleaved, {}", tapstone_text::counted(rounds.into(), "round", "rounds"))
        }
        (Pairing::Interleaved, None) => "interleaved in one run".to_owned(),
        (Pairing::Records, _) => "two runs".to_owned(),
        (Pairing::Published, _) => "a run and published figures".to_owned(),
    }
}

fn side(side: &Side, provenance: Option<Provenance>) -> Span {
    let marked = provenance.filter(|it| *it != Provenance::Measured).map(words::provenance);
    let emulated = side.emulated.as_ref().map(|profile| format!("profile {profile}"));
    let made_by = side.made_by.as_ref().map(|made_by| format!("made by {made_by}"));
    let parts = [Some(side.name.clone()), marked.map(str::to_owned), emulated, made_by];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    if side.source != side.name {
        parts.push(side.source.clone());
    }
    Span::plain(parts.join(" · "))
}

fn meaning(comparison: &Comparison) -> String {
    let mut quantities = comparison.cases.iter().map(|row| row.quantity);
    let what = match common_quantity(comparison) {
        Some(Quantity::Throughput) => "rates: above 1 the candidate is faster",
        Some(Quantity::Latency) => "mean times: above 1 the candidate is slower",
        Some(Quantity::WallTime) => "wall times: above 1 the candidate is slower",
        Some(Quantity::CpuTime) => "processor times: above 1 the candidate is slower",
        None if quantities.all(|of| of != Quantity::Throughput) => {
            "times: above 1 the candidate is slower"
        }
        None => "of rates (…/s) above 1 is faster, of times above 1 is slower",
    };
    format!("candidate over baseline, with its 95 % interval; {what}")
}

/// What differs between two runs is in their intervals only if it was measured.
fn variation(comparison: &Comparison) -> Option<&'static str> {
    if comparison.pairing == Pairing::Interleaved {
        return None;
    }
    Some(match super::shared::common(comparison.cases.iter().map(|row| row.variation)) {
        Some(None) => return None,
        Some(Some(Variation::Rounds)) => "hold the variation between rounds",
        // Rates are of tokens, which can be measured in rounds.
        Some(Some(Variation::Window))
            if common_quantity(comparison) == Some(Quantity::Throughput) =>
        {
            "hold the variation within one window; what differs from run to run is not in them, \
             and may explain a small difference (token --rounds measures it)"
        }
        Some(Some(Variation::Window)) => {
            "hold the variation within one window; what differs from run to run is not in them, \
             and may explain a small difference"
        }
        None => {
            "hold the variation between rounds for some operations, and within one window for others"
        }
    })
}

fn common_quantity(comparison: &Comparison) -> Option<Quantity> {
    super::shared::common(comparison.cases.iter().map(|row| row.quantity))
}

fn summary(rows: &[ComparedCase]) -> String {
    let count = |change| rows.iter().filter(|row| row.verdict == change).count();
    let all = [Change::Faster, Change::Slower, Change::Inconclusive];
    let counted = all.map(|change| format!("{} {}", count(change), words::change(change)));
    counted.join(", ")
}

const fn tint(change: Change) -> Tint {
    match change {
        Change::Faster => Tint::Good,
        Change::Slower => Tint::Bad,
        Change::Inconclusive => Tint::Faint,
    }
}

/// One row for each operation, both figures and the ratio. What was measured interleaved has no
/// records in which the intervals of the figures stand, and one threshold, which is told below.
fn table(rows: &[ComparedCase], pairing: Pairing) -> Grid {
    let intervals = pairing == Pairing::Interleaved;
    let sizes = differ(rows.iter().filter_map(|row| row.message_bytes));
    let workers = differ(rows.iter().map(|row| row.concurrency));
    let judged = !intervals && rows.iter().any(|row| row.threshold.is_some());
    let mut columns = vec![left("operation", Keep::Always)];
    columns.extend(sizes.then(|| right("message", Keep::Always)));
    columns.extend(workers.then(|| left("workers", Keep::Always)));
    columns.push(right("baseline", Keep::Rank(3)));
    columns.extend(intervals.then(|| left("", Keep::Rank(1))));
    columns.push(right("candidate", Keep::Rank(4)));
    columns.extend(intervals.then(|| left("", Keep::Rank(2))));
    columns.push(right("ratio", Keep::Always));
    columns.push(left("[low, high]", Keep::Always));
    columns.push(left("verdict", Keep::Always));
    columns.extend(judged.then(|| left("threshold", Keep::Always)));
    // Where all of a side have the same, it stands with the side's name.
    let mixed = [
        differ(rows.iter().map(|row| row.baseline_provenance)),
        differ(rows.iter().map(|row| row.candidate_provenance)),
    ];
    let cells = |row: &ComparedCase| {
        let mut cells = vec![Span::new(&row.operation, Tint::Strong)];
        let bytes = row.message_bytes.map_or(figures::NONE.into(), figures::bytes);
        cells.extend(sizes.then(|| Span::plain(bytes)));
        let who = row.concurrency.map_or(figures::NONE.into(), words::concurrency);
        cells.extend(workers.then(|| Span::plain(who)));
        let sides =
            [(row.baseline, row.baseline_provenance), (row.candidate, row.candidate_provenance)];
        for ((of, provenance), mixed) in sides.into_iter().zip(mixed) {
            let mark = words::provenance_mark(provenance.filter(|_| mixed));
            cells.push(Span::plain(format!("{}{mark}", figure(row.quantity, of))));
            let interval = || Span::faint(figures::interval(&of, print(row.quantity)));
            cells.extend(intervals.then(interval));
        }
        cells.push(Span::new(figures::ratio(row.ratio.estimate), Tint::Strong));
        cells.push(Span::faint(ends(row.ratio)));
        cells.push(Span::new(words::change(row.verdict), tint(row.verdict)));
        cells.extend(judged.then(|| row.threshold.map_or_else(Span::default, judgement)));
        Entry::Cells(cells)
    };
    Grid { columns, entries: rows.iter().map(cells).collect() }
}

fn figure(quantity: Quantity, of: Estimate) -> String {
    print(quantity)(of.estimate)
}

fn print(quantity: Quantity) -> fn(f64) -> String {
    match quantity {
        Quantity::Throughput => figures::rate,
        Quantity::Latency | Quantity::WallTime | Quantity::CpuTime => figures::time,
    }
}

fn ends(Estimate { low, high, .. }: Estimate) -> String {
    format!("[{}, {}]", figures::ratio(low), figures::ratio(high))
}

fn judgement(of: Judgement) -> Span {
    match of {
        Judgement::Held => Span::new("held", Tint::Good),
        Judgement::Exceeded => Span::new("EXCEEDED", Tint::Bad),
        Judgement::Undecided => Span::new("UNDECIDED", Tint::Caution),
    }
}

/// Operations that both tried, each with why there is no row of it.
fn add_not_compared(page: &mut Page, comparison: &Comparison) {
    for one in &comparison.not_compared {
        let text = words::not_compared(one);
        page.hanging(&Span::new("  not compared: ", Tint::Bad), &Span::plain(text));
    }
}

/// Operations that only one side has.
fn left_out(page: &mut Page, comparison: &Comparison) {
    let sides = [
        ("only in the baseline", &comparison.only_in_baseline),
        ("only in the candidate", &comparison.only_in_candidate),
    ];
    let some = sides.into_iter().filter(|(_, names)| !names.is_empty());
    for (place, (side, names)) in some.enumerate() {
        if place == 0 {
            page.blank();
        }
        let (named, more) = names.split_at(names.len().min(NAMED));
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        page.hanging(
            &Span::faint(format!("  {side}: ")),
            &Span::faint(format!("{}{more}", named.join(", "))),
        );
    }
}
