//! Where the probe does not run, system calls are not observed either: names that the rest of the
//! crate needs, and no values.

use std::str::FromStr;

use thiserror::Error;

/// A choice of system calls. There is none.
#[derive(Clone, Debug)]
pub enum Set {}

/// The only answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("system calls are observed on Linux on x86-64, and this is another platform")]
pub struct SetError;

impl Set {
    /// With one more.
    #[must_use]
    pub fn with(self, _name: &str) -> Self {
        match self {}
    }
}

impl FromStr for Set {
    type Err = SetError;

    fn from_str(_text: &str) -> Result<Self, SetError> {
        Err(SetError)
    }
}

/// What was seen of a program: nothing.
#[derive(Debug)]
pub enum Observed {}

/// Why a command could not be observed: never asked.
#[derive(Debug, Error)]
pub enum TracingError {}
