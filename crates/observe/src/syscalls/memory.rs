//! Reading another process's memory.

use std::io;

use libc::{c_void, iovec, pid_t};

/// Copies from `address` on into `buffer` and says how many bytes there were: fewer when the
/// mapping ends before.
pub(super) fn read(process: pid_t, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = iovec { iov_base: address as *mut c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes to the buffer, which is borrowed for
    // writing; the other address is looked up in the other process only.
    let count = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Pages are never smaller.
const PAGE_BYTES: u64 = 4096;

/// A part of a thread's stack, copied piece by piece as far as it is asked for.
pub(super) struct Stack<'a> {
    process: pid_t,
    start: u64,
    copied: &'a mut Vec<u8>,
}

/// Frames further up than this from the innermost one are not looked for.
const MOST_STACK_BYTES: usize = 512 << 10;

impl<'a> Stack<'a> {
    /// The stack from `start`, the stack pointer, upwards; `buffer` is only memory to use.
    pub(super) fn new(process: pid_t, start: u64, buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        Self { process, start, copied: buffer }
    }

    /// The word at an address.
    pub(super) fn word(&mut self, address: u64) -> Result<u64, ()> {
        let offset = usize::try_from(address.checked_sub(self.start).ok_or(())?).map_err(drop)?;
        let end = offset.checked_add(size_of::<u64>()).ok_or(())?;
        if end > self.copied.len() {
            self.extend(end)?;
        }
        let bytes = self.copied[offset..end].try_into().map_err(drop)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Copies at least up to `end`, and at least as much again as is there: a deep stack must not
    /// take a call per page. Reads end on a page's border, where a mapping may end.
    fn extend(&mut self, end: usize) -> Result<(), ()> {
        if end > MOST_STACK_BYTES {
            return Err(());
        }
        let have = self.copied.len();
        let wanted = self.start + end.max(2 * have) as u64;
        let wanted = (wanted.next_multiple_of(PAGE_BYTES) - self.start) as usize;
        self.copied.resize(wanted, 0);
        let from = self.start + have as u64;
        let count = read(self.process, from, &mut self.copied[have..]).unwrap_or(0);
        self.copied.truncate(have + count);
        if self.copied.len() < end { Err(()) } else { Ok(()) }
    }
}

/// The longest path that the kernel takes, and one more (PATH_MAX).
const MOST_TEXT_BYTES: usize = 4096;

/// Reads a text that ends with a zero; as much as can be read of one that does not.
pub(super) fn text(process: pid_t, address: u64, into: &mut Vec<u8>) {
    into.clear();
    while into.len() < MOST_TEXT_BYTES {
        let from = address.wrapping_add(into.len() as u64);
        // Most paths are short; and what lies behind the page may not be mapped.
        let length = (PAGE_BYTES - from % PAGE_BYTES).min(if into.is_empty() { 128 } else { 1024 });
        let have = into.len();
        into.resize(have + length as usize, 0);
        let count = read(process, from, &mut into[have..]).unwrap_or(0);
        into.truncate(have + count);
        if let Some(end) = into[have..].iter().position(|byte| *byte == 0) {
            into.truncate(have + end);
            return;
        }
        if count == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_process() -> pid_t {
        std::process::id() as pid_t
    }

    #[test]
    fn texts_end_with_their_zero() {
        let long = [b'x'; 3_000];
        for text_bytes in [&b""[..], b"/etc/protocols", &long] {
            let mut source = text_bytes.to_vec();
            source.extend(b"\0behind");
            let mut found = b"before".to_vec();
            text(own_process(), source.as_ptr() as u64, &mut found);
            assert_eq!(found, text_bytes);
        }
        let mut found = b"before".to_vec();
        text(own_process(), 8, &mut found);
        assert!(found.is_empty(), "nothing is mapped there");
    }

    #[test]
    fn a_stack_is_read_upwards_only_and_not_without_end() {
        let words: Vec<u64> = (0..20_000).collect();
        let mut buffer = Vec::new();
        let start = words.as_ptr() as u64;
        let mut stack = Stack::new(own_process(), start, &mut buffer);
        assert_eq!(stack.word(start), Ok(0));
        assert_eq!(stack.word(start + 8 * 19_999), Ok(19_999));
        assert_eq!(stack.word(start + 8 * 700), Ok(700));
        assert_eq!(stack.word(start - 8), Err(()));
        assert_eq!(stack.word(start + MOST_STACK_BYTES as u64), Err(()));
        assert_eq!(stack.word(u64::MAX - 3), Err(()));
    }
}
