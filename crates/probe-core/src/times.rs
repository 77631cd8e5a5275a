//! How long calls took that are only counted: so many of each length, as a log-linear histogram
//! (Tene, HdrHistogram) of 8 buckets to a doubling: a bucket is at most an eighth of its lower end
//! wide. And how many of them asked again what had been asked before ([`crate::questions`]).

use core::mem::size_of;

use crate::questions::Questions;
use crate::wire::{CHUNK_BYTES, CHUNK_HEAD_BYTES};

/// Buckets to a doubling, as a number of bits.
const PART_BITS: u32 = 3;
const PARTS: u64 = 1 << PART_BITS;
/// From here on calls are of one length, on the probe's clock: a day or more.
const LONGEST_BITS: u32 = 48;
/// How many lengths are told apart.
pub const BUCKETS: usize = bucket_of(1 << LONGEST_BITS) + 1;
/// Functions whose times a chunk has room for.
pub const MOST_TIMES: usize =
    (CHUNK_BYTES - CHUNK_HEAD_BYTES - size_of::<Questions>()) / size_of::<CallTimes>();

/// The times of one function's calls that a thread has only counted. All zeros: of none.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct CallTimes {
    /// The number by which events call the stub, and one: 0 is no function.
    pub slot_and_one: u64,
    /// Calls in each bucket.
    pub counts: [u64; BUCKETS],
    /// Those that asked again what the thread had asked before.
    pub again: u64,
    /// Their time, on the probe's clock.
    pub time_again: u64,
}

/// The bucket of a time, on the probe's clock.
#[inline(always)]
pub const fn bucket_of(time: u64) -> usize {
    if time < PARTS {
        return time as usize;
    }
    let time = if time > 1 << LONGEST_BITS { 1 << LONGEST_BITS } else { time };
    let doubling = time.ilog2() - PART_BITS;
    doubling as usize * PARTS as usize + (time >> doubling) as usize
}

/// The middle of a bucket, on the probe's clock.
pub const fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PARTS {
        return bucket;
    }
    let doubling = bucket / PARTS - 1;
    ((bucket - doubling * PARTS) << doubling) + (1 << doubling) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_and_hold_their_middle() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
        let mut last = 0;
        for time in (2..60).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]) {
            let bucket = bucket_of(time);
            assert!((last..BUCKETS).contains(&bucket), "{time}");
            last = bucket;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_middle_of_a_bucket_is_near_to_all_in_it() {
        for time in (0..200_000).chain((30..48).map(|bits| (1_u64 << bits) + (1 << 20))) {
            let middle = middle_of(bucket_of(time));
            assert!(middle.abs_diff(time) * 16 <= time, "{middle} for {time}");
        }
    }
}
