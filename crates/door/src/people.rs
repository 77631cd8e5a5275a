//! What people do at a door.

use crate::distribution::TimeDistribution;
use crate::millis::Millis;
use crate::path::AuthenticationPath;

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
    /// How many doors there are, each with a queue of its own, at one controller.
    pub doors: u32,
    /// The kinds of card that people hold; without any, all hold the scenario's.
    pub cards: Vec<CardKind>,
}

/// A kind of card that some people hold.
#[derive(Clone, Debug, PartialEq)]
pub struct CardKind {
    /// As its figures are called.
    pub name: String,
    /// The part of all people who hold one.
    pub share: f64,
    /// The way of its authentication.
    pub path: AuthenticationPath,
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
            doors: 1,
            cards: Vec::new(),
        }
    }
}
