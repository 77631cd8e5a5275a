//! Why a program could not be watched, in words, and what to do about it.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

/// The first bytes of a file that are looked at.
const HEAD: usize = 2;
/// Interpreters of interpreters end somewhere (execve(2)).
const SCRIPTS: usize = 4;

/// What keeps the probe out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blind {
    /// It has no dynamic linker.
    Static(PathBuf),
    /// The dynamic linker drops the probe for the sake of whoever's rights it has.
    Setuid(PathBuf),
    /// It is not for x86-64.
    OtherMachine(PathBuf),
    /// Its dynamic linker is not glibc's.
    OtherLinker(PathBuf, PathBuf),
    /// It has too little address space.
    Limited(PathBuf),
    /// Its C library is too old.
    Outdated(PathBuf),
    /// All seems well, but the probe did not run.
    Unknown(PathBuf),
}

impl Blind {
    /// The same where system calls are observed already: that is no advice then.
    #[must_use]
    pub fn beside_system_calls(&self) -> String {
        format!("{}\nhint: {}", self.why(), self.advice())
    }

    fn why(&self) -> String {
        match self {
            Self::Static(path) => format!(
                "{} is linked statically: there is no dynamic linker that could show its calls",
                path.display()
            ),
            Self::Setuid(path) => format!(
                "{} has the setuid or setgid bit: the dynamic linker lets nobody watch it",
                path.display()
            ),
            Self::OtherMachine(path) => format!(
                "{} is not a program for x86-64: the probe cannot be loaded into it",
                path.display()
            ),
            Self::OtherLinker(path, linker) => format!(
                "{} uses the dynamic linker {}, which does not know auditors",
                path.display(),
                linker.display()
            ),
            Self::Limited(path) => format!(
                "{} may use too little address space (RLIMIT_AS, ulimit -v) for the probe beside it",
                path.display()
            ),
            Self::Outdated(path) => format!(
                "the glibc of {} does not ask auditors about all symbols: it is older than 2.35",
                path.display()
            ),
            Self::Unknown(path) => format!(
                "the probe did not run in {}: a sandbox may keep it from files of {}, or it runs \
                 as another user",
                path.display(),
                std::env::temp_dir().display()
            ),
        }
    }

    fn advice(&self) -> String {
        let advice = match self {
            Self::Static(_) => "for calls of libraries, build it dynamically",
            Self::Setuid(path) => {
                let path = path.display();
                return format!(
                    "trace a copy without that bit: cp {path} /tmp/copy && tapstone trace -- \
                     /tmp/copy …"
                );
            }
            Self::OtherMachine(_) => "trace a build of it for x86-64",
            Self::OtherLinker(..) => "trace a build of it for glibc 2.35 or later",
            Self::Limited(_) => "ulimit -v unlimited, or at least 40000",
            Self::Outdated(_) => "trace on a newer system",
            Self::Unknown(_) => "trace it outside, as the user that it runs as",
        };
        advice.to_owned()
    }

    /// Whether `--syscalls` would show more.
    const fn has_system_calls(&self) -> bool {
        matches!(self, Self::Static(_) | Self::Outdated(_) | Self::Unknown(_))
    }
}

impl fmt::Display for Blind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.beside_system_calls())?;
        if self.has_system_calls() {
            f.write_str("; tapstone trace --syscalls needs no probe")?;
        }
        Ok(())
    }
}

/// What would keep the probe out of a program, as far as its file tells.
#[must_use]
pub fn reason(program: &Path) -> Option<Blind> {
    let mut path = program.to_owned();
    for _ in 0..SCRIPTS {
        let metadata = fs::metadata(&path).ok()?;
        const SETUID_OR_SETGID: u32 = 0o6000;
        if metadata.mode() & SETUID_OR_SETGID != 0 {
            return Some(Blind::Setuid(path));
        }
        let content = fs::read(&path).ok()?;
        match content.get(..HEAD)? {
            b"#!" => path = interpreter(&content)?,
            _ => return linker(&path, &content),
        }
    }
    None
}

/// The program that runs a script (execve(2), "Interpreter scripts").
fn interpreter(script: &[u8]) -> Option<PathBuf> {
    let line = script.get(HEAD..)?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    Some(PathBuf::from(OsStr::from_bytes(words.next()?)))
}

fn linker(path: &Path, content: &[u8]) -> Option<Blind> {
    let other = || Some(Blind::OtherMachine(path.to_owned()));
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(content) else { return other() };
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return other();
    }
    let segments = header.program_headers(endian, content).ok()?;
    let interpreter =
        segments.iter().find_map(|segment| segment.interpreter(endian, content).ok().flatten());
    match interpreter {
        None => Some(Blind::Static(path.to_owned())),
        Some(linker) if !linker.ends_with(b"/ld-linux-x86-64.so.2") => {
            let linker = PathBuf::from(OsStr::from_bytes(linker));
            Some(Blind::OtherLinker(path.to_owned(), linker))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_programs_apart_by_their_files() {
        assert_eq!(reason(Path::new("/bin/sh")), None);
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        assert_eq!(reason(&script), None);
        let other = folder.path().join("other");
        fs::write(&other, "no program").unwrap();
        assert_eq!(reason(&other), Some(Blind::OtherMachine(other.clone())));
        assert_eq!(reason(&folder.path().join("missing")), None);
    }
}
