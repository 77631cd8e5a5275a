//! What is run and observed, and how.

use std::path::PathBuf;

use tapstone_command::command::Command;
use tapstone_command::observation::{Observation, Observations};
use tapstone_command::run::{ProgramInput, ProgramOutput};
use tapstone_events::system_calls::SystemCallSet;

use crate::probe::{Probe, ProbeOptions};

/// How to run it.
#[derive(Clone, Debug)]
pub struct ObservationPlan<'a> {
    /// The command that is run and observed.
    pub command: &'a Command,
    /// How the probe is to behave.
    pub options: &'a ProbeOptions,
    /// System calls to observe too: those of the command, not of the daemon.
    pub system_calls: Option<SystemCallSet>,
    /// Where its output goes.
    pub output: ProgramOutput,
    /// What the command reads on its standard input.
    pub input: ProgramInput,
    /// Where to keep the file of events.
    pub keep: Option<PathBuf>,
    /// A daemon to start before it and to stop after it, with the probe inside too.
    pub daemon: Option<&'a Command>,
    /// The probe of a daemon that runs already.
    pub beside: Option<&'a Probe>,
    /// Called when the daemon answers: its readers may need time to find their cards.
    pub when_ready: fn(),
}

impl<'a> ObservationPlan<'a> {
    /// The command alone: it reads nothing, and what it says is kept.
    #[must_use]
    pub fn new(command: &'a Command, options: &'a ProbeOptions) -> Self {
        Self {
            command,
            options,
            system_calls: None,
            output: ProgramOutput::Kept,
            input: ProgramInput::Null,
            keep: None,
            daemon: None,
            beside: None,
            when_ready: || (),
        }
    }

    /// The observation of that daemon.
    pub(super) fn beside(&self) -> Observations<'a> {
        Observations::default().beside(self.beside.map(|probe| probe as &dyn Observation))
    }
}
