//! `tapstone trace`: where an unmodified program's time goes.

mod arguments;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use tapstone_record as record;
use tapstone_trace::command::Command;
use tapstone_trace::observe::{self, Plan, Seen};
use tapstone_trace::probe::{Options, Size};
use tapstone_trace::run::{self, Input, Output, Signals};
use tapstone_trace::{folded, perfetto, tables};

pub(crate) use self::arguments::Arguments;
use crate::card_lab;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    for file in [&arguments.events, &arguments.perfetto, &arguments.folded].into_iter().flatten() {
        output::check(file)?;
    }
    let command = Command::from_words(arguments.command.iter().cloned())?;
    let daemon = arguments.with_daemon.as_deref().map(Command::from_text).transpose()?;
    let mut record = card_lab::record(record::TargetKind::Command, None);
    record.command = tapstone_trace::command::without_secrets(&record.command);
    record.target.program = command.identity().ok();
    let signals = Signals::watch().context("signals cannot be watched")?;
    let options = Options {
        fixes: arguments.fixes.clone(),
        on: true,
        data: arguments.data,
        size: Size(arguments.events_size as u64),
    };
    let plan = Plan {
        command: &command,
        options: &options,
        output: Output::Passed,
        input: Input::Passed,
        keep: arguments.events.clone(),
        daemon: daemon.as_ref(),
        when_ready: wait_for_a_card,
    };
    let seen = observe::observe(&plan, &signals)?;
    describe(&mut record, arguments, &seen);
    export(arguments, &seen)?;
    arguments.output.put_aside(&record)?;
    Ok(exit(&seen))
}

/// Files for other programs.
fn export(arguments: &Arguments, seen: &Seen) -> anyhow::Result<()> {
    let create = |path: &Path| {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        anyhow::Ok(BufWriter::new(file))
    };
    if let Some(path) = &arguments.perfetto {
        perfetto::write(&seen.timeline, [], create(path)?)?;
    }
    if let Some(path) = &arguments.folded {
        folded::write(&seen.timeline, create(path)?)?;
    }
    Ok(())
}

/// What was seen, in the record's words.
fn describe(record: &mut record::Record, arguments: &Arguments, seen: &Seen) {
    tables::describe(record, &seen.timeline, &seen.finished, &arguments.operation);
    if tables::virtual_reader(&seen.timeline).is_some() {
        record.target.emulated = Some(card_lab::unknown_virtual_card());
        card_lab::mark_emulated(record);
    }
    record.warnings.extend(seen.warnings.iter().cloned());
    if let Some(blind) = &seen.blind {
        record.warnings.push(blind.to_string().replace("\nhint: ", "; "));
    }
    for (fix, applied) in arguments.fixes.iter().zip(&seen.applied) {
        record.warnings.push(match applied.changed {
            0 => format!("the fix {fix} never applied: nothing that it changes was called"),
            calls => format!("the fix {fix} was on and changed {calls} calls"),
        });
        if applied.refused > 0 {
            record
                .warnings
                .push(format!("{} calls found no room in the fix {fix}", applied.refused));
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
    const PATIENCE: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(100);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until && !card_lab::sees_a_card() {
        thread::sleep(PAUSE);
    }
}
