//! How long a worker that cleans up goes on: as long as it gets on, however many objects there are
//! and however busy the machine is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::board::{Board, InFlight};

/// How long a worker that cleans up may stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanUpTimeouts {
    /// In a call that makes or removes what outlives the process.
    pub in_lasting_call: Duration,
    /// In any other call, or in none.
    pub otherwise: Duration,
}

/// Whether a worker gets on with what it does, by its board.
pub struct CleanUpWatch {
    board: Arc<Board>,
    seen: Vec<InFlight>,
    since: Instant,
}

impl CleanUpWatch {
    /// Watches from now on.
    #[must_use]
    pub fn new(board: Arc<Board>) -> Self {
        let seen = board.calls_in_flight();
        Self { board, seen, since: Instant::now() }
    }

    /// It has stood still for too long. `is_lasting` knows calls by their numbers.
    pub fn is_stuck(&mut self, timeouts: CleanUpTimeouts, is_lasting: impl Fn(u8) -> bool) -> bool {
        let now = self.board.calls_in_flight();
        if now != self.seen {
            self.seen = now;
            self.since = Instant::now();
        }
        let mut calls = self.seen.iter().filter_map(|call| call.call());
        let limit = match calls.any(is_lasting) {
            true => timeouts.in_lasting_call,
            false => timeouts.otherwise,
        };
        self.since.elapsed() >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_on_is_not_stuck_and_a_lasting_call_has_more_time() {
        let board = Board::create().unwrap();
        let cell = board.cell(0);
        let short = Duration::from_millis(40);
        let timeouts = CleanUpTimeouts { in_lasting_call: 100 * short, otherwise: short };
        let mut watch = CleanUpWatch::new(Arc::clone(&board));
        let mut is_stuck = |lasting: u8| watch.is_stuck(timeouts, |call| call == lasting);
        for operation in 0..6 {
            cell.enter(7, operation);
            assert!(!is_stuck(0), "operation {operation}");
            std::thread::sleep(short / 2);
        }
        std::thread::sleep(short);
        assert!(!is_stuck(7));
        assert!(is_stuck(0));
    }
}
