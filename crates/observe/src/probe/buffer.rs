//! The file that the probe writes its events to, as the tracer sees it.
//!
//! Programs map all of it at once and may only touch what has space on the disk: a page without
//! would end them with SIGBUS. Whoever waits for them gives the file more space ahead of them, and
//! stops where the limit or the disk is: what finds no space then is dropped, and counted. Space for
//! a program that does little is made at once, for others once they show what they need; a program
//! that is faster than that makes its own, chunk by chunk, as far as it was granted. (A daemon
//! between two runs has to do with that.)
//!
//! There is no thread for that. One that begins just before a program changes on which processor
//! the scheduler puts the program: that cost pkcs11-tool on a virtual card 3 % of its time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate, fstatfs, ftruncate};
use rustix::io::retry_on_intr;
use tapstone_measure::units::Nanos;

use super::fix::write_fix;
use super::options::ProbeOptions;
use crate::clock::{ClockReading, Scale, Ticks};
use crate::recording::{EventsError, Recording};
use crate::wire::{
    CAPTURE_CALLERS, CAPTURE_DATA, CHUNK_BYTES, CLOCK_NANOS, CLOCK_TSC, FIXES, HEADER_BYTES,
    Header, KEEP_LAST, MAGIC, NO_SPACE, NO_WAY, VERSION,
};
use tapstone_events::{Losses, ObservedRun};

/// Chunks with space at the start: 256 KiB, some 3,000 calls. Each takes 8 µs to make, and 4 µs to
/// give back.
const FIRST: u64 = 4;
/// Later so many for each in use have space.
const FOR_EACH: u64 = 4;
/// Chunks that programs may take ahead of those in use: 16 MiB, some 200,000 calls.
const AHEAD: u64 = 256;
/// Chunks that are given space at a time: programs may go on with those that have it.
const STEP: u64 = 64;
/// One chunk of so many is kept for sums of calls and for what else happens once calls are no
/// longer listed.
const TOTALS_PART: u64 = 8;
/// How often the file is looked after. A program that writes at the probe's full speed fills 16 MiB
/// in 10 ms on one thread; on a small machine each look takes time from it.
pub(super) const PERIOD: Duration = Duration::from_millis(4);

/// What a fix came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Calls that it changed.
    pub changed: u64,
    /// Calls that it should have changed, and could not: there was no room, or what is tied to it would be lost.
    pub refused: u64,
}

impl Applied {
    /// What came after an earlier look.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { changed: self.changed - before.changed, refused: self.refused - before.refused }
    }

    /// The sum of what fixes did in two processes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { changed: self.changed + other.changed, refused: self.refused + other.refused }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Buffer {
    path: PathBuf,
    file: File,
    header: MmapRaw,
    /// errno of the disk, once it gave no more space.
    full: OnceLock<i32>,
    start: ClockReading,
}

impl Buffer {
    /// `start` was read a while ago: the longer, the better is it known how fast the counter runs.
    pub(super) fn create(
        path: &Path,
        options: &ProbeOptions,
        start: ClockReading,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let most = (options.size.0 / CHUNK_BYTES as u64).max(1);
        let granted = AHEAD.min(most);
        ftruncate(&file, HEADER_BYTES as u64 + most * CHUNK_BYTES as u64)?;
        fallocate(&file, FallocateFlags::empty(), 0, HEADER_BYTES as u64)?;
        let header = MmapOptions::new().len(HEADER_BYTES).map_raw(&file)?;
        let refused = if threads_give_space(&file, &header) { 0 } else { NO_WAY };
        let first = if refused == 0 { FIRST.min(most) } else { granted };
        make_room(&file, 0, first)?;
        touch(&file, first)?;
        let ticks = Ticks::since(start);
        // SAFETY: mapped, as long, and nobody else's yet.
        unsafe {
            let header = &mut *header.as_mut_ptr().cast::<Header>();
            header.magic = MAGIC;
            header.version = VERSION;
            (header.clock, header.ticks_per_micro) = match ticks {
                Some(ticks) => (CLOCK_TSC, ticks.per_micro()),
                None => (CLOCK_NANOS, 1_000),
            };
            header.most = most;
            let listed = options.listed.map_or(most, |it| it.0 / CHUNK_BYTES as u64);
            header.listing = (most - most.div_ceil(TOTALS_PART)).min(listed).max(1);
            header.ready = AtomicU64::new(first);
            header.granted = AtomicU64::new(granted);
            header.refused = AtomicU64::new(refused);
            header.options = if options.data { CAPTURE_DATA } else { 0 }
                | if options.callers { CAPTURE_CALLERS } else { 0 }
                | if options.listed.is_none() { KEEP_LAST } else { 0 };
            header.key = random_key()?;
            header.on = u32::from(options.on).into();
            header.fix_count = options.fixes.len().min(FIXES) as u32;
            for (to, fix) in header.fixes.iter_mut().zip(&options.fixes) {
                write_fix(fix, to);
            }
        }
        Ok(Self { path: path.to_owned(), file, header, full: OnceLock::new(), start })
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped, zeroed or written by `create`, and longer than a header. What others
        // change in it is atomic.
        unsafe { &*self.header.as_ptr().cast() }
    }

    /// Grants twice the space in use, in whole steps, and [`AHEAD`] more; and makes as much of it as
    /// programs have shown that they need. To be called every [`PERIOD`] while programs run.
    pub(crate) fn keep_ahead(&self) {
        let header = self.header();
        let taken = header.taken.load(Ordering::Acquire);
        // Calls take no more than they are listed in.
        let twice = (2 * (taken / STEP * STEP)).min(taken.max(header.listing));
        let granted = (twice + AHEAD).min(header.most);
        header.granted.store(granted, Ordering::Release);
        let shown = FOR_EACH * taken;
        let give_space = header.refused.load(Ordering::Acquire) == 0;
        let needed = if give_space { granted.min(shown) } else { granted };
        let mut ready = header.ready.load(Ordering::Acquire);
        while ready < needed && self.full.get().is_none() {
            let more = STEP.min(needed - ready);
            match make_room(&self.file, ready, more) {
                Ok(()) => ready += more,
                Err(error) => {
                    self.full.get_or_init(|| error.raw_os_error().unwrap_or(libc::EIO));
                    // What is left of the disk is for others.
                    header.refused.store(NO_SPACE, Ordering::Release);
                }
            }
            header.ready.store(ready, Ordering::Release);
        }
    }

    /// The path of the shared file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches fixes on or off, in every program that runs.
    pub fn switch(&self, on: bool) {
        self.header().on.store(u32::from(on), Ordering::Release);
    }

    /// The run is over: what processes that go on do from now on is in no sum.
    pub(crate) fn close(&self) {
        self.header().over.store(1, Ordering::Release);
    }

    /// What each fix came to so far.
    #[must_use]
    pub fn applied(&self) -> Vec<Applied> {
        let header = self.header();
        let fixes = header.fixes.iter().take(header.fix_count as usize);
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        fixes
            .map(|fix| Applied { changed: count(&fix.applied), refused: count(&fix.refused) })
            .collect()
    }

    /// How many processes the probe ran in.
    #[must_use]
    pub fn processes(&self) -> u64 {
        self.header().processes.load(Ordering::Acquire)
    }

    /// Whether calls are counted by now, and no longer listed.
    #[must_use]
    pub fn is_summing(&self) -> bool {
        self.header().summed_from.load(Ordering::Acquire) != 0
    }

    /// What is missing so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let header = self.header();
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        Losses {
            dropped: count(&header.dropped),
            interrupted: count(&header.interrupted),
            crowded: count(&header.crowded),
            out_of_reach: count(&header.out_of_reach),
            unwatched: count(&header.unwatched),
            limited: count(&header.limited),
            outdated: count(&header.outdated),
            full: count(&header.granted) >= header.most,
            disk: self.disk_error(),
            ..Losses::default()
        }
    }

    /// What the disk said when it gave no more space, to this process or to a program.
    fn disk_error(&self) -> Option<io::Error> {
        let header = self.header();
        let is_full = header.refused.load(Ordering::Acquire) == NO_SPACE;
        let errno = self.full.get().copied().or(is_full.then_some(libc::ENOSPC));
        errno.map(io::Error::from_raw_os_error)
    }

    /// The file as it is now, and what turns its moments into nanoseconds.
    ///
    /// # Errors
    /// When the file cannot be opened once more.
    pub(crate) fn file(&self) -> io::Result<(File, Scale)> {
        let scale = Scale::between(self.start, ClockReading::now(), self.header().clock);
        Ok((self.file.try_clone()?, scale))
    }

    /// The events so far, as those of a run.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn record(&self, run: ObservedRun) -> Result<Recording, EventsError> {
        let (file, scale) = self.file()?;
        Recording::new(file, scale, run)
    }

    /// Writes down which run the file is about, so that it can be read later.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sign(
        &self,
        scale: &Scale,
        started: Nanos,
        ended: Nanos,
        processor: Nanos,
    ) -> io::Result<()> {
        let [first, last] = scale.readings().map(ClockReading::both);
        let words = [first[0], first[1], last[0], last[1], started.0, ended.0, processor.0];
        // Whoever reads the file later cannot try values on its digests.
        self.file.write_all_at(&[0; 16], offset_of!(Header, key) as u64)?;
        let at = offset_of!(Header, run);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file.write_all_at(&bytes, at as u64)
    }

    /// When it was made.
    #[must_use]
    pub fn started(&self) -> Nanos {
        self.start.nanos()
    }
}

/// A key that nobody can guess (random(4)).
fn random_key() -> io::Result<[u64; 2]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let [first, second] = [0, 8].map(|at| &bytes[at..at + 8]);
    Ok([first, second].map(|half| u64::from_ne_bytes(half.try_into().expect("eight bytes"))))
}

/// Whether a thread that makes a page of the file has space for it from then on: the kernel has to
/// know how (Linux 5.14), and the file system to keep it. One that writes elsewhere each time
/// (btrfs), or asks for space only when it writes (NFS), does not.
fn threads_give_space(file: &File, header: &MmapRaw) -> bool {
    /// statfs(2).
    const TMPFS: u64 = 0x0102_1994;
    const EXT4: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    let keeps_it = fstatfs(file).is_ok_and(|of| [TMPFS, EXT4, XFS].contains(&(of.f_type as u64)));
    keeps_it && header.advise(Advice::PopulateWrite).is_ok()
}

/// Gives chunks space on the disk. What is in them stays.
fn make_room(file: &File, from: u64, count: u64) -> io::Result<()> {
    let bytes = count * CHUNK_BYTES as u64;
    // Signals interrupt it on some file systems.
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), place_of(from), bytes))
        .map_err(io::Error::from)
}

/// Writes the first pages of the first chunks, which nobody has yet: a program that is the first to
/// touch a page of a file on a disk waits for the file system ten times as long.
fn touch(file: &File, count: u64) -> io::Result<()> {
    const PAGE: [u8; 4096] = [0; 4096];
    (0..count).try_for_each(|chunk| file.write_all_at(&PAGE, place_of(chunk)))
}

/// Where a chunk begins in the file.
fn place_of(chunk: u64) -> u64 {
    HEADER_BYTES as u64 + chunk * CHUNK_BYTES as u64
}
