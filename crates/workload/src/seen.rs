//! Calls as events tell of them, before handles and digests are numbers.

use tapstone_events::{CallBegun, CallEnded, CallOutcome, End, StubId};
use tapstone_measure::units::Nanos;

/// A thread as events tell of it.
#[derive(Debug)]
pub(crate) struct SeenThread {
    pub(crate) process: u32,
    pub(crate) calls: Vec<SeenCall>,
    pub(crate) open: Vec<OpenCall>,
    /// Waits since the last call ended.
    pub(crate) waiting: Nanos,
    pub(crate) has_waited: bool,
}

/// An outermost call of PKCS#11.
#[derive(Debug)]
pub(crate) struct SeenCall {
    pub(crate) function: u32,
    pub(crate) begun: CallBegun,
    pub(crate) ended: Option<CallEnded>,
    pub(crate) waiting: Nanos,
    pub(crate) after_wait: bool,
}

#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) stub: StubId,
    pub(crate) is_pkcs11: bool,
    /// Its place among the thread's calls, if it is an outermost one.
    pub(crate) call: Option<usize>,
}

impl SeenCall {
    /// Whether the module returned, with a result that is known.
    pub(crate) fn returned(&self) -> Option<&CallEnded> {
        self.ended.as_ref().filter(|ended| matches!(ended.end, End::Returned | End::Replaced))
    }

    /// A number that the call gave, where it succeeded.
    pub(crate) fn made(&self) -> Option<u64> {
        let ended = self.returned().filter(|ended| ended.result == 0)?;
        match ended.outcome {
            CallOutcome::Made(made) => Some(made),
            // Of questions a digest is kept, which is no number of anything.
            CallOutcome::Found { .. } | CallOutcome::Response { .. } => None,
        }
    }

    /// How many objects C_FindObjects found.
    pub(crate) fn found(&self) -> u32 {
        match self.returned().map(|ended| ended.outcome) {
            Some(CallOutcome::Found { count, .. }) => count,
            _ => 0,
        }
    }
}
