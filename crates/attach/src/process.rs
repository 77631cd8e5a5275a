//! Processes as /proc shows them: what they have mapped, and where the files are.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A part of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// Device and inode; 0 for memory without a file.
    pub(crate) inode: u64,
    /// As the process sees it; `[heap]` and the like for memory without a file.
    pub(crate) name: String,
}

impl Mapping {
    pub(crate) fn has_file(&self) -> bool {
        self.inode != 0 && self.name.starts_with('/')
    }

    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The file's name, for people.
    pub(crate) fn file_name(&self) -> String {
        file_name(&self.name)
    }
}

/// The last part of a path as /proc shows it.
pub(crate) fn file_name(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// What a process has mapped, by address.
pub(crate) fn mappings(process: u32) -> io::Result<Vec<Mapping>> {
    let content = fs::read(format!("/proc/{process}/maps"))?;
    let content = String::from_utf8_lossy(&content);
    Ok(content.lines().filter_map(parse_mapping).collect())
}

/// `start-end rwxp offset device inode  name` (proc_pid_maps(5)).
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    let offset = words.next()?;
    let _device = words.next()?;
    let inode = words.next()?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        is_readable: rights.first() == Some(&b'r'),
        is_writable: rights.get(1) == Some(&b'w'),
        is_executable: rights.get(2) == Some(&b'x'),
        offset: hex(offset)?,
        inode: inode.parse().ok()?,
        name: words.next().unwrap_or_default().trim_start().to_owned(),
    })
}

/// A path by which this process reaches a file that another has mapped: its own path, where that is
/// the same file here; else through the other's root; else the mapping itself, which is also there
/// for a file that is deleted.
pub(crate) fn reachable_path(process: u32, mapping: &Mapping) -> Option<PathBuf> {
    let is_it =
        |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.ino() == mapping.inode);
    let name = Path::new(&mapping.name);
    let through_root = || {
        let mut path = PathBuf::from(format!("/proc/{process}/root"));
        path.push(name.strip_prefix("/").ok()?);
        Some(path)
    };
    let itself = || {
        PathBuf::from(format!("/proc/{process}/map_files/{:x}-{:x}", mapping.start, mapping.end))
    };
    [Some(name.to_owned()), through_root(), Some(itself())]
        .into_iter()
        .flatten()
        .find(|it| is_it(it))
}

/// The program that a process runs, as a path; empty when that is not known.
pub(crate) fn program(process: u32) -> String {
    let path = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}

/// The one that started it; 0 when that is not known.
pub(crate) fn parent(process: u32) -> u32 {
    status_field(process, "PPid:").unwrap_or(0)
}

/// Its user, as a number.
pub(crate) fn user(process: u32) -> Option<u32> {
    status_field(process, "Uid:")
}

fn status_field(process: u32, field: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Whether it is there and runs: one that has ended and waits for its parent does not.
pub(crate) fn is_alive(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name is in brackets and may hold anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// All processes that this one may see.
pub(crate) fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The memory of a process, by its addresses there.
pub(crate) struct Memory(File);

impl Memory {
    pub(crate) fn open(process: u32) -> io::Result<Self> {
        File::open(format!("/proc/{process}/mem")).map(Self)
    }

    /// As much of it as can be read.
    pub(crate) fn read(&self, from: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], from + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => done += bytes,
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_this_process_has_mapped() {
        let this = std::process::id();
        let here = mappings as fn(_) -> _ as usize as u64;
        let all = mappings(this).unwrap();
        let mapping = all.iter().find(|it| it.holds(here)).unwrap();
        assert!(mapping.is_executable && mapping.has_file(), "{mapping:?}");
        assert_eq!(Some(PathBuf::from(&mapping.name)), std::env::current_exe().ok());
        assert_eq!(reachable_path(this, mapping), Some(PathBuf::from(&mapping.name)));
        assert!(is_alive(this) && all.len() > 3);
    }

    #[test]
    fn a_name_may_have_spaces() {
        let line = "7f0-7ff r-xp 00001000 fe:00 42                 /a b/c.so (deleted)";
        let mapping = parse_mapping(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f0, 0x7ff, 0x1000));
        assert_eq!(mapping.file_name(), "c.so");
        assert!(parse_mapping("").is_none() && parse_mapping("7f0").is_none());
    }
}
