//! What the probe knows of a thread: the chunk it writes to, and the calls that are open.
//!
//! An audit namespace has no thread-local storage that works, so threads find their state by their
//! id in a table. The table is wiped in a process that is forked off: its threads begin anew, with
//! chunks of their own.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::wire::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, CLOCK_TSC, Chunk, EVENT_FORKED, FLAG_ABANDONED, HEADER_BYTES,
    Head, Header, Leaf,
};
use crate::{state, sys};

/// Threads of one process that are told apart; those beyond it are dropped, and counted.
const THREADS: usize = 4096;
/// Calls open at a time, one inside the other; those deeper are not seen.
pub(crate) const DEPTH: usize = 48;
/// Sorts of repeated libc calls inside one call that are counted rather than listed.
const SORTS: usize = 6;

/// A call that has not returned.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    /// Where its stub's frame is. A frame that begins at a higher address is older.
    pub(crate) frame: usize,
    pub(crate) slot: u32,
    pub(crate) function: u32,
    /// Polls in it that found nothing, one after the other.
    pub(crate) empty_polls: u32,
    /// How much the clock is ahead of the time, inside it.
    pub(crate) ahead_nanos: u64,
}

#[repr(C, align(64))]
pub(crate) struct Thread {
    id: AtomicU32,
    busy: AtomicU32,
    pub(crate) depth: usize,
    chunk: *mut Chunk,
    used: usize,
    /// The events of repeated calls since the last other event.
    sorts: [*mut Leaf; SORTS],
    next_sort: usize,
    pub(crate) random: u64,
    pub(crate) open: [Open; DEPTH],
}

/// A table for the threads of this process.
pub(crate) fn table() -> *mut Thread {
    let bytes = THREADS * size_of::<Thread>();
    let table = sys::memory(bytes);
    if !table.is_null() {
        // SAFETY: just mapped, and as long.
        unsafe { sys::wipe_on_fork(table, bytes) };
    }
    table.cast()
}

/// This thread's state, and nobody else's until it is dropped. `None` inside the probe's own work
/// (a signal handler that interrupted it), and where there is no room.
pub(crate) fn enter() -> Option<&'static mut Thread> {
    let state = state();
    let id = if state.tid_in_thread { sys::thread_from_library() } else { sys::thread_from_kernel() };
    let mut at = id as usize * 0x9E37_79B1 >> 7;
    for _ in 0..64 {
        at &= THREADS - 1;
        // SAFETY: inside the table. Only the thread of that id goes on from here.
        let thread = unsafe { &mut *state.threads.add(at) };
        let owner = thread.id.load(Ordering::Relaxed);
        if owner == id || (owner == 0 && thread.claim(id)) {
            if thread.busy.swap(1, Ordering::Relaxed) != 0 {
                return None;
            }
            return Some(thread);
        }
        at += 1;
    }
    state.header().dropped.fetch_add(1, Ordering::Relaxed);
    None
}

#[inline(always)]
pub(crate) fn now() -> u64 {
    if state().header().clock == CLOCK_TSC { sys::ticks() } else { sys::monotonic_nanos() }
}

impl Thread {
    fn claim(&mut self, id: u32) -> bool {
        if self.id.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        self.random = u64::from(id) << 32 | 0x9E37_79B9;
        let (process, state) = (sys::process(), state());
        // The first thread of a process that was forked off says so.
        if state.process.swap(process, Ordering::Relaxed) != process {
            let both = u64::from(process) | u64::from(sys::parent()) << 32;
            self.put(now(), EVENT_FORKED, 0, 0, &[both], &[]);
        }
        true
    }

    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        self.busy.store(0, Ordering::Relaxed);
    }

    /// The innermost call.
    pub(crate) fn innermost(&mut self) -> Option<&mut Open> {
        self.depth.checked_sub(1).and_then(|at| self.open.get_mut(at))
    }

    /// Notes a call. False: too deep.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: usize, slot: u32, function: u32) -> bool {
        let Some(open) = self.open.get_mut(self.depth) else { return false };
        *open = Open { frame, slot, function, empty_polls: 0, ahead_nanos: 0 };
        self.depth += 1;
        true
    }

    /// Calls that an exception or longjmp(3) went past: their frames are where a new one is now.
    #[inline(always)]
    pub(crate) fn forget_abandoned(&mut self, frame: usize) {
        while let Some(open) = self.depth.checked_sub(1).and_then(|at| self.open.get(at)) {
            if open.frame > frame {
                return;
            }
            let slot = open.slot;
            self.depth -= 1;
            self.put(now(), crate::wire::EVENT_EXIT, FLAG_ABANDONED, slot, &[0, 0], &[]);
        }
    }

    /// Whether this is the frame of a call that is open; those inside it are abandoned.
    #[inline(always)]
    pub(crate) fn pop(&mut self, frame: usize) -> Option<Open> {
        while let Some(open) = self.depth.checked_sub(1).and_then(|at| self.open.get(at)).copied() {
            if open.frame > frame {
                return None;
            }
            self.depth -= 1;
            if open.frame == frame {
                return Some(open);
            }
            self.put(now(), crate::wire::EVENT_EXIT, FLAG_ABANDONED, open.slot, &[0, 0], &[]);
        }
        None
    }

    /// Writes an event: words, then bytes. Null when there is no room for it.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        time: u64,
        kind: u8,
        flags: u8,
        slot: u32,
        words: &[u64],
        bytes: &[u8],
    ) -> *mut u64 {
        let count = 2 + words.len() + bytes.len().div_ceil(8);
        let at = self.reserve(count);
        if at.is_null() {
            return at;
        }
        // SAFETY: `count` words are this thread's from there on.
        unsafe {
            at.cast::<Head>().write(Head { time, kind, flags, words: count as u16, slot });
            let mut to = at.add(2);
            for word in words {
                to.write(*word);
                to = to.add(1);
            }
            if !bytes.is_empty() {
                at.add(count - 1).write(0);
                ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
            }
        }
        self.commit(count);
        self.sorts = [ptr::null_mut(); SORTS];
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

    /// Takes the last event back.
    pub(crate) fn take_back(&mut self, leaf: *mut Leaf) {
        // SAFETY: the last event of the chunk, which this thread wrote.
        let words = unsafe { usize::from((*leaf).head.words) };
        let end = leaf as usize + words * 8;
        if end == self.chunk as usize + self.used {
            self.used -= words * 8;
            // SAFETY: the chunk is mapped and this thread's.
            unsafe { (*self.chunk).used.store(self.used as u32, Ordering::Release) };
        }
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
        if self.add(&leaf) {
            self.take_back(written);
        } else {
            self.remember(written);
        }
    }

    #[inline(always)]
    fn add(&mut self, leaf: &Leaf) -> bool {
        for sort in self.sorts {
            if sort.is_null() {
                break;
            }
            // SAFETY: an event of this thread's chunk, written since the list was last emptied.
            let sort = unsafe { &mut *sort };
            let alike = sort.head.slot == leaf.head.slot
                && sort.a == leaf.a
                && sort.head.flags == leaf.head.flags
                && ((sort.result as i32) < 0) == ((leaf.result as i32) < 0)
                && (sort.result as i32 == 0) == (leaf.result as i32 == 0);
            if alike {
                sort.end = leaf.end;
                sort.count += 1;
                sort.sum += leaf.sum;
                sort.min = sort.min.min(leaf.sum);
                sort.max = sort.max.max(leaf.sum);
                sort.result = leaf.result;
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
        self.sorts = [ptr::null_mut(); SORTS];
        self.next_sort = 0;
    }

    #[inline(always)]
    fn reserve(&mut self, words: usize) -> *mut u64 {
        if self.chunk.is_null() || self.used + words * 8 > CHUNK_BYTES {
            self.take_chunk();
        }
        if self.chunk.is_null() {
            state().header().dropped.fetch_add(1, Ordering::Relaxed);
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
        self.chunk = ptr::null_mut();
        let header = state().header();
        let Some(number) = next(&header.taken, &header.ready) else { return };
        // SAFETY: the tracer has made room for as many chunks as are ready.
        unsafe {
            let at = state().file.add(HEADER_BYTES + number * CHUNK_BYTES);
            self.chunk = at.cast();
            let (process, thread) = (sys::process(), self.id.load(Ordering::Relaxed));
            let used = AtomicU32::new(CHUNK_HEAD_BYTES as u32);
            self.chunk.write(Chunk { process, thread, used, reserved: 0 });
        }
        self.used = CHUNK_HEAD_BYTES;
    }
}

/// The number of a chunk that is ready and not taken.
fn next(taken: &AtomicU64, ready: &AtomicU64) -> Option<usize> {
    let mut number = taken.load(Ordering::Relaxed);
    while number < ready.load(Ordering::Acquire) {
        match taken.compare_exchange_weak(number, number + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(number as usize),
            Err(other) => number = other,
        }
    }
    None
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
