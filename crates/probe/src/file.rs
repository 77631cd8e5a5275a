//! The file of events, as a thread's journal takes chunks of it.

use core::ptr;
use core::sync::atomic::Ordering;

use tapstone_probe_core::chunks::take_next_chunk;
use tapstone_probe_core::journal::{ChunkSource, ChunkUse};
use tapstone_probe_core::wire::{CHUNK_BYTES, Chunk, HEADER_BYTES};

use crate::{process, state, sys};

/// The file that this process shares with its tracer.
pub(crate) struct SharedFile;

impl SharedFile {
    /// Whether the run is over, and this process one that goes on after it.
    pub(crate) fn is_over(&self) -> bool {
        state().header().over.load(Ordering::Relaxed) != 0
    }
}

impl ChunkSource for SharedFile {
    fn process(&self) -> u32 {
        process::process()
    }

    fn take_chunk(&self, purpose: ChunkUse) -> *mut Chunk {
        let state = state();
        let header = state.header();
        let Some(number) = take_next_chunk(&header.taken, &header.ready, &state.reach) else {
            return ptr::null_mut();
        };
        // SAFETY: the tracer has made room for as many chunks as are ready.
        let chunk: *mut Chunk =
            unsafe { state.file.add(HEADER_BYTES + number as usize * CHUNK_BYTES).cast() };
        if purpose == ChunkUse::Next {
            // Whoever has filled one will need all of this one, which is cheaper to have at once.
            // SAFETY: nobody else's.
            unsafe { sys::populate(chunk.cast(), CHUNK_BYTES) };
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
        if state.reach.load(Ordering::Relaxed) < header.ready.load(Ordering::Relaxed) {
            header.out_of_reach.fetch_add(1, Ordering::Relaxed);
        }
    }
}
