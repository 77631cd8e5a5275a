//! Functions and lines of source, by the debug information of a file (DWARF).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use addr2line::{Context, demangle_auto};
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::Endian;
use object::elf::SHF_COMPRESSED;
use object::read::ReadCache;
use object::read::elf::SectionHeader;

use super::elf::Elf;

/// More debug information than that is not read: it would take seconds.
const MOST_BYTES: u64 = 512 << 20;

/// What a file says of its source.
pub(crate) struct Sources(Context<EndianArcSlice<RunTimeEndian>>);

/// A function at an address, and where that is in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFrame {
    pub(crate) function: Option<Arc<str>>,
    /// `src/signer.c:42`.
    pub(crate) source: Option<Arc<str>>,
}

impl Sources {
    /// `None` where the file has no debug information, or it is compressed.
    pub(crate) fn of_file(file: &File) -> Option<Self> {
        let data = ReadCache::new(file.try_clone().ok()?);
        let elf = Elf::parse(&data)?;
        let debug = |id: SectionId| elf.section(id.name().as_bytes());
        debug(SectionId::DebugLine)?;
        let sections = [SectionId::DebugInfo, SectionId::DebugLine, SectionId::DebugStr];
        let bytes = |id| debug(id).map_or(0, |section| section.sh_size(elf.endian));
        if sections.into_iter().map(bytes).sum::<u64>() > MOST_BYTES {
            return None;
        }
        let endian =
            if elf.endian.is_big_endian() { RunTimeEndian::Big } else { RunTimeEndian::Little };
        let dwarf = Dwarf::load(|id| {
            let section = debug(id).map(|section| {
                let is_compressed = section.sh_flags(elf.endian).0 & SHF_COMPRESSED.0 != 0;
                if is_compressed { Err(()) } else { section.data(elf.endian, &data).map_err(drop) }
            });
            let bytes = section.unwrap_or(Ok(&[]))?;
            Ok::<_, ()>(EndianArcSlice::new(bytes.into(), endian))
        });
        Context::from_dwarf(dwarf.ok()?).ok().map(Self)
    }

    /// The functions at an address that the file is linked for, the innermost first: what was
    /// inlined comes before what it was inlined into. None where the file says nothing of it.
    pub(crate) fn frames_at(&self, address: u64) -> Vec<SourceFrame> {
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|it| it.raw_name().ok());
            let source = frame.location.and_then(|at| Some((at.file?, at.line?)));
            found.push(SourceFrame {
                function: name.map(|name| demangled(&name)),
                source: source.map(|(file, line)| format!("{}:{line}", last_two(file)).into()),
            });
        }
        found
    }
}

/// A function's name as its source has it, without the digest that Rust puts behind it.
pub(crate) fn demangled(name: &str) -> Arc<str> {
    let name = demangle_auto(name.into(), None);
    let digest = name.rsplit_once("::h").filter(|(_, digest)| {
        digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    digest.map_or(&*name, |(name, _)| name).into()
}

/// A file with its folder: where a build took place says nothing about the source.
fn last_two(path: &str) -> String {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name);
    let short = folder.map_or_else(|| name.into(), |folder| Path::new(folder).join(name));
    short.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_with_its_folder() {
        for (path, expected) in
            [("/home/x/app/src/sign.c", "src/sign.c"), ("sign.c", "sign.c"), ("/sign.c", "sign.c")]
        {
            assert_eq!(last_two(path), expected);
        }
    }

    #[test]
    fn names_are_as_their_source_has_them() {
        for (name, expected) in [
            ("sign_all", "sign_all"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_ZN6signer4signEi", "signer::sign(int)"),
        ] {
            assert_eq!(&*demangled(name), expected);
        }
    }

    #[test]
    fn this_test_finds_itself() {
        let program = File::open("/proc/self/exe").unwrap();
        let sources = Sources::of_file(&program).expect("tests have debug information");
        // A function of no use but to have an address, and the base that it was loaded at.
        let address = this_test_finds_itself as fn() as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let frames = sources.frames_at(address - base);
        let frame = frames.last().expect("it is a function");
        let function = frame.function.as_deref().unwrap();
        assert!(function.contains("this_test_finds_itself"), "{function}");
        let source = frame.source.as_deref().unwrap();
        assert!(source.starts_with("code/sources.rs:"), "{source}");
    }
}
