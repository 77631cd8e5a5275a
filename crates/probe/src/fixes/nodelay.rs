//! `tcp-nodelay`: before each send on a TCP socket, TCP_NODELAY is set, or taken away again while
//! the fix is off: a daemon lives through many rounds of a trial.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{FIX_TCP_NODELAY, are_on, of_kind};
use crate::sys;

/// Sockets on which it is set, by descriptor.
static SET: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

pub(super) fn before(descriptor: u32) {
    let Some(fix) = of_kind(FIX_TCP_NODELAY).next() else { return };
    let Some(word) = SET.get(descriptor as usize / 64) else { return };
    let bit = 1 << (descriptor % 64);
    let (is_set, wanted) = (word.load(Ordering::Relaxed) & bit != 0, are_on());
    // Descriptors are used again, so it is set each time; taken away only where it was set here.
    if wanted && sys::set_nodelay(descriptor, true) {
        word.fetch_or(bit, Ordering::Relaxed);
        fix.apply();
    } else if is_set && !wanted {
        sys::set_nodelay(descriptor, false);
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}
