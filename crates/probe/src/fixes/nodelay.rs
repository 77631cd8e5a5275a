//! `tcp-nodelay`: before each send on a TCP socket, TCP_NODELAY is set, or taken away again while
//! the fix is off: a daemon lives through many rounds of a trial. A socket on which the program has
//! set it is left alone.

use tapstone_probe_core::descriptors::DescriptorSet;
use tapstone_probe_core::wire::FIX_TCP_NODELAY;

use super::{are_on, of_kind};
use crate::{process, sys};

/// Sockets on which it was set here.
static SET: DescriptorSet<16> = DescriptorSet::new();

pub(super) fn before_write(descriptor: u32) {
    let Some(fix) = of_kind(FIX_TCP_NODELAY).next() else { return };
    let socket = u64::from(descriptor);
    if !SET.holds(socket) {
        return;
    }
    let is_ours = SET.contains(socket);
    if !are_on() {
        if is_ours {
            sys::set_nodelay(descriptor, false);
            SET.remove(socket);
        }
        return;
    }
    match sys::nodelay(descriptor) {
        Some(false) if sys::set_nodelay(descriptor, true) => {
            SET.insert(socket);
            fix.count_applied();
        }
        Some(true) if is_ours => fix.count_applied(),
        _ => {}
    }
}

/// The number may become another socket's. The child of a vfork(2) closes one of its own.
pub(super) fn closed(descriptor: u32) {
    let socket = u64::from(descriptor);
    if SET.contains(socket) && !process::is_borrowed() {
        SET.remove(socket);
    }
}
