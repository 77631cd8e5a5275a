//! A suite in the worker.
use crate::protocol::Fault;
use crate::scard::{Connection, Context};
use crate::suite::job::SuiteJob;
use crate::worker::Work;

pub(crate) struct SuiteRun {
    _context: Context,
    _card: Connection,
}

impl SuiteRun {
    pub(crate) fn new(
        _job: &SuiteJob,
        context: Context,
        card: Connection,
        _reader: &str,
    ) -> Result<Self, Fault> {
        Ok(Self { _context: context, _card: card })
    }
}

impl Work for SuiteRun {
    fn prepare(&mut self, _number: u64) -> Result<(), Fault> {
        Ok(())
    }
    fn perform(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    fn undo(&mut self, _failed: bool) -> Result<(), Fault> {
        Ok(())
    }
}
