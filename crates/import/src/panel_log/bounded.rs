//! A file whose lines end: what holds one line in memory must not hold the whole file.

use std::cell::Cell;
use std::io::{self, Read};

/// More than this no line of a log has.
pub(super) const MOST_MEBIBYTES: u64 = 8;

/// Reads, and gives up when it is not told for too long that a line was read.
pub(super) struct BoundedLines<R> {
    inner: R,
    since_line: Cell<u64>,
}

impl<R> BoundedLines<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, since_line: Cell::new(0) }
    }

    pub(super) fn begin_line(&self) {
        self.since_line.set(0);
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.since_line.get() > MOST_MEBIBYTES << 20
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_too_long() {
            return Err(io::Error::other("a line that does not end"));
        }
        let read = self.inner.read(buffer)?;
        self.since_line.set(self.since_line.get() + read as u64);
        Ok(read)
    }
}
