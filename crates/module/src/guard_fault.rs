//! Tells a module that reached beyond its buffer from one that crashed otherwise: the fault's
//! address lies in memory that stands guard. The worker ends in either case.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tapstone_worker::BoardCell;

/// Mappings that are watched; a fault in one beyond them is a crash without this name.
const MOST: usize = 4096;

/// Start and end of each mapping; 0: none.
static MAPPINGS: [(AtomicUsize, AtomicUsize); MOST] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST];

/// Where the controller looks when this process has ended.
static CELL: OnceLock<BoardCell> = OnceLock::new();

/// What happened to a fault before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Watches the mapping from `start` to `end`, of which all that can be touched is in use.
pub(super) fn watch(start: usize, end: usize) {
    for (from, to) in &MAPPINGS {
        if from.compare_exchange(0, start, Relaxed, Relaxed).is_ok() {
            to.store(end, Relaxed);
            return;
        }
    }
}

/// The mapping that starts there is no more.
pub(super) fn forget(start: usize) {
    if let Some((from, to)) = MAPPINGS.iter().find(|(from, _)| from.load(Relaxed) == start) {
        to.store(0, Relaxed);
        from.store(0, Relaxed);
    }
}

/// Notes faults in this cell from now on. A module that handles SIGSEGV itself takes them away.
pub fn note_guard_faults(cell: BoardCell) {
    if CELL.set(cell).is_err() {
        return;
    }
    // SAFETY: all zero is a valid `sigaction`, which is then filled in; both outlive the calls,
    // and the handler only does what a handler may (signal-safety(7)).
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, ptr::null(), &mut before);
        let _ = BEFORE.set(before);
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`; of a fault it holds the address.
    let (address, sent) = unsafe { ((*info).si_addr() as usize, (*info).si_code <= 0) };
    let guarded = |(from, to): &(AtomicUsize, AtomicUsize)| {
        (from.load(Relaxed)..to.load(Relaxed)).contains(&address)
    };
    if !sent
        && MAPPINGS.iter().any(guarded)
        && let Some(cell) = CELL.get()
    {
        cell.note_beyond_buffer();
    }
    if let Some(before) = BEFORE.get() {
        // SAFETY: what was there before is put back: the same fault goes to it.
        unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
    }
    if sent {
        // SAFETY: no fault, so it does not happen again by itself.
        unsafe { libc::raise(signal) };
    }
}
