//! Programs that limit their memory: their address space (RLIMIT_AS), or all of it to what can be
//! locked (mlockall). The file of events takes a part of it that they may need, so the probe takes
//! less there, or gives back what it has.

use tapstone_probe_core::chunks::{
    LEAST_CHUNKS, LOCKED_CHUNKS, bytes_of_chunks, chunks_within, lower_reach,
};
use tapstone_probe_core::program_memory::ProgramMemory;

use crate::thread::TABLE_BYTES;
use crate::{process, state, sys};

const RLIMIT_AS: u32 = 9;

/// How much of the file may be mapped, in bytes.
pub(crate) fn most_bytes() -> usize {
    tapstone_probe_core::chunks::most_bytes(sys::address_space_limit(), TABLE_BYTES)
}

/// How much of it is enough, in bytes.
pub(crate) fn least_bytes() -> usize {
    bytes_of_chunks(LEAST_CHUNKS)
}

/// A limit is about to be set.
///
/// # Safety
/// The call that sets it to the struct rlimit at `to` has not returned.
pub(crate) unsafe fn set_limit(resource: u64, to: u64, memory: &ProgramMemory) {
    if resource as u32 != RLIMIT_AS {
        return;
    }
    // SAFETY: the caller's promise. The first word is the limit that counts.
    if let Some([limit]) = unsafe { memory.words::<1>(to) } {
        keep_chunks(chunks_within(limit as usize));
    }
}

/// All memory is about to be locked.
pub(crate) fn lock_memory() {
    keep_chunks(LOCKED_CHUNKS);
}

/// Gives back all but so many chunks of the file, or what is in use and a little more.
fn keep_chunks(chunks: u64) {
    if process::is_borrowed() {
        // The child's limit, and its parent's memory.
        return;
    }
    let state = state();
    let Some(given) = lower_reach(&state.header().taken, &state.reach, chunks) else { return };
    let kept = bytes_of_chunks(given.kept);
    // SAFETY: nobody writes behind the reach any more.
    unsafe { sys::unmap(state.file.wrapping_add(kept), bytes_of_chunks(given.reach) - kept) };
}
