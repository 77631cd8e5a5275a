//! Calls of libc: which are written, and how.
//!
//! A call that may wait is written when it begins, so that one that never ends is seen; one that
//! cannot is written when it is over. Short ones of a kind are counted rather than listed.

use crate::functions::Kind;
use crate::wire::{EVENT_LEAF, Head, Leaf};

/// Shorter ones are counted, not listed, in microseconds: nothing sleeps and wakes up in less.
const LISTED_MICROS: u64 = 20;
/// Locks that were free are no waiting.
const LOCKED_MICROS: u64 = 10;
/// A microsecond for one of 32 is less than a hundredth of longer ones.
const SHORT_MICROS: u64 = 4;
/// Only those who wait for people wait so long; asking the kernel what a descriptor is takes time.
const TERMINAL_MICROS: u64 = 1_000;

/// When a call is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafTiming {
    /// Calls of it are never written.
    Unwritten,
    /// When it is over: it cannot wait.
    AtEnd,
    /// When it begins: it may wait.
    AtBeginning,
}

/// When a call of that kind is written, with its amount ([`Kind`]'s `b`) and so many calls of
/// PKCS#11, PC/SC or a driver around it.
pub fn leaf_timing(kind: Kind, amount: u64, depth: usize) -> LeafTiming {
    let is_quick = match kind {
        Kind::Clock | Kind::Write | Kind::Close => true,
        Kind::Poll => amount == 0,
        _ => false,
    };
    // Outside of any call, what a program does with clocks is its own affair.
    match (depth, is_quick) {
        (0, _) if kind == Kind::Clock => LeafTiming::Unwritten,
        (_, true) => LeafTiming::AtEnd,
        (_, false) => LeafTiming::AtBeginning,
    }
}

/// What becomes of the event of a call that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafEnding {
    /// It stands by itself.
    Listed,
    /// It is counted with its like.
    Counted,
    /// It was no waiting at all, and is taken back.
    TakenBack,
}

/// Durations as the probe's clock has them.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// Ticks of the clock in a microsecond.
    pub per_micro: u32,
}

impl Ticks {
    #[inline(always)]
    fn in_micros(self, micros: u64) -> u64 {
        micros * u64::from(self.per_micro)
    }

    /// What becomes of a call that could not wait and took so many ticks. Each close is listed:
    /// what a descriptor stands for ends there.
    #[inline(always)]
    pub fn ending_of_quick(self, kind: Kind, time: u64) -> LeafEnding {
        if self.is_short(time) && kind != Kind::Close {
            LeafEnding::Counted
        } else {
            LeafEnding::Listed
        }
    }

    /// What becomes of a call that was written when it began and took so many ticks.
    #[inline(always)]
    pub fn ending_of_wait(self, kind: Kind, time: u64) -> LeafEnding {
        match kind {
            Kind::Lock if time < self.in_micros(LOCKED_MICROS) => LeafEnding::TakenBack,
            // A file that is open belongs to its close.
            Kind::Sleep | Kind::Connect | Kind::Open => LeafEnding::Listed,
            _ if self.is_short(time) => LeafEnding::Counted,
            _ => LeafEnding::Listed,
        }
    }

    /// Whether a call took so little time that it would not be listed on its own.
    #[inline(always)]
    pub fn is_short(self, time: u64) -> bool {
        time < self.in_micros(LISTED_MICROS)
    }

    /// A call that is shorter than so many ticks would be noticeably longer if the kernel were asked
    /// about one of 32.
    #[inline(always)]
    pub fn short_call(self) -> u64 {
        self.in_micros(SHORT_MICROS)
    }

    /// Whether somebody may have been waited for at a terminal.
    #[inline(always)]
    pub fn is_as_long_as_people_take(self, time: u64) -> bool {
        time > self.in_micros(TERMINAL_MICROS)
    }
}

/// Whether what a descriptor leads to says who is waited for.
#[inline(always)]
pub fn uses_descriptor(kind: Kind) -> bool {
    matches!(kind, Kind::Poll | Kind::Read | Kind::Write)
}

/// The event of a call that has begun.
#[inline(always)]
pub fn leaf_that_begins(slot: u32, start: u64, a: u64, b: u64) -> Leaf {
    let head = Head { time: start, kind: EVENT_LEAF, flags: 0, words: 0, slot };
    Leaf { head, end: 0, count: 1, sum: 0, min: 0, max: 0, result: 0, a, b }
}

impl Leaf {
    /// The call is over.
    #[inline(always)]
    pub fn close_at(&mut self, end: u64, result: u64, flags: u8) {
        let time = end.saturating_sub(self.head.time);
        self.end = end;
        self.sum = time;
        self.min = time;
        self.max = time;
        self.result = result;
        self.head.flags = flags;
    }

    /// Whether another call is of the same sort: the same function on the same thing, with the same
    /// flags, and both failed, did nothing or succeeded.
    #[inline(always)]
    pub fn is_like(&self, other: &Self) -> bool {
        self.head.slot == other.head.slot
            && self.a == other.a
            && self.head.flags == other.head.flags
            && (self.result as i32).signum() == (other.result as i32).signum()
    }

    /// Whether there are bytes behind it.
    pub fn has_bytes(&self) -> bool {
        usize::from(self.head.words) * 8 > size_of::<Self>()
    }

    /// Adds a call of the same sort.
    #[inline(always)]
    pub fn add_one(&mut self, other: &Self) {
        self.end = other.end;
        self.count += 1;
        self.sum += other.sum;
        self.min = self.min.min(other.sum);
        self.max = self.max.max(other.sum);
        self.result = other.result;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 13] = [
        Kind::Sleep,
        Kind::Poll,
        Kind::Clock,
        Kind::Open,
        Kind::Stat,
        Kind::Close,
        Kind::Read,
        Kind::Write,
        Kind::Connect,
        Kind::Lock,
        Kind::Children,
        Kind::LookupName,
        Kind::LookupNumber,
    ];
    const TICKS: Ticks = Ticks { per_micro: 3 };

    #[test]
    fn what_cannot_wait_is_written_at_its_end() {
        for kind in ALL {
            let is_quick = [Kind::Clock, Kind::Write, Kind::Close].contains(&kind);
            let expected = if is_quick { LeafTiming::AtEnd } else { LeafTiming::AtBeginning };
            assert_eq!(leaf_timing(kind, 1, 1), expected, "{kind:?}");
        }
        assert_eq!(leaf_timing(Kind::Poll, 0, 1), LeafTiming::AtEnd);
        assert_eq!(leaf_timing(Kind::Sleep, 0, 1), LeafTiming::AtBeginning);
    }

    #[test]
    fn outside_of_calls_clocks_are_not_written() {
        for kind in ALL {
            let expected = match kind {
                Kind::Clock => LeafTiming::Unwritten,
                Kind::Write | Kind::Close => LeafTiming::AtEnd,
                _ => LeafTiming::AtBeginning,
            };
            assert_eq!(leaf_timing(kind, 1, 0), expected, "{kind:?}");
        }
        assert_eq!(leaf_timing(Kind::Poll, 0, 0), LeafTiming::AtEnd);
    }

    #[test]
    fn short_calls_are_counted() {
        // 20 microseconds of 3 ticks.
        assert_eq!(TICKS.ending_of_quick(Kind::Write, 59), LeafEnding::Counted);
        assert_eq!(TICKS.ending_of_quick(Kind::Write, 60), LeafEnding::Listed);
        assert_eq!(TICKS.ending_of_quick(Kind::Close, 1), LeafEnding::Listed);
        assert_eq!(TICKS.ending_of_wait(Kind::Read, 59), LeafEnding::Counted);
        assert_eq!(TICKS.ending_of_wait(Kind::Read, 60), LeafEnding::Listed);
        for kind in [Kind::Sleep, Kind::Connect] {
            assert_eq!(TICKS.ending_of_wait(kind, 1), LeafEnding::Listed, "{kind:?}");
        }
    }

    #[test]
    fn a_lock_that_was_free_is_taken_back() {
        // 10 microseconds of 3 ticks.
        assert_eq!(TICKS.ending_of_wait(Kind::Lock, 29), LeafEnding::TakenBack);
        assert_eq!(TICKS.ending_of_wait(Kind::Lock, 30), LeafEnding::Counted);
        assert_eq!(TICKS.ending_of_wait(Kind::Lock, 60), LeafEnding::Listed);
    }

    #[test]
    fn people_take_more_than_a_millisecond() {
        assert!(!TICKS.is_as_long_as_people_take(3_000));
        assert!(TICKS.is_as_long_as_people_take(3_001));
    }

    #[test]
    fn descriptors_matter_where_one_waits() {
        for kind in ALL {
            let expected = [Kind::Poll, Kind::Read, Kind::Write].contains(&kind);
            assert_eq!(uses_descriptor(kind), expected, "{kind:?}");
        }
    }

    fn ended(end: u64, result: u64) -> Leaf {
        let mut leaf = leaf_that_begins(7, 100, 4, 5);
        leaf.close_at(end, result, 2);
        leaf
    }

    #[test]
    fn a_call_begins_open_and_ends_with_its_time() {
        let open = leaf_that_begins(7, 100, 4, 5);
        assert_eq!((open.head.time, open.head.kind, open.head.slot), (100, EVENT_LEAF, 7));
        assert_eq!((open.end, open.count, open.a, open.b), (0, 1, 4, 5));
        let leaf = ended(130, 9);
        assert_eq!((leaf.end, leaf.sum, leaf.min, leaf.max), (130, 30, 30, 30));
        assert_eq!((leaf.result, leaf.head.flags, leaf.count), (9, 2, 1));
        assert_eq!(ended(90, 0).sum, 0, "a clock that goes back is no time");
    }

    #[test]
    fn calls_that_are_alike_add_up() {
        let mut sum = ended(130, 3);
        sum.add_one(&ended(110, 4));
        assert_eq!((sum.end, sum.count, sum.sum, sum.min, sum.max), (110, 2, 40, 10, 30));
        assert_eq!(sum.result, 4);
        sum.add_one(&ended(160, 5));
        assert_eq!((sum.count, sum.sum, sum.min, sum.max), (3, 100, 10, 60));
    }

    #[test]
    fn alike_are_the_same_function_thing_flags_and_outcome() {
        let leaf = ended(130, 3);
        assert!(leaf.is_like(&ended(150, 8)));
        assert!(!leaf.is_like(&ended(130, 0)));
        assert!(!leaf.is_like(&ended(130, -1_i32 as u32 as u64)));
        assert!(ended(130, 0).is_like(&ended(131, 0)));
        assert!(ended(130, u64::MAX).is_like(&ended(131, u64::MAX - 8)));
        for change in [
            (|leaf: &mut Leaf| leaf.head.slot += 1) as fn(&mut Leaf),
            |leaf| leaf.a += 1,
            |leaf| leaf.head.flags ^= 1,
        ] {
            let mut other = leaf;
            change(&mut other);
            assert!(!leaf.is_like(&other));
        }
    }
}
