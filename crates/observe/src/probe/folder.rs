//! Folders of temporary files that no death leaves for good.
//!
//! Programs find the probe and its file of events by their names, so these are no anonymous memory.
//! Whoever owns such a folder holds a lock on a file in it (flock(2)), which the kernel lifts when
//! the owner dies, however that comes about. The next run removes the folders without an owner.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use tempfile::TempDir;

const PREFIX: &str = "tapstone-probe-";
const LOCK: &str = "lock";

/// How old a folder without a lock is before its owner has died, not just begun.
const BEGUN: Duration = Duration::from_secs(60);

/// A folder that goes when this is dropped, or with the next run.
#[derive(Debug)]
pub(super) struct OwnedFolder {
    folder: TempDir,
    _lock: File,
}

impl OwnedFolder {
    /// Makes one in `place`, and removes those there whose owners are dead.
    pub(super) fn create_in(place: &Path) -> io::Result<Self> {
        remove_ownerless(place);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // Held before it has its name: a lock that is there and free is a dead owner's.
        let unnamed = folder.path().join("new");
        let lock = File::create(&unnamed).inspect_err(|_| {
            // Where no descriptor is left `TempDir` cannot look into it, and leaves it.
            let _ = fs::remove_dir(folder.path());
        })?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What cannot be removed stays: it is no reason not to trace.
fn remove_ownerless(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw());
        if is_ours && is_ownerless(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ownerless(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => age(folder).is_some_and(|age| age > BEGUN),
    }
}

fn age(folder: &Path) -> Option<Duration> {
    fs::metadata(folder).ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_owners_folder_goes_with_the_next_run_and_a_live_ones_stays() {
        let place = tempfile::tempdir().unwrap();
        let live = OwnedFolder::create_in(place.path()).unwrap();
        let OwnedFolder { folder, _lock } = OwnedFolder::create_in(place.path()).unwrap();
        let dead = folder.keep();
        drop(_lock);
        let just_begun = place.path().join(format!("{PREFIX}begun"));
        let foreign = place.path().join("tapstone-other");
        for folder in [&just_begun, &foreign] {
            fs::create_dir(folder).unwrap();
        }
        assert!(dead.exists());
        let next = OwnedFolder::create_in(place.path()).unwrap();
        assert!(!dead.exists());
        for folder in [live.path(), next.path(), &just_begun, &foreign] {
            assert!(folder.exists(), "{}", folder.display());
        }
    }

    #[test]
    fn many_that_begin_at_once_keep_their_folders() {
        let place = tempfile::tempdir().unwrap();
        let begin = || {
            for _ in 0..500 {
                let owned = OwnedFolder::create_in(place.path()).unwrap();
                fs::write(owned.path().join("probe"), "").unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(begin);
            }
        });
    }
}
