//! Why a command could not be observed, or its events not be kept.

use std::io;
use std::path::PathBuf;

use tapstone_command::run::RunError;
use thiserror::Error;

use crate::daemon::DaemonError;
use crate::probe::ProbeError;
use crate::recording::EventsError;
use crate::syscalls::TracingError;

/// Why a command could not be observed.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// The probe is not ready.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The daemon was not started.
    #[error(transparent)]
    ProbedDaemon(#[from] DaemonError),
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
    /// The path at which the events were to be kept.
    pub path: PathBuf,
    /// What the system says.
    pub why: io::Error,
}
