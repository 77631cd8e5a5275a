//! A timeline as the tables of a record: time by layer, calls by module and function, and a case for
//! each function, so that two traces can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use tapstone_events::SummedCalls;
use tapstone_measure::series::Series;
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_text::thousands;

use crate::codes;
use crate::exchanges;
use crate::findings::{self, FileCall, LOOKED_FOR, prediction, words};
use crate::operation::{OperationRule, Operations};
use crate::owners::{self, Owners};
use crate::process_time::process_times;
use crate::system_calls::SystemCalls;
use crate::timeline::{CalledFunction, End, Family, Span, Thread, Timeline};

/// Calls up to so many are kept one by one.
const MOST_VALUES: usize = 1000;

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
    record.search =
        Some(record::WasteSearch { looked_for: LOOKED_FOR.to_vec(), unseen: Vec::new() });
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
    let mut readers = spans.filter_map(|span| span.text).map(|text| timeline.text(text));
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
    for (span, id) in clients.filter_map(|span| Some((span, span.exchange?))) {
        let exchange = timeline.exchange(id);
        let name = &names[id.0 as usize];
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

/// One function of one module.
#[derive(Debug, Default)]
struct FunctionTally {
    layer: String,
    count: u64,
    failed: BTreeMap<String, u64>,
    total: Nanos,
    /// Of how many calls that is.
    timed: u64,
    own: Nanos,
    /// Calls that were only counted.
    summed: u64,
    /// What those failed with that were listed.
    listed_failures: BTreeMap<String, u64>,
    /// End, time and whether it went well, of each.
    operations: Vec<(Nanos, Nanos, bool)>,
}

/// All calls by module and function, and the cases of those that were listed.
#[must_use]
pub fn calls(
    timeline: &Timeline,
    owners: &[Owners],
) -> (Vec<record::Call>, Vec<record::CaseResult>) {
    let mut tallies: BTreeMap<(String, &'static str), FunctionTally> = BTreeMap::new();
    for (thread, owners) in timeline.threads.iter().zip(owners) {
        for (span, own) in thread.spans.iter().zip(&owners.own) {
            count_span(timeline, thread, span, *own, &mut tallies);
        }
        for (leaf, own) in thread.leaves.iter().zip(&owners.own_leaves) {
            let call = timeline.call(leaf.call);
            let tally = tallies.entry((of_libc(call), call.function)).or_default();
            tally.layer = "libc".to_owned();
            tally.count += u64::from(leaf.count);
            tally.total += leaf.time;
            tally.timed += u64::from(leaf.count);
            tally.own += *own;
        }
    }
    for summed in &timeline.summed {
        add_summed(timeline, summed, &mut tallies);
    }
    let mut tallies: Vec<_> = tallies.into_iter().collect();
    tallies.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.total));
    let cases = tallies.iter().filter(|(_, tally)| !tally.operations.is_empty());
    let cases = cases.map(|(name, tally)| call_case(&call(name, tally), tally)).collect();
    (tallies.iter().map(|(name, tally)| call(name, tally)).collect(), cases)
}

fn count_span(
    timeline: &Timeline,
    thread: &Thread,
    span: &Span,
    own: Nanos,
    tallies: &mut BTreeMap<(String, &'static str), FunctionTally>,
) {
    let call = timeline.call(span.call);
    let tally = tallies.entry((call.module.clone(), call.function)).or_default();
    tally.layer = owners::owner_of(timeline, span).name();
    tally.count += 1;
    tally.own += own;
    let failure = codes::failure(timeline, span);
    if let Some(code) = &failure {
        *tally.failed.entry(code.clone()).or_default() += 1;
        *tally.listed_failures.entry(code.clone()).or_default() += 1;
    }
    // A function inside itself is not counted twice, whoever called the inner one.
    let is_same =
        |outer: &CalledFunction| outer.function == call.function && outer.module == call.module;
    let inside_itself = thread.path(span.parent).any(|outer| is_same(timeline.call(outer.call)));
    if !inside_itself && span.end_kind != End::Unseen {
        tally.total += span.time();
        tally.timed += 1;
        tally.operations.push((span.end, span.time(), failure.is_none()));
    }
}

/// Adds calls that are in no thread.
fn add_summed(
    timeline: &Timeline,
    summed: &SummedCalls,
    tallies: &mut BTreeMap<(String, &'static str), FunctionTally>,
) {
    let call = timeline.call(summed.function);
    let is_libc = matches!(call.family, Family::Libc(_));
    let module = if is_libc { of_libc(call) } else { call.module.clone() };
    let tally = tallies.entry((module, call.function)).or_default();
    tally.layer = if is_libc { "libc".to_owned() } else { owners::owner_of_call(call).name() };
    // The file that they are from may be anybody's.
    tally.count = tally.count.saturating_add(summed.count);
    tally.summed = tally.summed.saturating_add(summed.count);
    tally.timed = tally.timed.saturating_add(summed.timed);
    tally.total += summed.time;
    tally.own += summed.own;
    let name = |code: &Option<u64>| match code {
        Some(code) => codes::name(call, *code),
        None => codes::LEFT.to_owned(),
    };
    let known = summed.failed.iter().map(|(code, count)| (name(code), *count));
    let others = ("other codes".to_owned(), summed.other_failures);
    let unfinished = (codes::NEVER.to_owned(), if is_libc { 0 } else { summed.unfinished });
    for (code, count) in known.chain([others, unfinished]).filter(|(_, count)| *count > 0) {
        let failed = tally.failed.entry(code).or_default();
        *failed = failed.saturating_add(count);
    }
}

/// A function of libc belongs to whoever calls it.
fn of_libc(call: &CalledFunction) -> String {
    debug_assert!(matches!(call.family, Family::Libc(_)));
    match call.caller.as_str() {
        "" => "libc, called by the program".to_owned(),
        caller => format!("libc, called by {caller}"),
    }
}

fn call((module, function): &(String, &'static str), tally: &FunctionTally) -> record::Call {
    record::Call {
        module: module.clone(),
        layer: tally.layer.clone(),
        function: (*function).to_owned(),
        count: tally.count,
        per_operation: None,
        failed: tally.failed.clone(),
        total_ns: tally.total,
        timed: Some(tally.timed).filter(|timed| *timed < tally.count),
        self_ns: tally.own,
    }
}

/// Its figures and failures are those of calls that were listed.
fn call_case(call: &record::Call, tally: &FunctionTally) -> record::CaseResult {
    let listed = tally.count - tally.summed.min(tally.count);
    let failed: u64 = tally.listed_failures.values().sum();
    let status = if failed < listed {
        record::Status::OK
    } else {
        let code = tally.listed_failures.keys().next().cloned().unwrap_or_default();
        record::Status::at(record::Outcome::Failed, call.function.clone(), code)
    };
    let mut case = record::CaseResult::new(
        call.operation(),
        status,
        record::Concurrency::ONE,
        record::Load::CLOSED,
    );
    case.failed = tally.listed_failures.clone();
    if tally.summed > 0 {
        case.warnings.push(format!(
            "of the first {} of {} calls: the others are only counted",
            thousands(listed),
            thousands(tally.count)
        ));
    }
    let operations = tally.operations.iter().map(|(end, time, well)| (*end, well.then_some(*time)));
    set_figures(&mut case, operations.collect());
    case
}

/// The figures of operations that are known one by one: their ends, and their times unless they
/// failed.
pub(crate) fn set_figures(case: &mut record::CaseResult, operations: Vec<(Nanos, Option<Nanos>)>) {
    let starts = operations.iter().map(|(end, time)| *end - time.unwrap_or_default());
    let (Some(opens), Some(closes)) = (starts.min(), operations.iter().map(|(end, _)| *end).max())
    else {
        return;
    };
    let window = (opens, closes.max(opens + Nanos(1)));
    let series = Series::from_operations(operations.iter().copied(), window);
    let ends = || operations.iter().filter(|(_, time)| time.is_some()).map(|(end, _)| *end);
    let conditions = Conditions {
        window: window.1 - window.0,
        workers: NonZeroU32::MIN,
        first_and_last: ends().min().zip(ends().max()),
        clock_step: Nanos(1),
    };
    case.set_figures(&Summary::from_series(&series, &conditions), &series.total());
    if operations.len() <= MOST_VALUES {
        case.latencies_ns = operations.iter().filter_map(|(_, time)| *time).collect();
    }
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
    set_figures(&mut case, runs.iter().map(|(end, time)| (*end, Some(*time))).collect());
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, millis};
    use crate::timeline::On;

    /// Total and own time of each call, by its module and function.
    fn times(timeline: &Timeline) -> BTreeMap<String, (Nanos, Nanos)> {
        let owners = owners::of_threads(timeline);
        let (calls, _) = calls(timeline, &owners);
        calls.iter().map(|call| (call.operation(), (call.total_ns, call.self_ns))).collect()
    }

    #[test]
    fn a_nanosecond_is_one_calls_own() {
        let timeline = Story::new()
            .thread(|told| {
                told.leaf("nanosleep", millis(3)).enter("C_Sign").advance(millis(1));
                told.enter("SCardTransmit").leaf("recv", millis(7)).with(|leaf| {
                    leaf.on = On::Service;
                });
                told.exit().enter("SCardEndTransaction").leaf("nanosleep", millis(50)).exit();
                told.exit().advance(millis(2));
            })
            .timeline();
        let times = times(&timeline);
        let of = |call: &str| times[call];
        let client = "libpcsclite.so.1";
        // A sleep belongs to the call that made it, a wait to what it waits for.
        let end = of(&format!("SCardEndTransaction [{client}]"));
        assert_eq!(end, (millis(50), millis(50)));
        let sleep = of(&format!("nanosleep [libc, called by {client}]"));
        assert_eq!(sleep, (millis(50), Nanos::ZERO));
        assert_eq!(of(&format!("SCardTransmit [{client}]")), (millis(7), Nanos::ZERO));
        assert_eq!(of(&format!("recv [libc, called by {client}]")), (millis(7), millis(7)));
        assert_eq!(of("nanosleep [libc, called by the program]"), (millis(3), millis(3)));
        assert_eq!(of("C_Sign [module.so]"), (millis(58), millis(1)));
        let own: Nanos = times.values().map(|(_, own)| *own).sum();
        assert!(own <= timeline.threads[0].wall(), "{own}");
    }

    #[test]
    fn a_function_inside_itself_is_counted_once_whoever_calls_it() {
        let timeline = Story::new()
            .thread(|told| {
                // The outer one is the program's, the inner one the module's.
                told.enter("C_Sign").advance(millis(1)).enter("C_Sign").advance(millis(4));
            })
            .timeline();
        let callers: BTreeSet<&str> =
            timeline.calls.iter().map(|call| call.caller.as_str()).collect();
        assert_eq!(callers.len(), 2);
        assert_eq!(times(&timeline)["C_Sign [module.so]"], (millis(5), millis(5)));
        let (calls, _) = calls(&timeline, &owners::of_threads(&timeline));
        assert_eq!((calls[0].count, calls[0].timed), (2, Some(1)), "of which its mean is");
    }

    #[test]
    fn calls_that_were_counted_are_added_to_those_that_were_listed() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(millis(1)).exit();
            })
            .timeline();
        let function = timeline.threads[0].spans[0].call;
        let summed = |failed: &[(Option<u64>, u64)], other_failures| SummedCalls {
            process: timeline.root,
            thread: timeline.root,
            function,
            count: 10,
            unfinished: other_failures,
            time: millis(20),
            timed: 7,
            own: millis(15),
            failed: failed.to_vec(),
            other_failures,
        };
        let most = SummedCalls { count: u64::MAX, ..summed(&[(None, u64::MAX)], 0) };
        timeline.summed = vec![summed(&[(Some(0x30), 3), (None, 1)], 2), summed(&[], 0)];
        let all = |timeline: &Timeline| {
            let owners = owners::of_threads(timeline);
            calls(timeline, &owners)
        };
        let (table, cases) = all(&timeline);
        assert_eq!(table.len(), 1);
        assert_eq!(
            (table[0].count, table[0].total_ns, table[0].self_ns),
            (21, millis(41), millis(31))
        );
        let failed = [
            ("CKR_DEVICE_ERROR", 3),
            ("left by an exception", 1),
            ("never returned", 2),
            ("other codes", 2),
        ];
        assert_eq!(table[0].failed, failed.map(|(code, count)| (code.to_owned(), count)).into());
        // A mean is of those whose time it is.
        assert_eq!(table[0].timed, Some(15));
        // Figures and failures of a case are those of calls that were listed, and it says so.
        assert_eq!((cases[0].completed, cases[0].failed.len()), (1, 0));
        assert_eq!(cases[0].status, record::Status::OK);
        let says = "of the first 1 of 21 calls: the others are only counted";
        assert_eq!(cases[0].warnings, [says]);
        // As a file says that nobody wrote in earnest.
        timeline.summed.push(most);
        assert_eq!(all(&timeline).0[0].count, u64::MAX);
    }
}
