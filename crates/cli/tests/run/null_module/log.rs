//! The module's own account of what it did: `NULL_MODULE_LOG`.

use std::fs;
use std::path::{Path, PathBuf};

use tapstone_record::Window;

/// A signature that was done, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its end, on the clock that a record's window is on.
    pub(crate) end_ns: u64,
    pub(crate) code: u64,
}

/// All that the module noted, in all threads and processes.
pub(crate) struct Log(Vec<Noted>);

impl Log {
    /// Reads `log.<process>.<thread>`.
    pub(crate) fn read(directory: &Path) -> Self {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let is_log =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("log.");
        let bytes: Vec<u8> =
            files.filter(is_log).flat_map(|path| fs::read(path).unwrap()).collect();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let noted = |entry: &[u8]| Noted { end_ns: number(&entry[..8]), code: number(&entry[8..]) };
        Self(bytes.chunks_exact(16).map(noted).collect())
    }

    /// When each ended.
    pub(crate) fn ends_ns(&self) -> Vec<u64> {
        self.0.iter().map(|noted| noted.end_ns).collect()
    }

    /// What ended within a window.
    pub(crate) fn within(&self, window: Window) -> impl Iterator<Item = Noted> {
        let window = window.start_ns.0..window.end_ns.0;
        self.0.iter().copied().filter(move |noted| window.contains(&noted.end_ns))
    }
}
