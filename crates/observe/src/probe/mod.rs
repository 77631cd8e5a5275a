//! The probe from outside: its library on disk, the file it writes to, and what it is to change.

mod buffer;
mod fix;
mod folder;
mod options;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::statvfs;
use thiserror::Error;

pub use self::buffer::{Applied, Buffer};
use self::folder::OwnedFolder;
pub use self::options::{EventBytes, ProbeOptions};
use crate::clock::ClockReading;
use crate::wire;
use tapstone_command::observation::Observation;
use tapstone_events::PROBE_FILE;

#[cfg(probe)]
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.so"));

/// The probe, ready for programs to load. Its files go when this is dropped, or with the next run.
#[derive(Debug)]
pub struct Probe {
    library: PathBuf,
    buffer: Buffer,
    /// Of the library, and of the file of events.
    folders: Vec<OwnedFolder>,
}

/// Why a program cannot be watched.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// Not Linux on x86-64 with glibc.
    #[error(
        "the probe runs on Linux with glibc on x86-64, and this is another platform\n\
         hint: trace there; records can be shown and compared here"
    )]
    Platform,
    /// More than the probe has room for.
    #[error(
        "{0} fixes were given, and at most {most} can be on at once\n\
         hint: leave some out, or try them one after the other", most = wire::FIXES
    )]
    TooManyFixes(usize),
    /// The files cannot be made.
    #[error(
        "{}: {why}\nhint: the events of a trace go to the folder of temporary files; set TMPDIR to \
         one with room", path.display()
    )]
    Files {
        /// The path of the file that could not be used.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
}

impl Probe {
    /// Puts the library into a folder of temporary files, and an empty file of events into memory
    /// or beside it.
    ///
    /// # Errors
    /// On another platform, with too many fixes, and when the files cannot be written.
    pub fn new(options: &ProbeOptions) -> Result<Self, ProbeError> {
        if options.fixes.len() > wire::FIXES {
            return Err(ProbeError::TooManyFixes(options.fixes.len()));
        }
        let start = ClockReading::now();
        let folder = folder_in(&folder_of_library(std::env::temp_dir()))?;
        let library = folder.path().join(PROBE_FILE);
        write_library(&library)?;
        let place = folder_in(&folder_of_events(options.size))?;
        let events = place.path().join("events");
        let buffer = Buffer::create(&events, options, start)
            .map_err(|why| ProbeError::Files { path: events, why })?;
        Ok(Self { library, buffer, folders: vec![folder, place] })
    }

    /// Its library on disk.
    pub(crate) fn library(&self) -> &Path {
        &self.library
    }

    /// Takes its files away from programs that begin from now on. What was written can be read as
    /// before, and whatever comes over the reader leaves nothing behind.
    pub(crate) fn remove_files(&mut self) {
        self.folders.clear();
    }

    /// What programs have written.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl Observation for Probe {
    /// What the dynamic linker and the probe need. LD_AUDIT may name other auditors already.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut audit = self.library.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_AUDIT").filter(|value| !value.is_empty()) {
            audit.push(":");
            audit.push(others);
        }
        vec![
            (OsString::from("LD_AUDIT"), audit),
            (OsString::from(wire::VARIABLE), self.buffer.path().as_os_str().to_owned()),
        ]
    }

    fn period(&self) -> Duration {
        buffer::PERIOD
    }

    /// Gives the file of events the space that it needs.
    fn look_after(&self) {
        self.buffer.keep_ahead();
    }
}

fn folder_in(path: &Path) -> Result<OwnedFolder, ProbeError> {
    OwnedFolder::create_in(path).map_err(|why| ProbeError::Files { path: path.to_owned(), why })
}

/// Where the library goes: LD_AUDIT sets names apart by colons, and knows no way to write one
/// (ld.so(8)).
fn folder_of_library(temporary: PathBuf) -> PathBuf {
    if temporary.as_os_str().as_bytes().contains(&b':') { "/tmp".into() } else { temporary }
}

/// Where events go: into memory where there is plenty of it, because a new page of a file on a disk
/// costs the program more than all the events on it. Whoever sets TMPDIR has decided.
fn folder_of_events(size: EventBytes) -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    let fits = |room: u64| room / 2 >= size.0;
    let in_files = statvfs(MEMORY).is_ok_and(|of| fits(of.f_bavail.saturating_mul(of.f_frsize)));
    let is_free = std::env::var_os("TMPDIR").is_none() && in_files && available().is_some_and(fits);
    if is_free { PathBuf::from(MEMORY) } else { std::env::temp_dir() }
}

/// Bytes of memory that programs may still take, as the kernel estimates them (proc(5)).
fn available() -> Option<u64> {
    let all = fs::read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(probe)]
fn write_library(path: &Path) -> Result<(), ProbeError> {
    fs::write(path, LIBRARY).map_err(|why| ProbeError::Files { path: path.to_owned(), why })
}

#[cfg(not(probe))]
fn write_library(_path: &Path) -> Result<(), ProbeError> {
    Err(ProbeError::Platform)
}

#[cfg(all(test, probe))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Where the memory for what was seen is not there, this program ends at once.
    #[test]
    fn what_was_written_outlives_the_files() {
        let options = ProbeOptions {
            fixes: Vec::new(),
            on: true,
            data: false,
            callers: false,
            size: EventBytes(4 << 20),
            listed: None,
        };
        let mut probe = Probe::new(&options).unwrap();
        let files = [probe.library().to_owned(), probe.buffer().path().to_owned()];
        assert!(files.iter().all(|file| file.exists()));
        probe.remove_files();
        for file in &files {
            assert!(!file.parent().unwrap().exists(), "{}", file.display());
        }
        let (events, _) = probe.buffer().file().unwrap();
        let mut magic = [0; 8];
        events.read_exact_at(&mut magic, 0).unwrap();
        assert_ne!(magic, [0; 8]);
    }
}
