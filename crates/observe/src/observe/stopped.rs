//! The same, stopped at its system calls.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use tapstone_text::thousands;

use super::error::ObserveError;
use super::plan::ObservationPlan;
use crate::probe::Probe;
use crate::syscalls::{self, Launch, TracingOptions};
use tapstone_command::run::{Finished, ProgramInput, ProgramOutput};
use tapstone_events::system_calls::{Observed, SystemCallSet};

/// Also what its children do until the last of them has ended.
pub(super) fn run_stopped(
    plan: &ObservationPlan<'_>,
    probe: &Probe,
    set: &SystemCallSet,
) -> Result<(Finished, Observed), ObserveError> {
    let observations = plan.beside().inside(probe);
    let launch = Launch::new(plan.command).observed(observations);
    let launch = with_streams(launch, plan).map_err(ObserveError::Streams)?;
    let options = TracingOptions { set: set.clone(), ..TracingOptions::default() };
    let observed = syscalls::observe(&launch, &options)?;
    let finished = Finished {
        started: observed.started,
        wall: observed.ended - observed.started,
        user: observed.user,
        system: observed.system,
        max_rss_bytes: None,
        exit: observed.exit,
        stdout: None,
        stderr: None,
    };
    Ok((finished, observed))
}

/// Output that would be kept is thrown away.
fn with_streams<'a>(launch: Launch<'a>, plan: &ObservationPlan<'_>) -> io::Result<Launch<'a>> {
    let nothing = || File::options().read(true).write(true).open("/dev/null");
    let launch = match plan.input {
        ProgramInput::Passed => launch,
        ProgramInput::Null => launch.stdin(nothing()?.into()),
    };
    Ok(match plan.output {
        ProgramOutput::Passed => launch,
        ProgramOutput::Shown => launch.stdout(io::stderr().as_fd().try_clone_to_owned()?),
        ProgramOutput::Kept | ProgramOutput::Tail => {
            launch.stdout(nothing()?.into()).stderr(nothing()?.into())
        }
    })
}

/// What a reader of the figures has to know.
pub(super) fn sentences(observed: &Observed) -> Vec<String> {
    let calls = observed.calls.len() + observed.dropped;
    let cost = format!(
        "{} system calls were stopped at, which cost about {} each: the command takes less without \
         --syscalls",
        thousands(calls),
        observed.stop_cost.per_call(),
    );
    let lost = format!(
        "{} system calls found no room: their counts are lower bounds",
        thousands(observed.dropped)
    );
    let lost = (observed.dropped > 0).then_some(lost);
    observed.warnings.iter().cloned().chain([cost]).chain(lost).collect()
}
