//! Handles that are in use: a module that gives one of them to a new object or session is wrong.
//!
//! A table without locks, so that operations can look while they are counted. It holds what finds
//! room, and forgets when a device is lost: it finds handles given twice, and never sees one where
//! there is none.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Handles of one kind that are in use in this process.
pub struct LiveHandles {
    places: Box<[AtomicU64]>,
}

/// A place without a handle (`CK_INVALID_HANDLE`).
const FREE: u64 = 0;

/// A power of two, far above the number of objects that a case has at once.
const PLACES: usize = 1 << 14;

/// Places that a handle can be in.
const PROBES: usize = 8;

impl LiveHandles {
    pub(crate) fn new() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(FREE)).collect() }
    }

    /// Notes a new handle; false when it is in use already.
    #[inline]
    pub fn claim(&self, handle: u64) -> bool {
        let mut free = None;
        for place in self.probe(handle) {
            match place.load(Relaxed) {
                FREE => free = free.or(Some(place)),
                live if live == handle => return false,
                _ => {}
            }
        }
        if let Some(place) = free {
            // Another thread may be faster: then this handle is not noted.
            let _ = place.compare_exchange(FREE, handle, Relaxed, Relaxed);
        }
        true
    }

    /// Forgets a handle, before the call that ends it: from then on it may be given again.
    #[inline]
    pub fn release(&self, handle: u64) {
        for place in self.probe(handle) {
            let _ = place.compare_exchange(handle, FREE, Relaxed, Relaxed);
        }
    }

    /// Forgets all: what a device held went with it.
    pub fn clear(&self) {
        for place in &self.places {
            place.store(FREE, Relaxed);
        }
    }

    fn probe(&self, handle: u64) -> impl Iterator<Item = &AtomicU64> {
        /// 2^64 over the golden ratio: neighbours are spread (Knuth, TAOCP 3, 6.4).
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        let first = (handle.wrapping_mul(SPREAD) >> 50) as usize;
        (0..PROBES).map(move |step| &self.places[(first + step) % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_in_use_from_its_claim_to_its_release() {
        let live = LiveHandles::new();
        for handle in (1..=4096).chain([u64::MAX, u64::MAX - 1]) {
            assert!(live.claim(handle), "{handle}");
            assert!(!live.claim(handle), "{handle}");
        }
        live.release(17);
        assert!(live.claim(17) && !live.claim(17));
        live.clear();
        assert!(live.claim(17));
    }
}
