//! A worker that is no more, and what it was calling.

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A worker process that is no more. `C` is a call.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Lost<C: Display> {
    /// It ended by itself, in the code that it called or after it.
    #[error("the worker process ended ({how}){}", during(call.as_ref()))]
    Crashed {
        /// The signal or the exit code.
        how: String,
        /// What it was calling.
        call: Option<C>,
    },
    /// A call did not return, and the process was killed.
    #[error("no answer within {after:?}{}; the worker process was killed", during(call.as_ref()))]
    Hung {
        /// How long it was given.
        after: Duration,
        /// What it was calling.
        call: Option<C>,
    },
    /// It is on another machine, of which nothing is heard any more.
    #[error("{0}")]
    Unreachable(String),
    /// It said something that is not in the protocol.
    #[error("the worker process could not be understood: {0}")]
    Garbled(String),
    /// It ended because the code that it called reached beyond a buffer that it was given.
    #[error(
        "the worker process ended ({how}){}, which reached beyond its buffer",
        during(call.as_ref())
    )]
    BeyondBuffer {
        /// The signal or the exit code.
        how: String,
        /// What it was calling.
        call: Option<C>,
    },
}

fn during<C: Display>(call: Option<&C>) -> String {
    call.map(|call| format!(" during {call}")).unwrap_or_default()
}

impl<C: Display> Lost<C> {
    /// The call in flight.
    #[must_use]
    pub const fn call(&self) -> Option<&C> {
        match self {
            Self::Crashed { call, .. }
            | Self::BeyondBuffer { call, .. }
            | Self::Hung { call, .. } => call.as_ref(),
            Self::Unreachable(_) | Self::Garbled(_) => None,
        }
    }

    /// One word for a record.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Crashed { .. } => "crashed",
            Self::BeyondBuffer { .. } => "reached beyond its buffer",
            Self::Hung { .. } => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Garbled(_) => "garbled",
        }
    }
}
