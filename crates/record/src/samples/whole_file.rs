//! A file that grows and yet is whole at every moment, though its format ends with a footer.
//!
//! Parquet keeps its table of contents at the end: cut off before that, a file is lost. So each
//! piece of data is written together with a footer for all so far, and the next piece overwrites
//! that footer. Data and footer go out in one write, so the file is in between for as long as
//! one write takes, and when a write fails (a full disk), the last whole state is put back.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tapstone_files::sync_folder_of;

/// Such a file, under a temporary name.
pub(super) struct WholeFile {
    file: File,
    path: PathBuf,
    /// Where the data ends and the footer starts.
    end: u64,
    footer: Vec<u8>,
}

impl WholeFile {
    /// Starts an empty one. Refuses when an unfinished one is there.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // What a token was asked and when is its owner's.
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(partial(path))?;
        Ok(Self { file, path: path.into(), end: 0, footer: Vec::new() })
    }

    /// Adds data, with a footer for all data so far.
    pub(super) fn append(&mut self, data: Vec<u8>, footer: Vec<u8>) -> io::Result<()> {
        let length = data.len() as u64;
        let mut both = data;
        both.extend_from_slice(&footer);
        if let Err(error) = self.file.write_all_at(&both, self.end) {
            self.restore();
            return Err(error);
        }
        self.end += length;
        self.footer = footer;
        Ok(())
    }

    /// Gives the file its name, once all of it is on the disk.
    pub(super) fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(partial(&self.path), &self.path)?;
        sync_folder_of(&self.path)
    }

    /// Removes the unfinished file, so that nothing is left behind.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(partial(&self.path));
    }

    /// Puts back the state before a failed write. It fitted before, so it fits again.
    fn restore(&self) {
        let _ = self.file.set_len(self.end);
        let _ = self.file.write_all_at(&self.footer, self.end);
    }
}

/// The name of an unfinished file.
pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    name.into()
}
