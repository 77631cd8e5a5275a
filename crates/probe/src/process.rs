//! Which process this is, and its clock.

use core::sync::atomic::{AtomicU32, Ordering};

use tapstone_probe_core::wire::CLOCK_TSC;

use crate::{State, state, sys};

/// Or'ed to the process in the table of threads while its first thread says that it was forked off.
pub(crate) const TELLING: u32 = 1 << 31;

/// The moment on the clock that the file asks for.
#[inline(always)]
pub(crate) fn now() -> u64 {
    if state().header().clock == CLOCK_TSC { sys::ticks() } else { sys::monotonic_nanos() }
}

/// The process whose memory this is. The child of a vfork(2), as posix_spawn(3) makes one, runs in
/// its parent's until it becomes another program: what it does there is noted as its parent's.
pub(crate) fn process() -> u32 {
    match state().process().load(Ordering::Acquire) & !TELLING {
        0 => ask_whose_memory(),
        known => known,
    }
}

/// The child of a vfork(2) may be the first to write in the memory of a process that was forked
/// off: the thread's number there is not its own.
pub(crate) fn ask_whose_memory() -> u32 {
    let is_another =
        state().tid_in_thread && sys::thread_from_library() != sys::thread_from_kernel();
    if is_another { sys::parent() } else { sys::process() }
}

/// Whether this is such a child.
pub(crate) fn is_borrowed() -> bool {
    process() != sys::process()
}

impl State {
    pub(crate) fn process(&self) -> &'static AtomicU32 {
        // SAFETY: inside the table, which is mapped for good.
        unsafe { &(*self.threads).process }
    }
}
