//! What a run has brought, for figures, costs and verification.

use super::error::Lost;
use crate::protocol::{Done, Ready, Sample};

/// What a run has brought.
#[derive(Clone, Debug)]
pub struct CardRun {
    /// What each worker saw, in order.
    pub samples: Vec<Vec<Sample>>,
    /// What each worker said when it was ready; none of one that never was.
    pub ready: Vec<Option<Ready>>,
    /// What each worker said at its end.
    pub done: Vec<Option<Done>>,
    /// A worker that was lost.
    pub lost: Option<Lost>,
    /// The user ended it.
    pub interrupted: bool,
    /// It ended because every case was known well enough.
    pub precise: bool,
}
