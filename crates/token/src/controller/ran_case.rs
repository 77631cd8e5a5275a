//! What workers brought of a case that ran.

use tapstone_measure::looper::WarmUpResult;

use super::HostClock;
use super::error::Lost;
use super::gather::Gathered;
use crate::protocol::Broken;

/// A case that ran.
pub(super) struct RanCase {
    pub(super) gathered: Gathered,
    pub(super) warm_ups: Vec<WarmUpResult>,
    /// Which of the prepared processes took part.
    pub(super) took_part: Vec<usize>,
    pub(super) threads: u32,
    /// The processors that the controller itself used on average meanwhile.
    pub(super) own_cores: f64,
    /// The rate was known well enough before the time was up.
    pub(super) precise: bool,
    /// Ended the case early.
    pub(super) lost: Option<Lost>,
    /// Lost when nobody measured any more: the figures hold, and samples or verification may lack.
    pub(super) lost_afterwards: Option<Lost>,
    /// Answers that cannot be, while results were read to be checked.
    pub(super) broken_when_read: Vec<Broken>,
    /// Whose results are not what they had committed themselves to.
    pub(super) refuted: Vec<Refuted>,
    /// With hosts: their clocks, as they were known over the whole case.
    pub(super) clocks: Vec<HostClock>,
    pub(super) interrupted: bool,
}

/// A host whose word on its results is not good, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refuted {
    pub(super) host: String,
    pub(super) why: &'static str,
}

impl Refuted {
    /// For a record: the host, and what is to be said against it.
    pub(super) fn code(&self) -> String {
        format!("{}: {}", self.host, self.why)
    }
}

impl RanCase {
    /// Notes a host once, with the first that is to be said against it.
    pub(super) fn refute(&mut self, refuted: Refuted) {
        if self.refuted.iter().all(|other| other.host != refuted.host) {
            self.refuted.push(refuted);
        }
    }

    /// Somebody was lost, or is not to be believed.
    pub(super) fn has_trouble(&self) -> bool {
        self.any_lost().is_some() || !self.refuted.is_empty()
    }

    /// Who was lost, at whatever time.
    pub(super) fn any_lost(&self) -> Option<&Lost> {
        self.lost.as_ref().or(self.lost_afterwards.as_ref())
    }

    /// The answers of a lane, or of all, that cannot be, of operations that do not count.
    pub(super) fn broken_outside(&self, lane: Option<usize>) -> Vec<Broken> {
        let threads = self.gathered.done.iter().flatten().flat_map(|done| &done.threads);
        let mut all: Vec<Broken> = Vec::new();
        let outside = threads.flat_map(|thread| &thread.broken_outside);
        for broken in outside.chain(&self.broken_when_read) {
            if lane.is_some_and(|lane| lane != usize::from(broken.lane)) {
                continue;
            }
            let what = |broken: &Broken| (broken.first.call, broken.first.code.kind());
            match all.iter_mut().find(|other| what(other) == what(broken)) {
                Some(same) => same.count += broken.count,
                None => all.push(*broken),
            }
        }
        all
    }
}
