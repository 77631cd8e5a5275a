//! One slice of a window: what one worker completed between two moments of a common grid.
//!
//! Workers send slices to the controller. They are small, and every figure of a case can be made of
//! them. When a worker dies, only its last slice is lost.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::bucket::{bucket_numbered, bucket_of, lowest_of};
use crate::units::Nanos;

/// What one worker did in `[start, start + length)`, by the time of completion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Since the window opened.
    pub start: Nanos,
    /// A power-of-two multiple of the window's first slice length.
    pub length: Nanos,
    /// Operations that ended well.
    pub completed: u64,
    /// Operations that did not.
    pub failed: u64,
    /// Sum of the latencies of the completed operations, exact.
    pub latency_sum: u128,
    /// Time inside calls, clipped to the window, failures included.
    pub busy: Nanos,
    /// Shortest latency; [`Nanos::NEVER`] when nothing completed.
    pub min: Nanos,
    /// Longest latency; zero when nothing completed.
    pub max: Nanos,
    /// `(bucket, count)` in rising order of [`crate::bucket`]'s index.
    pub buckets: Vec<(u32, u64)>,
}

impl Slice {
    /// A slice in which nothing completed, with start and length zero.
    #[must_use]
    pub fn empty() -> Self {
        Self { min: Nanos::NEVER, ..Self::default() }
    }

    /// Counts one completed operation: for simulations and tests, the loop has a faster way.
    pub fn count(&mut self, latency: Nanos) {
        self.count_alike(latency, 1);
    }

    /// Counts so many completed operations that took the same.
    pub fn count_alike(&mut self, latency: Nanos, operations: u64) {
        if operations == 0 {
            return;
        }
        self.completed = self.completed.saturating_add(operations);
        let all = u128::from(latency.0) * u128::from(operations);
        self.latency_sum = self.latency_sum.saturating_add(all);
        self.busy += Nanos(latency.0.saturating_mul(operations));
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        let bucket = bucket_of(latency) as u32;
        match self.buckets.binary_search_by_key(&bucket, |(index, _)| *index) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(operations),
            Err(place) => self.buckets.insert(place, (bucket, operations)),
        }
    }

    /// The latency that this share of the completed operations did not exceed, to the bucket;
    /// `None` when nothing completed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let wanted = ((self.completed as f64 * share).ceil() as u64).max(1);
        let mut reached = 0_u64;
        let holds = |(_, count): &&(u32, u64)| {
            reached = reached.saturating_add(*count);
            reached >= wanted
        };
        self.buckets.iter().find(holds).map(|(bucket, _)| lowest_of(bucket_numbered(*bucket)))
    }

    /// Adds what another worker, or the next slice, did. Start and length stay. Counts from elsewhere
    /// may be of any size.
    pub fn absorb(&mut self, other: &Self) {
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.latency_sum = self.latency_sum.saturating_add(other.latency_sum);
        self.busy += other.busy;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.buckets = merged(&self.buckets, &other.buckets);
    }
}

/// Two sorted lists of counts as one.
fn merged(a: &[(u32, u64)], b: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let mut a = a.iter().peekable();
    let mut b = b.iter().peekable();
    while let (Some(&&(left, n)), Some(&&(right, m))) = (a.peek(), b.peek()) {
        match left.cmp(&right) {
            Ordering::Less => all.extend(a.next()),
            Ordering::Greater => all.extend(b.next()),
            Ordering::Equal => {
                all.push((left, n.saturating_add(m)));
                a.next();
                b.next();
            }
        }
    }
    all.extend(a);
    all.extend(b);
    // Most places are in both, and slices are kept for as long as a measurement takes.
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_latency_that_its_share_does_not_exceed() {
        let mut slice = Slice::empty();
        assert_eq!(slice.quantile(0.5), None);
        [40, 10, 30, 20].into_iter().for_each(|latency| slice.count(Nanos(latency)));
        let found = [0.0, 0.25, 0.26, 0.5, 0.75, 0.76, 1.0].map(|share| slice.quantile(share));
        assert_eq!(found, [10, 10, 20, 20, 30, 40, 40].map(|latency| Some(Nanos(latency))));
        // Latencies of one bucket count together.
        (0..4).for_each(|_| slice.count(Nanos(10)));
        assert_eq!(slice.quantile(0.625), Some(Nanos(10)));
        assert_eq!(slice.quantile(0.626), Some(Nanos(20)));
    }
}
