//! Functions and lines of source, by the debug information of a file (DWARF), which may lie in
//! another file of the same build, and be compressed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, demangle_auto};
use flate2::read::ZlibDecoder;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::elf::{ELFCOMPRESS_ZLIB, SectionHeader64};
use object::read::elf::{CompressionHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endian, Endianness};

use super::elf::Elf;

/// More debug information than that is not read: it would take seconds.
const MOST_BYTES: u64 = 512 << 20;

/// Where distributions put the debug information of what they install, by build id (GDB's manual,
/// 18.3).
const SEPARATE: &str = "/usr/lib/debug/.build-id";

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
    /// `None` where the file has no debug information, and no other one has it that is installed.
    pub(crate) fn of_file(file: &File) -> Option<Self> {
        Self::within(file).or_else(|| Self::within(&separate(file, Path::new(SEPARATE))?))
    }

    fn within(file: &File) -> Option<Self> {
        let data = ReadCache::new(file.try_clone().ok()?);
        let elf = Elf::parse(&data)?;
        let debug = |id: SectionId| elf.section(id.name().as_bytes());
        debug(SectionId::DebugLine)?;
        let endian =
            if elf.endian.is_big_endian() { RunTimeEndian::Big } else { RunTimeEndian::Little };
        let mut left = MOST_BYTES;
        let dwarf = Dwarf::load(|id| {
            let section = debug(id).map(|section| unpacked(section, elf.endian, &data, left));
            let bytes = section.unwrap_or_else(|| Some([].into())).ok_or(())?;
            left -= bytes.len() as u64;
            Ok::<_, ()>(EndianArcSlice::new(bytes, endian))
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

/// The file that has the debug information of another one: below a folder, by its build id, which it
/// has as well.
fn separate(file: &File, folder: &Path) -> Option<File> {
    let id = build_id(file)?;
    let found = File::open(folder.join(place_of(&id)?)).ok()?;
    (build_id(&found)? == id).then_some(found)
}

fn build_id(file: &File) -> Option<Vec<u8>> {
    let data = ReadCache::new(file.try_clone().ok()?);
    Some(Elf::parse(&data)?.whole_build_id(&data)?.to_vec())
}

/// `ab/cdef….debug`.
fn place_of(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let mut place = format!("{first:02x}/");
    rest.iter().for_each(|byte| write!(place, "{byte:02x}").expect("into memory"));
    Some(PathBuf::from(place + ".debug"))
}

/// The bytes of a section, at most so many, unpacked where they are compressed (by zlib; ELF gABI,
/// section compression).
fn unpacked<'a, R: ReadRef<'a>>(
    section: &SectionHeader64<Endianness>,
    endian: Endianness,
    data: R,
    most: u64,
) -> Option<Arc<[u8]>> {
    let Some((header, offset, size)) = section.compression(endian, data).ok()? else {
        let is_short = section.sh_size(endian) <= most;
        return section.data(endian, data).ok().filter(|_| is_short).map(Arc::from);
    };
    let length = header.ch_size(endian);
    if header.ch_type(endian) != ELFCOMPRESS_ZLIB || length > most || size > most {
        return None;
    }
    let packed = data.read_bytes_at(offset, size).ok()?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).take(length).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length).then(|| bytes.into())
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
    use std::process::Command;

    use tapstone_testing::skip;

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

    /// A library in C with debug information. `None`: there is no compiler, which has been said.
    fn built(folder: &Path, options: &[&str]) -> Option<PathBuf> {
        let source = folder.join("signer.c");
        std::fs::write(&source, "int sign_all(int key)\n{\n    return key * 7;\n}\n").unwrap();
        let library = folder.join("signer.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-g", "-shared", "-fPIC", "-Wl,--build-id", "-o"]).arg(&library);
        let status = compiler.args(options).arg(&source).status();
        let Ok(status) = status else {
            skip("cc");
            return None;
        };
        assert!(status.success());
        Some(library)
    }

    /// Where a library has that function, by its symbols.
    fn address_of_sign_all(library: &Path) -> u64 {
        let listed = Command::new("nm").arg("-D").arg(library).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let line = listed.lines().find(|line| line.ends_with(" sign_all")).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    #[test]
    fn compressed_debug_information_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some(library) = built(folder.path(), &["-gz=zlib"]) else { return };
        let sources = Sources::within(&File::open(&library).unwrap()).unwrap();
        let frames = sources.frames_at(address_of_sign_all(&library));
        assert_eq!(frames[0].function.as_deref(), Some("sign_all"));
        assert!(frames[0].source.as_deref().unwrap().ends_with("/signer.c:2"), "{frames:?}");
    }

    #[test]
    fn debug_information_in_a_file_of_its_own_is_found_by_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let Some(library) = built(folder.path(), &[]) else { return };
        let file = || File::open(&library).unwrap();
        let id = build_id(&file()).unwrap();
        let place = folder.path().join("debug").join(place_of(&id).unwrap());
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(&library, &place).unwrap();
        assert!(
            Command::new("strip").arg("--strip-debug").arg(&library).status().unwrap().success()
        );
        assert!(Sources::within(&file()).is_none(), "it was stripped");
        let debug = separate(&file(), &folder.path().join("debug")).unwrap();
        let frames = Sources::within(&debug).unwrap().frames_at(address_of_sign_all(&library));
        assert_eq!(frames[0].function.as_deref(), Some("sign_all"));
        // One of another build.
        let other = built(&folder.path().join("debug"), &["-O2"]).unwrap();
        std::fs::copy(other, &place).unwrap();
        assert!(separate(&file(), &folder.path().join("debug")).is_none());
        assert!(separate(&file(), folder.path()).is_none());
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
