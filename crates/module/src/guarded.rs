//! Memory for results that ends where no memory is: a module that writes beyond its buffer faults
//! in its own call, and spoils nothing else.

use std::io;
use std::ptr;

use super::guard_fault;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// The smallest unit that can be protected; a multiple of it is one, too.
const PAGE_BYTES: usize = 1 << 16;

/// Small results share no page with each other but need no 64 KiB: pages of this size where the
/// machine has them.
fn page_bytes() -> usize {
    let page = rustix::param::page_size();
    if page.is_power_of_two() { page } else { PAGE_BYTES }
}

/// Places of one length, each with a page behind it, and one before the first, that cannot be
/// touched.
#[derive(Debug)]
pub struct GuardedPlaces {
    start: *mut u8,
    mapped_bytes: usize,
    /// From one place's end to the next one's.
    stride_bytes: usize,
    /// From the start to the end of the first place.
    first_end: usize,
    place_bytes: usize,
    places: usize,
}

// SAFETY: the memory belongs to this value alone and is reached only through it.
unsafe impl Send for GuardedPlaces {}

impl GuardedPlaces {
    /// So many places of so many bytes each, touched already.
    ///
    /// # Errors
    /// What mmap(2) or mprotect(2) say.
    pub fn new(places: usize, place_bytes: usize) -> io::Result<Self> {
        let page = page_bytes();
        let usable = place_bytes.max(1).next_multiple_of(page);
        let stride_bytes = usable + page;
        let mapped_bytes = page + places * stride_bytes;
        // SAFETY: the kernel chooses the address; nothing else is there.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped_bytes, ProtFlags::empty(), MapFlags::PRIVATE)
        }?;
        let guarded = Self {
            start: start.cast(),
            mapped_bytes,
            stride_bytes,
            first_end: page + usable,
            place_bytes,
            places,
        };
        guard_fault::watch(guarded.start as usize, guarded.start as usize + mapped_bytes);
        for place in 0..places {
            let end = guarded.first_end + place * stride_bytes;
            // SAFETY: whole pages of the mapping just made.
            unsafe {
                let from = guarded.start.add(end - usable);
                mprotect(from.cast(), usable, MprotectFlags::READ | MprotectFlags::WRITE)?;
                // Touched now, so that no page is faulted in while an operation is timed.
                from.write_bytes(POISON, usable);
            }
        }
        Ok(guarded)
    }

    /// The start of a place; `place_bytes` behind it nothing can be touched.
    #[inline]
    pub fn place(&self, place: usize) -> *mut u8 {
        debug_assert!(place < self.places);
        // SAFETY: within the mapping for every place that there is.
        unsafe { self.start.add(self.first_end + place * self.stride_bytes - self.place_bytes) }
    }
}

/// What memory holds that no module has written to.
const POISON: u8 = 0xA5;

impl Drop for GuardedPlaces {
    fn drop(&mut self) {
        guard_fault::forget(self.start as usize);
        // SAFETY: the mapping is this value's own, and no reference into it is left.
        let _ = unsafe { munmap(self.start.cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who may write at an address, as the kernel says it.
    fn is_writable(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let bound = |text| usize::from_str_radix(text, 16).unwrap();
            (bound(from)..bound(to)).contains(&address) && rest[1..2] == *"w"
        })
    }

    #[test]
    fn each_place_ends_where_nothing_can_be_written() {
        for bytes in [1, 16, 272, 4096, 5000] {
            let guarded = GuardedPlaces::new(16, bytes).unwrap();
            for place in 0..16 {
                let start = guarded.place(place) as usize;
                assert!(is_writable(start) && is_writable(start + bytes - 1));
                assert!(!is_writable(start + bytes), "place {place} of {bytes} bytes");
            }
        }
    }
}
