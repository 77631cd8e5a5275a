//! Descriptors that are connected to pcscd: who waits for one of them waits for the service.

use tapstone_probe_core::capture;
use tapstone_probe_core::descriptors::DescriptorSet;
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::Kind;

use crate::process;

static SERVICE: DescriptorSet<64> = DescriptorSet::new();

/// Whether the descriptor is connected to pcscd.
pub(crate) fn leads_to_pcscd(descriptor: u64) -> bool {
    SERVICE.contains(descriptor)
}

/// Remembers which descriptors lead to pcscd, after a call that was given this one.
pub(crate) fn note_descriptor(kind: Kind, frame: &Frame, descriptor: u64) {
    // SAFETY: a call of that kind, which has returned.
    let Some(change) = (unsafe { capture::descriptor_change(kind, frame, descriptor) }) else {
        return;
    };
    // The child of a vfork(2) closes descriptors of its own, which its parent keeps.
    let is_news = SERVICE.contains(change.descriptor) != change.leads_to_pcscd;
    if !is_news || !SERVICE.holds(change.descriptor) || process::is_borrowed() {
        return;
    }
    if change.leads_to_pcscd {
        SERVICE.insert(change.descriptor);
    } else {
        SERVICE.remove(change.descriptor);
    }
}
