//! What this machine has made on tokens and not yet removed, in files that outlive every process: a
//! worker notes each key before it is on the token, so that a later run knows it when controller
//! and worker were killed together.
//!
//! Each worker has a file of its own, which it holds locked (flock(2)) while it lives: nobody
//! waits for anybody. A line is one key, in JSON, and is on the disk (fsync(2)) before the key is
//! made. Nothing here is secret, but the files decide what is destroyed: those that others could
//! have written are not read.

mod dead;
mod owner;

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::dead::{DeadJournal, KnownKeys, known_keys};
use self::owner::Owner;

/// Where the files are, below the folder for what a user's programs keep (XDG Base Directory
/// Specification).
const FOLDER: &str = "tapstone/keys-on-tokens";

/// How a key that a run made is found on its token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnKey {
    /// CKA_LABEL: the name of the run that made it.
    pub label: String,
    /// CKA_ID in hexadecimal.
    pub id: String,
}

/// Which token a key is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenName {
    /// CK_TOKEN_INFO's serialNumber.
    pub serial: String,
    /// CK_TOKEN_INFO's label.
    pub label: String,
}

impl TokenName {
    /// By its serial number, which a token keeps when it is initialised anew; by its label only
    /// where it has none.
    fn is_same(&self, other: &Self) -> bool {
        self.serial == other.serial && (!self.serial.is_empty() || self.label == other.label)
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    token: TokenName,
    key: OwnKey,
    owner: Owner,
}

/// The keys of this process on its token.
pub struct KeyJournal {
    folder: Option<PathBuf>,
    token: TokenName,
    file: Option<(File, PathBuf)>,
    noted: Vec<OwnKey>,
}

impl KeyJournal {
    /// Without a key. There is no file before [`KeyJournal::note`].
    pub fn new(folder: Option<PathBuf>, token: TokenName) -> Self {
        Self { folder, token, file: None, noted: Vec::new() }
    }

    /// Notes a key that is about to be made. When this returns without an error it is on the disk.
    ///
    /// # Errors
    /// The file cannot be made or written: then the key must not be made either.
    pub fn note(&mut self, key: OwnKey) -> Result<(), String> {
        if self.noted.contains(&key) {
            return Ok(());
        }
        let folder = self.folder.as_ref();
        let folder = folder.ok_or("neither XDG_STATE_HOME nor HOME is an absolute path")?;
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        let owner = Owner::this_process().map_err(failed)?;
        let file = match &mut self.file {
            Some((file, _)) => file,
            None => &mut self.file.insert(create(folder, &owner).map_err(failed)?).0,
        };
        let entry = Entry { token: self.token.clone(), key: key.clone(), owner };
        let mut line = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
        line.push('\n');
        // In one piece: what a crash cut off has no end of line, and its key was not made.
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        self.noted.push(key);
        Ok(())
    }

    /// All keys are gone from the token.
    pub fn forget_all(&mut self) {
        self.noted.clear();
        if let Some((_, path)) = self.file.take() {
            // What stays names keys that are not there: the next run clears it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The folder of this user's files; `None` when the user has no such folder.
pub fn users_folder() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join(FOLDER))
}

/// A new file that only this user can read, locked while this process lives.
fn create(folder: &Path, owner: &Owner) -> io::Result<(File, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    belongs_to_user(&fs::symlink_metadata(folder)?)?;
    let mut number = 0;
    loop {
        let path = folder.join(format!("{}-{number}.jsonl", owner.as_file_name()));
        // Never through a symbolic link, never into a file that is there.
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                // Where a file system has no locks the owner's number and start have to do.
                let _ = file.try_lock();
                File::open(folder)?.sync_all()?;
                return Ok((file, path));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Nobody else can have written there.
fn belongs_to_user(metadata: &fs::Metadata) -> io::Result<()> {
    let is_link = metadata.file_type().is_symlink();
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_link || !is_ours || metadata.mode() & 0o022 != 0 {
        let text = "it is a link, belongs to somebody else, or others may write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
