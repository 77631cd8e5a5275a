//! `tapstone trace --pid`: a program that already runs, watched from outside.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use tapstone_attach::counted::{CountedCall, FunctionTimes};
use tapstone_attach::kept::KeptWatch;
use tapstone_attach::source::AttachedEvents;
use tapstone_attach::{Watch, WatchPlan, Watched};
use tapstone_command::command::Command;
use tapstone_events::{Family, Program};
use tapstone_explain::reading::read_timeline;
use tapstone_explain::system_calls::SystemCalls;
use tapstone_explain::tables;
use tapstone_explain::timeline::Timeline;
use tapstone_files::Access;
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::PcscCode;
use tapstone_names::pkcs11::Rv;
use tapstone_record as record;

use super::arguments::Arguments;
use crate::card_controller;
use crate::exit::Exit;
use crate::interrupt;
use crate::output;
use crate::print::say;

/// With events, the kernel's ring has to be read often; what is counted waits.
const PAUSE_WITH_EVENTS: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_millis(50);
const LOOK_AROUND: Duration = Duration::from_secs(1);

pub(super) fn watch(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut record = card_controller::record(record::TargetKind::Command, None);
    let asked_to_end = interrupt::flag_on_signals().context("signals cannot be watched")?;
    let attached = &arguments.attached;
    let watch = Watch::attach(WatchPlan {
        processes: attached.pids.clone(),
        users_of: attached.users_of.clone(),
        with_events: !attached.counts,
        with_load: arguments.workload.is_some(),
        most_events: arguments.events_size(),
        with_returns: attached.returns,
        as_pairs: false,
    })?;
    if arguments.workload.is_some() {
        refuse_unseen_returns(watch.has_unseen_returns())?;
    }
    if !arguments.output.quiet {
        say!("watching {}: {}", watch.described(), how_long(attached.seconds));
    }
    let watched = until_the_end(watch, attached.seconds, &asked_to_end)?;
    describe(&mut record, arguments, &watched)
}

/// A workload has times and results.
fn refuse_unseen_returns(are_unseen: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        !are_unseen,
        "calls of a module are seen where they begin only, so without the times and results that a \
         workload has: it or the program can leave them by an exception or pthread_cancel\nhint: \
         --returns watches returns all the same; `tapstone trace --help` says what that may do to \
         the program"
    );
    Ok(())
}

/// The load, where that was asked for.
fn keep_load(
    arguments: &Arguments,
    events: &AttachedEvents,
    has_unseen_returns: bool,
) -> anyhow::Result<()> {
    if arguments.workload.is_some() {
        refuse_unseen_returns(has_unseen_returns)?;
    }
    super::keep_workload(arguments, events)
}

fn how_long(seconds: Option<Nanos>) -> String {
    match seconds {
        Some(time) => format!("for {} s, or until Ctrl-C", time.as_secs_f64()),
        None => "until Ctrl-C, or until all have ended".to_owned(),
    }
}

fn until_the_end(
    mut watch: Watch,
    limit: Option<Nanos>,
    asked_to_end: &AtomicBool,
) -> anyhow::Result<Watched> {
    let begin = Instant::now();
    let limit = limit.map(|limit| Duration::from_nanos(limit.0));
    let pause = if watch.has_events() { PAUSE_WITH_EVENTS } else { PAUSE };
    let mut looked = begin;
    loop {
        let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
        if asked_to_end.load(Ordering::Relaxed) || left == Some(Duration::ZERO) {
            break;
        }
        watch.take_in()?;
        if looked.elapsed() >= LOOK_AROUND {
            watch.look_around()?;
            looked = Instant::now();
        }
        if !watch.has_processes() {
            break;
        }
        thread::sleep(left.map_or(pause, |left| left.min(pause)));
    }
    Ok(watch.detach()?)
}

fn describe(
    record: &mut record::Record,
    arguments: &Arguments,
    watched: &Watched,
) -> anyhow::Result<Exit> {
    if let [program] = &watched.programs[..] {
        record.target.program = identity(program);
    }
    let mut exported = Ok(());
    let mut kept = Ok(());
    match &watched.events {
        Some(events) => {
            let timeline = read_timeline(events)?;
            describe_calls(record, arguments, &timeline, watched.has_unseen_returns);
            exported = super::export(arguments, &timeline, None);
            kept = keep(arguments, events, watched);
            kept = kept.and(keep_load(arguments, events, watched.has_unseen_returns));
            let path = arguments.events.as_ref().filter(|_| kept.is_ok());
            record.events = path.map(|path| super::data_file(path, &timeline));
        }
        None => describe_counts(record, watched),
    }
    record.warnings.extend(watched.warnings.iter().cloned());
    if record.calls.is_empty() {
        record.warnings.push(
            "no call of PKCS#11, PC/SC or a reader driver was made while it was watched".to_owned(),
        );
    }
    let put = arguments.output.put_aside(record, Access::Everybody);
    put?;
    exported?;
    kept?;
    Ok(Exit::Done)
}

/// The calls themselves, where they were asked for.
fn keep(arguments: &Arguments, events: &AttachedEvents, watched: &Watched) -> anyhow::Result<()> {
    let Some(path) = &arguments.events else { return Ok(()) };
    output::write_file(path, Access::Owner, |to| {
        KeptWatch::write(events, watched.has_unseen_returns, &watched.warnings, to)
    })
}

/// What an earlier watch kept, looked at again.
pub(super) fn read(arguments: &Arguments, file: &Path, kept: KeptWatch) -> anyhow::Result<Exit> {
    if arguments.workload.is_some() && !kept.events.has_load() {
        anyhow::bail!(
            "{}: these events have no lengths and no keys, of which a workload is made\nhint: \
             `tapstone trace --pid PID --workload FILE --events FILE` keeps both",
            file.display()
        );
    }
    let timeline = read_timeline(&kept.events)?;
    let mut record = card_controller::record(record::TargetKind::Command, None);
    if let [program] = kept.events.programs() {
        record.target.program = identity(program);
    }
    describe_calls(&mut record, arguments, &timeline, kept.has_unseen_returns);
    record.warnings.extend(kept.warnings);
    if kept.missing > 0 {
        record.warnings.push(super::cut_short(file, kept.missing));
    }
    let put = arguments.output.put_aside(&record, Access::Everybody);
    let exported = super::export(arguments, &timeline, None);
    let kept = keep_load(arguments, &kept.events, kept.has_unseen_returns);
    put?;
    exported?;
    kept?;
    Ok(Exit::Done)
}

/// What calls were made, where their time went and what of it was wasted.
fn describe_calls(
    record: &mut record::Record,
    arguments: &Arguments,
    timeline: &Timeline,
    has_unseen_returns: bool,
) {
    let none = SystemCalls::none();
    tables::describe(record, timeline, timeline.wall(), &arguments.operation, none);
    // Nobody has seen the program begin and end.
    record.results.retain(|case| case.operation != "command");
    // Nor what it waits for, or all kinds of waste.
    record.processes.clear();
    record.search = None;
    if has_unseen_returns {
        conclude_nothing(record);
    }
}

/// Where calls are seen only as they begin, nobody knows whose the time was, or what of it was wasted.
fn conclude_nothing(record: &mut record::Record) {
    record.layers.clear();
    record.findings.clear();
    record.warnings.push(
        "where the time went is not told, and no waste is looked for: of some modules only the \
         beginnings of calls were watched"
            .to_owned(),
    );
}

fn identity(program: &Program) -> Option<record::Program> {
    let path = program.program.clone().into();
    Command::from_words([path]).ok()?.identity().ok()
}

/// Calls and times that were counted in the kernel, as tables.
fn describe_counts(record: &mut record::Record, watched: &Watched) {
    let mut calls: BTreeMap<(&str, &str), record::Call> = BTreeMap::new();
    for counted in &watched.counts {
        let key = (counted.module.as_str(), counted.function);
        add(calls.entry(key).or_insert_with(|| call(counted)), counted);
    }
    let window = watched.ended - watched.started;
    for times in &watched.times {
        if let Some(call) = calls.get(&(times.module.as_str(), times.function)) {
            record.results.extend(case(call, times, window));
        }
    }
    let mut calls: Vec<record::Call> = calls.into_values().collect();
    calls.sort_by_key(|call| std::cmp::Reverse((call.total_ns, call.count)));
    record.calls = calls;
    record.dropped = Some(watched.totals.crowded);
    record.warnings.push(
        "calls were counted where they happened (--counts): no findings are looked for, and a call \
         inside another of the same thread counts in both"
            .to_owned(),
    );
}

fn call(counted: &CountedCall) -> record::Call {
    record::Call {
        module: counted.module.clone(),
        layer: match counted.family {
            Family::Pkcs11 => format!("pkcs11 {}", counted.module),
            Family::Pcsc => "pcsc".to_owned(),
            Family::Driver | Family::Libc(_) => "driver-and-card".to_owned(),
        },
        function: counted.function.to_owned(),
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
    }
}

fn add(call: &mut record::Call, counted: &CountedCall) {
    call.count += counted.count;
    call.total_ns += counted.time;
    call.self_ns += counted.time;
    if let Some(code) = counted.result.filter(|code| *code != 0) {
        let code = match counted.family {
            Family::Pkcs11 => Rv(code).to_string(),
            Family::Pcsc => PcscCode(code as u32).to_string(),
            Family::Driver | Family::Libc(_) => (code as i32).to_string(),
        };
        *call.failed.entry(code).or_default() += counted.count;
    }
}

/// Latencies here are those of all calls: which of them failed is counted apart from how long they
/// took.
fn case(call: &record::Call, times: &FunctionTimes, window: Nanos) -> Option<record::CaseResult> {
    let series = times.series();
    let total = series.total();
    if total.completed == 0 {
        return None;
    }
    let mut case = record::CaseResult::new(
        call.operation(),
        record::Status::OK,
        record::Concurrency::ONE,
        record::Load::CLOSED,
    );
    case.failed = call.failed.clone();
    let conditions =
        Conditions { window, workers: NonZeroU32::MIN, first_and_last: None, clock_step: Nanos(1) };
    case.set_figures(&Summary::from_series(&series, &conditions), &total);
    Some(case)
}
