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
const PLACE_BYTES: usize = 128;

/// The threads of a worker process that have a place: its own and the measuring ones.
pub const PLACES: usize = 1025;

/// The shared memory.
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
        ftruncate(&file, (PLACE_BYTES * PLACES) as u64)?;
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

    /// The place of one thread.
    #[must_use]
    pub fn place(self: &Arc<Self>, thread: usize) -> Place {
        assert!(thread < PLACES, "more threads than a board has places");
        Place { board: Arc::clone(self), offset: thread * PLACE_BYTES }
    }

    fn map(file: File) -> io::Result<Arc<Self>> {
        let map = MmapRaw::map_raw(&file)?;
        if map.len() < PLACE_BYTES * PLACES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the board is too short"));
        }
        Ok(Arc::new(Self { map, file }))
    }
}

/// Where one thread says what it is calling.
#[derive(Clone, Debug)]
pub struct Place {
    board: Arc<Board>,
    offset: usize,
}

/// No call is in flight.
const IDLE: u64 = 0xFF;

impl Place {
    /// Says that the call of this number, which is not 255, is entered as part of this operation.
    #[inline]
    pub fn enter(&self, call: u8, operation: u64) {
        self.cell().store(operation << 8 | u64::from(call), Relaxed);
    }

    /// Says that no call is in flight.
    #[inline]
    pub fn leave(&self) {
        self.cell().store(IDLE, Relaxed);
    }

    /// What the place says: two equal answers some time apart are one call that has not returned.
    #[must_use]
    pub fn look(&self) -> InFlight {
        InFlight(self.cell().load(Relaxed))
    }

    #[inline]
    fn cell(&self) -> &AtomicU64 {
        // SAFETY: the map holds PLACES places of PLACE_BYTES, checked when it was made, and
        // `offset` is one of them; it is aligned to 128 and lives as long as `board`. All access
        // from every process is atomic.
        unsafe { AtomicU64::from_ptr(self.board.map.as_mut_ptr().add(self.offset).cast()) }
    }
}

/// A call in flight with the operation that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(u64);

impl InFlight {
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
        let (here, there) = (board.place(3), other.place(3));
        assert_eq!(there.look().call(), None);
        here.enter(21, 7);
        assert_eq!(there.look().call(), Some(21));
        here.leave();
        assert_eq!(there.look().call(), None);
    }
}
