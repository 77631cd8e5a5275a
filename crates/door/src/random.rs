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
