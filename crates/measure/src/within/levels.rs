//! Levels as the tests of the search want them.

use crate::exceedance::{ArrivalBatch, GeneratorHealth, RateLevel};
use crate::units::{Nanos, PerSecond};

/// Twenty equal batches with this share beyond the bound, rounded to whole arrivals.
pub(super) fn steady(rate: f64, arrivals: u64, share: f64) -> RateLevel {
    let each = arrivals / 20;
    let batch = ArrivalBatch {
        arrivals: each,
        beyond: (each as f64 * share).round() as u64,
        mean_latency: Nanos::from_millis(2),
        shortest_latency: Nanos::from_millis(1),
        taken: None,
    };
    RateLevel { rate: PerSecond(rate), batches: vec![batch; 20], generator: GeneratorHealth::Sound }
}

/// The same with latencies that rise from batch to batch.
pub(super) fn growing(rate: f64, arrivals: u64, share: f64) -> RateLevel {
    let mut level = steady(rate, arrivals, share);
    for (batch, millis) in level.batches.iter_mut().zip(1..) {
        batch.mean_latency = Nanos::from_millis(millis);
    }
    level
}

/// Grows, and serves 100 arrivals per second while all wait.
pub(super) fn growing_at_capacity(rate: f64) -> RateLevel {
    let mut level = growing(rate, 2_000, 0.0);
    for batch in &mut level.batches {
        batch.shortest_latency = Nanos::from_millis(4);
        batch.taken = Some(Nanos::from_secs(1));
    }
    level
}
