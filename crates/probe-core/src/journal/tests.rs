//! Journals in a file that is made for a test, read back as the tracer reads one.

use core::cell::Cell;
use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::leaf::leaf_that_begins;
use crate::wire::{EVENT_ENTER, EVENT_EXIT, EVENT_LEAF, EVENT_PROCESS};

const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

/// A file of a few chunks.
struct File {
    chunks: Vec<*mut [u64; CHUNK_WORDS]>,
    process: Cell<u32>,
    taken: Cell<usize>,
    next: Cell<usize>,
    /// Chunks in which calls may be listed.
    listing: Cell<usize>,
    dropped: Cell<usize>,
    clock: Cell<u64>,
}

impl File {
    fn with_chunks(count: usize) -> Self {
        // What is not written is to be told from zeros.
        let chunk = || Box::into_raw(Box::new([0xEEEE_EEEE_EEEE_EEEE; CHUNK_WORDS]));
        Self {
            chunks: (0..count).map(|_| chunk()).collect(),
            process: Cell::new(100),
            taken: Cell::new(0),
            next: Cell::new(0),
            listing: Cell::new(count),
            dropped: Cell::new(0),
            clock: Cell::new(1_000),
        }
    }

    /// The events of a chunk but that it was taken: head, words behind it.
    fn events(&self, chunk: usize) -> Vec<(Head, Vec<u64>)> {
        let all = self.all_events(chunk).into_iter();
        all.filter(|(head, _)| head.kind != EVENT_ROOM).collect()
    }

    fn all_events(&self, chunk: usize) -> Vec<(Head, Vec<u64>)> {
        let start = self.chunks[chunk].cast::<u64>();
        // SAFETY: the journal has written the head, and as many words as it says.
        unsafe {
            let used = (*start.cast::<Chunk>()).used.load(Ordering::Acquire) as usize / 8;
            let mut at = CHUNK_HEAD_BYTES / 8;
            let mut events = Vec::new();
            while at < used {
                let head = *start.add(at).cast::<Head>();
                let words = usize::from(head.words);
                assert!(words >= 2 && at + words <= used, "an event of {words} words at {at}");
                events.push((head, (at + 2..at + words).map(|word| *start.add(word)).collect()));
                at += words;
            }
            events
        }
    }

    /// The leaves of a chunk.
    fn leaves(&self, chunk: usize) -> Vec<Leaf> {
        let leaf = |(head, words): (Head, Vec<u64>)| match words[..] {
            [end, count, sum, min, max, result, a, b, ..] => {
                Leaf { head, end, count, sum, min, max, result, a, b }
            }
            _ => panic!("{head:?} is no leaf"),
        };
        self.events(chunk).into_iter().map(leaf).collect()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // SAFETY: made from a box.
            drop(unsafe { Box::from_raw(*chunk) });
        }
    }
}

impl ChunkSource for File {
    fn process(&self) -> u32 {
        self.process.get()
    }

    /// Each look is 7 later than the one before.
    fn now(&self) -> u64 {
        self.clock.set(self.clock.get() + 7);
        self.clock.get()
    }

    fn take_chunk(&self, purpose: ChunkUse) -> *mut Chunk {
        if purpose == ChunkUse::Next {
            self.next.set(self.next.get() + 1);
        }
        let number = self.taken.get();
        self.taken.set(number + 1);
        self.chunks.get(number).map_or(ptr::null_mut(), |chunk| chunk.cast())
    }

    fn lists_calls(&self) -> bool {
        self.taken.get() < self.listing.get()
    }

    fn count_dropped(&self) {
        self.dropped.set(self.dropped.get() + 1);
    }
}

fn short_leaf(slot: u32, time: u64, result: u64) -> Leaf {
    let mut leaf = leaf_that_begins(slot, time, 3, 4);
    leaf.close_at(time + 10, result, 0);
    leaf
}

/// A leaf of so many words, its bytes included.
fn fill(journal: &mut Journal, file: &File, words: usize) {
    let bytes = std::vec![7; (words - size_of::<Leaf>() / 8) * 8];
    assert!(!journal.write_leaf(file, &short_leaf(1, 1, 0), &bytes).is_null());
}

#[test]
fn an_event_is_read_back_as_it_was_written() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    journal.begin(&file, 7, 1);
    let head = Head::new(5, EVENT_ENTER, 9).with_flags(16);
    assert!(!journal.write_event(&file, head, [1, 2, 3], b"nine byte").is_null());
    let events = file.events(0);
    let [(head, words)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((head.time, head.kind, head.flags, head.slot), (5, EVENT_ENTER, 16, 9));
    assert_eq!(head.words, 2 + 3 + 2);
    assert_eq!(words[..3], [1, 2, 3]);
    assert_eq!(words[3].to_le_bytes(), *b"nine byt");
    assert_eq!(words[4], u64::from(b'e'), "padded with zeros");
}

#[test]
fn an_event_is_as_long_as_what_was_filled_in() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    journal.begin(&file, 7, 1);
    let fill_two = |words: &mut [u64]| {
        words[..2].copy_from_slice(&[4, 5]);
        2
    };
    assert!(!journal.write_words(&file, Head::new(5, EVENT_ENTER, 9), 100, fill_two).is_null());
    assert!(!journal.write_words(&file, Head::new(6, EVENT_EXIT, 9), 100, |_| 0).is_null());
    let events: Vec<_> =
        file.events(0).into_iter().map(|(head, words)| (head.time, words)).collect();
    assert_eq!(events, [(5, Vec::from([4, 5])), (6, Vec::new())]);
    // Where the most does not fit, the next chunk is taken.
    fill(&mut journal, &file, (CHUNK_BYTES - CHUNK_HEAD_BYTES) / 8 - 6 - 50);
    assert!(!journal.write_words(&file, Head::new(7, EVENT_EXIT, 9), 49, |_| 0).is_null());
    assert_eq!(file.events(1).len(), 1);
    let head = journal.write_words(&file, Head::new(8, EVENT_EXIT, 9), CHUNK_WORDS, |_| 0);
    assert!(head.is_null(), "more than a chunk holds");
}

#[test]
fn a_chunk_says_whose_it_is() {
    let file = File::with_chunks(1);
    let mut journal = Journal::default();
    journal.begin(&file, 7, 1);
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1, 2], &[]);
    // SAFETY: written by the journal.
    let chunk = unsafe { &*file.chunks[0].cast::<Chunk>() };
    assert_eq!((chunk.process, chunk.thread), (100, 7));
    assert_eq!(chunk.used.load(Ordering::Relaxed) as usize, CHUNK_HEAD_BYTES + 4 * 8);
}

#[test]
fn zeros_at_the_end_are_left_out() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    for words in [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        journal.write_event(&file, Head::new(5, EVENT_ENTER, 9), words, &[]);
    }
    // With bytes behind them they are needed.
    journal.write_event(&file, Head::new(5, EVENT_ENTER, 9), [1, 0, 0], b"x");
    let words: Vec<_> = file.events(0).into_iter().map(|(_, words)| words).collect();
    let expected: [&[u64]; 5] = [&[], &[1], &[0, 1], &[0, 0, 1], &[1, 0, 0, b'x'.into()]];
    assert_eq!(words, expected);
}

#[test]
fn bytes_come_behind_a_call_that_is_the_last_event() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    let written = journal.write_leaf(&file, &short_leaf(1, 5, 0), &[]);
    // SAFETY: written by the journal.
    unsafe {
        assert!(!(*written).has_bytes());
        assert_eq!(journal.add_bytes(&file, written, b""), written);
        assert_eq!(journal.add_bytes(&file, written, b"/etc/hosts"), written);
        assert!((*written).has_bytes());
    }
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]);
    let events = file.events(0);
    let [(head, words), _] = &events[..] else { panic!("{events:?}") };
    assert_eq!((head.kind, usize::from(head.words)), (EVENT_LEAF, size_of::<Leaf>() / 8 + 2));
    let text: Vec<u8> = words[8..].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(text, b"/etc/hosts\0\0\0\0\0\0");
}

#[test]
fn a_call_that_others_followed_is_written_again_with_its_bytes() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    let first = journal.write_leaf(&file, &short_leaf(1, 5, 0), &[]);
    journal.write_event(&file, Head::new(6, EVENT_EXIT, 9), [1], &[]);
    // SAFETY: written by the journal.
    let again = unsafe { journal.add_bytes(&file, first, b"/etc/hosts") };
    assert_ne!(again, first);
    let kinds = |chunk| file.events(chunk).iter().map(|it| it.0.kind).collect::<Vec<_>>();
    assert_eq!(kinds(0), [EVENT_NOTHING, EVENT_EXIT, EVENT_LEAF]);
    // A chunk that is full to the last word has no room behind its last event.
    let left = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / 8 - 10 - 3 - 12;
    for _ in 0..left / 70 - 1 {
        fill(&mut journal, &file, 70);
    }
    fill(&mut journal, &file, left % 70 + 60);
    let last = journal.write_leaf(&file, &short_leaf(1, 5, 0), &[]);
    // SAFETY: as above.
    unsafe { journal.add_bytes(&file, last, b"/etc/hosts") };
    assert_eq!(kinds(0).last(), Some(&EVENT_NOTHING));
    assert_eq!(kinds(1), [EVENT_LEAF]);
}

#[test]
fn a_full_chunk_is_followed_by_another() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    let mut left = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / 8;
    while left >= 200 {
        fill(&mut journal, &file, 70);
        left -= 70;
    }
    // To the last word.
    fill(&mut journal, &file, 70);
    fill(&mut journal, &file, left - 70);
    assert_eq!((file.taken.get(), file.next.get()), (1, 0));
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]);
    assert_eq!((file.taken.get(), file.next.get()), (2, 1));
    assert_eq!(file.events(1).len(), 1);
    // The probe says for how long it had to do with that.
    let (head, took) = &file.all_events(1)[0];
    assert_eq!((head.kind, head.time, &took[..]), (EVENT_ROOM, 1_014, &[7][..]));
    assert_eq!(file.all_events(0).len(), file.events(0).len(), "the first chunk is had at once");
}

#[test]
fn room_is_made_before_it_is_needed() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    assert!(journal.lists_calls(&file));
    assert_eq!(file.taken.get(), 1, "the first");
    let mut left = CHUNK_BYTES - CHUNK_HEAD_BYTES;
    while left >= LARGEST + 70 * 8 {
        fill(&mut journal, &file, 70);
        left -= 70 * 8;
        journal.lists_calls(&file);
    }
    assert_eq!(file.taken.get(), 1);
    // As much as the largest event needs is enough, and less is not.
    fill(&mut journal, &file, (left - LARGEST) / 8);
    journal.lists_calls(&file);
    assert_eq!(file.taken.get(), 1);
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [0_u64; 0], &[]);
    journal.lists_calls(&file);
    assert_eq!(file.taken.get(), 2);
}

#[test]
fn the_last_chunks_are_not_for_calls() {
    let file = File::with_chunks(3);
    file.listing.set(1);
    let mut journal = Journal::new();
    assert!(journal.lists_calls(&file));
    while journal.lists_calls(&file) {
        fill(&mut journal, &file, 70);
    }
    assert_eq!(file.taken.get(), 1, "no chunk is taken for a call that is only summed");
    // What else happens is written all the same, as is the end of a call that was listed.
    while file.taken.get() < 2 {
        journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]);
    }
    assert!(!journal.lists_calls(&file), "a thread that sums goes on summing");
    assert_eq!(file.dropped.get(), 0);
    // Whoever has its place next looks for itself.
    file.listing.set(3);
    journal.begin(&file, 8, 1);
    assert!(journal.lists_calls(&file));
}

#[test]
fn without_a_chunk_events_are_dropped_and_counted() {
    let file = File::with_chunks(0);
    let mut journal = Journal::new();
    assert!(journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]).is_null());
    assert!(journal.write_leaf(&file, &short_leaf(1, 1, 0), &[]).is_null());
    journal.count_leaf(&file, &short_leaf(1, 1, 0));
    assert_eq!(file.dropped.get(), 3);
}

#[test]
fn short_calls_that_are_alike_become_one_event() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    for time in [10, 20, 30] {
        journal.count_leaf(&file, &short_leaf(1, time, 5));
        journal.count_leaf(&file, &short_leaf(2, time, 5));
    }
    let leaves = file.leaves(0);
    assert_eq!(leaves.len(), 2);
    for (leaf, slot) in leaves.iter().zip([1, 2]) {
        assert_eq!((leaf.head.slot, leaf.head.time, leaf.end), (slot, 10, 40));
        assert_eq!((leaf.count, leaf.sum), (3, 30));
    }
}

#[test]
fn another_event_ends_the_counting() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    journal.count_leaf(&file, &short_leaf(1, 10, 5));
    journal.write_event(&file, Head::new(15, EVENT_EXIT, 9), [1], &[]);
    journal.count_leaf(&file, &short_leaf(1, 20, 5));
    assert_eq!(file.events(0).len(), 3);
    journal.count_leaf(&file, &short_leaf(1, 30, 5));
    assert_eq!(file.events(0).len(), 3);
}

#[test]
fn of_too_many_sorts_the_oldest_are_forgotten() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    for slot in 0..=SORTS as u32 {
        journal.count_leaf(&file, &short_leaf(slot, 10, 5));
    }
    journal.count_leaf(&file, &short_leaf(1, 20, 5));
    assert_eq!(file.events(0).len(), SORTS + 1, "the second is still known");
    journal.count_leaf(&file, &short_leaf(0, 20, 5));
    assert_eq!(file.events(0).len(), SORTS + 2, "the first is not");
}

#[test]
fn a_call_that_was_written_joins_its_like() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    for time in [10, 20] {
        let written = journal.write_leaf(&file, &short_leaf(1, time, 5), b"/etc/passwd");
        // SAFETY: just written.
        unsafe { journal.count_written(written) };
    }
    let leaves = file.leaves(0);
    assert_eq!(leaves.len(), 1);
    assert_eq!((leaves[0].count, leaves[0].end), (2, 30));
}

#[test]
fn only_the_last_event_is_taken_back() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    let first = journal.write_leaf(&file, &short_leaf(1, 10, 5), &[]);
    let second = journal.write_leaf(&file, &short_leaf(2, 20, 5), b"path");
    // SAFETY: both were just written.
    unsafe { journal.take_back(first) };
    assert_eq!(file.leaves(0).len(), 2);
    // SAFETY: as above.
    unsafe { journal.take_back(second) };
    assert_eq!(file.leaves(0).len(), 1);
    assert_eq!(file.leaves(0)[0].head.slot, 1);
    // Its place is the next one's.
    let third = journal.write_leaf(&file, &short_leaf(3, 30, 5), &[]);
    assert_eq!(third, second);
}

#[test]
fn what_a_signal_handler_interrupted_is_not_joined_away() {
    let file = File::with_chunks(1);
    let mut journal = Journal::new();
    journal.count_leaf(&file, &short_leaf(1, 5, 5));
    let written = journal.write_leaf(&file, &short_leaf(1, 10, 5), &[]);
    journal.write_leaf(&file, &short_leaf(9, 11, 5), &[]);
    // SAFETY: just written.
    unsafe { journal.count_written(written) };
    assert_eq!(file.leaves(0).len(), 3);
    assert_eq!(file.leaves(0)[0].count, 1);
}

#[test]
fn a_thread_goes_on_in_the_chunk_of_one_that_has_ended() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    journal.begin(&file, 7, 1);
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]);
    journal.begin(&file, 8, 6);
    let events = file.events(0);
    assert_eq!(events.len(), 2);
    let (head, words) = &events[1];
    assert_eq!((head.kind, head.time, &words[..]), (EVENT_THREAD, 6, &[8_u64][..]));
    assert_eq!(file.taken.get(), 1);
}

#[test]
fn a_process_that_was_forked_off_leaves_its_parents_chunk_alone() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    journal.begin(&file, 7, 1);
    journal.write_event(&file, Head::new(5, EVENT_EXIT, 9), [1], &[]);
    file.process.set(101);
    journal.begin(&file, 7, 6);
    journal.write_event(&file, Head::new(8, EVENT_EXIT, 9), [1], &[]);
    assert_eq!(file.events(0).len(), 1);
    assert_eq!(file.events(1).len(), 1);
    // SAFETY: written by the journal.
    assert_eq!(unsafe { (*file.chunks[1].cast::<Chunk>()).process }, 101);
}

#[test]
fn a_new_chunk_takes_the_counts_away() {
    let file = File::with_chunks(2);
    let mut journal = Journal::new();
    journal.count_leaf(&file, &short_leaf(1, 10, 5));
    while file.taken.get() == 1 {
        fill(&mut journal, &file, 70);
    }
    journal.count_leaf(&file, &short_leaf(1, 20, 5));
    assert_eq!(file.leaves(0)[0].count, 1);
    assert_eq!(file.leaves(1).last().unwrap().head.time, 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Events of all lengths are read back, in order, with nothing between them.
    #[test]
    fn what_is_written_is_read_back(
        events in prop::collection::vec(
            (any::<u64>(), any::<[u64; 2]>(), prop::collection::vec(any::<u8>(), 0..40)),
            1..40,
        ),
    ) {
        let file = File::with_chunks(1);
        let mut journal = Journal::new();
        for (time, words, bytes) in &events {
            journal.write_event(&file, Head::new(*time, EVENT_PROCESS, 1), *words, bytes);
        }
        let read = file.events(0);
        prop_assert_eq!(read.len(), events.len());
        for ((head, read), (time, words, bytes)) in read.iter().zip(&events) {
            prop_assert_eq!(head.time, *time);
            let mut all = words.to_vec();
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                all.push(u64::from_le_bytes(word));
            }
            let mut read = read.clone();
            prop_assert!(bytes.is_empty() || read.len() == all.len());
            read.resize(all.len(), 0);
            prop_assert_eq!(read, all);
        }
    }

    /// However calls are counted, none is lost and no time either.
    #[test]
    fn counts_add_up(calls in prop::collection::vec((0_u32..9, 0_u64..3), 0..200)) {
        let file = File::with_chunks(1);
        let mut journal = Journal::new();
        for (slot, result) in &calls {
            journal.count_leaf(&file, &short_leaf(*slot, 10, *result));
        }
        if !calls.is_empty() {
            let leaves = file.leaves(0);
            prop_assert_eq!(leaves.iter().map(|leaf| leaf.count).sum::<u64>(), calls.len() as u64);
            prop_assert_eq!(leaves.iter().map(|leaf| leaf.sum).sum::<u64>(), 10 * calls.len() as u64);
            prop_assert!(leaves.iter().all(|leaf| leaf.head.kind == EVENT_LEAF));
        }
    }
}
