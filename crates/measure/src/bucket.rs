//! Which bucket a latency falls into: the layout of an HdrHistogram with 3 significant digits
//! and a lowest value of 1 ns, as plain arithmetic.
//!
//! The measuring loop counts into an array by this index, and the counts move into an
//! [`hdrhistogram::Histogram`] later without loss (Tene, HdrHistogram: 2,048 sub-buckets, so that
//! neighbours differ by less than 0.1 %).

use crate::units::Nanos;

/// 3 significant digits need 2 × 10³ sub-buckets, rounded up to a power of two.
const SUB_BUCKETS: u64 = 2048;
const SUB_BUCKET_BITS: u32 = SUB_BUCKETS.ilog2();
const HALF: u64 = SUB_BUCKETS / 2;

/// Latencies from here on share the last bucket (73 minutes); the exact maximum is kept apart.
pub const HIGHEST: Nanos = Nanos((1 << 42) - 1);

/// How many buckets there are.
pub const BUCKETS: usize = bucket_of(HIGHEST) + 1;

/// The bucket of a latency.
#[inline]
#[must_use]
pub const fn bucket_of(latency: Nanos) -> usize {
    let value = if latency.0 > HIGHEST.0 { HIGHEST.0 } else { latency.0 };
    let shift = shift_of(value);
    ((shift as u64 * HALF) + (value >> shift)) as usize
}

/// The bucket of this number in a slice: the last one where there is none of that number. Slices
/// come from other processes, and from other hosts.
#[inline]
#[must_use]
pub(crate) fn bucket_numbered(number: u32) -> usize {
    (number as usize).min(BUCKETS - 1)
}

/// The lowest latency of a bucket.
#[inline]
#[must_use]
pub const fn lowest_of(bucket: usize) -> Nanos {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return Nanos(bucket);
    }
    let shift = bucket / HALF - 1;
    Nanos((bucket - shift * HALF) << shift)
}

/// The first latency beyond a bucket.
#[must_use]
pub const fn end_of(bucket: usize) -> Nanos {
    lowest_of(bucket + 1)
}

/// How many low bits a value loses: none below 2,048 ns, then one more per octave.
#[inline]
const fn shift_of(value: u64) -> u32 {
    (u64::BITS - (value | (SUB_BUCKETS - 1)).leading_zeros()) - SUB_BUCKET_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_hdrhistogram(value in 1..=HIGHEST.0) {
            let histogram = Histogram::<u64>::new_with_bounds(1, HIGHEST.0, 3).unwrap();
            let bucket = bucket_of(Nanos(value));
            prop_assert_eq!(lowest_of(bucket).0, histogram.lowest_equivalent(value));
            prop_assert_eq!(end_of(bucket).0, histogram.next_non_equivalent(value));
        }
    }

    #[test]
    fn every_bucket_maps_back_to_itself() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(lowest_of(bucket)), bucket);
        }
        assert_eq!(bucket_of(Nanos::NEVER), BUCKETS - 1);
        // 2,048 of one nanosecond each, and 1,024 for each of 31 doublings up to 2 to the 42.
        assert_eq!(BUCKETS, 2_048 + 31 * 1_024);
    }

    #[test]
    fn a_number_that_no_bucket_has_is_that_of_the_last() {
        let last = BUCKETS as u32 - 1;
        assert_eq!(
            [7, last, last + 1, u32::MAX].map(bucket_numbered),
            [7, BUCKETS - 1, BUCKETS - 1, BUCKETS - 1]
        );
    }
}
