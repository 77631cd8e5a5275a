//! One person's turn at a door: tapping, holding the card, trying again, passing.

use crate::millis::Millis;
use crate::path::AuthenticationPath;
use crate::people::People;
use crate::random::RandomStream;

/// One person's service at the door.
pub(crate) struct Visit {
    /// All of it, but for a wait for the controller.
    pub(crate) time: Millis,
    /// The part of it that the controller works, which ends before the person passes.
    pub(crate) shared: Millis,
    /// From the controller's answer to the next one's turn.
    pub(crate) after: Millis,
    pub(crate) passed: bool,
    pub(crate) readings: u32,
    pub(crate) removed: u32,
}

impl Visit {
    pub(crate) fn take(
        people: &People,
        path: &AuthenticationPath,
        random: &mut RandomStream,
    ) -> Self {
        let People { tap, hold, again, read_failure, attempts, pass, .. } = people;
        let mut visit = Self {
            time: tap.draw(random),
            shared: Millis::ZERO,
            after: Millis::ZERO,
            passed: false,
            readings: 0,
            removed: 0,
        };
        while visit.readings < *attempts && !visit.passed {
            if visit.readings > 0 {
                visit.time = visit.time + again.draw(random);
            }
            visit.readings += 1;
            let drawn = path.draw(random);
            let held = hold.as_ref().map(|hold| hold.draw(random));
            if let Some(held) = held.filter(|held| *held < drawn.card_needed) {
                visit.removed += 1;
                visit.time = visit.time + held;
            } else if *read_failure > 0.0 && random.unit() < *read_failure {
                visit.time = visit.time + drawn.card_needed;
            } else {
                visit.passed = true;
                visit.shared = drawn.controller;
                visit.after = pass.draw(random);
                visit.time = visit.time + drawn.total + visit.after;
            }
        }
        visit
    }
}
