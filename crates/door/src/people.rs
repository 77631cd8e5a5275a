//! What people do at a door.

use crate::distribution::TimeDistribution;
use crate::millis::Millis;

/// What people do at a door.
#[derive(Clone, Debug, PartialEq)]
pub struct People {
    /// From stepping up to the card in the field.
    pub tap: TimeDistribution,
    /// How long they hold the card before they take it away; without it, until it is done.
    pub hold: Option<TimeDistribution>,
    /// From taking the card away too early to holding it there again.
    pub again: TimeDistribution,
    /// The part of readings that fail and start over although the card was held.
    pub read_failure: f64,
    /// After so many readings in vain they give up.
    pub attempts: u32,
    /// How long they stand in the queue before they leave; without it, as long as it takes.
    pub patience: Option<TimeDistribution>,
    /// From the open door to the next one's turn.
    pub pass: TimeDistribution,
}

impl Default for People {
    /// Assumed: nobody measured these.
    fn default() -> Self {
        Self {
            tap: TimeDistribution::Fixed(Millis(500.0)),
            hold: None,
            again: TimeDistribution::Fixed(Millis(1000.0)),
            read_failure: 0.0,
            attempts: 3,
            patience: None,
            pass: TimeDistribution::Fixed(Millis(1500.0)),
        }
    }
}
