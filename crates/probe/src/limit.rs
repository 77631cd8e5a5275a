//! Programs that limit their memory: their address space (RLIMIT_AS), or all of it to what can be
//! locked (mlockall). The file of events takes a part of it that they may need, so the probe takes
//! less there, or gives back what it has.

use core::sync::atomic::Ordering;

use crate::thread::{self, TABLE_BYTES};
use crate::{state, sys};
use tapstone_probe_core::wire::{CHUNK_BYTES, HEADER_BYTES};

/// The probe's part of a limited address space, at most.
const PART: usize = 4;
/// Chunks that are the least to begin with, and to go on with.
const LEAST: u64 = 16;
/// Chunks that are locked with the program's memory.
const LOCKED: u64 = 256;
const RLIMIT_AS: u32 = 9;

/// How much of the file may be mapped.
pub(crate) fn most_bytes() -> usize {
    let limit = sys::address_space_limit();
    limit.map_or(usize::MAX, |limit| (limit / PART).saturating_sub(TABLE_BYTES))
}

/// How much of it is enough.
pub(crate) fn least_bytes() -> usize {
    bytes_of(LEAST)
}

fn bytes_of(chunks: u64) -> usize {
    HEADER_BYTES + chunks as usize * CHUNK_BYTES
}

/// A limit is about to be set.
///
/// # Safety
/// `to` is null or points to a struct rlimit.
pub(crate) unsafe fn set(resource: u64, to: u64) {
    let to = to as *const usize;
    if resource as u32 != RLIMIT_AS || to.is_null() {
        return;
    }
    // SAFETY: its first word is the limit that counts.
    let limit = unsafe { *to };
    keep((limit / PART / CHUNK_BYTES) as u64);
}

/// All memory is about to be locked.
pub(crate) fn lock() {
    keep(LOCKED);
}

/// Gives back all but so many chunks of the file, or what is in use and a little more.
fn keep(chunks: u64) {
    if thread::is_borrowed() {
        // The child's limit, and its parent's memory.
        return;
    }
    let (state, header) = (state(), state().header());
    let reach = state.reach.load(Ordering::SeqCst);
    loop {
        let taken = header.taken.load(Ordering::SeqCst);
        let kept = chunks.max(taken + LEAST);
        if kept >= reach {
            return;
        }
        // A thread that takes a chunk looks at the reach afterwards: either it sees this one, or
        // what it took is seen here.
        state.reach.store(kept, Ordering::SeqCst);
        if header.taken.load(Ordering::SeqCst) <= kept {
            break;
        }
        state.reach.store(reach, Ordering::SeqCst);
    }
    let kept = bytes_of(state.reach.load(Ordering::SeqCst));
    // SAFETY: nobody writes behind the reach any more.
    unsafe { sys::unmap(state.file.wrapping_add(kept), bytes_of(reach) - kept) };
}
