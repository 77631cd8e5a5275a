//! A timeline as the tables of a record: time by layer, calls by module and function, and a case for
//! each function, so that two traces can be compared.

mod calls;
mod seen;

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::units::Nanos;
use tapstone_record as record;

pub use self::calls::calls;
use crate::exchanges;
use crate::findings::{self, FileCall, LOOKED_FOR, prediction, words};
use crate::operation::{OperationRule, Operations};
use crate::owners::{self, Owners};
use crate::process_time::process_times;
use crate::system_calls::SystemCalls;
use crate::timeline::{Family, Timeline};

/// Puts what was seen into a record: layers, calls, commands to the card, system calls, findings,
/// and cases for the command, which took `wall`, its operations and each function.
pub fn describe(
    record: &mut record::Record,
    timeline: &Timeline,
    wall: Nanos,
    operation: &OperationRule,
    system_calls: SystemCalls<'_>,
) {
    let owners = owners::of_threads(timeline);
    let operations = Operations::cut(operation, timeline, &system_calls.returns);
    record.processes = process_times(timeline);
    record.layers = layers(timeline, &owners);
    worker_first(record);
    let (mut calls, cases) = calls(timeline, &owners);
    // Of calls that were only counted nobody knows which belong to an operation.
    if !operations.is_whole && operations.count() > 0 && timeline.summed_from.is_none() {
        for call in &mut calls {
            call.per_operation = Some(call.count as f64 / operations.count() as f64);
        }
    }
    record.calls = calls;
    record.apdus = apdus(timeline);
    record.system_calls = system_calls.kinds;
    record.dropped = Some(timeline.dropped);
    record.results.push(command_case("command", &[(timeline.ended, wall)]));
    if operations.count() == 0 {
        record.warnings.push(format!(
            "{operation} was not called: there is no operation, so figures per operation are \
             missing"
        ));
    } else if !operations.is_whole {
        let cuts =
            operations.cuts.iter().map(|cut| (cut.end, cut.end - cut.start)).collect::<Vec<_>>();
        let mut case = command_case(&format!("operation {operation}"), &cuts);
        if timeline.summed_from.is_some() {
            let listed = words::one_command(timeline);
            case.warnings.push(format!("of {listed}: later calls are only counted"));
        }
        record.results.push(case);
    }
    record.results.extend(cases);
    // For as long as this function looks at them.
    let files = system_calls.files.map(|file| FileCall { ..file });
    let findings = findings::find(timeline, &operations, files);
    let objections = system_calls.stops.objections(&findings);
    // What was summed has the same waste in it, or not.
    let unlisted = timeline.summed_from.map(|_| {
        let listed = format!("found in {}", words::one_command(timeline));
        match operations.is_whole {
            true => format!("{listed}: what removing it saves in all of it is not known"),
            false => listed,
        }
    });
    let described = findings.iter().zip(objections).map(|(finding, objection)| {
        let is_part = operations.is_whole && unlisted.is_some();
        let predicts = !finding.removed.is_empty() && objection.is_none() && !is_part;
        let saving = || prediction::saving(timeline, &operations, &prediction::union([finding]));
        let mut described = finding.record(timeline, predicts.then(saving));
        described.evidence.extend(objection.into_iter().chain(unlisted.clone()));
        described
    });
    record.findings.extend(described);
    let again: Vec<String> =
        record.calls.iter().filter_map(|call| words::asked_again(call, wall)).collect();
    record.warnings.extend_from_slice(&again);
    record.search = Some(record::WasteSearch { looked_for: LOOKED_FOR.to_vec(), unseen: again });
}

/// Whether any program called PC/SC.
#[must_use]
pub fn uses_pcsc(timeline: &Timeline) -> bool {
    let mut spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    spans.any(|span| timeline.call(span.call).family == Family::Pcsc)
}

/// The virtual reader that a program talked to, if it did: such figures are no real card's.
#[must_use]
pub fn virtual_reader(timeline: &Timeline) -> Option<String> {
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    let mut readers = spans.filter_map(|span| span.text()).map(|text| timeline.text(text));
    let reader = readers
        .find(|reader| reader.starts_with(tapstone_names::pcsc::VIRTUAL_READER.as_bytes()))?;
    Some(String::from_utf8_lossy(reader).into_owned())
}

/// Commands to the card by what they are and what they are about, the longest first.
fn apdus(timeline: &Timeline) -> Vec<record::Apdu> {
    let names = exchanges::described(timeline);
    let mut all: BTreeMap<(&'static str, Option<&str>, String), record::Apdu> = BTreeMap::new();
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    // The daemon's side of an exchange is not another one.
    let clients = spans.filter(|span| timeline.call(span.call).family == Family::Pcsc);
    let mut seen = BTreeSet::new();
    for (span, id) in clients.filter_map(|span| Some((span, span.exchange()?))) {
        let exchange = timeline.exchange(id);
        let name = &names[id.0.index()];
        let header: String =
            exchange.command.iter().take(4).map(|byte| format!("{byte:02X}")).collect();
        let key = (name.name, name.object.as_deref(), header.clone());
        let new = || record::Apdu::new(name.name, name.object.clone(), header);
        let apdu = all.entry(key).or_insert_with(new);
        apdu.add(span.time(), exchange.sent, exchange.received);
        apdu.add_status(exchange.status);
        let same = (span.handle, exchange.digest, exchange.answer);
        apdu.repeats += u64::from(exchange.digest != 0 && !seen.insert(same));
    }
    let mut all: Vec<record::Apdu> = all.into_values().collect();
    all.sort_by_key(|apdu| std::cmp::Reverse(apdu.time_ns));
    all
}

/// The layers of every thread, in the order in which they began.
#[must_use]
pub fn layers(timeline: &Timeline, owners: &[Owners]) -> Vec<record::Layer> {
    let mut layers = Vec::new();
    for (thread, owners) in timeline.threads.iter().zip(owners) {
        let wall = thread.wall().0.max(1) as f64;
        let mut of_thread: Vec<_> = owners.time.iter().collect();
        of_thread.sort_by_key(|(_, time)| std::cmp::Reverse(**time));
        layers.extend(of_thread.into_iter().map(|(owner, time)| record::Layer {
            process: thread.process,
            thread: thread.id,
            layer: owner.name(),
            time_ns: *time,
            share: record::Fraction(time.0 as f64 / wall),
        }));
    }
    layers
}

/// Puts the first thread of the process that worked most in front, where it has one.
fn worker_first(record: &mut record::Record) {
    let Some(worked) = record.processes.first().map(|process| process.process) else { return };
    record.layers.sort_by_key(|layer| (layer.process, layer.thread) != (worked, worked));
}

/// A case for a whole command, run so many times.
#[must_use]
pub fn command_case(name: &str, runs: &[(Nanos, Nanos)]) -> record::CaseResult {
    let mut case = record::CaseResult::new(
        name,
        record::Status::OK,
        record::Concurrency::ONE,
        record::Load::CLOSED,
    );
    seen::set_figures(&mut case, runs.iter().map(|(end, time)| (*end, Some(*time))));
    case
}
