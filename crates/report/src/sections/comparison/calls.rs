//! Two traces, call by call.

use tapstone_measure::units::Nanos;
use tapstone_record::{CallChange, CallFigures};
use tapstone_text::thousands;

use super::super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use crate::style::Style;

const LINES: usize = 15;

pub(super) fn add_call_changes(page: &mut Page, calls: &[CallChange], style: &Style) {
    if calls.is_empty() {
        return;
    }
    // One line more says no less than "and 1 more".
    let shown = if style.verbose || calls.len() <= LINES + 1 { calls.len() } else { LINES };
    page.heading("calls", "self time is that which no inner call has; one run each, so no verdict");
    let columns = vec![
        left("function", Keep::Always),
        left("module", Keep::Rank(3)),
        right("count", Keep::Always),
        right("then", Keep::Always),
        right("own", Keep::Rank(4)),
        right("then", Keep::Rank(4)),
        right("change", Keep::Always),
    ];
    let entries = calls[..shown].iter().map(|call| Entry::Cells(cells(call))).collect();
    page.grid(&Grid { columns, entries });
    if shown < calls.len() {
        let left = format!("  and {} more: --verbose shows them", calls.len() - shown);
        page.line(&[Span::faint(left)]);
    }
}

fn cells(call: &CallChange) -> Vec<Span> {
    let before = call.baseline;
    let after = call.candidate;
    let count = |of: Option<CallFigures>| of.map_or(0, |of| of.count);
    let own = |of: Option<CallFigures>| of.map_or(Nanos::ZERO, |of| of.self_ns);
    let more = if count(before) == count(after) { Tint::Plain } else { Tint::Strong };
    vec![
        Span::plain(&call.function),
        Span::faint(&call.module),
        Span::plain(thousands(count(before))),
        Span::new(thousands(count(after)), more),
        Span::plain(own(before).to_string()),
        Span::plain(own(after).to_string()),
        difference(own(before), own(after)),
    ]
}

fn difference(before: Nanos, after: Nanos) -> Span {
    match before.cmp(&after) {
        std::cmp::Ordering::Less => Span::new(format!("+{}", after - before), Tint::Caution),
        std::cmp::Ordering::Equal => Span::faint("0"),
        std::cmp::Ordering::Greater => Span::new(format!("-{}", before - after), Tint::Good),
    }
}
