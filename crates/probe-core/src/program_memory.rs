//! Memory that a call's arguments point to, read only where it is there.
//!
//! A function may answer without looking at an argument, or have the kernel look, which says EFAULT:
//! a program that passes a pointer to nothing lives on, and so it must while it is watched. What
//! nobody has looked at yet is therefore asked for page by page. The stack's own page is known to be
//! there, which answers for most arguments.

use core::cell::Cell;

use crate::frame::Frame;
use crate::text::text_length;

const PAGE_BYTES: usize = 4096;

/// Whether the page of an address can be read.
pub type PageTest = fn(usize) -> bool;

/// The memory of a program, as one of its calls sees it.
#[derive(Debug)]
pub struct ProgramMemory {
    /// The page in which the stub's frame ends and its caller's begins.
    stack: usize,
    /// The page that was asked for last.
    last: Cell<usize>,
    is_readable: PageTest,
}

impl ProgramMemory {
    /// What a call may point to.
    #[inline(always)]
    pub fn of_call(frame: &Frame, is_readable: PageTest) -> Self {
        let end = frame.place() + size_of::<Frame>() - 1;
        Self { stack: page(end), last: Cell::new(page(end)), is_readable }
    }

    /// The same, where somebody has read what is at that address.
    #[must_use]
    pub fn after_read_of(self, address: u64) -> Self {
        // Nothing is mapped at null.
        if page(address as usize) != 0 {
            self.last.set(page(address as usize));
        }
        self
    }

    /// Whether all of these bytes are there.
    #[inline(always)]
    pub fn holds(&self, address: u64, bytes: usize) -> bool {
        let start = address as usize;
        let Some(end) = start.checked_add(bytes.saturating_sub(1)) else { return false };
        self.holds_pages(page(start), page(end))
    }

    /// The same, where the function has read or written the first of them.
    #[inline(always)]
    pub fn holds_rest(&self, address: u64, bytes: usize) -> bool {
        let start = address as usize;
        let Some(end) = start.checked_add(bytes.saturating_sub(1)) else { return false };
        page(start) == page(end) || self.holds_pages(page(start) + 1, page(end))
    }

    /// Whether they are in the stack's own page, for which nobody is asked.
    pub fn is_on_stack(&self, address: u64, bytes: usize) -> bool {
        let start = address as usize;
        page(start) == self.stack && page(start.saturating_add(bytes)) == self.stack
    }

    #[inline(always)]
    fn holds_pages(&self, first: usize, last: usize) -> bool {
        (first..=last).all(|page| self.holds_page(page))
    }

    #[inline(always)]
    fn holds_page(&self, page: usize) -> bool {
        page == self.stack || page == self.last.get() || self.ask(page)
    }

    #[cold]
    fn ask(&self, page: usize) -> bool {
        // Nothing is mapped at null.
        let is_there = page != 0 && (self.is_readable)(page * PAGE_BYTES);
        if is_there {
            self.last.set(page);
        }
        is_there
    }

    /// Words at an address; `None` where they are not there.
    ///
    /// # Safety
    /// Nobody takes the memory away meanwhile.
    #[inline(always)]
    pub unsafe fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        if !self.holds(address, size_of::<[u64; N]>()) {
            return None;
        }
        // SAFETY: as many bytes are there.
        Some(unsafe { (address as *const [u64; N]).read_unaligned() })
    }

    /// Bytes at an address; `None` where they are not there.
    ///
    /// # Safety
    /// Nobody takes the memory away, or writes there, while the answer is used.
    #[inline(always)]
    pub unsafe fn bytes<'a>(&self, address: u64, length: usize) -> Option<&'a [u8]> {
        if length == 0 {
            return Some(&[]);
        }
        if !self.holds(address, length) {
            return None;
        }
        // SAFETY: as many bytes are there.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, length) })
    }

    /// The text at an address, without its zero: up to a limit in bytes, and as far as it is there.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes).
    pub unsafe fn text<'a>(&self, address: u64, most: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.text_and_end(address, most).0 }
    }

    /// The same, where all of it is there, up to its zero or the limit.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes).
    pub unsafe fn whole_text<'a>(&self, address: u64, most: usize) -> Option<&'a [u8]> {
        // SAFETY: the caller's promise.
        match unsafe { self.text_and_end(address, most) } {
            (text, true) => Some(text),
            (_, false) => None,
        }
    }

    /// A text as far as it is there, and whether that is all of it.
    unsafe fn text_and_end<'a>(&self, address: u64, most: usize) -> (&'a [u8], bool) {
        let start = address as usize;
        let mut length = 0;
        let mut is_whole = false;
        while !is_whole && length < most {
            let at = start.wrapping_add(length);
            let part = (PAGE_BYTES - at % PAGE_BYTES).min(most - length);
            if !self.holds_page(page(at)) {
                break;
            }
            // SAFETY: the rest of a page that is there.
            let found = unsafe { text_length(at as *const u8, part) };
            length += found;
            is_whole = found < part || length == most;
        }
        if length == 0 {
            return (&[], is_whole);
        }
        // SAFETY: it was just looked through.
        (unsafe { core::slice::from_raw_parts(start as *const u8, length) }, is_whole)
    }
}

fn page(address: usize) -> usize {
    address / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn everything(_: usize) -> bool {
        true
    }

    fn nothing(_: usize) -> bool {
        false
    }

    fn at<T: ?Sized>(value: &T) -> u64 {
        core::ptr::from_ref(value).cast::<u8>() as u64
    }

    #[repr(align(4096))]
    struct Pages([u8; 3 * PAGE_BYTES]);

    #[test]
    fn what_is_not_there_is_not_read() {
        let frame = Frame::new(0, [0; 6]);
        let memory = ProgramMemory::of_call(&frame, nothing);
        for address in [0, 8, 4095, 1 << 40, u64::MAX - 3, u64::MAX] {
            // SAFETY: nothing is read.
            unsafe {
                assert_eq!(memory.words::<1>(address), None, "{address:#x}");
                assert_eq!(memory.bytes(address, 5), None, "{address:#x}");
                assert_eq!(memory.bytes(address, 0), Some(&[][..]), "{address:#x}");
                assert_eq!(memory.text(address, 20), b"", "{address:#x}");
            }
        }
    }

    #[test]
    fn what_is_there_is_read() {
        let frame = Frame::new(0, [0; 6]);
        let memory = ProgramMemory::of_call(&frame, everything);
        let words = [1_u64, 2, 3];
        let text = b"pcscd\0rest".to_vec();
        // SAFETY: all of it is there.
        unsafe {
            assert_eq!(memory.words::<3>(words.as_ptr() as u64), Some([1, 2, 3]));
            assert_eq!(memory.text(text.as_ptr() as u64, 20), b"pcscd");
            assert_eq!(memory.text(text.as_ptr() as u64, 3), b"pcs");
            assert_eq!(memory.bytes(text.as_ptr() as u64, 7), Some(&b"pcscd\0r"[..]));
            assert_eq!(memory.text(0, 20), b"", "null");
        }
    }

    #[test]
    fn nobody_is_asked_about_the_stack() {
        fn asked(_: usize) -> bool {
            panic!("asked")
        }
        let frame = Frame::new(7, [1, 2, 3, 4, 5, 6]);
        let memory = ProgramMemory::of_call(&frame, asked);
        let end = at(&frame) + size_of::<Frame>() as u64 - 8;
        // SAFETY: the frame's own last word.
        assert_eq!(unsafe { memory.words::<1>(end) }, Some([0]));
        assert!(memory.is_on_stack(end, 4));
        assert!(!memory.is_on_stack(end + PAGE_BYTES as u64, 4));
    }

    #[test]
    fn each_page_is_asked_about_once_in_a_row() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn count(_: usize) -> bool {
            ASKED.fetch_add(1, Ordering::Relaxed);
            true
        }
        let pages = std::boxed::Box::new(Pages([1; 3 * PAGE_BYTES]));
        let frame = Frame::new(0, [0; 6]);
        let memory = ProgramMemory::of_call(&frame, count);
        let start = at(&pages.0);
        for offset in [0, 8, 4088] {
            assert!(memory.holds(start + offset, 8));
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        assert!(memory.holds(start, 3 * PAGE_BYTES));
        assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_text_goes_as_far_as_its_memory() {
        static END: AtomicUsize = AtomicUsize::new(0);
        fn before_end(address: usize) -> bool {
            address < END.load(Ordering::Relaxed)
        }
        let pages = std::boxed::Box::new(Pages([b'x'; 3 * PAGE_BYTES]));
        let start = at(&pages.0);
        END.store(start as usize + PAGE_BYTES, Ordering::Relaxed);
        let frame = Frame::new(0, [0; 6]);
        let memory = ProgramMemory::of_call(&frame, before_end);
        let last = start + PAGE_BYTES as u64 - 5;
        // SAFETY: all of it is there.
        unsafe {
            assert_eq!(memory.text(last, 200), b"xxxxx");
            assert_eq!(memory.whole_text(last, 200), None, "its end is not there");
            assert_eq!(memory.whole_text(last, 5), Some(&b"xxxxx"[..]));
            assert_eq!(memory.whole_text(at(b"xy\0z"), 200), Some(&b"xy"[..]));
            let after = ProgramMemory::of_call(&frame, nothing).after_read_of(last);
            assert_eq!(after.text(last, 200), b"xxxxx", "only that page is known to be there");
            assert_eq!(after.text(start + PAGE_BYTES as u64, 200), b"");
            assert_eq!(memory.bytes(last, 5), Some(&b"xxxxx"[..]));
            assert_eq!(memory.bytes(last, 6), None);
            assert_eq!(memory.words::<1>(last), None);
        }
        // The function has read the first: what lies in another page may not be there.
        let behind = start + PAGE_BYTES as u64;
        assert!(memory.holds_rest(behind, PAGE_BYTES));
        assert!(!memory.holds_rest(behind, PAGE_BYTES + 1));
    }
}
