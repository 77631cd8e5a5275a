//! The probe from outside: its library on disk, the file it writes to, and what it is to change.

mod buffer;
mod fix;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use tempfile::TempDir;
use thiserror::Error;

pub use self::buffer::{Applied, Buffer, Size};
pub use self::fix::{Fix, FixError};
use crate::wire;

#[cfg(probe)]
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.so"));

/// How the probe is to behave.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What it changes.
    pub fixes: Vec<Fix>,
    /// Whether fixes act from the start.
    pub on: bool,
    /// Whether the data of commands is kept. Never that of commands which carry secrets.
    pub data: bool,
    /// How much may be written.
    pub size: Size,
}

/// The probe, ready for programs to load. Its files go when this is dropped.
#[derive(Debug)]
pub struct Probe {
    library: PathBuf,
    buffer: Buffer,
    _folder: TempDir,
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
    /// The files cannot be made.
    #[error(
        "{}: {why}\nhint: the events of a trace go to the folder of temporary files; set TMPDIR to \
         one with room", path.display()
    )]
    Files {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
}

impl Probe {
    /// Puts the library and an empty file of events into a folder of temporary files.
    ///
    /// # Errors
    /// On another platform, and when the files cannot be written.
    pub fn new(options: &Options) -> Result<Self, ProbeError> {
        let folder = tempfile::Builder::new().prefix("tapstone-").tempdir();
        let folder = folder.map_err(|why| ProbeError::Files { path: std::env::temp_dir(), why })?;
        let library = folder.path().join("probe.so");
        write_library(&library)?;
        let events = folder.path().join("events");
        let buffer = Buffer::create(&events, options)
            .map_err(|why| ProbeError::Files { path: events, why })?;
        Ok(Self { library, buffer, _folder: folder })
    }

    /// What a program's environment needs. LD_AUDIT may name other auditors already.
    #[must_use]
    pub fn environment(&self) -> [(OsString, OsString); 2] {
        let mut audit = self.library.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_AUDIT").filter(|value| !value.is_empty()) {
            audit.push(":");
            audit.push(others);
        }
        [
            (OsString::from("LD_AUDIT"), audit),
            (OsString::from(wire::VARIABLE), self.buffer.path().as_os_str().to_owned()),
        ]
    }

    /// What programs have written.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

#[cfg(probe)]
fn write_library(path: &std::path::Path) -> Result<(), ProbeError> {
    fs::write(path, LIBRARY).map_err(|why| ProbeError::Files { path: path.to_owned(), why })
}

#[cfg(not(probe))]
fn write_library(_path: &std::path::Path) -> Result<(), ProbeError> {
    Err(ProbeError::Platform)
}
