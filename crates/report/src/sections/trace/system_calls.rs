//! The system calls of a program, and who wanted them.

use std::cmp::Reverse;
use std::collections::HashMap;

use tapstone_measure::units::Nanos;
use tapstone_record::{Origin, SystemCall};
use tapstone_text::thousands;

use super::super::grid::{Column, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::{Cell, table};
use crate::style::Style;
use crate::text::truncate;

const LINES: usize = 15;

/// C++ and Rust have long names.
const WIDEST: usize = 48;

/// Calls that differ only in the stacks between who wanted them and the kernel.
struct SystemCallLine<'a> {
    call: &'a SystemCall,
    count: u64,
    failed: u64,
    time: Nanos,
}

pub(super) fn add_system_calls(page: &mut Page, calls: &[SystemCall], style: &Style) {
    if calls.is_empty() {
        return;
    }
    let lines = lines(calls);
    let shown = super::shown(lines.len(), LINES, style);
    page.heading("system calls", "of those that do not sleep, the time is the tracer's");
    page.grid(&grid(&lines[..shown]));
    super::left_out(page, lines.len() - shown);
}

/// The most frequent first.
fn lines(calls: &[SystemCall]) -> Vec<SystemCallLine<'_>> {
    let mut lines: HashMap<_, SystemCallLine<'_>> = HashMap::new();
    for call in calls {
        let key = (&call.call, &call.object, from(call));
        let new = SystemCallLine { call, count: 0, failed: 0, time: Nanos::ZERO };
        let line = lines.entry(key).or_insert(new);
        line.count = line.count.saturating_add(call.count);
        line.failed = call.failed.values().fold(line.failed, |sum, one| sum.saturating_add(*one));
        line.time += call.time_ns;
    }
    let mut lines: Vec<_> = lines.into_values().collect();
    lines.sort_by_key(|line| (Reverse(line.count), &line.call.call, &line.call.object));
    lines
}

/// Who wanted it, or where it was made.
fn from(call: &SystemCall) -> String {
    match (&call.origin, call.stack.first()) {
        (Some(Origin { function, caller: Some(caller), .. }), _) => {
            format!("{function} < {caller}")
        }
        (Some(Origin { function, module, caller: None }), _) => format!("{function} [{module}]"),
        (None, Some(innermost)) => innermost.clone(),
        (None, None) => String::new(),
    }
}

fn grid(lines: &[SystemCallLine<'_>]) -> Grid {
    let failed = lines.iter().any(|line| line.failed > 0);
    let all: [(bool, Column, Cell<SystemCallLine<'_>>); 6] = [
        (true, left("call", Keep::Always), |line| Span::plain(&line.call.call)),
        (true, left("of", Keep::Always), |line| {
            Span::plain(line.call.object.as_deref().unwrap_or_default())
        }),
        (true, right("count", Keep::Always), |line| Span::new(thousands(line.count), Tint::Strong)),
        (true, right("time", Keep::Rank(5)), |line| Span::plain(line.time.to_string())),
        (failed, right("failed", Keep::Rank(4)), |line| match line.failed {
            0 => Span::faint("0"),
            failed => Span::new(thousands(failed), Tint::Caution),
        }),
        (true, left("from", Keep::Rank(3)), |line| {
            Span::faint(truncate(&from(line.call), WIDEST, "…"))
        }),
    ];
    table(lines, all)
}
