//! What a path leads to, once its symbolic links are followed.

use std::fs;
use std::path::{Path, PathBuf};

/// Links that are followed, as the kernel does (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Where bytes that are written to a path end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// A regular file, there or yet to be made: it can be replaced by another.
    File(PathBuf),
    /// An open descriptor of this process (`/dev/stdout`, `/proc/self/fd/3`), whatever it is of.
    Descriptor(u32),
    /// A device, a pipe, a socket: it is written to as it is.
    Special(PathBuf),
}

/// Follows the symbolic links of a path, also one whose end does not exist yet.
#[must_use]
pub fn target(path: &Path) -> WriteTarget {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Some(number) = descriptor(&path) {
            return WriteTarget::Descriptor(number);
        }
        let Ok(next) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(next);
    }
    let is_special = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file());
    if is_special { WriteTarget::Special(path) } else { WriteTarget::File(path) }
}

/// The descriptor that a path names. A link in /proc/PID/fd is none to follow: what it leads to is
/// open already, and shared with whoever opened it (proc_pid_fd(5)).
fn descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(folder_of(path)).ok()?;
    let ours = fs::canonicalize("/proc/self").ok()?;
    (folder.starts_with(ours) && folder.ends_with("fd")).then_some(number)
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_a_file_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        symlink("second", inside("first")).unwrap();
        symlink(inside("file"), inside("second")).unwrap();
        assert_eq!(target(&inside("first")), WriteTarget::File(inside("file")));
        assert_eq!(target(&inside("file")), WriteTarget::File(inside("file")));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        symlink("b", inside("a")).unwrap();
        symlink("a", inside("b")).unwrap();
        assert!(matches!(target(&inside("a")), WriteTarget::File(_)));
    }

    #[test]
    fn descriptors_and_devices_are_no_files() {
        assert_eq!(target(Path::new("/dev/stdout")), WriteTarget::Descriptor(1));
        assert_eq!(target(Path::new("/dev/fd/2")), WriteTarget::Descriptor(2));
        assert_eq!(target(Path::new("/proc/thread-self/fd/2")), WriteTarget::Descriptor(2));
        assert_eq!(target(Path::new("/dev/null")), WriteTarget::Special("/dev/null".into()));
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("open")).unwrap();
        let number = file.as_raw_fd();
        let path = PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()));
        assert_eq!(target(&path), WriteTarget::Descriptor(number as u32));
    }
}
