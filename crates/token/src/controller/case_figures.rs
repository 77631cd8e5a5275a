//! A case that ran, with all that its figures are made from.

use super::TokenController;
use super::plan::CasePlan;
use super::prepare::Prepared;
use super::ran_case::RanCase;
use crate::protocol::Done;

/// What the figures of a case are made from.
pub(super) struct CaseFigures<'a> {
    pub(super) controller: &'a TokenController,
    pub(super) plan: &'a CasePlan,
    pub(super) prepared: &'a Prepared,
    pub(super) ran: &'a RanCase,
}

impl CaseFigures<'_> {
    pub(super) fn workers(&self) -> u32 {
        self.ran.threads * self.ran.took_part.len() as u32
    }

    pub(super) fn done(&self) -> impl Iterator<Item = &Done> {
        self.ran.gathered.done.iter().flatten()
    }
}
