//! Several things in turns, so that what changes meanwhile (heat, other programs, a card that
//! tires) meets all of them alike.
//!
//! A round that counts runs each side once, in an order that a seed decides by chance, and rounds are
//! apart by a pause of random length: to whatever swings, in step with a fixed order or with the
//! rounds, no side is given for good, and a drift becomes a scatter that the interval over the rounds
//! shows. Rounds that warm up go from the first side to the last.
//!
//! Whatever fails ends it, also in a warm-up round: a command with a wrong PIN, repeated, would
//! block a card in its third run. What complete rounds have measured stays.

use std::time::Instant;

use tapstone_measure::order::{TurnOrder, pause_between_rounds};

/// How often a command runs, and how often before that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnsPlan {
    /// How many things take turns.
    pub sides: usize,
    /// How many rounds count, without those that warm up.
    pub rounds: usize,
    /// Rounds before them that do not.
    pub warm_up: usize,
    /// Decides the orders of the rounds, and the pauses between them.
    pub seed: u64,
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

impl TurnsPlan {
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
        let mut order = TurnOrder::from_seed(self.seed);
        let mut done = 0;
        let numbered = (1..=self.warm_up).map(|round| (round, true));
        for (round, is_warm_up) in numbered.chain((1..=self.rounds).map(|round| (round, false))) {
            let mut given: Vec<(usize, T)> = Vec::with_capacity(self.sides);
            let begun = Instant::now();
            // The first side comes first in what does not count: a trial looks at it before it runs
            // anything unobserved.
            let sides: Vec<usize> = match is_warm_up {
                true => (0..self.sides).collect(),
                false => order.next_order(self.sides),
            };
            for side in sides {
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
            let whole = if is_warm_up { &mut warm_up } else { &mut rounds };
            whole.push(given);
            if done < of {
                pause_between_rounds(order.next_pause(begun.elapsed()), &asked_to_end);
            }
        }
        Rounds { warm_up, rounds, ended: Ended::Done }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::f64::consts::TAU;

    use tapstone_measure::compare::{PairedRound, paired_ratio};
    use tapstone_measure::units::PerSecond;

    use super::*;

    const TWENTY: TurnsPlan = TurnsPlan { sides: 2, rounds: 20, warm_up: 1, seed: 1 };

    fn letters(plan: TurnsPlan) -> String {
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
    fn a_seed_decides_the_order() {
        let plan = TurnsPlan { sides: 2, rounds: 5, warm_up: 0, seed: 1 };
        assert_eq!(letters(plan), letters(plan));
        assert_ne!(letters(plan), letters(TurnsPlan { seed: 3, ..plan }));
    }

    /// A trial's first run is the observed one, whatever the seed: it decides whether the command may
    /// be repeated.
    #[test]
    fn warm_up_begins_with_the_first_side() {
        for seed in 0..100 {
            let plan = TurnsPlan { sides: 3, rounds: 1, warm_up: 2, seed };
            assert!(letters(plan).starts_with("ABCABC"), "{seed}");
        }
    }

    /// How many of 200 comparisons of a thing with itself find a difference, when what it takes
    /// swings with the period of so many turns.
    fn differences_found(turns: f64) -> usize {
        let found = |seed: u64| {
            let done = Cell::new(0.0);
            let run = |_| {
                let swing = (TAU * (done.get() / turns + seed as f64 / 200.0)).sin();
                done.set(done.get() + 1.0);
                Ok::<_, ()>(1.0 + 0.1 * swing)
            };
            let plan = TurnsPlan { sides: 2, rounds: 20, warm_up: 0, seed };
            let rounds = plan.run_rounds(run, || false, |_| ());
            let pair = |round: &Vec<f64>| PairedRound {
                a: PerSecond(1.0 / round[0]),
                b: PerSecond(1.0 / round[1]),
            };
            let pairs: Vec<PairedRound> = rounds.rounds.iter().map(pair).collect();
            !paired_ratio(&pairs).unwrap().holds(1.0)
        };
        (0..200).filter(|seed| found(*seed)).count()
    }

    #[test]
    fn what_swings_takes_no_side() {
        for turns in [2.0, 2.7, 4.0, 6.3, 8.0, 40.0] {
            let found = differences_found(turns);
            // One in twenty by chance: ten, and no more than four standard deviations beyond.
            assert!(found <= 22, "{turns}: {found} of 200");
        }
    }

    #[test]
    fn the_first_failure_ends_it_and_complete_rounds_stay() {
        let runs = Cell::new(0);
        let run = |turn: Turn| {
            runs.set(runs.get() + 1);
            if runs.get() == 8 { Err("wrong PIN") } else { Ok(turn.side) }
        };
        let rounds = TWENTY.run_rounds(run, || false, |_| ());
        assert_eq!(runs.get(), 8, "nothing runs after a failure");
        assert_eq!(rounds.rounds, [[0, 1], [0, 1]]);
        let Ended::Failed { turn, error } = rounds.ended else { panic!("{:?}", rounds.ended) };
        assert_eq!((turn.round, turn.warm_up, error), (3, false, "wrong PIN"));
    }

    #[test]
    fn a_warm_up_that_fails_ends_it_too() {
        let run = |_| Err::<(), _>("wrong PIN");
        let rounds = TWENTY.run_rounds(run, || false, |_| ());
        let Ended::Failed { turn, error } = rounds.ended else { panic!("{:?}", rounds.ended) };
        assert_eq!((turn.round, turn.warm_up, error), (1, true, "wrong PIN"));
        assert!(rounds.rounds.is_empty() && rounds.warm_up.is_empty());
    }

    #[test]
    fn a_run_that_an_interrupt_ended_is_no_failure() {
        let runs = Cell::new(0);
        let run = |_| {
            runs.set(runs.get() + 1);
            if runs.get() < 6 { Ok(()) } else { Err("SIGINT") }
        };
        let plan = TurnsPlan { sides: 2, rounds: 20, warm_up: 0, seed: 1 };
        let rounds = plan.run_rounds(run, || runs.get() == 6, |_| ());
        assert_eq!((rounds.rounds.len(), rounds.ended), (2, Ended::Interrupted));
    }

    #[test]
    fn progress_counts_every_run() {
        let told = RefCell::new(Vec::new());
        let plan = TurnsPlan { sides: 2, rounds: 2, warm_up: 1, seed: 1 };
        plan.run_rounds(|_| Ok::<_, ()>(()), || false, |progress| told.borrow_mut().push(progress));
        let told = told.into_inner();
        assert_eq!(told.iter().map(|it| it.done).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(told.iter().all(|progress| progress.of == 6));
        let turns = told.iter().map(|progress| (progress.turn.round, progress.turn.warm_up));
        let rounds = [(1, true), (1, true), (1, false), (1, false), (2, false), (2, false)];
        assert!(turns.eq(rounds), "{told:?}");
    }
}
