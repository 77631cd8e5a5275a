//! Several things in turns, so that what changes meanwhile (heat, other programs, a card that
//! tires) meets all of them alike.
//!
//! A round runs each side once. Every second round runs them in the reverse order of the one
//! before (A B, B A), which takes out a steady drift; every two rounds the order moves on by one,
//! so that with three sides each follows each of the others equally often.
//!
//! Whatever fails ends it, also in a warm-up round: a command with a wrong PIN, repeated, would
//! block a card in its third run. What complete rounds have measured stays.

/// How often a command runs, and how often before that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundsPlan {
    /// How many things take turns.
    pub sides: usize,
    /// How many rounds count, without those that warm up.
    pub rounds: usize,
    /// Rounds before them that do not.
    pub warm_up: usize,
}

/// One run among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose turn it is, from 0.
    pub side: usize,
    /// Which round, from 1.
    pub round: usize,
    /// Whether it is a warm-up round; they have numbers of their own.
    pub warm_up: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The run that begins now.
    pub turn: Turn,
    /// Runs that are done, warm-up included.
    pub done: usize,
    /// How many runs there will be in all.
    pub of: usize,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds<T, E> {
    /// What the warm-up rounds gave.
    pub warm_up: Vec<Vec<T>>,
    /// What each complete round gave, by side.
    pub rounds: Vec<Vec<T>>,
    /// Why there are no more rounds.
    pub ended: Ended<E>,
}

/// Why there are no more rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended<E> {
    /// All rounds were run.
    Done,
    /// Somebody asked for it; a run that was under way does not count, however it ended.
    Interrupted,
    /// A run failed; the rounds before it are whole.
    Failed {
        /// The run that failed.
        turn: Turn,
        /// Why the run failed.
        error: E,
    },
}

impl RoundsPlan {
    /// Runs all rounds. `run` is one run of one side; `progress` is told before each, and
    /// `asked_to_end` asked before and after.
    pub fn run_rounds<T, E>(
        &self,
        mut run: impl FnMut(Turn) -> Result<T, E>,
        asked_to_end: impl Fn() -> bool,
        mut progress: impl FnMut(Progress),
    ) -> Rounds<T, E> {
        let mut warm_up = Vec::new();
        let mut rounds = Vec::new();
        let of = self.sides * (self.warm_up + self.rounds);
        let mut done = 0;
        let numbered = (1..=self.warm_up).map(|round| (round, true));
        for (round, is_warm_up) in numbered.chain((1..=self.rounds).map(|round| (round, false))) {
            let mut given: Vec<(usize, T)> = Vec::with_capacity(self.sides);
            for side in order(self.sides, round) {
                let turn = Turn { side, round, warm_up: is_warm_up };
                let outcome = (!asked_to_end()).then(|| {
                    progress(Progress { turn, done, of });
                    run(turn)
                });
                let ended = match outcome {
                    None => Ended::Interrupted,
                    Some(_) if asked_to_end() => Ended::Interrupted,
                    Some(Err(error)) => Ended::Failed { turn, error },
                    Some(Ok(value)) => {
                        given.push((side, value));
                        done += 1;
                        continue;
                    }
                };
                return Rounds { warm_up, rounds, ended };
            }
            given.sort_by_key(|(side, _)| *side);
            let given = given.into_iter().map(|(_, value)| value).collect();
            if is_warm_up { warm_up.push(given) } else { rounds.push(given) }
        }
        Rounds { warm_up, rounds, ended: Ended::Done }
    }
}

/// The order of the sides in a round, counted from 1.
fn order(sides: usize, round: usize) -> Vec<usize> {
    let pair = (round - 1) / 2;
    let second = (round - 1) % 2 == 1;
    let mut order: Vec<usize> = (0..sides).map(|place| (place + pair) % sides).collect();
    if second {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    fn letters(plan: RoundsPlan) -> String {
        let told = RefCell::new(String::new());
        let run = |turn: Turn| {
            told.borrow_mut().push(['A', 'B', 'C'][turn.side]);
            Ok::<_, ()>(turn)
        };
        let rounds = plan.run_rounds(run, || false, |_| ());
        assert_eq!(rounds.ended, Ended::Done);
        assert_eq!((rounds.warm_up.len(), rounds.rounds.len()), (plan.warm_up, plan.rounds));
        for (place, round) in rounds.rounds.iter().enumerate() {
            let sides: Vec<usize> = round.iter().map(|turn| turn.side).collect();
            assert_eq!(sides, (0..plan.sides).collect::<Vec<_>>(), "by side, not by turn");
            assert!(round.iter().all(|turn| turn.round == place + 1 && !turn.warm_up));
        }
        told.into_inner()
    }

    #[test]
    fn two_sides_alternate() {
        let plan = RoundsPlan { sides: 2, rounds: 5, warm_up: 0 };
        assert_eq!(letters(plan), "ABBABAABAB");
        assert_eq!(letters(RoundsPlan { warm_up: 1, ..plan }), format!("AB{}", "ABBABAABAB"));
    }

    #[test]
    fn of_three_each_has_each_place_and_each_neighbour_equally_often() {
        let told = letters(RoundsPlan { sides: 3, rounds: 6, warm_up: 0 });
        assert_eq!(told, "ABCCBABCAACBCABBAC");
        let mut places = BTreeMap::new();
        let mut pairs = BTreeMap::new();
        for round in told.as_bytes().chunks(3) {
            for (place, side) in round.iter().enumerate() {
                *places.entry((place, *side)).or_insert(0) += 1;
            }
            for pair in round.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
            }
        }
        assert!(places.len() == 9 && places.values().all(|count| *count == 2), "{places:?}");
        assert!(pairs.len() == 6 && pairs.values().all(|count| *count == 2), "{pairs:?}");
    }

    #[test]
    fn the_first_failure_ends_it_and_complete_rounds_stay() {
        let runs = Cell::new(0);
        let run = |turn: Turn| {
            runs.set(runs.get() + 1);
            if runs.get() == 8 { Err("wrong PIN") } else { Ok(turn.side) }
        };
        let rounds =
            RoundsPlan { sides: 2, rounds: 20, warm_up: 1 }.run_rounds(run, || false, |_| ());
        assert_eq!(runs.get(), 8, "nothing runs after a failure");
        assert_eq!(rounds.rounds, [[0, 1], [0, 1]]);
        // The third round runs B first, then A.
        let turn = Turn { side: 0, round: 3, warm_up: false };
        assert_eq!(rounds.ended, Ended::Failed { turn, error: "wrong PIN" });
    }

    #[test]
    fn a_warm_up_that_fails_ends_it_too() {
        let run = |_| Err::<(), _>("wrong PIN");
        let rounds =
            RoundsPlan { sides: 2, rounds: 20, warm_up: 1 }.run_rounds(run, || false, |_| ());
        let turn = Turn { side: 0, round: 1, warm_up: true };
        assert_eq!(rounds.ended, Ended::Failed { turn, error: "wrong PIN" });
        assert!(rounds.rounds.is_empty() && rounds.warm_up.is_empty());
    }

    #[test]
    fn a_run_that_an_interrupt_ended_is_no_failure() {
        let runs = Cell::new(0);
        let run = |_| {
            runs.set(runs.get() + 1);
            if runs.get() < 6 { Ok(()) } else { Err("SIGINT") }
        };
        let plan = RoundsPlan { sides: 2, rounds: 20, warm_up: 0 };
        let rounds = plan.run_rounds(run, || runs.get() == 6, |_| ());
        assert_eq!((rounds.rounds.len(), rounds.ended), (2, Ended::Interrupted));
    }

    #[test]
    fn progress_counts_every_run() {
        let told = RefCell::new(Vec::new());
        let plan = RoundsPlan { sides: 2, rounds: 2, warm_up: 1 };
        plan.run_rounds(|_| Ok::<_, ()>(()), || false, |progress| told.borrow_mut().push(progress));
        let told = told.into_inner();
        assert_eq!(told.iter().map(|it| it.done).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(told.iter().all(|progress| progress.of == 6));
        assert_eq!(told[1].turn, Turn { side: 1, round: 1, warm_up: true });
    }
}
