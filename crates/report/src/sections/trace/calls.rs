//! The calls of a traced program, those that took longest first.

use tapstone_measure::units::Nanos;
use tapstone_record::Call;
use tapstone_text::{thousands, three_digits};

use super::super::grid::{Column, Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use crate::figures;
use crate::style::Style;

const LINES: usize = 15;

pub(super) fn add_calls(page: &mut Page, calls: &[Call], style: &Style) {
    if calls.is_empty() {
        return;
    }
    let mut calls: Vec<&Call> = calls.iter().collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.total_ns));
    let shown = super::shown(calls.len(), LINES, style);
    page.heading("calls", "total from entry to return, own without what it called or waited for");
    page.grid(&grid(&calls[..shown], page.width() >= super::WIDE));
    super::left_out(page, calls.len() - shown);
}

/// Makes a call's cell of one column.
type Cell = fn(&Call) -> Span;

fn grid(calls: &[&Call], wide: bool) -> Grid {
    let per_operation = calls.iter().any(|call| call.per_operation.is_some());
    let failed = calls.iter().any(|call| failures(call) > 0);
    let name: Cell = if wide {
        |call| Span::plain(&call.function)
    } else {
        |call| Span::plain(call.operation())
    };
    let tail = calls.iter().any(|call| call.p99_ns.is_some());
    let all: [(bool, Column, Cell); 9] = [
        (true, left("function", Keep::Always), name),
        (wide, left("module", Keep::Rank(6)), |call| Span::faint(&call.module)),
        (true, right("count", Keep::Always), |call| Span::plain(thousands(call.count))),
        (per_operation, right("each", Keep::Rank(4)), each),
        (true, right("total", Keep::Always), |call| {
            Span::new(time(call, call.total_ns), Tint::Strong)
        }),
        (true, right("own", Keep::Always), |call| Span::plain(time(call, call.self_ns))),
        (true, right("mean", Keep::Rank(3)), mean),
        (tail, right("p99", Keep::Rank(5)), |call| {
            Span::plain(call.p99_ns.map_or_else(|| figures::NONE.into(), |time| time.to_string()))
        }),
        (failed, right("failed", Keep::Always), failed_cell),
    ];
    let fields: Vec<(Column, Cell)> = all
        .into_iter()
        .filter(|(needed, ..)| *needed)
        .map(|(_, column, cell)| (column, cell))
        .collect();
    let entries = |call: &&Call| {
        let cells = fields.iter().map(|(_, cell)| cell(call)).collect();
        let codes = codes(call)
            .map(|codes| Entry::Sentence(Span::default(), Span::new(codes, Tint::Caution)));
        [Entry::Cells(cells)].into_iter().chain(codes)
    };
    let entries = calls.iter().flat_map(entries).collect();
    Grid { columns: fields.into_iter().map(|(column, _)| column).collect(), entries }
}

/// How often in one operation.
fn each(call: &Call) -> Span {
    Span::plain(call.per_operation.map_or_else(|| figures::NONE.into(), three_digits))
}

/// Calls that took no time at all are those whose return nobody saw.
fn time(call: &Call, time: Nanos) -> String {
    if call.total_ns == Nanos::ZERO { figures::NONE.to_owned() } else { time.to_string() }
}

fn mean(call: &Call) -> Span {
    // The others have no time in it.
    match call.timed.unwrap_or(call.count) {
        timed if timed > 0 && call.total_ns > Nanos::ZERO => {
            Span::plain(figures::time(call.total_ns.0 as f64 / timed as f64))
        }
        _ => Span::plain(figures::NONE),
    }
}

fn failures(call: &Call) -> u64 {
    call.failed.values().fold(0, |sum, count| sum.saturating_add(*count))
}

fn failed_cell(call: &Call) -> Span {
    match failures(call) {
        0 => Span::faint("0"),
        failed => Span::new(thousands(failed), Tint::Bad),
    }
}

/// `2 × CKR_PIN_INCORRECT`; `None` when none failed.
fn codes(call: &Call) -> Option<String> {
    let code = |(code, count): (&String, &u64)| format!("{} × {code}", thousands(*count));
    let codes: Vec<String> = call.failed.iter().map(code).collect();
    (!codes.is_empty()).then(|| codes.join(", "))
}
