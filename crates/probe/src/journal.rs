//! Where a thread's events go: a chunk of the file that is its own until it is full.
//!
//! The thread writes an event, then says that it is there; an event that was begun and not ended is
//! written over. Events stay where they are. What is left of a chunk when its thread ends is for
//! another.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use tapstone_probe_core::chunks::take_next_chunk;
use tapstone_probe_core::wire::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, Chunk, EVENT_THREAD, HEADER_BYTES, Head, Header, Leaf,
    MOST_BYTES,
};

use crate::thread::now;
use crate::{state, sys, thread};

/// Bytes of an event, at most.
const LARGEST: usize = size_of::<Leaf>() + MOST_BYTES;
/// Sorts of repeated libc calls inside one call that are counted rather than listed.
const SORTS: usize = 6;

#[repr(C)]
pub(crate) struct Journal {
    thread: u32,
    chunk: *mut Chunk,
    used: usize,
    /// The events of repeated calls since the last other event.
    sorts: [*mut Leaf; SORTS],
    next_sort: usize,
}

impl Journal {
    /// A thread begins, with the chunk of one that has ended or without any.
    pub(crate) fn begin(&mut self, thread: u32) {
        self.thread = thread;
        // SAFETY: a chunk that this process took, or the one that it was forked off from.
        if !self.chunk.is_null() && unsafe { (*self.chunk).process } != thread::process() {
            self.chunk = ptr::null_mut();
        }
        if !self.chunk.is_null() {
            self.put(now(), EVENT_THREAD, 0, 0, [u64::from(thread)], &[]);
        }
    }

    /// Takes a new chunk now, if the next event could need it: that takes time, which the call that
    /// is about to begin is not to blame for.
    #[inline(always)]
    pub(crate) fn make_room(&mut self) {
        if self.chunk.is_null() || self.used + LARGEST > CHUNK_BYTES {
            self.take_chunk();
        }
    }

    /// Writes an event: words, then bytes. Null when there is no room for it. Zeros at its end stand
    /// for themselves: what is not written needs no memory.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(
        &mut self,
        time: u64,
        kind: u8,
        flags: u8,
        slot: u32,
        words: [u64; N],
        bytes: &[u8],
    ) -> *mut u64 {
        let mut count = 2 + N + bytes.len().div_ceil(8);
        let at = self.reserve(count);
        if at.is_null() {
            return at;
        }
        if bytes.is_empty() {
            count -= last_zeros(words);
        }
        // SAFETY: `count` words are this thread's from there on.
        unsafe {
            at.cast::<Head>().write(Head { time, kind, flags, words: count as u16, slot });
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

    /// A libc call that is about to begin, or has ended.
    #[inline(always)]
    pub(crate) fn put_leaf(&mut self, leaf: &Leaf, bytes: &[u8]) -> *mut Leaf {
        const WORDS: usize = size_of::<Leaf>() / 8;
        let count = WORDS + bytes.len().div_ceil(8);
        let at = self.reserve(count);
        if at.is_null() {
            return at.cast();
        }
        // SAFETY: as in `put`.
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

    /// Takes an event back, when it is the last.
    pub(crate) fn take_back(&mut self, leaf: *mut Leaf) {
        if let Some(bytes) = self.last(leaf) {
            self.used -= bytes;
            // SAFETY: the chunk is mapped and this thread's.
            unsafe { (*self.chunk).used.store(self.used as u32, Ordering::Release) };
        }
    }

    /// The length of an event, when it is the last: a signal handler may have written others.
    fn last(&self, leaf: *mut Leaf) -> Option<usize> {
        // SAFETY: an event that this thread wrote.
        let bytes = unsafe { usize::from((*leaf).head.words) } * 8;
        (leaf as usize + bytes == self.chunk as usize + self.used).then_some(bytes)
    }

    /// Adds a short call to its like, or writes it as the first of them.
    #[inline(always)]
    pub(crate) fn count(&mut self, leaf: &Leaf) {
        if !self.add(leaf) {
            let written = self.put_leaf(leaf, &[]);
            self.remember(written);
        }
    }

    /// The same for one that is written already.
    pub(crate) fn join(&mut self, written: *mut Leaf) {
        // SAFETY: an event of this thread's chunk.
        let leaf = unsafe { *written };
        if self.last(written).is_some() && self.add(&leaf) {
            self.take_back(written);
        } else {
            self.remember(written);
        }
    }

    #[inline(always)]
    fn add(&mut self, leaf: &Leaf) -> bool {
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
    pub(crate) fn close_counts(&mut self) {
        self.next_sort = 0;
    }

    #[inline(always)]
    fn reserve(&mut self, words: usize) -> *mut u64 {
        if self.chunk.is_null() || self.used + words * 8 > CHUNK_BYTES {
            self.take_chunk();
        }
        if self.chunk.is_null() {
            drop_one();
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
    fn take_chunk(&mut self) {
        self.close_counts();
        // Whoever has filled one will need all of this one, which is cheaper to have at once.
        let is_busy = !self.chunk.is_null();
        self.chunk = ptr::null_mut();
        let (header, state) = (state().header(), state());
        let Some(number) = take_next_chunk(&header.taken, &header.ready, &state.reach) else {
            return;
        };
        let used = CHUNK_HEAD_BYTES;
        // SAFETY: the tracer has made room for as many chunks as are ready.
        let chunk: *mut Chunk =
            unsafe { state.file.add(HEADER_BYTES + number as usize * CHUNK_BYTES).cast() };
        let head = Chunk {
            process: thread::process(),
            thread: self.thread,
            used: AtomicU32::new(used as u32),
            reserved: 0,
        };
        // SAFETY: nobody else's.
        unsafe {
            if is_busy {
                sys::populate(chunk.cast(), CHUNK_BYTES);
            }
            chunk.write(head);
        }
        (self.used, self.chunk) = (used, chunk);
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

/// An event finds no room.
#[cold]
fn drop_one() {
    let (header, state) = (state().header(), state());
    header.dropped.fetch_add(1, Ordering::Relaxed);
    if state.reach.load(Ordering::Relaxed) < header.ready.load(Ordering::Relaxed) {
        header.out_of_reach.fetch_add(1, Ordering::Relaxed);
    }
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
