//! How a command is started to be stopped at its system calls, and at which.

use std::os::fd::OwnedFd;

use tapstone_command::command::Command;
use tapstone_command::observation::Observations;
use tapstone_events::system_calls::SystemCallSet;

/// How a command is to be run.
#[derive(Debug)]
pub struct Launch<'a> {
    pub(super) command: &'a Command,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) observations: Observations<'a>,
}

impl<'a> Launch<'a> {
    /// As its user would run it.
    #[must_use]
    pub fn new(command: &'a Command) -> Self {
        Self {
            command,
            stdin: None,
            stdout: None,
            stderr: None,
            observations: Observations::default(),
        }
    }

    /// With what observes it besides.
    #[must_use]
    pub fn observed(self, observations: Observations<'a>) -> Self {
        Self { observations, ..self }
    }

    /// With another standard input.
    #[must_use]
    pub fn stdin(self, stdin: OwnedFd) -> Self {
        Self { stdin: Some(stdin), ..self }
    }

    /// With another standard output.
    #[must_use]
    pub fn stdout(self, stdout: OwnedFd) -> Self {
        Self { stdout: Some(stdout), ..self }
    }

    /// With another standard error.
    #[must_use]
    pub fn stderr(self, stderr: OwnedFd) -> Self {
        Self { stderr: Some(stderr), ..self }
    }
}

/// What to look at.
#[derive(Clone, Debug)]
pub struct TracingOptions {
    /// The calls that are stopped at.
    pub set: SystemCallSet,
    /// The most memory for the calls, in bytes; at about 20 a call. What does not fit is counted.
    pub most_bytes: usize,
}

impl Default for TracingOptions {
    /// The default calls, in at most half a gigabyte: some 25 million.
    fn default() -> Self {
        Self { set: SystemCallSet::default_set(), most_bytes: 512 << 20 }
    }
}
