//! The files of all processes of this user: whose keys are in use, and whose are left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::owner::{Life, Owner};
use crate::{Entry, OwnKey, TokenName, belongs_to_user};

/// A file with thousands of keys.
const LONGEST_FILE: u64 = 1 << 20;

/// A file without a key is cleared when it is so old: its process was killed before the first.
const NO_LONGER_NEW: Duration = Duration::from_secs(60);

/// What this machine knows of the keys on a token.
#[derive(Default)]
pub struct KnownKeys {
    /// Of processes that are alive.
    pub alive: Vec<OwnKey>,
    /// Of processes that are dead. No other process clears them while this is held.
    pub dead: Vec<DeadJournal>,
    /// Files that were not read, and why.
    pub warnings: Vec<String>,
}

/// The file of a dead process, locked.
pub struct DeadJournal {
    /// As they were noted, in that order; some may never have been made.
    pub keys: Vec<OwnKey>,
    path: PathBuf,
    _locked: File,
}

impl DeadJournal {
    /// None of its keys is on the token any more.
    pub fn clear(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What is known of the keys on this token.
pub fn known_keys(folder: &Path, token: &TokenName) -> KnownKeys {
    let mut known = KnownKeys::default();
    let (entries, here) = match (open_folder(folder), Owner::this_process()) {
        (Ok(Some(entries)), Ok(here)) => (entries, here),
        (Ok(None), _) => return known,
        (Err(error), _) | (_, Err(error)) => {
            known.warnings.push(format!("{}: {error}", folder.display()));
            return known;
        }
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|it| it == "jsonl") {
            known.add_file(path, token, &here);
        }
    }
    known
}

impl KnownKeys {
    fn add_file(&mut self, path: PathBuf, token: &TokenName, here: &Owner) {
        let read = match read_entries(&path) {
            Ok(read) => read,
            // Its run has ended in this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.warnings.push(format!("{}: {error}", path.display())),
        };
        let EntriesOfFile { file, entries, damaged } = read;
        if damaged > 0 {
            self.warnings.push(format!("{}: {damaged} lines are damaged", path.display()));
        }
        let Some(first) = entries.first() else {
            if damaged == 0 && is_old(&file) && file.try_lock().is_ok() {
                let _ = fs::remove_file(path);
            }
            return;
        };
        let is_of_one = entries.iter().all(|it| it.owner == first.owner && it.token == first.token);
        if !first.token.is_same(token) {
            return;
        }
        if !is_of_one {
            return self.warnings.push(format!("{}: of several processes", path.display()));
        }
        let life = first.owner.life(here);
        let keys = entries.into_iter().map(|entry| entry.key);
        match life {
            Life::Alive => self.alive.extend(keys),
            Life::Unknown => {}
            // Who holds the lock lives, or removes these keys in this moment.
            Life::Dead if file.try_lock().is_err() => self.alive.extend(keys),
            Life::Dead => {
                self.dead.push(DeadJournal { keys: keys.collect(), path, _locked: file });
            }
        }
    }
}

/// `None`: nothing was ever noted.
fn open_folder(folder: &Path) -> io::Result<Option<fs::ReadDir>> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(metadata) => {
            belongs_to_user(&metadata)?;
            fs::read_dir(folder).map(Some)
        }
    }
}

struct EntriesOfFile {
    file: File,
    entries: Vec<Entry>,
    damaged: usize,
}

fn read_entries(path: &Path) -> io::Result<EntriesOfFile> {
    // Not through a symbolic link, and without waiting for the other end of a pipe.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(path)?;
    let metadata = file.metadata()?;
    belongs_to_user(&metadata)?;
    if !metadata.is_file() || metadata.len() > LONGEST_FILE {
        return Err(io::Error::other("it is no file, or too long"));
    }
    let mut text = Vec::new();
    (&file).take(LONGEST_FILE).read_to_end(&mut text)?;
    let mut entries = Vec::new();
    let mut damaged = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // Without an end it was cut off, and its key was not made.
        let Some((b'\n', line)) = line.split_last() else { continue };
        match serde_json::from_slice(line) {
            Ok(entry) => entries.push(entry),
            Err(_) => damaged += 1,
        }
    }
    Ok(EntriesOfFile { file, entries, damaged })
}

fn is_old(file: &File) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= NO_LONGER_NEW))
}
