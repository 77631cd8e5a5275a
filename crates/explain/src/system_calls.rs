//! The system calls of a run beside its timeline: as the tables, the detectors and Perfetto take
//! them. The probe's own are left out, and those that load it.

use tapstone_measure::units::Nanos;
use tapstone_record as record;

use crate::findings::{FileCall, Stops};
use crate::operation::Operation;
use crate::timeline::Timeline;
use tapstone_events::system_calls::Observed;

mod seen;

/// What tables and detectors take of system calls.
pub struct SystemCalls<'a> {
    pub(crate) files: Box<dyn Iterator<Item = FileCall<'a>> + 'a>,
    /// Where the operation is a system call: the thread (an index into [`Timeline::threads`]) and
    /// the moment of each return.
    pub(crate) returns: Vec<(usize, Nanos)>,
    /// The most frequent first.
    pub(crate) kinds: Vec<record::SystemCall>,
    pub(crate) stops: Stops<'a>,
}

impl SystemCalls<'_> {
    /// They were not observed.
    #[must_use]
    pub fn none() -> Self {
        let (returns, kinds) = (Vec::new(), Vec::new());
        Self { files: Box::new(std::iter::empty()), returns, kinds, stops: Stops::none() }
    }
}

impl<'a> SystemCalls<'a> {
    /// Those of a run, if they were observed.
    #[must_use]
    pub fn of(observed: Option<&'a Observed>, timeline: &Timeline, operation: &Operation) -> Self {
        observed.map_or_else(Self::none, |observed| Self::seen(observed, timeline, operation))
    }

    fn seen(observed: &'a Observed, timeline: &Timeline, operation: &Operation) -> Self {
        seen::system_calls(observed, timeline, operation)
    }
}
