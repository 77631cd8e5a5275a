//! Where calls come from: which of them are looked at, and what of a stack is kept for that.
//!
//! The first calls of each place are looked at: a place is what is called, where the call returns
//! to, and how deep the stack is, which tells apart by what way a function of the program came to
//! make the call. A stack may hold a PIN, so no part of it is copied: only those of its words are
//! kept that are what unwinding needs, addresses behind a call instruction in loaded code and
//! addresses of the looked-at part of the stack. What a person types is neither: four digits are an
//! address near 800 MB, eight digits none that a program can have.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Calls of each place that are looked at.
pub const FIRST_CALLS: u64 = 3;
/// Bytes of a stack that are looked at, from the caller's frame outwards.
pub const STACK_BYTES: usize = 16 << 10;
/// Words of it that are kept, at most.
pub const MOST_WORDS: usize = 254;
/// Words of an event that come before those.
pub const FRAME_WORDS: usize = 3;

/// Places that are told apart; calls of those beyond are not looked at.
const PLACES: usize = 1024;
/// Entries at which a place may be.
const NEAR: usize = 4;
/// The lowest bits of an entry count the calls that were looked at.
const COUNT: u64 = 0xFF;
/// Where in a word its place on the stack begins: no address of a program needs these bits.
const PLACE_SHIFT: u32 = 48;

/// The places that calls were made from. Zeroed memory knows none.
#[repr(C)]
#[derive(Debug)]
pub struct CallPlaces {
    places: [AtomicU64; PLACES],
}

/// Where a call is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// The number of the stub.
    pub stub: u32,
    /// Where the call returns to.
    pub returns_to: usize,
    /// Bytes between the caller's frame and a point of its thread that stays.
    pub depth: usize,
}

impl CallPlace {
    fn hash(self) -> u64 {
        let Self { stub, returns_to, depth } = self;
        let mixed = (returns_to as u64).rotate_left(20) ^ (depth as u64) << 7 ^ u64::from(stub);
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl CallPlaces {
    /// No place is known.
    pub const fn new() -> Self {
        Self { places: [const { AtomicU64::new(0) }; PLACES] }
    }

    /// Whether a call from this place is one of the first.
    #[inline(always)]
    pub fn is_due(&self, place: CallPlace) -> bool {
        let hash = place.hash();
        let known = hash & !COUNT | FIRST_CALLS;
        let first = (hash >> 32) as usize % PLACES;
        // What most calls find.
        self.places[first].load(Ordering::Relaxed) != known && self.is_due_elsewhere(first, known)
    }

    #[cold]
    fn is_due_elsewhere(&self, first: usize, known: u64) -> bool {
        for at in first..first + NEAR {
            let entry = &self.places[at % PLACES];
            let mut found = entry.load(Ordering::Relaxed);
            loop {
                let is_this = found & !COUNT == known & !COUNT && found & COUNT != 0;
                let next = match found {
                    0 => known & !COUNT | 1,
                    _ if found == known => return false,
                    _ if is_this => found + 1,
                    _ => break,
                };
                let relaxed = Ordering::Relaxed;
                match entry.compare_exchange(found, next, relaxed, relaxed) {
                    Ok(_) => return true,
                    Err(other) => found = other,
                }
            }
        }
        false
    }
}

impl Default for CallPlaces {
    fn default() -> Self {
        Self::new()
    }
}

/// A word of a stack as it is kept: the word that lies so many words above the caller's frame. None
/// of those that say nothing about frames. `stack` is the part of it that is looked at; `before`
/// are the bytes in front of an address, if it is one of loaded code.
#[inline(always)]
pub fn kept_word(
    place: usize,
    word: u64,
    stack: Range<u64>,
    before: impl FnOnce(u64) -> Option<[u8; LONGEST_CALL]>,
) -> Option<u64> {
    let is_kept = stack.contains(&word)
        || word >> PLACE_SHIFT == 0 && before(word).is_some_and(|bytes| ends_with_call(&bytes));
    is_kept.then_some((place as u64) << PLACE_SHIFT | word)
}

/// Bytes of the longest call instruction without a prefix: opcode, ModR/M, SIB, four of distance.
pub const LONGEST_CALL: usize = 7;

/// Whether a call instruction may end there: E8 with a distance of four bytes, or FF /2 with two to
/// seven bytes in all (Intel's manual, volume 2, CALL).
fn ends_with_call(bytes: &[u8; LONGEST_CALL]) -> bool {
    let indirect = |at: usize| bytes[at] == 0xFF && bytes[at + 1] >> 3 & 7 == 2;
    bytes[LONGEST_CALL - 5] == 0xE8 || (0..LONGEST_CALL - 1).any(indirect)
}

/// A word as it was kept: how many words above the caller's frame it lay, and what it was.
pub fn place_and_word(kept: u64) -> (u64, u64) {
    (kept >> PLACE_SHIFT, kept & ((1 << PLACE_SHIFT) - 1))
}

const _: () = assert!((STACK_BYTES / 8) < 1 << (64 - PLACE_SHIFT));
const _: () = assert!(FIRST_CALLS <= COUNT);

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;

    const PLACE: CallPlace = CallPlace { stub: 7, returns_to: 0x5555_5555_1234, depth: 0x2A0 };

    #[test]
    fn the_first_calls_of_each_place_are_due() {
        let places = Box::new(CallPlaces::new());
        let due: Vec<bool> = (0..6).map(|_| places.is_due(PLACE)).collect();
        assert_eq!(due, [true, true, true, false, false, false]);
        for other in [
            CallPlace { stub: 8, ..PLACE },
            CallPlace { returns_to: PLACE.returns_to + 1, ..PLACE },
            CallPlace { depth: PLACE.depth + 16, ..PLACE },
        ] {
            let due = (0..9).filter(|_| places.is_due(other)).count();
            assert_eq!(due, 3, "{other:?}");
        }
    }

    #[test]
    fn places_that_find_no_room_are_never_due() {
        let places = Box::new(CallPlaces::new());
        let all = (0..100_000).map(|depth| CallPlace { depth: depth * 8, ..PLACE });
        let due = all.clone().filter(|place| places.is_due(*place)).count();
        assert!((PLACES * 9 / 10..=PLACES).contains(&due), "{due}");
        let again = all.filter(|place| places.is_due(*place)).count();
        assert_eq!(again, due, "each of those that are known, a second time");
    }

    #[test]
    fn threads_count_together() {
        let places = Box::new(CallPlaces::new());
        let due = std::thread::scope(|scope| {
            let count = || (0..1_000).filter(|_| places.is_due(PLACE)).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(due, 3);
    }

    const CALL: [u8; LONGEST_CALL] = [0, 0, 0xE8, 1, 2, 3, 4];

    fn kept(word: u64, before: [u8; LONGEST_CALL]) -> Option<(u64, u64)> {
        const CODE: Range<u64> = 0x5555_5555_0000..0x5555_5556_0000;
        let stack = 0x7FFF_0000_1000..0x7FFF_0000_5000;
        let before = |word| CODE.contains(&word).then_some(before);
        kept_word(9, word, stack, before).map(place_and_word)
    }

    #[test]
    fn addresses_of_code_and_of_the_stack_are_kept() {
        for word in [0x5555_5555_0000, 0x5555_5555_FFFF, 0x7FFF_0000_1000, 0x7FFF_0000_4FFF] {
            assert_eq!(kept(word, CALL), Some((9, word)), "{word:#x}");
        }
        for word in [0, 0x5555_5556_0000, 0x7FFF_0000_0FFF, 0x7FFF_0000_5000, u64::MAX] {
            assert_eq!(kept(word, CALL), None, "{word:#x}");
        }
    }

    #[test]
    fn an_address_of_code_is_kept_behind_a_call_alone() {
        const WORD: u64 = 0x5555_5555_1000;
        for bytes in [
            [0, 0, 0, 0, 0, 0xFF, 0xD0],
            [0, 0, 0, 0, 0xFF, 0x50, 8],
            [0, 0xFF, 0x15, 1, 2, 3, 4],
            [0xFF, 0x94, 0x24, 1, 2, 3, 4],
        ] {
            assert!(kept(WORD, bytes).is_some(), "{bytes:x?}");
        }
        for bytes in [
            [0; 7],
            // A jump, and a call that ends elsewhere.
            [0, 0, 0, 0, 0, 0xFF, 0xE0],
            [0, 0xE8, 1, 2, 3, 4, 0],
            [0, 0, 0, 0, 0, 0, 0xFF],
        ] {
            assert!(kept(WORD, bytes).is_none(), "{bytes:x?}");
        }
    }

    #[test]
    fn no_pin_of_four_digits_or_more_is_an_address() {
        // Whatever code is loaded where programs and libraries are.
        let before = |word: u64| {
            let program = (0x40_0000..0x3000_0000).contains(&word);
            let library = (0x5000_0000_0000..0x8000_0000_0000).contains(&word);
            (program || library).then_some(CALL)
        };
        for pin in ["0000", "1234", "9999", "471100", "12345678", "99999999"] {
            let mut word = [0; 8];
            word[..pin.len()].copy_from_slice(pin.as_bytes());
            let word = u64::from_le_bytes(word);
            assert_eq!(kept_word(0, word, 0x7FFF_0000_1000..0x7FFF_0000_5000, before), None);
        }
    }
}
