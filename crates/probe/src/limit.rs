//! Programs that limit their address space (RLIMIT_AS): the file of events takes a part of it that
//! they may need. There the probe gives its part back, or does not begin.

use core::sync::atomic::Ordering;

use crate::wire::{CHUNK_BYTES, HEADER_BYTES};
use crate::{state, sys};

/// The probe's part of a limited address space, at most.
const PART: usize = 4;
/// Chunks that a program keeps when it gives the rest back.
const KEPT: u64 = 16;
const RLIMIT_AS: u64 = 9;

/// Whether so much may be mapped.
pub(crate) fn leaves_room_for(bytes: usize) -> bool {
    sys::address_space_limit().is_none_or(|limit| bytes <= limit / PART)
}

/// A limit is about to be set.
///
/// # Safety
/// `to` is null or points to a struct rlimit.
pub(crate) unsafe fn set(resource: u64, to: u64) {
    let to = to as *const u64;
    if resource as u32 as u64 != RLIMIT_AS || to.is_null() {
        return;
    }
    // SAFETY: its first word is the limit that counts.
    let limit = unsafe { *to };
    let state = state();
    let (bytes, reach) = (state.bytes, state.reach.load(Ordering::SeqCst));
    let mapped = HEADER_BYTES + reach as usize * CHUNK_BYTES;
    if limit == u64::MAX || mapped as u64 <= limit / PART as u64 {
        return;
    }
    let header = state.header();
    // A thread that takes a chunk looks at the limit behind it: either it sees this one, or its
    // chunk is seen here.
    let mut kept = reach;
    while kept == reach || header.taken.load(Ordering::SeqCst) > kept {
        kept = header.taken.load(Ordering::SeqCst) + KEPT;
        if kept >= reach {
            return;
        }
        state.reach.store(kept, Ordering::SeqCst);
    }
    let start = HEADER_BYTES + kept as usize * CHUNK_BYTES;
    // SAFETY: nobody writes behind the limit any more.
    unsafe { sys::unmap(state.file.wrapping_add(start), bytes - start) };
}
