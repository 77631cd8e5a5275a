//! Whether standard output was there when the program began. The standard library opens /dev/null
//! in the place of a missing one before `main`, and what is printed is lost without an error.
#![allow(unsafe_code, reason = "the place before `main`, and one system call")]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether whoever started this program gave it no standard output, as `>&-` does in a shell.
#[must_use]
pub fn standard_output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Run by the loader before Rust's own start.
// SAFETY: `note_closed_output` takes what the loader passes, which is nothing that it reads, and
// needs nothing of the standard library that is not there before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_closed_output;

extern "C" fn note_closed_output() {
    // SAFETY: F_GETFD takes no argument and changes nothing; a number that is not open is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}
