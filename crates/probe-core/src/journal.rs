//! Where a thread's events go: a chunk of the file that is its own until it is full.
//!
//! The thread writes an event, then says that it is there; an event that was begun and not ended is
//! written over. Events stay where they are. What is left of a chunk when its thread ends is for
//! another.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use crate::wire::{
    CHUNK_BYTES, CHUNK_EVENTS, CHUNK_HEAD_BYTES, Chunk, EVENT_NOTHING, EVENT_ROOM, EVENT_THREAD,
    HEADER_BYTES, Head, Header, Leaf, MOST_BYTES,
};

/// Bytes of an event, at most.
const LARGEST: usize = size_of::<Leaf>() + MOST_BYTES;
/// Sorts of repeated libc calls inside one call that are counted rather than listed.
const SORTS: usize = 6;

/// What a chunk is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkUse {
    /// The thread's first: it may need little of it.
    First,
    /// Another, when one is full: it will need all of it.
    Next,
    /// For sums of calls.
    Totals,
}

/// Where chunks come from.
pub trait ChunkSource {
    /// The process whose memory this is.
    fn process(&self) -> u32;

    /// The probe's clock.
    fn now(&self) -> u64;

    /// A chunk of the file that nobody else has or will have; null when there is none. It is
    /// [`CHUNK_BYTES`] long, mapped for good, and may be written.
    fn take_chunk(&self, purpose: ChunkUse) -> *mut Chunk;

    /// Whether a chunk may be taken to list calls in. The last ones are for sums of calls, and for
    /// other events.
    fn lists_calls(&self) -> bool;

    /// An event finds no room.
    fn count_dropped(&self);
}

/// A thread's events. Zeroed memory is a journal without a chunk: the probe maps it.
#[repr(C)]
#[derive(Debug)]
pub struct Journal {
    thread: u32,
    chunk: *mut Chunk,
    used: usize,
    /// Calls are summed and no longer listed.
    is_summing: bool,
    /// The events of repeated calls since the last other event.
    sorts: [*mut Leaf; SORTS],
    next_sort: usize,
}

impl Head {
    /// The beginning of an event of that kind, one of `EVENT_…`, without flags.
    #[inline(always)]
    pub fn new(time: u64, kind: u8, slot: u32) -> Self {
        Self { time, kind, flags: 0, words: 0, slot }
    }

    /// With some of `FLAG_…`.
    #[inline(always)]
    pub fn with_flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }
}

impl Journal {
    /// A journal without a chunk.
    pub const fn new() -> Self {
        Self {
            thread: 0,
            chunk: ptr::null_mut(),
            used: 0,
            is_summing: false,
            sorts: [ptr::null_mut(); SORTS],
            next_sort: 0,
        }
    }

    /// A thread begins, with the chunk of one that has ended or without any.
    pub fn begin(&mut self, source: &impl ChunkSource, thread: u32, now: u64) {
        self.thread = thread;
        self.is_summing = false;
        // SAFETY: a chunk that this process took, or the one that it was forked off from.
        if !self.chunk.is_null() && unsafe { (*self.chunk).process } != source.process() {
            self.chunk = ptr::null_mut();
        }
        if !self.chunk.is_null() {
            let head = Head::new(now, EVENT_THREAD, 0);
            self.write_event(source, head, [u64::from(thread)], &[]);
        }
    }

    /// The chunk that events go to, or null.
    #[inline(always)]
    pub fn chunk(&self) -> *const Chunk {
        self.chunk
    }

    /// Whether a call that is about to begin is to be written. Takes a new chunk now, if the next
    /// event could need it: that takes time, which the call is not to blame for.
    #[inline(always)]
    pub fn lists_calls(&mut self, source: &impl ChunkSource) -> bool {
        if self.is_summing {
            return false;
        }
        if self.chunk.is_null() || self.used + LARGEST > CHUNK_BYTES {
            return self.list_in_another(source);
        }
        true
    }

    /// Whether calls are summed and no longer listed.
    #[inline(always)]
    pub fn is_summing(&self) -> bool {
        self.is_summing
    }

    #[cold]
    fn list_in_another(&mut self, source: &impl ChunkSource) -> bool {
        self.is_summing = !source.lists_calls();
        if self.is_summing {
            self.close_counts();
        } else {
            self.take_chunk(source);
        }
        !self.is_summing
    }

    /// Writes an event: words, then bytes. Null when there is no room for it. Zeros at its end stand
    /// for themselves: what is not written needs no memory.
    #[inline(always)]
    pub fn write_event<const N: usize>(
        &mut self,
        source: &impl ChunkSource,
        head: Head,
        words: [u64; N],
        bytes: &[u8],
    ) -> *mut u64 {
        let mut count = 2 + N + bytes.len().div_ceil(8);
        let at = self.reserve(source, count);
        if at.is_null() {
            return at;
        }
        if bytes.is_empty() {
            count -= last_zeros(words);
        }
        // SAFETY: `count` words are this thread's from there on.
        unsafe {
            at.cast::<Head>().write(Head { words: count as u16, ..head });
            at.add(2).cast::<[u64; N]>().write(words);
            if !bytes.is_empty() {
                at.add(count - 1).write(0);
                ptr::copy_nonoverlapping(bytes.as_ptr(), at.add(2 + N).cast(), bytes.len());
            }
        }
        self.commit(count);
        self.close_counts();
        at
    }

    /// Writes an event of at most so many words behind its head; `fill` writes them, and says how
    /// many they are. Null when there is no room for as many as there may be.
    pub fn write_words(
        &mut self,
        source: &impl ChunkSource,
        head: Head,
        most: usize,
        fill: impl FnOnce(&mut [u64]) -> usize,
    ) -> *mut Head {
        let at = self.reserve(source, 2 + most);
        if at.is_null() {
            return at.cast();
        }
        // SAFETY: `2 + most` words are this thread's from there on; a chunk begins as zeros, or as
        // an event that was taken back.
        let count = unsafe { 2 + fill(core::slice::from_raw_parts_mut(at.add(2), most)).min(most) };
        // SAFETY: as above.
        unsafe { at.cast::<Head>().write(Head { words: count as u16, ..head }) };
        self.commit(count);
        self.close_counts();
        at.cast()
    }

    /// Writes a libc call that is about to begin, or has ended. Null when there is no room for it.
    #[inline(always)]
    pub fn write_leaf(
        &mut self,
        source: &impl ChunkSource,
        leaf: &Leaf,
        bytes: &[u8],
    ) -> *mut Leaf {
        const WORDS: usize = size_of::<Leaf>() / 8;
        let count = WORDS + bytes.len().div_ceil(8);
        let at = self.reserve(source, count);
        if at.is_null() {
            return at.cast();
        }
        // SAFETY: as in `write_event`.
        unsafe {
            at.cast::<Leaf>().write(*leaf);
            (*at.cast::<Head>()).words = count as u16;
            if !bytes.is_empty() {
                at.add(count - 1).write(0);
                ptr::copy_nonoverlapping(bytes.as_ptr(), at.add(WORDS).cast(), bytes.len());
            }
        }
        self.commit(count);
        at.cast()
    }

    /// Adds bytes to a libc call that was written without any. Where other events have been written
    /// since, it is written once more, and the first one says nothing. Returns where it is.
    ///
    /// # Safety
    /// [`write_leaf`](Self::write_leaf) has returned it, for this thread.
    pub unsafe fn add_bytes(
        &mut self,
        source: &impl ChunkSource,
        leaf: *mut Leaf,
        bytes: &[u8],
    ) -> *mut Leaf {
        if bytes.is_empty() {
            return leaf;
        }
        // As many as an event of its own has at least.
        let words = bytes.len().div_ceil(8).max(2);
        // SAFETY: the caller's promise.
        let is_last = unsafe { self.last_event(leaf) } == Some(size_of::<Leaf>());
        if is_last && self.used + words * 8 <= CHUNK_BYTES {
            // SAFETY: what follows the event is this thread's.
            unsafe {
                // Whatever ends the program or leaves this function meanwhile, there are whole events
                // in the chunk: first one more, then this one is longer, with an empty text.
                let end = leaf.add(1).cast::<u64>();
                let nothing = Head { words: words as u16, ..Head::new(0, EVENT_NOTHING, 0) };
                end.cast::<Head>().write(nothing);
                compiler_fence(Ordering::SeqCst);
                self.commit(words);
                compiler_fence(Ordering::SeqCst);
                (*leaf).head.words += words as u16;
                compiler_fence(Ordering::SeqCst);
                end.add(1).write(0);
                end.add(words - 1).write(0);
                ptr::copy_nonoverlapping(bytes.as_ptr(), end.cast(), bytes.len());
            }
            return leaf;
        }
        // SAFETY: an event of this thread.
        let again = unsafe { *leaf };
        let written = self.write_leaf(source, &again, bytes);
        if written.is_null() {
            return leaf;
        }
        // SAFETY: as above.
        unsafe { (*leaf).head.kind = EVENT_NOTHING };
        written
    }

    /// Takes an event back, when it is the last.
    ///
    /// # Safety
    /// [`write_leaf`](Self::write_leaf) has returned it, for this thread.
    pub unsafe fn take_back(&mut self, leaf: *mut Leaf) {
        // SAFETY: the caller's promise.
        if let Some(bytes) = unsafe { self.last_event(leaf) } {
            self.used -= bytes;
            // SAFETY: the chunk is mapped and this thread's.
            unsafe { (*self.chunk).used.store(self.used as u32, Ordering::Release) };
        }
    }

    /// The length of an event, when it is the last: a signal handler may have written others.
    ///
    /// # Safety
    /// An event that this thread wrote.
    unsafe fn last_event(&self, leaf: *mut Leaf) -> Option<usize> {
        // SAFETY: the caller's promise.
        let bytes = unsafe { usize::from((*leaf).head.words) } * 8;
        (leaf as usize + bytes == self.chunk as usize + self.used).then_some(bytes)
    }

    /// Adds a short call to its like, or writes it as the first of them.
    #[inline(always)]
    pub fn count_leaf(&mut self, source: &impl ChunkSource, leaf: &Leaf) {
        if !self.add_to_like(leaf) {
            let written = self.write_leaf(source, leaf, &[]);
            self.remember(written);
        }
    }

    /// The same for one that is written already.
    ///
    /// # Safety
    /// As for [`take_back`](Self::take_back).
    pub unsafe fn count_written(&mut self, written: *mut Leaf) {
        // SAFETY: an event of this thread's chunk.
        unsafe {
            let leaf = *written;
            if self.last_event(written).is_some() && self.add_to_like(&leaf) {
                self.take_back(written);
            } else {
                self.remember(written);
            }
        }
    }

    #[inline(always)]
    fn add_to_like(&mut self, leaf: &Leaf) -> bool {
        for sort in self.sorts.into_iter().take(self.next_sort) {
            if sort.is_null() {
                continue;
            }
            // SAFETY: an event of this thread's chunk, written since the list was last emptied.
            let sort = unsafe { &mut *sort };
            if sort.is_like(leaf) {
                sort.add_one(leaf);
                return true;
            }
        }
        false
    }

    /// A new chunk takes the list away, and with it what could be added to.
    #[inline(always)]
    fn remember(&mut self, written: *mut Leaf) {
        self.sorts[self.next_sort % SORTS] = written;
        self.next_sort += 1;
    }

    /// What follows is no repetition of what was before.
    pub fn close_counts(&mut self) {
        self.next_sort = 0;
    }

    #[inline(always)]
    fn reserve(&mut self, source: &impl ChunkSource, words: usize) -> *mut u64 {
        if self.chunk.is_null() || self.used + words * 8 > CHUNK_BYTES {
            self.take_chunk(source);
        }
        if self.chunk.is_null() {
            source.count_dropped();
            return ptr::null_mut();
        }
        // SAFETY: inside the chunk.
        unsafe { self.chunk.cast::<u8>().add(self.used).cast() }
    }

    #[inline(always)]
    fn commit(&mut self, words: usize) {
        self.used += words * 8;
        // SAFETY: the chunk is mapped and this thread's.
        unsafe { (*self.chunk).used.store(self.used as u32, Ordering::Release) };
    }

    #[cold]
    fn take_chunk(&mut self, source: &impl ChunkSource) {
        self.close_counts();
        let purpose = if self.chunk.is_null() { ChunkUse::First } else { ChunkUse::Next };
        let from = source.now();
        self.chunk = source.take_chunk(purpose);
        if self.chunk.is_null() {
            return;
        }
        self.used = CHUNK_HEAD_BYTES;
        let head = Chunk {
            process: source.process(),
            thread: self.thread,
            used: AtomicU32::new(CHUNK_HEAD_BYTES as u32),
            content: CHUNK_EVENTS,
        };
        // SAFETY: nobody else's.
        unsafe { self.chunk.write(head) };
        if purpose == ChunkUse::Next {
            let took = source.now().saturating_sub(from);
            self.write_event(source, Head::new(from, EVENT_ROOM, 0), [took], &[]);
        }
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

#[inline(always)]
fn last_zeros<const N: usize>(words: [u64; N]) -> usize {
    let mut count = 0;
    while count < N && words[N - 1 - count] == 0 {
        count += 1;
    }
    count
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);

#[cfg(test)]
mod tests;
