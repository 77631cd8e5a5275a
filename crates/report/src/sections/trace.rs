//! A traced program: whose time it was, its calls, its APDUs, what was wasted, and
//! what became of the fixes that were tried.

mod apdus;
mod calls;
mod findings;
mod layers;
mod next;
mod nothing;
mod processes;
mod system_calls;
mod trials;
mod words;

use tapstone_record::{CaseResult, CommandTime, Record, TargetKind};
use tapstone_text::thousands;

pub(crate) use self::nothing::nothing_found;
use super::grid::{Column, Entry, Grid};
use super::page::Page;
use super::span::{Span, Tint};
use crate::style::Style;

/// A terminal of so many columns has room for names in two columns.
const WIDE: usize = 100;

pub(super) fn add_trace(page: &mut Page, record: &Record, style: &Style) {
    if record.target.kind != TargetKind::Command {
        return;
    }
    layers::add_layers(page, record, style);
    command_time(page, record.command_time);
    processes::add_processes(page, &record.processes, style);
    if let Some(dropped @ 1..) = record.dropped {
        let text = format!(
            "{} events found no room: every count and every time here is a lower bound",
            thousands(dropped)
        );
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
    }
    calls::add_calls(page, &record.calls, style);
    apdus::add_apdus(page, &record.apdus, &record.calls, style);
    system_calls::add_system_calls(page, &record.system_calls, style);
    // Whoever only tries a fix has not looked for others.
    let searched = !record.layers.is_empty() || record.search.is_some();
    if !record.findings.is_empty() || (searched && record.trials.is_empty()) {
        findings::add_findings(page, record);
    }
    trials::add_trials(page, &record.trials, style);
}

fn command_time(page: &mut Page, time: Option<CommandTime>) {
    let Some(CommandTime { wall_ns, user_ns, system_ns }) = time else { return };
    let text = format!("  the command: wall {wall_ns} · user {user_ns} · system {system_ns}");
    page.blank();
    page.line(&[Span::faint(text)]);
}

/// Whether a case of the results is what these tables tell: a call, or a whole command that was run
/// under observation or in a trial.
pub(super) fn tells(record: &Record, case: &CaseResult) -> bool {
    let command = case.operation == "command" || case.operation.starts_with("command, ");
    let observed = !record.layers.is_empty() || !record.trials.is_empty();
    (observed && command) || record.calls.iter().any(|call| call.operation() == case.operation)
}

/// How much of a list is shown: all of it only when asked for.
fn shown(all: usize, most: usize, style: &Style) -> usize {
    // One line more says no less than "and 1 more".
    if style.verbose || all <= most + 1 { all } else { most }
}

/// Says how many lines were left out.
fn left_out(page: &mut Page, count: usize) {
    if count > 0 {
        page.line(&[Span::faint(format!("  and {count} more: --verbose shows them"))]);
    }
}

/// Makes the cell of one column from the item of a line.
type Cell<T> = fn(&T) -> Span;

/// A table of lines, with those columns that have something to tell.
fn table<T>(lines: &[T], columns: impl IntoIterator<Item = (bool, Column, Cell<T>)>) -> Grid {
    let columns = columns.into_iter().filter(|(told, ..)| *told);
    let (columns, cells): (Vec<Column>, Vec<Cell<T>>) =
        columns.map(|(_, column, cell)| (column, cell)).unzip();
    let entry = |line| Entry::Cells(cells.iter().map(|cell| cell(line)).collect());
    Grid { columns, entries: lines.iter().map(entry).collect() }
}
