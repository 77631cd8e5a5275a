//! A command, run once with the probe inside.

mod error;
mod plan;
mod staying;
#[cfg(probe)]
mod stopped;

use std::env;
use std::fs::File;
use std::io;
use std::mem;
use std::path::Path;

use tapstone_command::run::{Finished, ProgramRun, RunError, Signals};
use tapstone_events::system_calls::Observed;
use tapstone_events::{Blind, Losses, ObservedRun};
use tapstone_files::{Access, write_whole};

pub use self::error::{KeepError, ObserveError};
pub use self::plan::ObservationPlan;
use crate::blind;
use crate::daemon::ProbedDaemon;
use crate::probe::{Applied, Probe};
use crate::recording::{self, EventsError, Recording};

/// What came of it.
#[derive(Debug)]
pub struct Seen {
    /// How it ended, and what it took.
    pub finished: Finished,
    /// What the program did, as events.
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

/// Runs it to its end.
///
/// # Errors
/// When it cannot be started, or what it left cannot be read. How it ends is no error here.
pub fn observe(plan: &ObservationPlan<'_>, signals: &Signals) -> Result<Seen, ObserveError> {
    let mut probe = Probe::new(plan.options)?;
    let daemon = plan.daemon.map(|command| ProbedDaemon::start(command, &probe)).transpose()?;
    if daemon.is_some() {
        (plan.when_ready)();
    }
    let daemons = probe.buffer().processes();
    let (finished, system_calls) = match &plan.system_calls {
        None => (run_probed(plan, &probe, signals)?, None),
        Some(set) => {
            let (finished, observed) = stopped::run_stopped(plan, &probe, set)?;
            (finished, Some(observed))
        }
    };
    probe.buffer().close();
    // What it has yet to say is not about this command.
    if let Some(daemon) = daemon {
        daemon.stop();
    }
    probe.remove_files();
    let (file, scale) = probe.buffer().file().map_err(EventsError::from)?;
    let ended = finished.started + finished.wall;
    let processor = finished.user + finished.system;
    let unkept = plan.keep.as_ref().and_then(|path| {
        let signed = probe.buffer().sign(&scale, finished.started, ended, processor);
        let kept = signed.and_then(|()| keep(&file, path));
        kept.err().map(|why| KeepError { path: path.clone(), why })
    });
    let losses = probe.buffer().losses();
    let run = ObservedRun {
        started: finished.started,
        ended,
        dropped: losses.dropped,
        processor: Some(processor),
        summed_from: None,
    };
    let recording = Recording::new(file, scale, run)?;
    let mut losses = recording.with_sums(losses);
    let is_blind = probe.buffer().processes() == daemons;
    let blind = is_blind.then(|| why_blind(plan.command.program(), &mut losses));
    let applied = probe.buffer().applied();
    let lost = losses.of_calls();
    let unseen = losses.of_programs(recording.unseen());
    let mut warnings = losses.sentences(recording.unseen());
    warnings.extend(system_calls.iter().flat_map(stopped::sentences));
    // A daemon's process is the first.
    let command = plan.daemon.map_or_else(|| recording.first_process(), |_| None);
    let left_behind = staying::sentence(&probe, command, finished.wall);
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

fn run_probed(
    plan: &ObservationPlan<'_>,
    probe: &Probe,
    signals: &Signals,
) -> Result<Finished, RunError> {
    let mut observations = plan.beside();
    if !blind::is_for_another_machine(plan.command.program()) {
        observations = observations.inside(probe);
    }
    let run = ProgramRun::new(plan.command).output(plan.output).input(plan.input);
    run.observed(observations).finish(signals)
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
fn keep(file: &File, path: &Path) -> io::Result<()> {
    let mut from = file.try_clone()?;
    io::Seek::rewind(&mut from)?;
    let mut used = io::Read::take(from, recording::used(file)?);
    // What programs said to a card or a token is their user's.
    write_whole(path, Access::Owner, |to| io::copy(&mut used, to).map(drop))
}

#[cfg(not(probe))]
mod stopped {
    use tapstone_command::run::Finished;
    use tapstone_events::system_calls::{Observed, SystemCallSet};

    use super::error::ObserveError;
    use super::plan::ObservationPlan;
    use crate::probe::{Probe, ProbeError};

    pub(super) fn run_stopped(
        _plan: &ObservationPlan<'_>,
        _probe: &Probe,
        _set: &SystemCallSet,
    ) -> Result<(Finished, Observed), ObserveError> {
        Err(ProbeError::Platform.into())
    }

    pub(super) fn sentences(_observed: &Observed) -> Vec<String> {
        Vec::new()
    }
}
