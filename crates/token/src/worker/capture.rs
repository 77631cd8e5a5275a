//! Results kept for verification, in memory prepared beforehand.
//!
//! While there is room every result is written straight into its place and stays there. Beyond
//! that the places hold a uniform sample of all results so far (reservoir sampling, Vitter 1985,
//! with the skips of Li's Algorithm L, 1994), so that most operations write into scratch memory
//! and cost nothing more.

use tapstone_measure::pace::SplitMix;

/// Bytes before each result: what the operation's IV was, written there because some tokens
/// choose it themselves.
pub(super) const IV_BYTES: usize = 16;

/// What a result costs besides: the lab takes a copy of each, to judge them all at once.
const COPY_BYTES: usize = 112;

/// Results that are not kept go round in this many places, as an application's would.
const SCRATCH_PLACES: usize = 16;

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

    /// Where the next result goes; `None`: it is not kept.
    #[inline]
    pub(super) fn place(&self) -> Option<usize> {
        (self.seen == self.next).then_some(self.place)
    }

    /// The result has been delivered.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.seen += 1;
        if self.seen > self.next {
            self.choose();
        }
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
#[derive(Debug)]
pub(super) struct Capture {
    reservoir: Reservoir,
    place_bytes: usize,
    /// Kept places first, then scratch.
    memory: Box<[u8]>,
    /// Operation number and length of each kept result.
    kept: Vec<(u64, usize)>,
    capacity: usize,
    turn: usize,
    current: usize,
    /// The last result delivered: its operation, length and place, kept or scratch.
    last: Option<(u64, usize, usize)>,
}

impl Capture {
    /// For results of at most `result_bytes` each, within `memory_bytes` and `limit` results.
    pub(super) fn new(result_bytes: usize, memory_bytes: u64, limit: u64, seed: u64) -> Self {
        let place_bytes = (IV_BYTES + result_bytes).next_multiple_of(16);
        let capacity = (memory_bytes / (place_bytes + COPY_BYTES) as u64).min(limit) as usize;
        let mut memory = vec![0; (capacity + SCRATCH_PLACES) * place_bytes].into_boxed_slice();
        // Touched now, so that no page is faulted in while an operation is timed.
        for page in memory.chunks_mut(4096) {
            std::hint::black_box(&mut page[0..1]).fill(1);
        }
        Self {
            reservoir: Reservoir::new(capacity as u64, seed),
            place_bytes,
            memory,
            kept: Vec::with_capacity(capacity),
            capacity,
            turn: 0,
            current: 0,
            last: None,
        }
    }

    /// Where the next operation writes: IV first, then the result.
    #[inline]
    pub(super) fn target(&mut self) -> *mut u8 {
        self.current = match self.reservoir.place() {
            Some(place) => place,
            None => self.capacity + self.turn,
        };
        self.turn = (self.turn + 1) % SCRATCH_PLACES;
        self.memory[self.current * self.place_bytes..].as_mut_ptr()
    }

    /// How long a result may be.
    pub(super) fn result_bytes(&self) -> usize {
        self.place_bytes - IV_BYTES
    }

    /// The operation has ended well and its result is `length` bytes long.
    #[inline]
    pub(super) fn delivered(&mut self, operation: u64, length: usize) {
        self.last = Some((operation, length, self.current));
        if self.current < self.capacity {
            self.note(operation, length);
        }
        self.reservoir.advance();
    }

    /// Results count from this operation on, the last one delivered.
    pub(super) fn restart(&mut self, operation: u64, seed: u64) {
        self.kept.clear();
        self.reservoir = Reservoir::new(self.capacity as u64, seed);
        let Some((_, length, place)) = self.last.filter(|last| last.0 == operation) else { return };
        if self.capacity > 0 {
            let from = place * self.place_bytes;
            self.memory.copy_within(from..from + self.place_bytes, 0);
        }
        self.current = 0;
        self.delivered(operation, length);
    }

    /// The last operation delivered does not count after all.
    pub(super) fn withdraw(&mut self, operation: u64) {
        if let Some(place) = self.kept.iter().position(|(number, _)| *number == operation) {
            // An empty result marks a place that holds nothing.
            self.kept[place].1 = usize::MAX;
        }
    }

    /// How many results could have been kept.
    pub(super) fn eligible(&self) -> u64 {
        self.reservoir.seen()
    }

    /// The kept results: operation, IV, result.
    pub(super) fn results(&self) -> impl Iterator<Item = (u64, &[u8], &[u8])> {
        let kept = self.kept.iter().enumerate().filter(|(_, (_, length))| *length != usize::MAX);
        kept.map(|(place, (operation, length))| {
            let bytes = &self.memory[place * self.place_bytes..][..self.place_bytes];
            let (iv, result) = bytes.split_at(IV_BYTES);
            (*operation, iv, &result[..(*length).min(result.len())])
        })
    }

    fn note(&mut self, operation: u64, length: usize) {
        match self.kept.get_mut(self.current) {
            Some(place) => *place = (operation, length),
            // Within the capacity reserved at the start.
            None => self.kept.push((operation, length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(capture: &mut Capture, operation: u64) {
        let target = capture.target();
        // SAFETY: the target holds an IV and a result of at least 8 bytes.
        unsafe { target.add(IV_BYTES).cast::<u64>().write_unaligned(operation) };
        capture.delivered(operation, 8);
    }

    #[test]
    fn keeps_everything_while_it_fits() {
        let mut capture = Capture::new(8, 1 << 20, 100, 1);
        (0..100).for_each(|operation| deliver(&mut capture, operation));
        let kept: Vec<u64> = capture.results().map(|(operation, ..)| operation).collect();
        assert_eq!(kept, (0..100).collect::<Vec<_>>());
        assert_eq!(capture.eligible(), 100);
    }

    #[test]
    fn keeps_a_uniform_sample_of_more_and_each_with_its_own_bytes() {
        let mut kept_of_first_half = 0;
        for seed in 0..50 {
            let mut capture = Capture::new(8, 100 * (32 + COPY_BYTES as u64), u64::MAX, seed);
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
        let mut capture = Capture::new(8, 1 << 20, 100, 1);
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
        let mut capture = Capture::new(8, 4 * (32 + COPY_BYTES as u64), u64::MAX, 1);
        (0..1_000).for_each(|operation| deliver(&mut capture, operation));
        capture.restart(999, 1);
        let (operation, _, result) = capture.results().next().unwrap();
        assert_eq!((operation, result), (999, &999u64.to_ne_bytes()[..]));
        assert_eq!(capture.eligible(), 1);
    }

    #[test]
    fn without_memory_nothing_is_kept_and_everything_goes_on() {
        let mut capture = Capture::new(8, 0, 100, 1);
        (0..50).for_each(|operation| deliver(&mut capture, operation));
        assert_eq!(capture.results().count(), 0);
        assert_eq!(capture.eligible(), 50);
    }
}
