//! Workloads: kept from a trace, and shown as a table or a record.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tapstone_events::EventSource;
use tapstone_explain::operation::OperationRule;
use tapstone_explain::tables::command_case;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{Rv, mechanism_name};
use tapstone_record as record;
use tapstone_record::Record;
use tapstone_text::{Foreign, counted, thousands, three_digits};
use tapstone_workload::{
    OperationKind, TokenOperation, Transactions, Workload, operations, record_workload,
    transactions, write_workload,
};

use crate::card_controller;

/// Parquet files begin so.
const PARQUET: &[u8] = b"PAR1";
/// Columns of the line of rates.
const RATE_COLUMNS: usize = 40;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes what a traced program did with its token.
pub(crate) fn keep_workload<S: EventSource>(
    path: &Path,
    source: &S,
    operation: &OperationRule,
) -> anyhow::Result<()>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let transaction = match operation {
        OperationRule::Call(name) if name.starts_with("C_") => Some(*name),
        _ => None,
    };
    let workload = record_workload(source, transaction)?;
    Ok(write_workload(path, &workload)?)
}

/// Whether a file begins as a workload does. What cannot be opened is none.
pub(crate) fn is_workload(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; PARQUET.len()];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == PARQUET
}

/// A workload as a record: each kind of operation is a case, and so is the transaction, so that it
/// can be shown as a page and compared with its replay.
pub(crate) fn workload_record(workload: &Workload) -> Record {
    let mut record = card_controller::record(record::TargetKind::Command, None);
    record.command.clear();
    add_results(&mut record, workload);
    record.calls = calls(workload);
    record.dropped = Some(workload.head.losses.dropped);
    record.warnings.extend(losses(workload));
    record
}

/// The transaction and all kinds of operations, as cases.
pub(crate) fn add_results(record: &mut Record, workload: &Workload) {
    let cut = transactions(workload);
    if !cut.list.is_empty() {
        let whole = cut.list.iter().filter(|it| !it.fails_anew);
        let times: Vec<(Nanos, Nanos)> = whole.map(|it| (it.end, it.end - it.start)).collect();
        let mut case = command_case("transaction", &times);
        let failed = cut.list.len() - times.len();
        if failed > 0 {
            case.failed.insert("a call of it failed".to_owned(), failed as u64);
        }
        record.results.push(case);
        record.warnings.push(format!("a transaction is {}", cut.rule));
    }
    for (kind, list) in by_kind(&operations(workload)) {
        let succeeded = list.iter().filter(|it| it.result == 0 && it.is_ended && !it.fails_anew);
        let times: Vec<(Nanos, Nanos)> = succeeded.map(|it| (it.end, it.in_calls)).collect();
        let mut case = command_case(&kind_name(&kind), &times);
        for failed in list.iter().filter(|it| it.result != 0) {
            *case.failed.entry(Rv(failed.result).to_string()).or_default() += 1;
        }
        let never_ended = list.iter().filter(|it| !it.is_ended && it.result == 0).count();
        if never_ended > 0 {
            case.failed.insert("never ended".to_owned(), never_ended as u64);
        }
        record.results.push(case);
    }
}

fn by_kind(all: &[TokenOperation]) -> BTreeMap<OperationKind, Vec<&TokenOperation>> {
    let mut kinds: BTreeMap<OperationKind, Vec<&TokenOperation>> = BTreeMap::new();
    for operation in all {
        kinds.entry(operation.kind.clone()).or_default().push(operation);
    }
    kinds
}

/// `C_Sign CKM_RSA_PKCS`.
pub(crate) fn kind_name(kind: &OperationKind) -> String {
    match kind.mechanism {
        None => kind.function.to_owned(),
        Some(number) => format!("{} {}", kind.function, mechanism_text(number)),
    }
}

/// The name of a mechanism, or its number where it has none.
pub(crate) fn mechanism_text(number: u64) -> String {
    mechanism_name(number).map_or_else(|| format!("mechanism {number:#x}"), str::to_owned)
}

fn calls(workload: &Workload) -> Vec<record::Call> {
    let mut calls: BTreeMap<&'static str, record::Call> = BTreeMap::new();
    let module = Foreign::new(workload.head.module.as_str()).to_string();
    for call in workload.threads.iter().flat_map(|thread| &thread.calls) {
        let entry = calls.entry(call.function).or_insert_with(|| record::Call {
            module: module.clone(),
            layer: format!("pkcs11 {module}"),
            function: call.function.to_owned(),
            count: 0,
            per_operation: None,
            failed: BTreeMap::new(),
            total_ns: Nanos::ZERO,
            timed: None,
            self_ns: Nanos::ZERO,
            p50_ns: None,
            p99_ns: None,
            asked_again: None,
            asked_again_ns: None,
        });
        entry.count += 1;
        entry.total_ns = Nanos(entry.total_ns.0.saturating_add(call.duration.0));
        entry.self_ns = entry.total_ns;
        if call.result != 0 {
            *entry.failed.entry(Rv(call.result).to_string()).or_default() += 1;
        }
    }
    let mut calls: Vec<record::Call> = calls.into_values().collect();
    calls.sort_by_key(|call| std::cmp::Reverse((call.total_ns, call.count)));
    calls
}

/// What a recording lacks, as sentences.
fn losses(workload: &Workload) -> Vec<String> {
    let losses = workload.head.losses;
    let mut told = Vec::new();
    if losses.dropped > 0 {
        told.push(format!(
            "{} events found no room when it was recorded: counts are lower bounds",
            thousands(losses.dropped)
        ));
    }
    if losses.other_modules > 0 {
        told.push(format!(
            "{} of other modules are not in it",
            counted(losses.other_modules, "call", "calls")
        ));
    }
    if losses.unfinished > 0 {
        told.push(format!("{} never returned", counted(losses.unfinished, "call", "calls")));
    }
    if workload.head.slots > 1 {
        told.push(format!(
            "sessions were opened in {} slots: a replay opens all of them on one token",
            workload.head.slots
        ));
    }
    told
}

/// A workload for a terminal: what it is made of, how it is spread over time, and its pauses.
pub(crate) fn workload_text(name: &str, workload: &Workload) -> String {
    let mut text = String::new();
    let head = &workload.head;
    let processes = workload.threads.iter().map(|thread| thread.process).max();
    let calls: usize = workload.threads.iter().map(|thread| thread.calls.len()).sum();
    let sessions = workload.threads.iter().flat_map(|thread| &thread.calls);
    let sessions = sessions.map(|call| call.session).filter(|number| *number > 0);
    let sessions = sessions.collect::<std::collections::BTreeSet<u32>>().len();
    let cut = transactions(workload);
    let lines = [
        ("program", Foreign::new(head.program.as_str()).to_string()),
        ("module", Foreign::new(head.module.as_str()).to_string()),
        ("time", duration_text(head.wall_ns)),
        ("calls", thousands(calls as u64)),
        (
            "threads",
            format!(
                "{} in {}, {}",
                workload.threads.len(),
                counted(processes.map_or(0, |most| u64::from(most) + 1), "process", "processes"),
                counted(sessions as u64, "session", "sessions")
            ),
        ),
        ("at once", concurrency_text(workload)),
        ("pauses", pauses_text(workload)),
        ("transactions", transactions_text(&cut)),
    ];
    let _ = writeln!(text, "workload · {}", Foreign::new(name));
    for (what, value) in lines {
        let _ = writeln!(text, "  {what:<12}  {value}");
    }
    text.push_str(&mix_table(workload));
    for sentence in losses(workload) {
        let _ = writeln!(text, "  ! {sentence}");
    }
    text
}

/// Calls in the module at once: the most, and on average over the time of the program.
fn concurrency_text(workload: &Workload) -> String {
    let mut edges: Vec<(u64, i32)> = Vec::new();
    let mut in_calls: u64 = 0;
    for thread in &workload.threads {
        for (begin, call) in thread.timed_calls() {
            edges.push((begin.0, 1));
            edges.push((begin.0.saturating_add(call.duration.0), -1));
            in_calls = in_calls.saturating_add(call.duration.0);
        }
    }
    edges.sort_unstable();
    let mut now = 0;
    let mut most = 0;
    for (_, change) in edges {
        now += change;
        most = most.max(now);
    }
    let wall = workload.head.wall_ns.0.max(1) as f64;
    format!("up to {most} calls, {} on average", three_digits(in_calls as f64 / wall))
}

fn pauses_text(workload: &Workload) -> String {
    let calls = || workload.threads.iter().flat_map(|thread| &thread.calls);
    let sum = |of: fn(&tapstone_workload::WorkloadCall) -> Nanos| {
        Nanos(calls().fold(0, |all: u64, call| all.saturating_add(of(call).0)))
    };
    let waits = calls().filter(|call| call.after_wait).count();
    format!(
        "{} computing, {} waiting outside ({}), all threads together",
        duration_text(sum(|call| call.computing)),
        duration_text(sum(|call| call.waiting)),
        counted(waits as u64, "wait", "waits")
    )
}

fn transactions_text(cut: &Transactions) -> String {
    let mut text = format!("{}; one is {}", thousands(cut.list.len() as u64), cut.rule);
    let starts = || cut.list.iter().map(|it| it.start.0);
    let (Some(first), Some(last)) = (starts().min(), starts().max()) else { return text };
    if last > first {
        let mut columns = [0_u64; RATE_COLUMNS];
        for start in starts() {
            let place = (start - first) as u128 * RATE_COLUMNS as u128 / (last - first + 1) as u128;
            columns[place as usize] += 1;
        }
        let most = columns.iter().copied().max().unwrap_or(1).max(1);
        let bar = |count: &u64| BARS[(count * 7 / most) as usize];
        let rate = cut.list.len() as f64 / ((last - first) as f64 / 1e9);
        let line: String = columns.iter().map(bar).collect();
        let _ =
            write!(text, "\n  {:<12}  {line}  {}/s on average", "over time", three_digits(rate));
    }
    text
}

/// One line for each kind of operation, the longest first.
fn mix_table(workload: &Workload) -> String {
    let all = operations(workload);
    let kinds = by_kind(&all);
    let in_calls = |list: &[&TokenOperation]| {
        list.iter().fold(0, |sum: u64, it| sum.saturating_add(it.in_calls.0))
    };
    let total = in_calls(&all.iter().collect::<Vec<_>>()).max(1);
    let mut rows: Vec<(u64, [String; 6])> = Vec::new();
    for (kind, list) in &kinds {
        let time = in_calls(list);
        let ended = || list.iter().filter(|it| it.is_ended);
        let mut times: Vec<u64> = ended().map(|it| it.in_calls.0).collect();
        times.sort_unstable();
        let p50 = times.get(times.len() / 2).map(|time| duration_text(Nanos(*time)));
        let bytes: Vec<u64> = list.iter().map(|it| it.input_bytes).collect();
        let failed = list.iter().filter(|it| it.result != 0).count();
        let never_ended = list.iter().filter(|it| !it.is_ended && it.result == 0).count();
        let lost = [(failed, "failed"), (never_ended, "never ended")];
        let lost: Vec<String> = lost
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, how)| format!("{} {how}", thousands(count as u64)))
            .collect();
        rows.push((
            time,
            [
                kind_name(kind),
                thousands(list.len() as u64),
                sizes_text(&bytes),
                p50.unwrap_or_else(|| "–".to_owned()),
                format!("{} %", three_digits(100.0 * time as f64 / total as f64)),
                lost.join(", "),
            ],
        ));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let heading = ["operation", "count", "bytes", "p50", "of the time", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> =
        std::iter::once(heading).chain(rows.into_iter().map(|(_, row)| row)).collect();
    aligned(&rows)
}

/// Columns as wide as their longest cell, the first to the left and the others to the right.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match at {
                0 => write!(line, " {cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn sizes_text(bytes: &[u64]) -> String {
    match (bytes.iter().min(), bytes.iter().max()) {
        (Some(0), Some(0)) | (None, _) | (_, None) => String::new(),
        (Some(least), Some(most)) if least == most => thousands(*most),
        (Some(least), Some(most)) => format!("{} … {}", thousands(*least), thousands(*most)),
    }
}

/// A time in the unit that suits it.
pub(crate) fn duration_text(time: Nanos) -> String {
    let nanos = time.0 as f64;
    match time.0 {
        0..1_000 => format!("{} ns", time.0),
        1_000..1_000_000 => format!("{} µs", three_digits(nanos / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(nanos / 1e6)),
        _ => format!("{} s", three_digits(nanos / 1e9)),
    }
}
