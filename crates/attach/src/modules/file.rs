//! A module's file: its relocations, its code, and what it imports.

use std::fs::{self, File};
use std::path::Path;

use memmap2::Mmap;
use object::elf::{R_X86_64_64, R_X86_64_RELATIVE};
use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
};
use tapstone_events::{FUNCTIONS, Family, Function};

/// A function longer than this is looked at no further, in bytes.
const LONGEST_BODY: u64 = 4096;

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct ModuleFile {
    content: Mmap,
    segments: Vec<Segment>,
    /// What relocations write where, both as addresses in the file; by place.
    pub(super) pointers: Vec<(u64, u64)>,
    /// It hands out lists of functions.
    pub(super) is_module: bool,
    /// Functions of PC/SC and of reader drivers that it exports: numbers and addresses.
    pub(super) exports: Vec<(u16, u64)>,
    unwinds: bool,
    throws: bool,
}

impl ModuleFile {
    /// `None`: it is no file of this kind.
    pub(super) fn open(path: &Path) -> Option<Self> {
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        // SAFETY: a library that is mapped by processes is not written to in place: they would
        // crash too. What is read here is only compared and decoded.
        let content = unsafe { Mmap::map(&file) }.ok()?;
        let elf = ElfFile64::<object::Endianness>::parse(&content[..]).ok()?;
        let segments = elf.segments().map(|segment| {
            let range = segment.file_range();
            Segment { address: segment.address(), offset: range.0, bytes: range.1 }
        });
        let segments = segments.collect();
        let names = |name: &[u8]| elf.dynamic_symbols().any(|it| it.name_bytes() == Ok(name));
        let is_module = names(b"C_GetFunctionList") || names(b"C_GetInterface");
        let unwinds =
            imports_any(&elf, &["pthread_cancel", "pthread_exit", "_Unwind_RaiseException"]);
        let throws = imports_any(&elf, &["__cxa_throw", "__cxa_rethrow"]);
        let exports = exports(&elf);
        let pointers = if is_module { pointers(&elf) } else { Vec::new() };
        Some(Self { segments, pointers, is_module, exports, unwinds, throws, content })
    }

    /// Calls may be left by other ways than a return.
    pub(crate) const fn unwinds(&self) -> bool {
        self.unwinds
    }

    /// It is C++ and throws exceptions. Those of a module end inside of it, or would end a program in
    /// C; those of a program leave a call of a module where the module calls the program.
    pub(crate) const fn throws(&self) -> bool {
        self.throws
    }

    /// The code from an offset on, to the next function's.
    pub(super) fn code(&self, offset: u64, next: Option<u64>) -> &[u8] {
        let end =
            next.unwrap_or(u64::MAX).min(offset + LONGEST_BODY).min(self.content.len() as u64);
        self.content.get(offset as usize..end as usize).unwrap_or_default()
    }

    /// What the file has at an address.
    pub(super) fn at(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let offset = self.offset(address)? as usize;
        self.content.get(offset..offset + bytes)
    }

    /// The address of what is at an offset; offsets of mappings are those of whole pages.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let start = |it: &Segment| it.offset / PAGE * PAGE;
        let inside = |it: &&Segment| (start(it)..it.offset + it.bytes).contains(&offset);
        // Two may share a page, of which the later one is meant.
        let segment = self.segments.iter().rfind(inside)?;
        Some((segment.address + offset).wrapping_sub(segment.offset))
    }

    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        let inside = |it: &&Segment| (it.address..it.address + it.bytes).contains(&address);
        self.segments.iter().find(inside).map(|it| address - it.address + it.offset)
    }
}

/// These have no lists: whoever calls them knows their names.
fn exports(elf: &ElfFile64<'_>) -> Vec<(u16, u64)> {
    let wanted = |name: &[u8]| {
        let of = |it: &Function| it.name.as_bytes() == name && it.family != Family::Pkcs11;
        FUNCTIONS.iter().position(of).map(|number| number as u16)
    };
    let may_be = |name: &[u8]| name.starts_with(b"SCard") || name.starts_with(b"IFDH");
    let symbols = elf.dynamic_symbols().filter(|it| it.is_definition());
    let found = symbols.filter_map(|symbol| {
        let name = symbol.name_bytes().ok().filter(|name| may_be(name))?;
        Some((wanted(name)?, symbol.address()))
    });
    found.collect()
}

fn imports_any(elf: &ElfFile64<'_>, names: &[&str]) -> bool {
    let is_one = |name: &[u8]| names.iter().any(|it| it.as_bytes() == name);
    let mut imported = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    imported.any(|symbol| symbol.name_bytes().is_ok_and(is_one))
}

fn pointers(elf: &ElfFile64<'_>) -> Vec<(u64, u64)> {
    let symbols = elf.dynamic_symbol_table();
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    let mut pointers: Vec<(u64, u64)> = relocations
        .filter_map(|(place, relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    symbols.as_ref()?.symbol_by_index(index).ok()?.address()
                }
                _ => 0,
            };
            let is_pointer = matches!(r_type, R_X86_64_RELATIVE | R_X86_64_64);
            is_pointer.then(|| (place, symbol.wrapping_add_signed(relocation.addend())))
        })
        .collect();
    pointers.sort_unstable();
    pointers
}
