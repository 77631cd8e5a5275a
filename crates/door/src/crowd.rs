//! Who is simulated: how many people, and how fast they come.

use thiserror::Error;

/// How many people arrive, at which rate, and the seed of their random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    pub(crate) people: u64,
    pub(crate) per_hour: f64,
    pub(crate) seed: u64,
}

/// A crowd that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimulateError {
    /// Too few for figures, or too many for memory.
    #[error("{0} people cannot be simulated\nhint: from 100 to 10,000,000")]
    People(u64),
    /// Nobody, or more than any door.
    #[error("{0} people per hour do not come to a door\nhint: --people 500/h")]
    Rate(f64),
}

impl Crowd {
    /// So many people, so many an hour.
    ///
    /// # Errors
    /// When they are too few or too many.
    pub fn new(people: u64, per_hour: f64, seed: u64) -> Result<Self, SimulateError> {
        if !(100..=10_000_000).contains(&people) {
            return Err(SimulateError::People(people));
        }
        if !(per_hour.is_finite() && per_hour > 0.0 && per_hour <= 1e6) {
            return Err(SimulateError::Rate(per_hour));
        }
        Ok(Self { people, per_hour, seed })
    }
}

pub(crate) const HOUR_MS: f64 = 3.6e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowds_that_cannot_be_simulated_are_refused() {
        assert_eq!(Crowd::new(99, 1.0, 1), Err(SimulateError::People(99)));
        assert_eq!(Crowd::new(10_000_001, 1.0, 1), Err(SimulateError::People(10_000_001)));
        for per_hour in [0.0, -1.0, 1e6 + 1.0, f64::INFINITY] {
            assert_eq!(Crowd::new(100, per_hour, 1), Err(SimulateError::Rate(per_hour)));
        }
        assert!(Crowd::new(100, f64::NAN, 1).is_err());
        assert!(Crowd::new(100, 1e-3, 1).is_ok() && Crowd::new(10_000_000, 1e6, 1).is_ok());
    }
}
