//! The last calls of a thread that ended while it only counted them: when each began and ended, in a
//! ring, so that a timeline shows the end of a long run. A call that never returned is not among them.

use core::mem::size_of;

use crate::wire::{CHUNK_BYTES, CHUNK_HEAD_BYTES};

/// Calls that a thread keeps, at most.
pub const MOST_LAST: usize = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / size_of::<LastCall>() - 1;

/// A call that is over. All zeros: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastCall {
    /// The number by which events call the stub, and one: 0 is no call.
    pub slot_and_one: u32,
    /// Who made it: a thread may go on with what one before it has left.
    pub thread: u32,
    /// When it began, on the probe's clock.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// What it returned.
    pub result: u64,
}

/// What a chunk of last calls holds. Zeroed memory holds none.
#[repr(C)]
#[derive(Debug)]
pub struct LastCalls {
    /// Those that ended last, from `next` on the oldest first.
    pub calls: [LastCall; MOST_LAST],
    /// Where the next one goes.
    next: u64,
}

const _: () = assert!(CHUNK_HEAD_BYTES + size_of::<LastCalls>() <= CHUNK_BYTES);

impl LastCall {
    /// A call through the stub that events call so; nobody's yet.
    pub const fn new(slot: u32, start: u64, end: u64, result: u64) -> Self {
        Self { slot_and_one: slot.wrapping_add(1), thread: 0, start, end, result }
    }
}

impl LastCalls {
    /// Keeps a call, and forgets the oldest when there is no room for both.
    #[inline(always)]
    pub fn note(&mut self, call: LastCall) {
        // Somebody else may have written there.
        let at = if self.next < MOST_LAST as u64 { self.next as usize } else { 0 };
        self.calls[at] = call;
        self.next = at as u64 + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn after(count: u64) -> LastCalls {
        let mut last = LastCalls { calls: [LastCall::default(); MOST_LAST], next: 0 };
        for number in 0..count {
            last.note(LastCall::new(7, number, number + 1, 0));
        }
        last
    }

    #[test]
    fn the_last_ones_are_kept_and_no_others() {
        let most = MOST_LAST as u64;
        assert!(most > 2_000);
        for (count, first) in
            [(0, 0), (5, 0), (most, 0), (most + 1, 1), (3 * most - 1, 2 * most - 1)]
        {
            let last = after(count);
            let mut starts: Vec<u64> =
                last.calls.iter().filter(|it| it.slot_and_one == 8).map(|it| it.start).collect();
            starts.sort_unstable();
            assert_eq!(starts, (first..count).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn a_place_that_somebody_else_has_written_is_none_outside() {
        let mut last = LastCalls { next: u64::MAX, ..after(3) };
        last.note(LastCall::new(7, 9, 9, 9));
        assert_eq!((last.calls[0].start, last.next), (9, 1));
    }
}
