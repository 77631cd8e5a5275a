//! Inputs as a module is given them: in memory that it may not change, and that is therefore
//! compared afterwards with what it held.

use std::ptr::{self, NonNull};

use cryptoki_sys::CK_OBJECT_HANDLE;

/// An input as the calls take it. Nothing here tells the right answer.
pub(super) struct PreparedInput {
    pub(super) bytes: OfferedBytes,
    pub(super) iv: Vec<u8>,
    /// The object that this input became, where it had to be imported first.
    pub(super) object: CK_OBJECT_HANDLE,
}

/// Bytes that a module reads and must not write. All threads offer the same: a change is seen by
/// each that looks before one has undone it, so that its count is exact with one thread only.
pub(super) struct OfferedBytes {
    /// What a module gets: made by `Box::into_raw`, and reached only through pointers.
    offered: NonNull<u8>,
    original: Box<[u8]>,
}

// SAFETY: the memory is this value's own. Nothing of Tapstone writes to it but `restore`, and only
// what it held before.
unsafe impl Send for OfferedBytes {}
// SAFETY: as above.
unsafe impl Sync for OfferedBytes {}

/// Longer inputs are compared whole only after the run, and at both ends after each operation.
const COMPARED_BYTES: usize = 4096;

impl OfferedBytes {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let original = bytes.into_boxed_slice();
        let offered = Box::into_raw(original.clone()).cast::<u8>();
        Self { offered: NonNull::new(offered).unwrap_or(NonNull::dangling()), original }
    }

    /// As they were, whatever a module did.
    pub(super) fn original(&self) -> &[u8] {
        &self.original
    }

    /// What a module gets, as long as the original.
    #[inline]
    pub(super) fn as_mut_ptr(&self) -> *mut u8 {
        self.offered.as_ptr()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.original.len()
    }

    /// Whether the bytes are what they were: all of a short input, both ends of a long one.
    #[inline]
    pub(super) fn look_unchanged(&self) -> bool {
        let length = self.len();
        if length <= COMPARED_BYTES {
            return self.is_same(0, length);
        }
        let half = COMPARED_BYTES / 2;
        self.is_same(0, half) && self.is_same(length - half, half)
    }

    /// Whether all bytes are what they were.
    pub(super) fn are_unchanged(&self) -> bool {
        self.is_same(0, self.len())
    }

    /// Short inputs, as signatures and wrapped keys have, are compared in two pieces, which may
    /// overlap: a call into the C library, or a loop, takes longer than that.
    #[inline]
    fn is_same(&self, from: usize, length: usize) -> bool {
        match length {
            8..=16 => self.has_same_ends::<8>(from, length),
            17..=32 => self.has_same_ends::<16>(from, length),
            33..=64 => self.has_same_ends::<32>(from, length),
            _ => self.compare(from, length),
        }
    }

    fn compare(&self, from: usize, length: usize) -> bool {
        // SAFETY: callers stay within the length of both. A module that writes meanwhile from
        // another thread is what is looked for; no reference to its memory is made.
        let order = unsafe {
            libc::memcmp(
                self.offered.as_ptr().add(from).cast(),
                self.original.as_ptr().add(from).cast(),
                length,
            )
        };
        order == 0
    }

    /// Compares the first and the last `N` of so many bytes, which are `N` at least and `2 N` at most.
    #[inline]
    fn has_same_ends<const N: usize>(&self, from: usize, length: usize) -> bool {
        debug_assert!((N..=2 * N).contains(&length));
        let is_same = |at: usize| {
            // SAFETY: as above; `N` bytes from `at` on end within the length.
            unsafe {
                let offered = self.offered.as_ptr().add(at).cast::<[u8; N]>().read();
                offered == self.original.as_ptr().add(at).cast::<[u8; N]>().read()
            }
        };
        is_same(from) & is_same(from + length - N)
    }

    /// Gives the next operation what it was meant to have.
    #[cold]
    pub(super) fn restore(&self) {
        // SAFETY: both are as long, and do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.original.as_ptr(), self.as_mut_ptr(), self.len()) };
    }
}

impl Drop for OfferedBytes {
    fn drop(&mut self) {
        let memory = ptr::slice_from_raw_parts_mut(self.offered.as_ptr(), self.len());
        // SAFETY: made by `Box::into_raw` of a slice of this length.
        drop(unsafe { Box::from_raw(memory) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_found_and_undone() {
        for (length, place) in [(1, 0), (51, 50), (4096, 2000), (8192, 8191), (8192, 0)] {
            let input = OfferedBytes::new(vec![7; length]);
            assert!(input.look_unchanged() && input.are_unchanged());
            // SAFETY: within the length.
            unsafe { input.as_mut_ptr().add(place).write(8) };
            assert!(!input.look_unchanged(), "byte {place} of {length}");
            assert_eq!(input.original(), vec![7; length]);
            input.restore();
            assert!(input.are_unchanged());
        }
    }

    #[test]
    fn each_byte_of_each_short_length_is_compared() {
        for length in 1..=130 {
            let input = OfferedBytes::new(vec![7; length]);
            assert!(input.look_unchanged());
            for place in 0..length {
                // SAFETY: within the length.
                unsafe { input.as_mut_ptr().add(place).write(7 ^ (1 << (place % 8))) };
                assert!(!input.look_unchanged(), "byte {place} of {length}");
                input.restore();
            }
        }
    }

    #[test]
    fn the_middle_of_a_long_input_is_compared_after_the_run() {
        let input = OfferedBytes::new(vec![7; 8192]);
        // SAFETY: within the length.
        unsafe { input.as_mut_ptr().add(4096).write(8) };
        assert!(input.look_unchanged() && !input.are_unchanged());
    }

    #[test]
    fn no_bytes_are_never_changed() {
        assert!(OfferedBytes::new(Vec::new()).are_unchanged());
    }
}
