//! `tcp-nodelay`: before each send on a TCP socket, TCP_NODELAY is set, or taken away again while
//! the fix is off: a daemon lives through many rounds of a trial. A socket on which the program has
//! set it is left alone.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{FIX_TCP_NODELAY, are_on, of_kind};
use crate::{sys, thread};

/// Sockets on which it was set here, by descriptor.
static SET: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

pub(super) fn before(descriptor: u32) {
    let Some(fix) = of_kind(FIX_TCP_NODELAY).next() else { return };
    let Some((word, bit)) = place(descriptor) else { return };
    let is_ours = word.load(Ordering::Relaxed) & bit != 0;
    if !are_on() {
        if is_ours {
            sys::set_nodelay(descriptor, false);
            word.fetch_and(!bit, Ordering::Relaxed);
        }
        return;
    }
    match sys::nodelay(descriptor) {
        Some(false) if sys::set_nodelay(descriptor, true) => {
            word.fetch_or(bit, Ordering::Relaxed);
            fix.count_applied();
        }
        Some(true) if is_ours => fix.count_applied(),
        _ => {}
    }
}

/// The number may become another socket's. The child of a vfork(2) closes one of its own.
pub(super) fn closed(descriptor: u32) {
    if let Some((word, bit)) = place(descriptor)
        && word.load(Ordering::Relaxed) & bit != 0
        && !thread::is_borrowed()
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

fn place(descriptor: u32) -> Option<(&'static AtomicU64, u64)> {
    SET.get(descriptor as usize / 64).map(|word| (word, 1 << (descriptor % 64)))
}
