//! A command, run once with the probe inside.

mod staying;
#[cfg(probe)]
mod stopped;

use std::env;
use std::fs::File;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::blind;
use crate::daemon::{Daemon, DaemonError};
use crate::probe::{Applied, Options, Probe, ProbeError};
use crate::recording::{self, EventsError, Recording};
use crate::syscalls::TracingError;
use tapstone_command::command::Command;
use tapstone_command::observation::Observation;
use tapstone_command::run::{Finished, Input, Output, Run, RunError, Signals};
use tapstone_events::{
    Blind, Losses, ObservedRun,
    system_calls::{Observed, SystemCallSet},
};

/// How to run it.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What to run.
    pub command: &'a Command,
    /// How the probe is to behave.
    pub options: &'a Options,
    /// System calls to observe too: those of the command, not of the daemon.
    pub system_calls: Option<SystemCallSet>,
    /// Where its output goes.
    pub output: Output,
    /// What it reads.
    pub input: Input,
    /// Where to keep the file of events.
    pub keep: Option<PathBuf>,
    /// A daemon to start before it and to stop after it, with the probe inside too.
    pub daemon: Option<&'a Command>,
    /// The probe of a daemon that runs already.
    pub beside: Option<&'a Probe>,
    /// Called when the daemon answers: its readers may need time to find their cards.
    pub when_ready: fn(),
}

impl<'a> Plan<'a> {
    /// The command alone: it reads nothing, and what it says is kept.
    #[must_use]
    pub fn of(command: &'a Command, options: &'a Options) -> Self {
        Self {
            command,
            options,
            system_calls: None,
            output: Output::Kept,
            input: Input::Null,
            keep: None,
            daemon: None,
            beside: None,
            when_ready: || (),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Seen {
    /// How it ended, and what it took.
    pub finished: Finished,
    /// What it did.
    pub recording: Recording,
    /// Its system calls, where they were asked for.
    pub system_calls: Option<Observed>,
    /// What each fix came to.
    pub applied: Vec<Applied>,
    /// Calls that are not in the timeline, and why, as sentences.
    pub lost: Vec<String>,
    /// Programs that are not in it, and why, as sentences.
    pub unseen: Vec<String>,
    /// Why nothing was seen, when the probe did not run.
    pub blind: Option<Blind>,
    /// What to know of it.
    pub warnings: Vec<String>,
    /// Which processes go on, as a sentence.
    pub left_behind: Option<String>,
    /// Why the file of events was not kept, where it was to be.
    pub unkept: Option<KeepError>,
}

/// Why a command could not be observed.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// The probe is not ready.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The daemon was not started.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The command was not started, or not seen to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Its system calls could not be observed.
    #[error(transparent)]
    SystemCalls(#[from] TracingError),
    /// The command has nowhere to write to, or nothing to read from.
    #[error("/dev/null: {0}\nhint: too many files may be open: see ulimit -n")]
    Streams(io::Error),
    /// What it left behind cannot be read.
    #[error(transparent)]
    Events(#[from] EventsError),
}

/// The file of events cannot be kept. All else that was seen is there. The text ends with a hint.
#[derive(Debug, Error)]
#[error(
    "{}: the events cannot be kept there: {why}\n\
     hint: --events needs a file that can be written, on a disk with room", path.display()
)]
pub struct KeepError {
    /// Where.
    pub path: PathBuf,
    /// What the system says.
    pub why: io::Error,
}

/// Runs it to its end.
///
/// # Errors
/// When it cannot be started, or what it left cannot be read. How it ends is no error here.
pub fn observe(plan: &Plan<'_>, signals: &Signals) -> Result<Seen, ObserveError> {
    let probe = Probe::new(plan.options)?;
    let daemon = plan.daemon.map(|command| Daemon::start(command, &probe)).transpose()?;
    if daemon.is_some() {
        (plan.when_ready)();
    }
    let daemons = probe.buffer().processes();
    let (finished, system_calls) = match &plan.system_calls {
        None => (run(plan, &probe, signals)?, None),
        Some(set) => {
            let (finished, observed) = stopped::run(plan, &probe, set)?;
            (finished, Some(observed))
        }
    };
    // What it has yet to say is not about this command.
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    let (file, scale) = probe.buffer().file().map_err(EventsError::from)?;
    let ended = finished.started + finished.wall;
    let unkept = plan.keep.as_ref().and_then(|path| {
        let signed = probe.buffer().sign(&scale, finished.started, ended);
        let kept = signed.and_then(|()| keep(&file, path));
        kept.err().map(|why| KeepError { path: path.clone(), why })
    });
    let mut losses = probe.buffer().losses();
    let run = ObservedRun { started: finished.started, ended, dropped: losses.dropped };
    let recording = Recording::new(file, scale, run)?;
    let is_blind = probe.buffer().processes() == daemons;
    let blind = is_blind.then(|| why_blind(plan.command.program(), &mut losses));
    let applied = probe.buffer().applied();
    let lost = losses.of_calls();
    let unseen = losses.of_programs(recording.unseen());
    let mut warnings = losses.sentences(recording.unseen());
    warnings.extend(system_calls.iter().flat_map(stopped::sentences));
    let left_behind = staying::sentence(&probe);
    Ok(Seen {
        finished,
        recording,
        system_calls,
        applied,
        lost,
        unseen,
        blind,
        warnings,
        left_behind,
        unkept,
    })
}

fn run(plan: &Plan<'_>, probe: &Probe, signals: &Signals) -> Result<Finished, RunError> {
    let run = Run::new(plan.command).output(plan.output).input(plan.input);
    run.observed(probe).beside(as_observation(plan.beside)).finish(signals)
}

fn as_observation(probe: Option<&Probe>) -> Option<&dyn Observation> {
    probe.map(|probe| probe as &dyn Observation)
}

/// As the probe says, which then is no loss beside it, or else as the program's file tells.
fn why_blind(program: &Path, losses: &mut Losses) -> Blind {
    let path = || program.to_owned();
    if mem::take(&mut losses.limited) > 0 {
        return Blind::Limited(path());
    }
    if mem::take(&mut losses.outdated) > 0 {
        return Blind::Outdated(path());
    }
    blind::reason(program).unwrap_or_else(|| Blind::Unknown(path(), env::temp_dir()))
}

/// Only what is used: the file has room for much more.
fn keep(file: &File, path: &PathBuf) -> io::Result<()> {
    let mut to = File::create(path)?;
    let mut from = file.try_clone()?;
    io::Seek::rewind(&mut from)?;
    io::copy(&mut io::Read::take(&mut from, recording::used(file)?), &mut to)?;
    Ok(())
}

#[cfg(not(probe))]
mod stopped {
    use super::{Finished, ObserveError, Observed, Plan, Probe, ProbeError, SystemCallSet};

    pub(super) fn run(
        _plan: &Plan<'_>,
        _probe: &Probe,
        _set: &SystemCallSet,
    ) -> Result<(Finished, Observed), ObserveError> {
        Err(ProbeError::Platform.into())
    }

    pub(super) fn sentences(_observed: &Observed) -> Vec<String> {
        Vec::new()
    }
}
