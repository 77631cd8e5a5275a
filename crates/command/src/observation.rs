//! What observes a program while it runs, as far as the one who runs it has to know: what the
//! program's environment needs, and what must be looked after meanwhile.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

/// Observes programs from the inside. Who runs a program adds the environment and calls
/// [`look_after`](Self::look_after) once in every [`period`](Self::period) until it has ended.
pub trait Observation: fmt::Debug + Sync {
    /// Environment variables to add or replace: names and values.
    fn environment(&self) -> Vec<(OsString, OsString)>;

    /// The longest time between two calls of [`look_after`](Self::look_after).
    fn period(&self) -> Duration;

    /// Does what has to be done beside a running program, such as giving a file more space. It must
    /// take much less time than a period.
    fn look_after(&self);
}

/// All that observes one run, and what the program's environment needs for it.
#[derive(Clone, Debug, Default)]
pub struct Observations<'a> {
    all: Vec<&'a dyn Observation>,
    variables: Vec<(OsString, OsString)>,
}

impl<'a> Observations<'a> {
    /// These, and one of the program itself, from the inside.
    #[must_use]
    pub fn inside(mut self, observation: &'a dyn Observation) -> Self {
        self.variables.extend(observation.environment());
        self.beside(Some(observation))
    }

    /// These, and one of another program (a daemon), which is looked after too.
    #[must_use]
    pub fn beside(mut self, observation: Option<&'a dyn Observation>) -> Self {
        self.all.extend(observation);
        self
    }

    /// With an environment variable added or replaced.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The environment variables to add or replace: names and values.
    #[must_use]
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// How long to wait for the program until the next [`look_after`](Self::look_after). `None`:
    /// nothing has to be looked after.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        self.all.iter().map(|observation| observation.period()).min()
    }

    /// Looks after all of them.
    pub fn look_after(&self) {
        self.all.iter().for_each(|observation| observation.look_after());
    }
}
