//! Chance that repeats: the same seed gives the same numbers.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of numbers from a seed.
pub(crate) struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// Streams of one seed with different numbers have nothing to do with one another.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// From 0 to 1, without either.
    pub(crate) fn unit(&mut self) -> f64 {
        // 53 bits are what an f64 holds; the half keeps it off both ends.
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Time to the next event of a Poisson process, in units of its mean.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// From the standard normal distribution, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    fn draws(one: impl Fn(&mut RandomStream) -> f64) -> Vec<f64> {
        let mut random = RandomStream::new(1, 0);
        (0..DRAWS).map(|_| one(&mut random)).collect()
    }

    /// The share of values for which something holds; 100,000 draws are off by 0.005 at the most.
    fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
        values.iter().filter(|value| holds(**value)).count() as f64 / DRAWS as f64
    }

    #[test]
    fn a_seed_and_a_stream_decide_the_numbers() {
        let numbers = |seed, stream| {
            let mut random = RandomStream::new(seed, stream);
            [random.unit(), random.unit()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn units_lie_evenly_between_both_ends() {
        let values = draws(RandomStream::unit);
        assert!(values.iter().all(|value| *value > 0.0 && *value < 1.0));
        for part in [0.1, 0.5, 0.9] {
            assert!((share(&values, |value| value < part) - part).abs() < 0.005, "{part}");
        }
    }

    #[test]
    fn times_between_events_are_exponential() {
        let values = draws(RandomStream::exponential);
        for times in [0.5, 1.0, 2.0, 4.0] {
            let longer = share(&values, |value| value > times);
            assert!((longer - f64::exp(-times)).abs() < 0.005, "{times}: {longer}");
        }
    }

    #[test]
    fn normal_numbers_lie_around_zero_as_the_tables_say() {
        let values = draws(RandomStream::normal);
        for (below, part) in
            [(-1.96, 0.025), (-1.0, 0.1587), (0.0, 0.5), (1.0, 0.8413), (2.0, 0.9772)]
        {
            assert!((share(&values, |value| value < below) - part).abs() < 0.005, "{below}");
        }
    }
}
