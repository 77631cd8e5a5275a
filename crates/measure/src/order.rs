//! In which order things that are compared take turns, and how far apart their rounds are.

use std::thread;
use std::time::{Duration, Instant};

use crate::pace::SplitMix;

/// Decides by chance in which order each round goes, and how long it waits for the next one (Fisher,
/// "The Design of Experiments", 1935, chapter II: randomisation).
///
/// Whatever follows a pattern has a period at which something that swings takes a side in it, and in
/// few rounds all of its sides are the same: A B, B A, A B … meets a swing of four turns always at
/// the same place. Chance makes that a scatter, which an interval over the rounds shows. And rounds
/// that follow one another in step with a swing all see it at one place, and agree on a figure that
/// is not the device's own.
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

    /// The order of so many sides in the next round; all orders are equally likely (Fisher and Yates,
    /// as Durstenfeld gives it, CACM 1964, algorithm 235).
    pub fn next_order(&mut self, sides: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sides).collect();
        for place in (1..sides).rev() {
            // A remainder of 64 bits prefers no side by more than 2⁻⁵⁰.
            order.swap(place, (self.0.bits() % (place as u64 + 1)) as usize);
        }
        order
    }

    /// How long to wait after a round that has taken so long: up to as long again, and no more than
    /// [`LONGEST_PAUSE`].
    pub fn next_pause(&mut self, round: Duration) -> Duration {
        round.min(LONGEST_PAUSE).mul_f64(self.0.uniform())
    }
}

/// Between two rounds, however long they take.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Between two looks at whether the user has asked to end.
const LOOK: Duration = Duration::from_millis(50);

/// Waits between two rounds, but not for a user who has asked to end.
pub fn pause_between_rounds(length: Duration, asked_to_end: impl Fn() -> bool) {
    let until = Instant::now() + length;
    while Instant::now() < until && !asked_to_end() {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::f64::consts::TAU;

    use super::*;

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
    fn all_orders_are_equally_likely() {
        let mut order = TurnOrder::from_seed(1);
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        (0..6_000).for_each(|_| *seen.entry(order.next_order(3)).or_default() += 1);
        // Six standard deviations of 6,000 draws at one in six.
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| count.abs_diff(1_000) < 173), "{seen:?}");
        assert_eq!(order.next_order(1), [0]);
        assert!(order.next_order(0).is_empty());
    }

    #[test]
    fn a_pause_is_no_longer_than_its_round_or_a_second() {
        let mut order = TurnOrder::from_seed(1);
        let mut longest = |round: u64| {
            let pauses = (0..1000).map(|_| order.next_pause(Duration::from_millis(round)));
            pauses.max().unwrap_or_default().as_secs_f64()
        };
        assert!((0.0099..=0.01).contains(&longest(10)));
        assert!((0.99..=1.0).contains(&longest(60_000)));
    }

    #[test]
    fn nobody_who_has_asked_to_end_waits_for_a_round() {
        let begun = Instant::now();
        pause_between_rounds(Duration::from_secs(3600), || begun.elapsed().as_millis() >= 1);
        pause_between_rounds(Duration::ZERO, || false);
    }

    #[test]
    fn what_swings_takes_no_side() {
        // Of 32 sequences of five coins two fit.
        for period in [2.3, 3.0, 3.7, 4.0, 5.0, 7.9] {
            let share = takes_a_side(period);
            assert!(share < 0.09, "{period}: {share}");
        }
    }

    #[test]
    fn a_coin_decides_which_way_a_round_goes() {
        let mut order = TurnOrder::from_seed(7);
        let mut random = SplitMix(7);
        let mut backwards = 0_u32;
        for _ in 0..1_000 {
            let is_odd = !random.bits().is_multiple_of(2);
            assert_eq!(order.is_backwards(), is_odd);
            backwards += u32::from(is_odd);
        }
        // Six standard deviations of a thousand coins.
        assert!(backwards.abs_diff(500) < 95, "{backwards}");
    }

    #[test]
    fn a_pause_is_waited_for() {
        let begun = Instant::now();
        pause_between_rounds(Duration::from_millis(2), || false);
        assert!(begun.elapsed() >= Duration::from_millis(2));
    }
}
