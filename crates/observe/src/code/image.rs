//! What is read of a file of code: where it wants to lie in memory, how its stack frames are
//! undone, and the names of its functions.
//!
//! A file is opened as it is mapped, by the very descriptor that the program maps, so that it is
//! the right one even when its name is not there any more. It is read only when a stack leads
//! into it. Debug information is not needed for any of these.

use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};

use super::elf::Elf;
use super::sources::Sources;
use super::symbols::{self, NamedFunction};

/// A file of code.
pub(crate) struct CodeImage {
    source: ImageSource,
    /// None before it is needed; none inside when it is no ELF file of 64 bits.
    layout: Option<Option<ImageLayout>>,
}

enum ImageSource {
    File(File),
    /// The vDSO, which the kernel maps without a file.
    Memory(Arc<[u8]>),
    /// It cannot be read.
    Name(Arc<str>),
}

/// Where its parts are.
pub(crate) struct ImageLayout {
    /// Those of code. Others may share a page with them, so an offset alone does not tell.
    segments: Vec<Segment>,
    unwinding: ExplicitModuleSectionInfo<Arc<[u8]>>,
}

/// A part of the file, and the address that it is linked for.
#[derive(Clone, Copy)]
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

impl CodeImage {
    /// The code of a file that is open already.
    pub(crate) fn of_file(file: File) -> Self {
        Self { source: ImageSource::File(file), layout: None }
    }

    /// The file of this path, if its build id begins with these bytes (0: if it has none): a file
    /// of another build would give wrong names. Only known by name otherwise.
    pub(crate) fn of_build(path: &Path, build_id: u64) -> Self {
        let name = file_name(&path.to_string_lossy()).to_owned();
        let is_regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        let file = is_regular.then(|| File::open(path).ok()).flatten();
        let is_it = |file: &File| {
            let data = ReadCache::new(file.try_clone().ok()?);
            Some(Elf::parse(&data)?.build_id(&data) == build_id)
        };
        match file {
            Some(file) if is_it(&file) == Some(true) => Self::of_file(file),
            _ => Self::of_name(&name),
        }
    }

    /// A whole file that lies in memory.
    pub(crate) fn of_memory(bytes: Vec<u8>) -> Self {
        Self { source: ImageSource::Memory(bytes.into()), layout: None }
    }

    /// A file that is only known by name.
    pub(crate) fn of_name(name: &str) -> Self {
        Self { source: ImageSource::Name(name.into()), layout: Some(None) }
    }

    /// The file's name, without its directory.
    pub(crate) fn name(&self) -> Arc<str> {
        match &self.source {
            ImageSource::File(file) => {
                let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
                path.map_or("[unknown]".into(), |path| file_name(&path.to_string_lossy()).into())
            }
            ImageSource::Memory(_) => "[vdso]".into(),
            ImageSource::Name(name) => Arc::clone(name),
        }
    }

    /// Where its parts are.
    pub(crate) fn layout(&mut self) -> Option<&ImageLayout> {
        let source = &self.source;
        self.layout.get_or_insert_with(|| source.layout()).as_ref()
    }

    /// What the file says of its source.
    pub(crate) fn sources(&self) -> Option<Sources> {
        match &self.source {
            ImageSource::File(file) => Sources::of_file(file),
            ImageSource::Memory(_) | ImageSource::Name(_) => None,
        }
    }

    /// For each of the addresses, which are sorted, the function that it is in.
    pub(crate) fn functions(&self, addresses: &[u64]) -> Vec<Option<NamedFunction>> {
        let functions = match &self.source {
            ImageSource::File(file) => file.try_clone().ok().and_then(|file| {
                let cache = ReadCache::new(file);
                symbols::functions(&cache, addresses)
            }),
            ImageSource::Memory(bytes) => symbols::functions(&bytes[..], addresses),
            ImageSource::Name(_) => None,
        };
        functions.unwrap_or_else(|| vec![None; addresses.len()])
    }
}

/// The last part of a path as /proc shows it.
pub(crate) fn file_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

impl ImageSource {
    fn layout(&self) -> Option<ImageLayout> {
        match self {
            Self::File(file) => {
                let cache = ReadCache::new(file.try_clone().ok()?);
                ImageLayout::parse(&cache, |range| {
                    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
                    file.read_exact_at(&mut bytes, range.start).ok()?;
                    Some(bytes.into())
                })
            }
            Self::Memory(bytes) => ImageLayout::parse(&bytes[..], |range| {
                bytes.get(range.start as usize..range.end as usize).map(Into::into)
            }),
            Self::Name(_) => None,
        }
    }
}

/// More than any file's unwinding sections: those of a browser have 20 MB.
const MOST_SECTION_BYTES: u64 = 1 << 30;

impl ImageLayout {
    fn parse<'a, R: ReadRef<'a>>(
        data: R,
        read: impl Fn(Range<u64>) -> Option<Arc<[u8]>>,
    ) -> Option<Self> {
        let elf = Elf::parse(data)?;
        let segments = elf.header.program_headers(elf.endian, data).ok()?.iter();
        let segments = segments.filter(|segment| {
            segment.p_type(elf.endian) == PT_LOAD && segment.p_flags(elf.endian).0 & PF_X.0 != 0
        });
        let segments = segments.map(|segment| {
            let (offset, length) = segment.file_range(elf.endian);
            Segment { offset, length, address: segment.p_vaddr(elf.endian) }
        });
        let addresses = |name: &[u8]| {
            let section = elf.section(name)?;
            let start = section.sh_addr(elf.endian);
            Some(start..start.checked_add(section.sh_size(elf.endian))?)
        };
        let bytes = |name: &[u8]| {
            let (offset, length) = elf.section(name)?.file_range(elf.endian)?;
            (length < MOST_SECTION_BYTES).then(|| read(offset..offset.checked_add(length)?))?
        };
        Some(Self {
            segments: segments.collect(),
            unwinding: ExplicitModuleSectionInfo {
                text_svma: addresses(b".text"),
                got_svma: addresses(b".got"),
                eh_frame_svma: addresses(b".eh_frame"),
                eh_frame: bytes(b".eh_frame"),
                eh_frame_hdr_svma: addresses(b".eh_frame_hdr"),
                eh_frame_hdr: bytes(b".eh_frame_hdr"),
                ..Default::default()
            },
        })
    }

    /// The address that a place in the file is linked for, where code is mapped from it.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        // A mapping begins on a page's border, a segment anywhere in the page.
        let segment = self.segments.iter().find(|segment| {
            let start = segment.offset & !0xFFF;
            (start..segment.offset.saturating_add(segment.length)).contains(&offset)
        })?;
        Some(segment.address.wrapping_add(offset.wrapping_sub(segment.offset)))
    }

    /// What an unwinder needs.
    pub(crate) fn unwinding(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        self.unwinding.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_file() {
        assert_eq!(file_name("/usr/lib/libc.so.6"), "libc.so.6");
        assert_eq!(file_name("/tmp/a.out (deleted)"), "a.out");
        assert_eq!(file_name("memfd:code"), "memfd:code");
    }
}
