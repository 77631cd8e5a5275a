//! Results: looked at after each operation, and kept for verification in memory prepared beforehand.
//!
//! While there is room every result is copied. Beyond that the copies are a uniform sample of all
//! results so far (reservoir sampling, Vitter 1985, with the skips of Li's Algorithm L, 1994), so
//! that most operations cost nothing more.

use std::io;
use std::ops::RangeInclusive;
use std::ptr;

use cryptoki_sys::CK_ULONG;
use tapstone_measure::pace::SplitMix;
use tapstone_names::pkcs11::Violation;

use tapstone_module::GuardedPlaces;

/// Bytes before each result: what the operation's IV was, written there because some tokens
/// choose it themselves.
pub(super) const IV_BYTES: usize = 16;

/// What a result costs besides: the controller takes a copy of each, to judge them all at once.
const COPY_BYTES: usize = 112;

/// Results go round in this many places, as an application's would. All end at the same offset of a
/// page, so they compete for the same lines of a cache that has eight or twelve for each such offset.
const PLACES: usize = 4;

/// Poison and sample are drawn from one seed, but are not the same numbers.
const POISON_SEED: u64 = 0x5EED_0F90_150E_0000;

/// From one operation's poison to the next (2⁶⁴ over the golden ratio): no word comes twice before
/// 2⁶⁴ operations, and one addition is over before the clock is read again.
const POISON_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Chooses which of an unknown number of results to keep, uniformly.
#[derive(Debug)]
pub(super) struct Reservoir {
    capacity: u64,
    seen: u64,
    next: u64,
    place: usize,
    /// Li's w: the largest of `capacity` uniform numbers, were every result given one.
    w: f64,
    random: SplitMix,
}

impl Reservoir {
    pub(super) fn new(capacity: u64, seed: u64) -> Self {
        let next = if capacity == 0 { u64::MAX } else { 0 };
        Self { capacity, seen: 0, next, place: 0, w: 1.0, random: SplitMix(seed) }
    }

    /// Where the result that has been delivered goes; `None`: it is not kept.
    #[inline]
    pub(super) fn offer(&mut self) -> Option<usize> {
        let place = (self.seen == self.next).then_some(self.place);
        self.seen += 1;
        if place.is_some() {
            self.choose();
        }
        place
    }

    /// How many results there were.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    #[cold]
    fn choose(&mut self) {
        if self.seen < self.capacity {
            self.next = self.seen;
            self.place = self.seen as usize;
            return;
        }
        self.w *= (self.random.uniform().ln() / self.capacity as f64).exp();
        let skip = (self.random.uniform().ln() / (1.0 - self.w).ln()).floor();
        self.next = self.seen.saturating_add(skip as u64);
        self.place = (self.random.bits() % self.capacity) as usize;
    }
}

/// Places for results of one operation.
///
/// A module writes into memory that ends at a page which cannot be touched, and whose ends are
/// poisoned before. What is to be kept is copied out of it after the operation's time was taken.
#[derive(Debug)]
pub(super) struct Capture {
    reservoir: Reservoir,
    lengths: Option<Lengths>,
    result_bytes: usize,
    /// Where operations write, in turn.
    targets: [*mut u8; PLACES],
    turn: usize,
    /// At both ends of the result to come; another word for each operation.
    poison: u64,
    /// From the start of the result.
    poisoned_end: usize,
    copy_bytes: usize,
    copies: Box<[u8]>,
    kept: Vec<Kept>,
    capacity: usize,
    /// The last result delivered: its operation and length. It is still in its place.
    last: Option<(u64, usize)>,
    /// What the targets point into.
    _places: GuardedPlaces,
}

/// The lengths that a result can have, in bytes; none is beyond the room that the module is offered.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    least: usize,
    most: usize,
}

// SAFETY: the targets are places of the value's own.
unsafe impl Send for Capture {}

/// A result that was copied.
#[derive(Clone, Copy, Debug)]
struct Kept {
    operation: u64,
    /// `None`: it does not count after all.
    length: Option<usize>,
}

/// What of a buffer is poisoned before each operation, at each end.
const POISON_BYTES: usize = size_of::<u64>();

/// Results of one operation: how long they can be, and what of them is kept.
#[derive(Clone, Debug)]
pub(super) struct CaptureSize {
    /// The room that a module is offered.
    pub(super) result_bytes: usize,
    /// The lengths that a result can have; `None`: the module writes none.
    pub(super) lengths: Option<RangeInclusive<usize>>,
    /// Memory for copies of results, in bytes.
    pub(super) memory_bytes: u64,
    /// Results beyond this number are not kept.
    pub(super) limit: u64,
}

impl Capture {
    /// # Errors
    /// There is no memory.
    pub(super) fn new(size: CaptureSize, seed: u64) -> io::Result<Self> {
        let copy_bytes = (IV_BYTES + size.result_bytes).next_multiple_of(16);
        let room = size.memory_bytes / (copy_bytes + COPY_BYTES) as u64;
        let capacity = room.min(size.limit) as usize;
        let mut copies = vec![0; capacity * copy_bytes].into_boxed_slice();
        // Touched now, so that no page is faulted in while operations are counted.
        for page in copies.chunks_mut(4096) {
            std::hint::black_box(&mut page[0..1]).fill(1);
        }
        let places = GuardedPlaces::new(PLACES, IV_BYTES + size.result_bytes)?;
        let lengths = size.lengths.map(|lengths| Lengths {
            least: *lengths.start(),
            most: size.result_bytes.min(*lengths.end()),
        });
        let mut capture = Self {
            reservoir: Reservoir::new(capacity as u64, seed),
            poisoned_end: lengths.map_or(0, |lengths| lengths.most),
            lengths,
            result_bytes: size.result_bytes,
            targets: std::array::from_fn(|place| places.place(place)),
            turn: 0,
            poison: SplitMix(seed ^ POISON_SEED).bits(),
            copy_bytes,
            copies,
            kept: Vec::with_capacity(capacity),
            capacity,
            last: None,
            _places: places,
        };
        capture.prepare();
        Ok(capture)
    }

    /// Where the operation writes: IV first, then the result.
    #[inline]
    pub(super) fn target(&self) -> *mut u8 {
        self.targets[self.turn % PLACES]
    }

    /// How long a result may be.
    pub(super) fn result_bytes(&self) -> usize {
        self.result_bytes
    }

    /// Goes on to the next place and poisons it. Not part of any operation's time.
    #[inline]
    pub(super) fn prepare(&mut self) {
        self.turn = (self.turn + 1) % PLACES;
        if self.lengths.is_none() {
            return;
        }
        self.poison = self.poison.wrapping_add(POISON_STEP);
        let end = self.poisoned_end;
        // SAFETY: the place holds an IV and a result of at least `end` bytes.
        unsafe {
            let result = self.target().add(IV_BYTES);
            if end < POISON_BYTES {
                ptr::copy_nonoverlapping(self.poison.to_ne_bytes().as_ptr(), result, end);
            } else {
                result.cast::<u64>().write_unaligned(self.poison);
                result.add(end - POISON_BYTES).cast::<u64>().write_unaligned(self.poison);
            }
        }
    }

    /// Whether the result can be one of this length, and was written.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub(super) fn check(&mut self, length: CK_ULONG) -> Result<(), Violation> {
        let Some(lengths) = self.lengths else { return Ok(()) };
        if !(lengths.least as u64..=lengths.most as u64).contains(&(length as u64)) {
            return Err(self.wrong_length(length as u64, lengths));
        }
        let length = length as usize;
        let poisoned = std::mem::replace(&mut self.poisoned_end, length);
        // Fewer bytes can be what they were by chance.
        if length < POISON_BYTES {
            return Ok(());
        }
        if self.word_at(0) == self.poison {
            return Err(Violation::NothingWritten);
        }
        if poisoned == length && self.word_at(length - POISON_BYTES) == self.poison {
            return Err(Violation::PartlyWritten);
        }
        Ok(())
    }

    #[cold]
    fn wrong_length(&self, length: u64, possible: Lengths) -> Violation {
        let numbers = |possible: usize| Violation::numbers(length, possible as u64);
        if length > self.result_bytes as u64 {
            return Violation::BeyondBuffer(numbers(self.result_bytes));
        }
        let is_short = length < possible.least as u64;
        Violation::WrongLength(numbers(if is_short { possible.least } else { possible.most }))
    }

    /// The word at an offset of the result, which holds a whole one there.
    #[inline]
    fn word_at(&self, offset: usize) -> u64 {
        debug_assert!(offset + POISON_BYTES <= self.result_bytes);
        // SAFETY: within the place, as the caller says.
        unsafe { self.target().add(IV_BYTES + offset).cast::<u64>().read_unaligned() }
    }

    /// The operation has ended well and its result is `length` bytes long, which is no more than
    /// the place has.
    #[inline]
    pub(super) fn delivered(&mut self, operation: u64, length: usize) {
        self.last = Some((operation, length));
        if let Some(place) = self.reservoir.offer() {
            self.copy(place, Kept { operation, length: Some(length) });
        }
    }

    /// Results count from this operation on, the last one delivered.
    pub(super) fn restart(&mut self, operation: u64, seed: u64) {
        self.kept.clear();
        self.reservoir = Reservoir::new(self.capacity as u64, seed);
        let Some((_, length)) = self.last.filter(|last| last.0 == operation) else { return };
        let next = self.turn;
        self.turn = (next + PLACES - 1) % PLACES;
        self.delivered(operation, length);
        self.turn = next;
    }

    /// The last operation delivered does not count after all.
    pub(super) fn withdraw(&mut self, operation: u64) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.operation == operation) {
            kept.length = None;
        }
    }

    /// How many results could have been kept.
    pub(super) fn eligible(&self) -> u64 {
        self.reservoir.seen()
    }

    /// The kept results: operation, IV, result.
    pub(super) fn results(&self) -> impl Iterator<Item = (u64, &[u8], &[u8])> {
        self.kept.iter().enumerate().filter_map(|(place, kept)| {
            let bytes = &self.copies[place * self.copy_bytes..][..self.copy_bytes];
            let (iv, result) = bytes.split_at(IV_BYTES);
            Some((kept.operation, iv, &result[..kept.length?]))
        })
    }

    fn copy(&mut self, place: usize, kept: Kept) {
        let bytes = IV_BYTES + kept.length.unwrap_or(0).min(self.result_bytes);
        let from = self.target();
        let copy = &mut self.copies[place * self.copy_bytes..][..bytes];
        // SAFETY: every place is IV_BYTES plus the result's room long, and no copy overlaps it.
        unsafe { ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes) };
        match self.kept.get_mut(place) {
            Some(replaced) => *replaced = kept,
            // Within the capacity reserved at the start.
            None => self.kept.push(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(memory_bytes: u64, limit: u64, seed: u64) -> Capture {
        let size = CaptureSize { result_bytes: 8, lengths: Some(8..=8), memory_bytes, limit };
        Capture::new(size, seed).unwrap()
    }

    fn deliver(capture: &mut Capture, operation: u64) {
        write(capture, &operation.to_ne_bytes());
        assert_eq!(capture.check(8), Ok(()));
        capture.delivered(operation, 8);
        capture.prepare();
    }

    /// What a module does.
    fn write(capture: &Capture, bytes: &[u8]) {
        assert!(bytes.len() <= capture.result_bytes());
        // SAFETY: the target holds an IV and as many bytes.
        unsafe {
            let result = capture.target().add(IV_BYTES);
            ptr::copy_nonoverlapping(bytes.as_ptr(), result, bytes.len());
        }
    }

    #[test]
    fn keeps_everything_while_it_fits() {
        let mut capture = capture(1 << 20, 100, 1);
        (0..100).for_each(|operation| deliver(&mut capture, operation));
        let kept: Vec<u64> = capture.results().map(|(operation, ..)| operation).collect();
        assert_eq!(kept, (0..100).collect::<Vec<_>>());
        assert_eq!(capture.eligible(), 100);
    }

    #[test]
    fn keeps_a_uniform_sample_of_more_and_each_with_its_own_bytes() {
        let mut kept_of_first_half = 0;
        for seed in 0..50 {
            let mut capture = capture(100 * (32 + COPY_BYTES as u64), u64::MAX, seed);
            (0..10_000).for_each(|operation| deliver(&mut capture, operation));
            assert_eq!(capture.results().count(), 100);
            for (operation, _, result) in capture.results() {
                assert_eq!(result, operation.to_ne_bytes());
                kept_of_first_half += usize::from(operation < 5_000);
            }
        }
        // 5,000 draws of a fair coin: six standard deviations are 212.
        assert!((2_288..=2_712).contains(&kept_of_first_half), "{kept_of_first_half}");
    }

    #[test]
    fn a_restart_keeps_the_operation_that_opened_the_window() {
        let mut capture = capture(1 << 20, 100, 1);
        (0..10).for_each(|operation| deliver(&mut capture, operation));
        capture.restart(9, 1);
        deliver(&mut capture, 10);
        deliver(&mut capture, 11);
        capture.withdraw(11);
        let kept: Vec<u64> = capture.results().map(|(operation, ..)| operation).collect();
        assert_eq!(kept, [9, 10]);
    }

    #[test]
    fn a_restart_finds_the_last_result_wherever_it_was_written() {
        let mut capture = capture(4 * (32 + COPY_BYTES as u64), u64::MAX, 1);
        (0..1_000).for_each(|operation| deliver(&mut capture, operation));
        capture.restart(999, 1);
        let (operation, _, result) = capture.results().next().unwrap();
        assert_eq!((operation, result), (999, &999u64.to_ne_bytes()[..]));
        assert_eq!(capture.eligible(), 1);
    }

    #[test]
    fn without_memory_nothing_is_kept_and_everything_goes_on() {
        let mut capture = capture(0, 100, 1);
        (0..50).for_each(|operation| deliver(&mut capture, operation));
        assert_eq!(capture.results().count(), 0);
        assert_eq!(capture.eligible(), 50);
    }

    /// A module's answer for a buffer of 256 bytes, of which it wrote the first `written`.
    fn answer(
        lengths: RangeInclusive<usize>,
        written: usize,
        length: u64,
    ) -> Result<(), Violation> {
        let size = CaptureSize {
            result_bytes: 256,
            lengths: Some(lengths),
            memory_bytes: 1 << 16,
            limit: 9,
        };
        let mut capture = Capture::new(size, 7).unwrap();
        // The second time round: places hold results of earlier operations.
        for operation in 0..PLACES as u64 {
            write(&capture, &[0x3C; 256]);
            capture.delivered(operation, 256);
            capture.prepare();
        }
        write(&capture, &vec![0x3C; written]);
        capture.check(length as CK_ULONG)
    }

    #[test]
    fn a_length_that_cannot_be_is_found_whatever_was_written() {
        let beyond = |length| Err(Violation::BeyondBuffer(Violation::numbers(length, 256)));
        let wrong = |length| Err(Violation::WrongLength(Violation::numbers(length, 256)));
        assert_eq!(answer(256..=256, 256, 256), Ok(()));
        for length in [257, 1_000_256, u64::MAX - 1, u64::MAX, 1 << 63] {
            assert_eq!(answer(256..=256, 256, length), beyond(length));
        }
        for length in [0, 1, 255] {
            assert_eq!(answer(256..=256, 256, length), wrong(length));
        }
        assert_eq!(answer(1..=256, 200, 200), Ok(()));
    }

    #[test]
    fn what_an_earlier_operation_left_is_no_result() {
        assert_eq!(answer(256..=256, 0, 256), Err(Violation::NothingWritten));
        assert_eq!(answer(256..=256, 8, 256), Err(Violation::PartlyWritten));
        assert_eq!(answer(256..=256, 248, 256), Err(Violation::PartlyWritten));
    }
}
