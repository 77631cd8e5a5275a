//! The way to a worker: a pipe, or an agent on another machine. Whatever the lab does with a worker
//! that has entered its token goes through here.

use std::time::Duration;

use tapstone_names::pkcs11::Pkcs11Function as Call;
use tapstone_worker::Process;

use super::error::Lost;
use crate::protocol::{Order, Report, Task};

/// The way to a worker on another machine. Its reports come through the lab's inbox.
pub trait Link: Send {
    /// Sends a task. That the worker is gone is noticed by its last word.
    fn give(&mut self, task: Task);

    /// How a worker ended that has said its last word.
    fn post_mortem(&mut self) -> Lost;

    /// Ends the worker at once.
    fn kill(&mut self);
}

/// The way to a worker, wherever it is.
pub(super) enum Way {
    Pipe(Process<Order, Report>),
    Link(Box<dyn Link>),
}

impl Way {
    pub(super) fn give(&mut self, task: Task) {
        match self {
            Self::Pipe(process) => process.order(&Order::Task(task)),
            Self::Link(link) => link.give(task),
        }
    }

    /// A call that has not returned for longer than `limit`, on any of the worker's threads. An
    /// agent watches its own workers.
    pub(super) fn stuck(&mut self, threads: usize, limit: Duration) -> Option<Lost> {
        match self {
            Self::Pipe(process) => Some(process.stuck(threads, limit)?.named(Call::from_number)),
            Self::Link(_) => None,
        }
    }

    pub(super) fn post_mortem(&mut self, threads: usize) -> Lost {
        match self {
            Self::Pipe(process) => process.post_mortem(threads).named(Call::from_number),
            Self::Link(link) => link.post_mortem(),
        }
    }

    pub(super) fn kill(&mut self) {
        match self {
            Self::Pipe(process) => process.kill(),
            Self::Link(link) => link.kill(),
        }
    }
}
