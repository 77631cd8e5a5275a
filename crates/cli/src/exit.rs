//! What the exit code says.

use std::process::ExitCode;

/// Ordered by how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything asked for was measured, and every claim was met.
    Done,
    /// A claim, a budget or a threshold was missed, or could not be decided.
    Missed,
    /// Something asked for could not be measured, or not be trusted.
    NotMeasured,
    /// What a program that was traced returned.
    Program(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Missed => 1,
            Exit::NotMeasured => 2,
            Exit::Program(code) => code,
        })
    }
}
