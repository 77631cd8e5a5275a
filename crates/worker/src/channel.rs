//! The way to a worker: the pipes of a process, or something that leads to another machine.

use std::sync::mpsc::Sender;

use crate::lost::Lost;
use crate::process::WorkerProcess;
use crate::protocol::Protocol;

/// The way to a worker on another machine. Its reports come through a [`ReportSender`].
pub trait RemoteWorker<P: Protocol>: Send {
    /// Sends a task. That the worker is gone is noticed by [`ReportSender::end`].
    fn send_task(&mut self, task: P::Task);

    /// How a worker ended whose reports have ended.
    fn post_mortem(&mut self) -> Lost<P::Call>;

    /// Ends the worker at once.
    fn kill(&mut self);
}

/// What comes into a controller's inbox from one worker.
#[derive(Debug)]
pub(crate) enum Word<R> {
    /// A report.
    Report(R),
    /// There will be no more.
    End,
    /// Something that is no report; there will be no more.
    Garbled(String),
    /// Nothing: the controller is to look at something else.
    Wake,
}

/// The end of a controller's inbox into which workers report, each under its number.
#[derive(Debug)]
pub struct ReportSender<R>(pub(crate) Sender<(usize, Word<R>)>);

impl<R> Clone for ReportSender<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R> ReportSender<R> {
    /// A report of the worker of this number.
    pub fn report(&self, number: usize, report: R) {
        // A controller that is gone needs no reports.
        let _ = self.0.send((number, Word::Report(report)));
    }

    /// The worker of this number is gone.
    pub fn end(&self, number: usize) {
        let _ = self.0.send((number, Word::End));
    }

    /// Lets [`Conversation::hear`](crate::Conversation::hear) return with nothing.
    pub fn wake(&self) {
        let _ = self.0.send((usize::MAX, Word::Wake));
    }
}

/// A worker, wherever it is.
pub(crate) enum Channel<P: Protocol> {
    Process(WorkerProcess<P>),
    Remote(Box<dyn RemoteWorker<P>>),
}

impl<P: Protocol> Channel<P> {
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
