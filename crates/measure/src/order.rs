//! In which order things that are compared take turns.

use crate::pace::SplitMix;

/// Decides for each round by a coin whether it goes forwards or backwards (Fisher, "The Design of
/// Experiments", 1935, chapter II: randomisation).
///
/// Whatever follows a pattern has a period at which something that swings takes a side in it, and in
/// few rounds all of its sides are the same: A B, B A, A B … meets a swing of four turns always at
/// the same place. A coin makes that a scatter, which an interval over the rounds shows.
#[derive(Clone, Debug)]
pub struct TurnOrder(SplitMix);

impl TurnOrder {
    /// The same orders for the same seed.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    /// Whether the next round goes backwards.
    pub fn is_backwards(&mut self) -> bool {
        self.0.bits() & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// How often the mean over five rounds, of what stands first less what stands second, takes all
    /// of the difference that a swing of so many turns makes between two turns.
    fn takes_a_side(period: f64) -> f64 {
        let is_lost = |seed: u64| {
            let mut order = TurnOrder::from_seed(seed);
            let at = |turn: f64| (TAU * (turn / period + 0.125)).sin();
            let difference = |round: u32| {
                let difference = at(f64::from(2 * round)) - at(f64::from(2 * round + 1));
                if order.is_backwards() { -difference } else { difference }
            };
            let differences: Vec<f64> = (0..5).map(difference).collect();
            let all: f64 = differences.iter().map(|it| it.abs()).sum();
            all > 0.0 && differences.iter().sum::<f64>().abs() > 0.99 * all
        };
        (0..1000).filter(|seed| is_lost(*seed)).count() as f64 / 1000.0
    }

    #[test]
    fn what_swings_takes_no_side() {
        // Of 32 sequences of five coins two fit.
        for period in [2.3, 3.0, 3.7, 4.0, 5.0, 7.9] {
            let share = takes_a_side(period);
            assert!(share < 0.09, "{period}: {share}");
        }
    }
}
