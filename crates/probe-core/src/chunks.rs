//! Which chunks of the file a process may take, and how many it keeps when its memory is limited.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::wire::{CHUNK_BYTES, HEADER_BYTES};

/// The probe's part of a limited address space: one of so many.
const PART: usize = 4;
/// Chunks that are the least to begin with, and to go on with.
pub const LEAST_CHUNKS: u64 = 16;
/// Chunks that stay mapped when a program locks all of its memory.
pub const LOCKED_CHUNKS: u64 = 256;

/// Bytes of the file up to the end of so many chunks.
pub fn bytes_of_chunks(chunks: u64) -> usize {
    HEADER_BYTES + chunks as usize * CHUNK_BYTES
}

/// Chunks that are whole in so many bytes of the file.
pub fn chunks_in_bytes(bytes: usize) -> u64 {
    (bytes.saturating_sub(HEADER_BYTES) / CHUNK_BYTES) as u64
}

/// How many bytes of the file may be mapped where the address space is limited to so many bytes
/// (`None`: it is not), and where the probe needs `besides` of them for itself.
pub fn most_bytes(limit: Option<usize>, besides: usize) -> usize {
    limit.map_or(usize::MAX, |limit| (limit / PART).saturating_sub(besides))
}

/// How many chunks may stay mapped in an address space that is limited to so many bytes.
pub fn chunks_within(limit: usize) -> u64 {
    (limit / PART / CHUNK_BYTES) as u64
}

/// Takes the next chunk: one of those that may be taken (`most`), that is mapped (`reach`) and that
/// no thread has `taken`. Returns its number.
pub fn take_next_chunk(taken: &AtomicU64, most: &AtomicU64, reach: &AtomicU64) -> Option<u64> {
    let mut number = taken.load(Ordering::Relaxed);
    while number < most.load(Ordering::Acquire).min(reach.load(Ordering::SeqCst)) {
        match taken.compare_exchange_weak(number, number + 1, Ordering::SeqCst, Ordering::Relaxed) {
            // The program may have given it back meanwhile.
            Ok(_) if number < reach.load(Ordering::SeqCst) => return Some(number),
            Ok(_) => return None,
            Err(other) => number = other,
        }
    }
    None
}

/// Chunks that a process gives back: those from `kept` on, up to `reach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// So many stay mapped.
    pub kept: u64,
    /// How many chunks were mapped.
    pub reach: u64,
}

/// Lowers `reach` to so many chunks, or to what is taken and [`LEAST_CHUNKS`] more. `None`: no more
/// than that are mapped.
pub fn lower_reach(taken: &AtomicU64, reach: &AtomicU64, chunks: u64) -> Option<GivenBack> {
    let before = reach.load(Ordering::SeqCst);
    loop {
        let kept = chunks.max(taken.load(Ordering::SeqCst) + LEAST_CHUNKS);
        if kept >= before {
            return None;
        }
        // A thread that takes a chunk looks at the reach afterwards: either it sees this one, or
        // what it took is seen here.
        reach.store(kept, Ordering::SeqCst);
        if taken.load(Ordering::SeqCst) <= kept {
            return Some(GivenBack { kept, reach: before });
        }
        reach.store(before, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn numbers(taken: u64, ready: u64, reach: u64) -> [AtomicU64; 3] {
        [AtomicU64::new(taken), AtomicU64::new(ready), AtomicU64::new(reach)]
    }

    #[test]
    fn bytes_and_chunks_are_each_others_inverse() {
        assert_eq!(bytes_of_chunks(0), 64 << 10);
        assert_eq!(bytes_of_chunks(3), 4 * (64 << 10));
        for chunks in [0, 1, 16, 1000] {
            assert_eq!(chunks_in_bytes(bytes_of_chunks(chunks)), chunks);
            assert_eq!(chunks_in_bytes(bytes_of_chunks(chunks) + CHUNK_BYTES - 1), chunks);
        }
        assert_eq!(chunks_in_bytes(0), 0);
        assert_eq!(chunks_in_bytes(HEADER_BYTES - 1), 0);
    }

    #[test]
    fn the_probe_takes_a_quarter_of_a_limited_address_space() {
        assert_eq!(most_bytes(None, 1 << 20), usize::MAX);
        assert_eq!(most_bytes(Some(400), 30), 70);
        assert_eq!(most_bytes(Some(400), 101), 0);
        assert_eq!(chunks_within(4 * CHUNK_BYTES * 7), 7);
        assert_eq!(chunks_within(4 * CHUNK_BYTES * 7 - 1), 6);
    }

    #[test]
    fn chunks_are_taken_in_order_until_none_is_ready() {
        let [taken, ready, reach] = numbers(0, 2, 9);
        let all: Vec<_> = (0..4).map(|_| take_next_chunk(&taken, &ready, &reach)).collect();
        assert_eq!(all, [Some(0), Some(1), None, None]);
        assert_eq!(taken.into_inner(), 2, "what was refused is not counted as taken");
    }

    #[test]
    fn chunks_out_of_reach_are_not_taken() {
        let [taken, ready, reach] = numbers(4, 9, 5);
        assert_eq!(take_next_chunk(&taken, &ready, &reach), Some(4));
        assert_eq!(take_next_chunk(&taken, &ready, &reach), None);
        assert_eq!(taken.into_inner(), 5);
    }

    #[test]
    fn threads_never_take_the_same_chunk() {
        let [taken, ready, reach] = numbers(0, 64, 64);
        let take_all =
            || core::iter::from_fn(|| take_next_chunk(&taken, &ready, &reach)).collect::<Vec<_>>();
        let mut all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take_all)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        all.sort_unstable();
        assert_eq!(all, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_taken_and_a_little_more_is_kept() {
        let [taken, _, reach] = numbers(10, 0, 500);
        let given = lower_reach(&taken, &reach, 0);
        assert_eq!(given, Some(GivenBack { kept: 10 + LEAST_CHUNKS, reach: 500 }));
        assert_eq!(reach.into_inner(), 26);
    }

    #[test]
    fn a_limit_above_that_is_kept_to_the_chunk() {
        let [taken, _, reach] = numbers(10, 0, 500);
        let given = lower_reach(&taken, &reach, 100);
        assert_eq!(given, Some(GivenBack { kept: 100, reach: 500 }));
        assert_eq!(lower_reach(&taken, &reach, 99), Some(GivenBack { kept: 99, reach: 100 }));
    }

    #[test]
    fn nothing_is_given_back_within_the_limit() {
        let [taken, _, reach] = numbers(10, 0, 26);
        assert_eq!(lower_reach(&taken, &reach, 0), None);
        assert_eq!(lower_reach(&taken, &reach, 26), None);
        assert_eq!(lower_reach(&taken, &reach, 27), None);
        assert_eq!(reach.into_inner(), 26);
    }
}
