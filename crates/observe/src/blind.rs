//! Why a program cannot be watched, as far as its file tells.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use tapstone_events::Blind;

/// The first bytes of a file that are looked at.
const HEAD: usize = 2;
/// Interpreters of interpreters end somewhere (execve(2)).
const SCRIPTS: usize = 4;

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

/// Whether a program's dynamic linker is one that could not load the probe, and would say so on
/// the program's own standard error.
pub(crate) fn is_for_another_machine(program: &Path) -> bool {
    let is_elf = fs::read(program).is_ok_and(|content| content.starts_with(&elf::ELFMAG));
    is_elf && matches!(reason(program), Some(Blind::OtherMachine(_)))
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
