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

/// All that observes one run.
#[derive(Clone, Debug, Default)]
pub struct Observations<'a>(Vec<&'a dyn Observation>);

impl<'a> Observations<'a> {
    /// These, and one more.
    #[must_use]
    pub fn and(mut self, observation: Option<&'a dyn Observation>) -> Self {
        self.0.extend(observation);
        self
    }

    /// How long to wait for the program until the next [`look_after`](Self::look_after). `None`:
    /// nothing has to be looked after.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        self.0.iter().map(|observation| observation.period()).min()
    }

    /// Looks after all of them.
    pub fn look_after(&self) {
        self.0.iter().for_each(|observation| observation.look_after());
    }
}
