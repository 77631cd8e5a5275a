//! The head of an ELF file of 64 bits, read with few system calls.

use object::Endianness;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::ReadRef;
use object::read::elf::{FileHeader, SectionHeader};

/// The head of a file.
pub(crate) struct Elf<'a> {
    pub(crate) header: &'a FileHeader64<Endianness>,
    pub(crate) endian: Endianness,
    /// None of a file that was stripped of them.
    pub(crate) sections: &'a [SectionHeader64<Endianness>],
    /// The sections' names; read at once, as `object` would read each by itself.
    names: &'a [u8],
}

impl<'a> Elf<'a> {
    pub(crate) fn parse<R: ReadRef<'a>>(data: R) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.section_headers(endian, data).unwrap_or_default();
        let names = header.section_strings_index(endian, data).ok();
        let names = names.and_then(|index| sections.get(index.0)?.data(endian, data).ok());
        Some(Self { header, endian, sections, names: names.unwrap_or_default() })
    }

    /// The section of this name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&'a SectionHeader64<Endianness>> {
        self.sections.iter().find(|section| {
            let rest = self.names.get(section.sh_name(self.endian) as usize..).unwrap_or_default();
            rest.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    /// The first eight bytes of its build id; 0 where it has none.
    pub(crate) fn build_id<R: ReadRef<'a>>(&self, data: R) -> u64 {
        let id = self.whole_build_id(data).and_then(|id| id.first_chunk());
        id.map_or(0, |id| u64::from_ne_bytes(*id))
    }

    /// Its build id (20 bytes, mostly); `None` where it has none, or it cannot be read.
    pub(crate) fn whole_build_id<R: ReadRef<'a>>(&self, data: R) -> Option<&'a [u8]> {
        // Behind three numbers and the owner's name: GNU, with its zero.
        const HEAD: usize = 16;
        self.section(b".note.gnu.build-id")?.data(self.endian, data).ok()?.get(HEAD..)
    }
}
