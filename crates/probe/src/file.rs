//! The file of events, as a thread's journal takes chunks of it.

use core::ptr;
use core::sync::atomic::Ordering;

use tapstone_probe_core::chunks::take_next_chunk;
use tapstone_probe_core::journal::{ChunkSource, ChunkUse};
use tapstone_probe_core::wire::{
    CHUNK_BYTES, CHUNK_LAST, Chunk, HEADER_BYTES, KEEP_LAST, NO_SPACE, NO_WAY,
};

use crate::{process, state, sys};

/// The file that this process shares with its tracer.
pub(crate) struct SharedFile;

impl SharedFile {
    /// Whether the run is over, and this process one that goes on after it.
    pub(crate) fn is_over(&self) -> bool {
        state().header().over.load(Ordering::Relaxed) != 0
    }

    /// A chunk for what is known of summed calls beside their sums; null where that would be of the
    /// last half of what the sums themselves need, or nobody asked for the last calls.
    pub(crate) fn take_chunk_of(&self, content: u32) -> *mut Chunk {
        let header = state().header();
        let most = header.listing.midpoint(header.most);
        let is_full = header.taken.load(Ordering::Relaxed) >= most;
        let is_unasked = content == CHUNK_LAST && header.options & KEEP_LAST == 0;
        if is_full || is_unasked || self.is_over() {
            return ptr::null_mut();
        }
        self.take_chunk(ChunkUse::Totals)
    }
}

impl ChunkSource for SharedFile {
    fn process(&self) -> u32 {
        process::process()
    }

    fn now(&self) -> u64 {
        process::now()
    }

    fn take_chunk(&self, purpose: ChunkUse) -> *mut Chunk {
        let state = state();
        let header = state.header();
        let is_refused = header.refused.load(Ordering::Relaxed) != 0;
        let most = if is_refused { &header.ready } else { &header.granted };
        let Some(number) = take_next_chunk(&header.taken, most, &state.reach) else {
            return ptr::null_mut();
        };
        // SAFETY: within the mapping, as long as it reaches.
        let chunk: *mut Chunk =
            unsafe { state.file.add(HEADER_BYTES + number as usize * CHUNK_BYTES).cast() };
        let has_space = number < header.ready.load(Ordering::Acquire);
        // Whoever has filled one will need all of this one, which is cheaper to have at once.
        if purpose == ChunkUse::Next || !has_space {
            // SAFETY: nobody else's.
            let made = unsafe { sys::populate(chunk.cast(), CHUNK_BYTES) };
            if let (Err(error), false) = (made, has_space) {
                // To touch it would end the program (SIGBUS).
                let why = if error == sys::EFAULT { NO_SPACE } else { NO_WAY };
                header.refused.store(why, Ordering::Relaxed);
                return ptr::null_mut();
            }
        }
        chunk
    }

    fn lists_calls(&self) -> bool {
        let header = state().header();
        let goes_on = header.taken.load(Ordering::Relaxed) < header.listing;
        if !goes_on {
            let relaxed = Ordering::Relaxed;
            // The first thread that no longer lists says when that was.
            let _ = header.summed_from.compare_exchange(0, process::now(), relaxed, relaxed);
        }
        goes_on
    }

    #[cold]
    fn count_dropped(&self) {
        if self.is_over() {
            return;
        }
        let state = state();
        let header = state.header();
        header.dropped.fetch_add(1, Ordering::Relaxed);
        let reach = state.reach.load(Ordering::Relaxed);
        if reach <= header.taken.load(Ordering::Relaxed) && reach < header.most {
            header.out_of_reach.fetch_add(1, Ordering::Relaxed);
        }
    }
}
