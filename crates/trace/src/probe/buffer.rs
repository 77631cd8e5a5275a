//! The file that the probe writes its events to, as the tracer sees it.
//!
//! Programs map all of it at once and may only touch what has space on the disk: a page without
//! would end them with SIGBUS. A thread here gives the file more space ahead of them, and stops
//! where the limit or the disk is: what finds no space then is dropped, and counted.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use tapstone_measure::units::Nanos;

use super::Options;
use crate::clock::{Reading, Scale, Ticks};
use crate::losses::Losses;
use crate::wire::{
    CAPTURE_DATA, CHUNK_BYTES, CLOCK_NANOS, CLOCK_TSC, FIXES, HEADER_BYTES, Header, MAGIC, VERSION,
};

/// Chunks with space at the start: 16 MiB, some 200,000 calls.
const FIRST: u64 = 256;
/// How often the file is looked after. A program that writes at the probe's full speed fills 16 MiB
/// in 10 ms on one thread.
const PERIOD: Duration = Duration::from_millis(2);

/// How many bytes of events may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Default for Size {
    /// 2 GiB: some 25 million calls.
    fn default() -> Self {
        Self(2 << 30)
    }
}

/// What a fix came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Calls that it changed.
    pub changed: u64,
    /// Calls that it should have changed, and had no room for.
    pub refused: u64,
}

impl Applied {
    /// What came after an earlier look.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { changed: self.changed - before.changed, refused: self.refused - before.refused }
    }

    /// In two processes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { changed: self.changed + other.changed, refused: self.refused + other.refused }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Buffer {
    path: PathBuf,
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
    start: Reading,
}

#[derive(Debug)]
struct Shared {
    file: File,
    header: MmapRaw,
    stop: AtomicBool,
    /// errno of the disk, once it gave no more space.
    full: AtomicU64,
}

impl Shared {
    fn header(&self) -> &Header {
        // SAFETY: mapped, zeroed or written by `create`, and longer than a header. What others
        // change in it is atomic.
        unsafe { &*self.header.as_ptr().cast() }
    }
}

impl Buffer {
    pub(super) fn create(path: &Path, options: &Options) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let most = (options.size.0 / CHUNK_BYTES as u64).max(1);
        let first = FIRST.min(most);
        ftruncate(&file, HEADER_BYTES as u64 + most * CHUNK_BYTES as u64)?;
        fallocate(&file, FallocateFlags::empty(), 0, HEADER_BYTES as u64)?;
        make_room(&file, 0, first)?;
        let header = MmapOptions::new().len(HEADER_BYTES).map_raw(&file)?;
        let start = Reading::now();
        let ticks = Ticks::of_this_machine();
        // SAFETY: mapped, as long, and nobody else's yet.
        unsafe {
            let header = &mut *header.as_mut_ptr().cast::<Header>();
            (header.magic, header.version) = (MAGIC, VERSION);
            (header.clock, header.ticks_per_micro) = match ticks {
                Some(ticks) => (CLOCK_TSC, ticks.per_micro()),
                None => (CLOCK_NANOS, 1_000),
            };
            (header.most, header.ready) = (most, AtomicU64::new(first));
            header.options = if options.data { CAPTURE_DATA } else { 0 };
            header.on = u32::from(options.on).into();
            header.fix_count = options.fixes.len().min(FIXES) as u32;
            for (to, fix) in header.fixes.iter_mut().zip(&options.fixes) {
                fix.write(to);
            }
        }
        let (stop, full) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { file, header, stop, full });
        let keeper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || keep_ahead(&shared)
        });
        Ok(Self { path: path.to_owned(), shared, keeper: Some(keeper), start })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches fixes on or off, in every program that runs.
    pub fn switch(&self, on: bool) {
        self.shared.header().on.store(u32::from(on), Ordering::Release);
    }

    /// What each fix came to so far.
    #[must_use]
    pub fn applied(&self) -> Vec<Applied> {
        let header = self.shared.header();
        let fixes = header.fixes.iter().take(header.fix_count as usize);
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        fixes
            .map(|fix| Applied { changed: count(&fix.applied), refused: count(&fix.refused) })
            .collect()
    }

    /// How many processes the probe ran in.
    #[must_use]
    pub fn processes(&self) -> u64 {
        self.shared.header().processes.load(Ordering::Acquire)
    }

    /// What is missing so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let header = self.shared.header();
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        let errno = count(&self.shared.full);
        Losses {
            dropped: count(&header.dropped),
            interrupted: count(&header.interrupted),
            crowded: count(&header.crowded),
            out_of_reach: count(&header.out_of_reach),
            unwatched: count(&header.unwatched),
            limited: count(&header.limited),
            outdated: count(&header.outdated),
            disk: (errno != 0).then(|| io::Error::from_raw_os_error(errno as i32)),
        }
    }

    /// The events so far, and what turns their moments into nanoseconds.
    ///
    /// # Errors
    /// What mapping says.
    pub fn read(&self) -> io::Result<(File, Scale)> {
        let header = self.shared.header();
        let scale = Scale::between(self.start, Reading::now(), header.clock);
        Ok((self.shared.file.try_clone()?, scale))
    }

    /// Writes down which run the file is about, so that it can be read later.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sign(&self, scale: &Scale, started: Nanos, ended: Nanos) -> io::Result<()> {
        let [first, last] = scale.readings().map(Reading::both);
        let words = [first[0], first[1], last[0], last[1], started.0, ended.0];
        let at = offset_of!(Header, run);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.shared.file.write_all_at(&bytes, at as u64)
    }

    /// When it was made.
    #[must_use]
    pub fn started(&self) -> Nanos {
        self.start.nanos()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            // It has nothing to say.
            let _ = keeper.join();
        }
    }
}

/// Gives chunks space on the disk. Their first pages are written too: a program that is the first
/// to touch a page waits for the file system ten times as long.
fn make_room(file: &File, from: u64, count: u64) -> io::Result<()> {
    const PAGE: [u8; 4096] = [0; 4096];
    let at = |chunk: u64| HEADER_BYTES as u64 + chunk * CHUNK_BYTES as u64;
    fallocate(file, FallocateFlags::empty(), at(from), count * CHUNK_BYTES as u64)?;
    (from..from + count).try_for_each(|chunk| file.write_all_at(&PAGE, at(chunk)))
}

/// Doubles the space when half of it is in use.
fn keep_ahead(shared: &Shared) {
    let header = shared.header();
    while !shared.stop.load(Ordering::Acquire) {
        let (taken, ready) =
            (header.taken.load(Ordering::Acquire), header.ready.load(Ordering::Acquire));
        if taken * 2 > ready && ready < header.most {
            let more = ready.min(header.most - ready);
            match make_room(&shared.file, ready, more) {
                Ok(()) => header.ready.store(ready + more, Ordering::Release),
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO) as u64;
                    return shared.full.store(errno, Ordering::Release);
                }
            }
        }
        thread::park_timeout(PERIOD);
    }
}
