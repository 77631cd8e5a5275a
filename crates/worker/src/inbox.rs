//! What workers report into: one inbox of a controller, in which each has its number.

use std::sync::mpsc::Sender;

/// What comes into a controller's inbox from one worker.
#[derive(Debug)]
pub(crate) enum Word<R> {
    /// A report of a worker.
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
