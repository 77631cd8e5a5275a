//! `tapstone trace`: where an unmodified program's time goes.

mod arguments;
mod attached;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use tapstone_attach::kept::KeptWatch;
use tapstone_command::command::Command;
use tapstone_command::run::{self, ProgramInput, ProgramOutput, Signals};
use tapstone_events::EventSource;
use tapstone_events::system_calls::Observed;
use tapstone_explain::operation::OperationRule;
use tapstone_explain::reading::read_timeline;
use tapstone_explain::system_calls::SystemCalls;
use tapstone_explain::timeline::Timeline;
use tapstone_explain::{folded, perfetto, tables};
use tapstone_files::Access;
use tapstone_observe::kept::{self, Kept};
use tapstone_observe::observe::{self, ObservationPlan, Seen};
use tapstone_observe::probe::{EventBytes, ProbeOptions};
use tapstone_record as record;
use tapstone_text::thousands;

pub(crate) use self::arguments::Arguments;
use crate::card_controller;
use crate::exit::Exit;
use crate::output;
use crate::print::say;
use crate::workload;

pub(crate) fn run_trace(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let Arguments { events, perfetto, folded, workload, .. } = arguments;
    for file in [events, perfetto, folded, workload].into_iter().flatten() {
        output::check(file)?;
    }
    if let Some(file) = &arguments.read {
        return read(arguments, file);
    }
    if arguments.attached.is_asked() {
        return attached::watch(arguments);
    }
    let recorded = arguments.record.recorded();
    let command = Command::from_words(arguments.command.iter().cloned())?.recorded(recorded);
    let daemon = arguments.with_daemon.as_deref().map(Command::from_text).transpose()?;
    let daemon = daemon.map(|daemon| daemon.recorded(recorded));
    let mut record = card_controller::record(record::TargetKind::Command, None);
    record.command =
        arguments.record.words_with_program(&arguments.command, arguments.with_daemon.as_deref());
    record.target.program = command.identity().ok();
    let signals = Signals::watch().context("signals cannot be watched")?;
    let options = ProbeOptions {
        fixes: arguments.fixes.clone(),
        on: true,
        data: arguments.data,
        callers: !arguments.no_callers,
        size: EventBytes(arguments.events_size()),
        listed: arguments.listed().map(EventBytes),
    };
    let plan = ObservationPlan {
        system_calls: arguments.system_calls(),
        output: ProgramOutput::Passed,
        input: ProgramInput::Passed,
        keep: arguments.events.clone(),
        daemon: daemon.as_ref(),
        when_ready: wait_for_a_card,
        ..ObservationPlan::new(&command, &options)
    };
    let seen = observe::observe(&plan, &signals)?;
    let timeline = read_timeline(&seen.recording)?;
    describe(&mut record, arguments, &seen, &timeline);
    let events = arguments.events.as_ref().filter(|_| seen.unkept.is_none());
    record.events = events.map(|path| data_file(path, &timeline));
    // Whatever becomes of one of these, the others are written.
    let put = arguments.output.put_aside(&record, access(arguments));
    let exported = export(arguments, &timeline, seen.system_calls.as_ref());
    let kept = keep_workload(arguments, &seen.recording);
    let exit = exit(&seen);
    put?;
    seen.unkept.map_or(Ok(()), Err)?;
    exported?;
    kept?;
    Ok(exit)
}

/// A file that the events of a timeline are kept in.
fn data_file(path: &Path, timeline: &Timeline) -> record::DataFile {
    let rows = timeline.threads.iter().map(|it| it.spans.len() + it.leaves.len()).sum::<usize>();
    record::DataFile { file: path.display().to_string(), count: rows as u64 }
}

/// The load on the token, where it was asked for.
fn keep_workload<S: EventSource>(arguments: &Arguments, events: &S) -> anyhow::Result<()>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let keep = |path| workload::keep_workload(path, events, &arguments.operation);
    arguments.workload.as_deref().map_or(Ok(()), keep)
}

/// What an earlier run saw, looked at again.
fn read(arguments: &Arguments, file: &Path) -> anyhow::Result<Exit> {
    if let OperationRule::SystemCall(name) = &arguments.operation {
        anyhow::bail!(
            "{}: a file of events holds no system calls, so {} cannot be an operation of it\n\
             hint: trace the program again with --operation {1}, which observes {name}; here a \
             function can be one, such as C_Sign or SCardTransmit",
            file.display(),
            arguments.operation
        );
    }
    if let Some(kept) = KeptWatch::read(file)? {
        return attached::read(arguments, file, kept);
    }
    let Kept { recording, wall, losses, missing } = kept::read_kept(file)?;
    let timeline = read_timeline(&recording)?;
    let mut record = card_controller::record(record::TargetKind::Command, None);
    let calls = SystemCalls::none();
    tables::describe(&mut record, &timeline, wall, &arguments.operation, calls);
    card_controller::note_cards(&mut record.target, &timeline);
    card_controller::mark_emulated(&mut record);
    // Where a file ends too early, programs may have begun that it does not tell of.
    let unseen = if missing > 0 { &[] } else { &timeline.unseen[..] };
    let missed = losses.sentences(unseen);
    if let Some(search) = &mut record.search {
        search.unseen.extend_from_slice(&missed);
    }
    record.warnings.extend(missed);
    if missing > 0 {
        let cut = cut_short(file, missing);
        if let Some(search) = &mut record.search {
            search.unseen.push(cut.clone());
        }
        record.warnings.push(cut);
    }
    let put = arguments.output.put_aside(&record, access(arguments));
    let exported = export(arguments, &timeline, None);
    let kept = keep_workload(arguments, &recording);
    put?;
    exported?;
    kept?;
    Ok(Exit::Done)
}

fn cut_short(file: &Path, missing: u64) -> String {
    format!(
        "{} was cut short by {} bytes: every count and every time here is a lower bound",
        file.display(),
        thousands(missing)
    )
}

/// Files for other programs, each whatever becomes of the other.
fn export(
    arguments: &Arguments,
    timeline: &Timeline,
    system_calls: Option<&Observed>,
) -> anyhow::Result<()> {
    let access = access(arguments);
    let system_calls = system_calls.into_iter().flat_map(perfetto::system_calls);
    let perfetto = arguments.perfetto.as_deref().map_or(Ok(()), |path| {
        output::write_file(path, access, |to| perfetto::write_trace(timeline, system_calls, to))
    });
    let folded = arguments.folded.as_deref().map_or(Ok(()), |path| {
        let mut stacks = Vec::new();
        folded::write_folded(timeline, &mut stacks)?;
        if stacks.is_empty() {
            say!("{}: not written, since no call was seen", path.display());
            return Ok(());
        }
        output::write_file(path, access, |to| to.write_all(&stacks))
    });
    perfetto.and(folded)
}

/// Who may read what is written: the data of APDUs is its owner's. Kept events may hold some.
fn access(arguments: &Arguments) -> Access {
    let may_hold_data = arguments.data || arguments.read.is_some();
    if may_hold_data { Access::Owner } else { Access::Everybody }
}

/// What was seen, in the record's words.
fn describe(record: &mut record::Record, arguments: &Arguments, seen: &Seen, timeline: &Timeline) {
    record.command_time = Some(record::CommandTime {
        wall_ns: seen.finished.wall,
        user_ns: seen.finished.user,
        system_ns: seen.finished.system,
    });
    let operation = &arguments.operation;
    let system_calls = SystemCalls::beside(seen.system_calls.as_ref(), timeline, operation);
    tables::describe(record, timeline, seen.finished.wall, operation, system_calls);
    card_controller::note_cards(&mut record.target, timeline);
    card_controller::mark_emulated(record);
    record.warnings.extend(seen.warnings.iter().chain(&seen.left_behind).cloned());
    let mut unseen: Vec<String> =
        seen.lost.iter().chain(&seen.unseen).chain(&seen.left_behind).cloned().collect();
    if let Some(blind) = &seen.blind {
        let told = match seen.system_calls {
            Some(_) => blind.beside_system_calls(),
            None => blind.to_string(),
        };
        let told = told.replace("\nhint: ", "; ");
        unseen.push(told.clone());
        record.warnings.push(told);
    }
    if let Some(search) = &mut record.search {
        search.unseen.extend(unseen);
    }
    if seen.blind.is_none() && timeline.threads.is_empty() {
        let nothing =
            "it made no call of PKCS#11 or PC/SC, and none of libc that waits or looks up";
        record.warnings.push(nothing.to_owned());
    }
    for (fix, applied) in arguments.fixes.iter().zip(&seen.applied) {
        record.warnings.push(match applied.changed {
            0 => format!("the fix {fix} never applied: nothing that it changes was called"),
            calls => format!("the fix {fix} was on and changed {calls} calls"),
        });
        if applied.refused > 0 {
            record.warnings.push(format!("{} calls went past the fix {fix}", applied.refused));
        }
        record.warnings.extend(fix.caution().map(|caution| format!("{}: {caution}", fix.name())));
    }
}

/// The program's own, as a shell has it: 128 and the signal's number for one that was killed.
fn exit(seen: &Seen) -> Exit {
    let code = match seen.finished.exit {
        run::Exit::Code(code) => code as u8,
        run::Exit::Signal(signal) => 128 + signal as u8,
    };
    Exit::Program(code)
}

/// A daemon that has just been started still looks for cards: what is traced is to find them.
pub(crate) fn wait_for_a_card() {
    const TIME_LIMIT: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(100);
    let until = Instant::now() + TIME_LIMIT;
    while Instant::now() < until && !card_controller::sees_a_card() {
        thread::sleep(PAUSE);
    }
}
