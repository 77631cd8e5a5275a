//! Writing a file whole or not at all.
//!
//! What is written goes to a new file beside the old one, which rename(2) then replaces at once:
//! whoever looks sees all of the one or all of the other.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Gid, Mode, OFlags, Uid, fchown};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::target::{WriteTarget, folder_of, target};

/// Who may read a file that is made. One that is there keeps its mode and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever the umask lets.
    Everybody,
    /// Its owner: mode 600.
    Owner,
}

impl Access {
    const fn mode(self) -> u32 {
        match self {
            Self::Everybody => 0o666,
            Self::Owner => 0o600,
        }
    }
}

/// Writes a file that appears whole or not at all; until then an old one of that name stays.
///
/// Symbolic links are followed and stay. What is no file (`/dev/stdout`, a pipe) is written to
/// directly.
///
/// # Errors
/// When it cannot be written, or when `write` fails. Nothing is left behind then.
pub fn write_whole(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match target(path) {
        WriteTarget::File(path) => replace(&path, access, write),
        WriteTarget::Descriptor(1) => write_through(io::stdout().lock(), write),
        WriteTarget::Descriptor(2) => write_through(io::stderr().lock(), write),
        // Opened anew, it would begin at the start of a file that others write too.
        WriteTarget::Descriptor(_) => {
            write_through(OpenOptions::new().append(true).open(path)?, write)
        }
        WriteTarget::Special(path) => {
            write_through(OpenOptions::new().write(true).open(path)?, write)
        }
    }
}

fn write_through(
    to: impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    write(&mut to)?;
    to.flush()
}

static REPLACING: Mutex<()> = Mutex::new(());

/// While this is held no file is half written: who is about to end the program waits for it, and
/// leaves no temporary file.
pub fn hold_files() -> MutexGuard<'static, ()> {
    REPLACING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replace(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let _turn = hold_files();
    let temporary = create_beside(path, access)?;
    write_through(temporary.as_file(), write)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// An empty file in the folder of another, with the mode and the owner that the other has or is to
/// have. It goes when it is dropped.
///
/// # Errors
/// When the folder cannot be written to, when the other file is there and may not be written to,
/// and when its owner cannot be kept.
pub fn create_beside(path: &Path, access: Access) -> io::Result<NamedTempFile> {
    let Some(old) = old_file(path)? else { return temporary(folder_of(path), access) };
    let temporary = temporary(folder_of(path), Access::Owner)?;
    keep_owner(temporary.as_file(), &old)?;
    temporary.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    Ok(temporary)
}

/// What is there already, if this user may write to it.
fn old_file(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match OpenOptions::new().append(true).open(path) {
        Ok(old) => Ok(Some(old.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file without a name, or where the file system has none such, with one for a moment.
fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(made) => Ok(made.into()),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let _turn = hold_files();
            let (made, path) = temporary(folder, Access::Owner)?.into_parts();
            path.close()?;
            Ok(made)
        }
        Err(error) => Err(error.into()),
    }
}

/// A file of a name of its own. `tempfile` would add that name to an error, and nobody has named it.
fn temporary(folder: &Path, access: Access) -> io::Result<NamedTempFile> {
    let mut code = None;
    let mut builder = Builder::new();
    let made = builder.prefix(".tapstone-").make_in(folder, |path| {
        let mut options = OpenOptions::new();
        // Less the umask, as for any other file.
        options.read(true).write(true).create_new(true).mode(access.mode());
        options.open(path).inspect_err(|error| code = error.raw_os_error())
    });
    made.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))
}

/// Gives a new file the owner and the group of the old one.
fn keep_owner(new: &File, old: &fs::Metadata) -> io::Result<()> {
    let made = new.metadata()?;
    if (made.uid(), made.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    match fchown(new, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid()))) {
        Err(Errno::PERM) => {
            let what = "it belongs to somebody else, and only root could replace it";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
        }
        changed => Ok(changed?),
    }
}

/// Makes sure that the names of a file's folder are on the disk, not only the content of the file.
///
/// # Errors
/// When the system cannot.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Whether [`write_whole`] could write there now: better known before an hour of measuring.
/// Nothing is left behind, and nothing of an old file is changed.
///
/// # Errors
/// Why it could not.
pub fn check_writable(path: &Path) -> io::Result<()> {
    match target(path) {
        WriteTarget::File(path) => {
            // Without a name: a signal in this moment leaves nothing.
            let old = old_file(&path)?;
            let made = nameless(folder_of(&path))?;
            old.map_or(Ok(()), |old| keep_owner(&made, &old))
        }
        // A pipe is opened once, and not before there is something to say.
        WriteTarget::Descriptor(_) | WriteTarget::Special(_) => {
            let is_folder = fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
            if is_folder { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    fn write(path: &Path, access: Access, text: &str) -> io::Result<()> {
        write_whole(path, access, |to| to.write_all(text.as_bytes()))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        write(&path, Access::Everybody, "old").unwrap();
        let error = write_whole(&path, Access::Everybody, |to| {
            to.write_all(b"half of the")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), [PathBuf::from("record.json")]);
    }

    #[test]
    fn a_new_private_file_is_its_owners_and_an_old_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        write(&path, Access::Owner, "new").unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o646)).unwrap();
        write(&path, Access::Owner, "newer").unwrap();
        assert_eq!(mode(&path), 0o646);
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
    }

    #[test]
    fn the_owner_of_an_old_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("of-another");
        fs::write(&path, "old").unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(12345), Some(54321)).is_err() {
            return;
        }
        write(&path, Access::Everybody, "new").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12345, 54321));
    }

    #[test]
    fn links_stay_also_one_that_leads_nowhere_yet() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("latest");
        symlink("today", &link).unwrap();
        check_writable(&link).unwrap();
        for text in ["first", "second"] {
            write(&link, Access::Everybody, text).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new("today"));
            assert_eq!(fs::read_to_string(folder.path().join("today")).unwrap(), text);
        }
    }

    #[test]
    fn whether_a_file_can_be_written_is_told_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("new")).unwrap();
        assert!(names(folder.path()).is_empty());
        assert!(check_writable(folder.path()).is_err());
        let error = check_writable(&folder.path().join("no/such")).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        check_writable(Path::new("/dev/full")).unwrap();
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        let error = write(Path::new("/dev/full"), Access::Owner, "x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        write(Path::new("/dev/null"), Access::Owner, "x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
