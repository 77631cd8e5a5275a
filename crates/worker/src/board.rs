//! What each thread of a worker process is calling right now, in memory that outlives it.
//!
//! A library can crash, exit or hang in any call. The worker writes the number of the call before
//! it enters; whoever started the worker maps the same memory and can name the call in flight
//! whatever happened. One relaxed store to a cache line of the thread's own: under a nanosecond.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// A cache line, and its neighbour that the processor fetches along.
const CELL_BYTES: usize = 128;

/// The threads of a worker process that have a cell: its main one and the measuring ones.
pub const BOARD_THREADS: usize = 1025;

/// Shared memory in which threads note the call that they are in.
#[derive(Debug)]
pub struct Board {
    map: MmapRaw,
    /// Kept open by the process that made it, so that the worker can open it by its path.
    file: File,
}

impl Board {
    /// Makes a board.
    ///
    /// # Errors
    /// What memfd_create(2), ftruncate(2) or mmap(2) say.
    pub fn create() -> io::Result<Arc<Self>> {
        let file = File::from(memfd_create("tapstone-board", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, (CELL_BYTES * BOARD_THREADS) as u64)?;
        Self::map(file)
    }

    /// Maps a board that another process made.
    ///
    /// # Errors
    /// What open(2) or mmap(2) say.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        Self::map(OpenOptions::new().read(true).write(true).open(path)?)
    }

    /// Where another process finds this board.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The cell of one thread: 0 is the main one.
    #[must_use]
    pub fn cell(self: &Arc<Self>, thread: usize) -> BoardCell {
        assert!(thread < BOARD_THREADS, "more threads than a board has cells");
        // SAFETY: the map holds BOARD_THREADS cells of CELL_BYTES, checked when it was made.
        let words = unsafe { self.map.as_mut_ptr().add(thread * CELL_BYTES) }.cast();
        BoardCell { _board: Arc::clone(self), words }
    }

    /// What each thread is calling.
    pub(crate) fn calls_in_flight(self: &Arc<Self>) -> Vec<InFlight> {
        (0..BOARD_THREADS).map(|thread| self.cell(thread).look()).collect()
    }

    fn map(file: File) -> io::Result<Arc<Self>> {
        let map = MmapRaw::map_raw(&file)?;
        if map.len() < CELL_BYTES * BOARD_THREADS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the board is too short"));
        }
        Ok(Arc::new(Self { map, file }))
    }
}

/// Where one thread says what it is calling.
#[derive(Clone, Debug)]
pub struct BoardCell {
    /// Keeps the memory mapped.
    _board: Arc<Board>,
    /// The first of its words: two loads fewer on the way of each call.
    words: *const AtomicU64,
}

// SAFETY: the words are atomic, and mapped as long as any cell of the board is.
unsafe impl Send for BoardCell {}
// SAFETY: as above.
unsafe impl Sync for BoardCell {}

/// No call is in flight.
const IDLE: u64 = 0xFF;

impl BoardCell {
    /// Says that the call of this number, which is not 255, is entered as part of this operation.
    #[inline]
    pub fn enter(&self, call: u8, operation: u64) {
        self.word().store(operation << 8 | u64::from(call), Relaxed);
    }

    /// Says that no call is in flight.
    #[inline]
    pub fn leave(&self) {
        self.word().store(IDLE, Relaxed);
    }

    /// What the cell says: two equal answers some time apart are one call that has not returned.
    #[must_use]
    pub fn look(&self) -> InFlight {
        InFlight(self.word().load(Relaxed))
    }

    /// Says that a call reached beyond the memory that it was given. For a signal handler.
    pub fn note_beyond_buffer(&self) {
        self.beyond_buffer().store(1, Relaxed);
    }

    /// A call reached beyond the memory that it was given, and its process ended for it.
    #[must_use]
    pub fn went_beyond_buffer(&self) -> bool {
        self.beyond_buffer().load(Relaxed) != 0
    }

    fn beyond_buffer(&self) -> &AtomicU64 {
        // SAFETY: as for `word`, and a cell has room for two words.
        unsafe { &*self.words.add(1) }
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the cell lies in the map, is aligned to 128 bytes, and is there as long as this
        // value. All access from every process is atomic.
        unsafe { &*self.words }
    }
}

/// A call in flight with the operation that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(u64);

impl InFlight {
    /// A thread that is in no call.
    pub(crate) const NONE: Self = Self(IDLE);

    /// The number of the call; `None` when there was none.
    #[must_use]
    pub fn call(self) -> Option<u8> {
        // Memory that nobody has written to holds zeros.
        ((self.0 & 0xFF) != IDLE && self.0 != 0).then_some((self.0 & 0xFF) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_mapping_sees_the_call_in_flight() {
        let board = Board::create().unwrap();
        let other = Board::open(&board.path()).unwrap();
        let here = board.cell(3);
        let there = other.cell(3);
        assert_eq!(there.look().call(), None);
        here.enter(21, 7);
        assert_eq!(there.look().call(), Some(21));
        here.leave();
        assert_eq!(there.look().call(), None);
    }
}
