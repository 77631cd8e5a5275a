//! The way to a worker: the pipes of a process, or something that leads to another machine.

use crate::lost::Lost;
use crate::process::WorkerProcess;
use crate::protocol::WorkerProtocol;

/// The way to a worker on another machine. Its reports come through a [`ReportSender`](crate::ReportSender).
pub trait RemoteWorker<P: WorkerProtocol>: Send {
    /// Sends a task. That the worker is gone is noticed by [`ReportSender::end`](crate::ReportSender::end).
    fn send_task(&mut self, task: P::Task);

    /// The machine that it is on, as the user knows it.
    fn machine(&self) -> &str;

    /// How a worker ended whose reports have ended.
    fn post_mortem(&mut self) -> Lost<P::Call>;

    /// Ends the worker at once.
    fn kill(&mut self);
}

/// A worker, wherever it is.
pub(crate) enum Channel<P: WorkerProtocol> {
    Process(WorkerProcess<P>),
    Remote(Box<dyn RemoteWorker<P>>),
}

impl<P: WorkerProtocol> Channel<P> {
    pub(crate) fn send_task(&mut self, task: P::Task) {
        match self {
            Self::Process(process) => process.order(&task.into()),
            Self::Remote(remote) => remote.send_task(task),
        }
    }

    pub(crate) fn post_mortem(&mut self, threads: usize) -> Lost<P::Call> {
        match self {
            Self::Process(process) => process.post_mortem(threads),
            Self::Remote(remote) => remote.post_mortem(),
        }
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Process(process) => process.kill(),
            Self::Remote(remote) => remote.kill(),
        }
    }

    /// The process, if it is one of this machine: only then are its calls watched from here.
    pub(crate) fn process(&mut self) -> Option<&mut WorkerProcess<P>> {
        match self {
            Self::Process(process) => Some(process),
            Self::Remote(_) => None,
        }
    }
}
