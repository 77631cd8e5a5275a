//! Where the probe does not run, system calls are not observed either.

use thiserror::Error;

/// Why a command could not be observed: never asked.
#[derive(Debug, Error)]
pub enum TracingError {}
