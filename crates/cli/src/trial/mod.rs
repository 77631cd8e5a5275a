//! `tapstone trial`: a fix, tried on the unmodified program.

mod arguments;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use tapstone_command::command::Command;
use tapstone_command::rounds::Progress;
use tapstone_command::run::Signals;
use tapstone_events::Fix;
use tapstone_observe::probe::EventBytes;
use tapstone_record::{self as record, Record};
use tapstone_trial::trial::Trial;

pub(crate) use self::arguments::Arguments;
use crate::card_controller;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::say;
use crate::progress::{ProgressLine, Steps};
use crate::trace::wait_for_a_card;

pub(crate) fn run_trial(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let recorded = arguments.record.recorded();
    let command = Command::from_words(arguments.command.iter().cloned())?.recorded(recorded);
    let daemon = arguments.with_daemon.as_deref().map(Command::from_text).transpose()?;
    let daemon = daemon.map(|daemon| daemon.recorded(recorded));
    let trials = match &arguments.from {
        Some(path) => named_by(path)?,
        None => vec![arguments.fixes.clone()],
    };
    let mut record = card_controller::record(record::TargetKind::Command, None);
    record.command =
        arguments.record.words_with_program(&arguments.command, arguments.with_daemon.as_deref());
    record.target.program = command.identity().ok();
    let signals = Signals::watch().context("signals cannot be watched")?;
    let live = ProgressLine::without_ticks(arguments.output.quiet);
    let mut exit = Exit::Done;
    let mut failure = None;
    let count = trials.len();
    for (number, fixes) in (1..).zip(trials) {
        let place = if count > 1 { format!("[{number}/{count}] ") } else { String::new() };
        let trial = Trial {
            command: &command,
            fixes,
            rounds: arguments.rounds as usize,
            warm_up: arguments.warm_up_rounds as usize,
            seed: arguments.seed,
            allow_writes: arguments.allow_writes,
            size: EventBytes(arguments.events_size as u64),
            daemon: daemon.as_ref(),
            when_ready: wait_for_a_card,
        };
        let name = trial.name();
        let begun = Instant::now();
        let tried = trial.run_trial(&signals, |progress| {
            let steps = Steps { done: progress.done as u64, of: progress.of as u64, begun };
            let text = format!("{place}{}{}", stage(&name, &progress), steps.left());
            live.draw(Some(steps.share()), &text);
        });
        match tried {
            Ok(tried) => {
                record.results.extend(tried.cases(&name));
                record.trials.extend(tried.record(&trial));
                for timeline in &tried.timelines {
                    card_controller::note_cards(&mut record.target, timeline);
                }
                record.warnings.extend(tried.warnings.iter().cloned());
                if let Some(stopped) = &tried.stopped {
                    record.warnings.push(format!("{name}: {stopped}"));
                    failure = tried.failure;
                    exit = Exit::NotMeasured;
                    break;
                }
            }
            // What earlier fixes gave is worth keeping.
            Err(error) if !record.trials.is_empty() => {
                record.warnings.push(format!("{name}: {}", error.in_short()));
                failure = Some(error);
                exit = Exit::NotMeasured;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    live.end();
    card_controller::mark_emulated(&mut record);
    let gain = |trial: &record::Trial| trial.speedup.estimate;
    record.trials.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    arguments.output.put(&record)?;
    // What the program said may hold a secret: it is for the terminal only.
    if let Some(failure) = failure {
        say!("error: {}", Failure(&failure.into()));
    }
    Ok(exit)
}

fn stage(name: &str, progress: &Progress) -> String {
    let kind = if progress.turn.warm_up { "warm-up" } else { "round" };
    format!("{name}: {kind} {}, {} of {} runs", progress.turn.round, progress.done, progress.of)
}

/// The fixes that a trace's findings name, each once, the finding with the largest share first.
fn named_by(path: &Path) -> anyhow::Result<Vec<Vec<Fix>>> {
    let record = Record::read(path)?;
    let mut findings = record.findings;
    findings.sort_by(|one, other| other.share.0.total_cmp(&one.share.0));
    let mut fixes: Vec<Fix> = Vec::new();
    for text in findings.iter().filter_map(|finding| finding.trial.as_ref()) {
        let fix = text.parse().with_context(|| format!("{}: findings", path.display()))?;
        if !fixes.contains(&fix) {
            fixes.push(fix);
        }
    }
    if fixes.is_empty() {
        bail!(
            "{} names no fix to try: {} findings\nhint: trace again, or name one with --fix",
            path.display(),
            findings.len()
        );
    }
    Ok(fixes.into_iter().map(|fix| vec![fix]).collect())
}
