//! What a loaded object says of itself: its dynamic section, and the tables that this points to.

use core::ops::Range;
use core::ptr;

use crate::sys;

/// What `<link.h>` shows of an object.
#[repr(C)]
pub struct LinkMap {
    pub(crate) base: usize,
    pub(crate) name: *const u8,
    dynamic: *const [usize; 2],
}

/// Elf64_Sym.
#[repr(C)]
pub struct Symbol {
    name: u32,
    kind: u8,
    other: u8,
    section: u16,
    /// Where it is, as the linker hands it to an auditor.
    pub value: usize,
    size: usize,
}

/// Elf64_Rela.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: usize,
    addend: isize,
}

/// Elf64_Phdr.
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: usize,
    address: usize,
    physical: usize,
    in_file: usize,
    in_memory: usize,
    align: usize,
}

/// The dynamic section of an object that is loaded.
pub(crate) struct Dynamic {
    base: usize,
    names: *const u8,
    symbols: *const Symbol,
    relocations: *const Relocation,
    relocation_bytes: usize,
    /// So many of them, in front, are R_X86_64_RELATIVE and name nothing.
    relative: usize,
    hashes: *const u32,
}

impl Dynamic {
    /// `None` for an object that has none, or whose addresses are still relative: the vDSO.
    ///
    /// # Safety
    /// The linker's description of an object that is loaded.
    pub(crate) unsafe fn from_link_map(map: &LinkMap) -> Option<Self> {
        const DT_STRTAB: usize = 5;
        const DT_SYMTAB: usize = 6;
        const DT_RELA: usize = 7;
        const DT_RELASZ: usize = 8;
        const DT_GNU_HASH: usize = 0x6fff_fef5;
        const DT_RELACOUNT: usize = 0x6fff_fff9;
        let mut found = Self {
            base: map.base,
            names: ptr::null(),
            symbols: ptr::null(),
            relocations: ptr::null(),
            relocation_bytes: 0,
            relative: 0,
            hashes: ptr::null(),
        };
        let mut entry = map.dynamic;
        // SAFETY: a dynamic section ends with DT_NULL; glibc has made its addresses absolute.
        unsafe {
            while !entry.is_null() && (*entry)[0] != 0 {
                let [tag, value] = *entry;
                match tag {
                    DT_STRTAB => found.names = value as *const u8,
                    DT_SYMTAB => found.symbols = value as *const Symbol,
                    DT_RELA => found.relocations = value as *const Relocation,
                    DT_RELASZ => found.relocation_bytes = value,
                    DT_RELACOUNT => found.relative = value,
                    DT_GNU_HASH => found.hashes = value as *const u32,
                    _ => {}
                }
                entry = entry.add(1);
            }
        }
        let absolute = !found.names.is_null() && found.names as usize >= map.base;
        (absolute && !found.symbols.is_null()).then_some(found)
    }

    /// Whether the object defines a symbol with one of these hashes; yes where it has no table of
    /// that kind (DT_GNU_HASH: a Bloom filter, buckets, and chains whose last hash is odd).
    ///
    /// # Safety
    /// The object is loaded.
    pub(crate) unsafe fn defines_one_of(&self, hashes: &[u32]) -> bool {
        if self.hashes.is_null() {
            return true;
        }
        // SAFETY: the table's own counts; a chain ends.
        unsafe {
            let [buckets, first, words, shift] = *self.hashes.cast::<[u32; 4]>();
            let filter = self.hashes.add(4).cast::<u64>();
            let bucket = filter.add(words as usize).cast::<u32>();
            let chains = bucket.add(buckets as usize);
            hashes.iter().any(|hash| {
                let bits = 1_u64 << (hash % 64) | 1 << ((hash >> shift) % 64);
                let word = (hash / 64) & words.wrapping_sub(1);
                if buckets == 0 || *filter.add(word as usize) & bits != bits {
                    return false;
                }
                let mut symbol = *bucket.add((hash % buckets) as usize);
                while symbol >= first {
                    let other = *chains.add((symbol - first) as usize);
                    if other | 1 == hash | 1 {
                        return true;
                    }
                    if other & 1 == 1 {
                        break;
                    }
                    symbol += 1;
                }
                false
            })
        }
    }

    /// Goes through the slots that hold the address of a symbol (R_X86_64_GLOB_DAT), and numbers of
    /// the symbols.
    ///
    /// # Safety
    /// The object is relocated.
    pub(crate) unsafe fn each_slot(&self, mut visit: impl FnMut(*mut usize, usize)) {
        const R_X86_64_GLOB_DAT: u32 = 6;
        if self.relocations.is_null() {
            return;
        }
        for at in self.relative..self.relocation_bytes / size_of::<Relocation>() {
            // SAFETY: inside the table.
            let relocation = unsafe { &*self.relocations.add(at) };
            if relocation.info as u32 == R_X86_64_GLOB_DAT {
                visit((self.base + relocation.offset) as *mut usize, relocation.info >> 32);
            }
        }
    }

    /// The name of a symbol, which ends with a zero.
    ///
    /// # Safety
    /// The object has so many.
    pub(crate) unsafe fn name(&self, symbol: usize) -> *const u8 {
        // SAFETY: the caller's promise.
        unsafe { self.names.add((*self.symbols.add(symbol)).name as usize) }
    }
}

/// Where an object's program headers are, and how many.
#[derive(Clone, Copy)]
pub(crate) struct Headers {
    pub(crate) at: usize,
    pub(crate) count: usize,
}

impl Headers {
    /// Those of a library: its first page is its ELF header.
    ///
    /// # Safety
    /// The object is loaded, and not the program itself.
    unsafe fn of_library(map: &LinkMap) -> Self {
        // Elf64_Ehdr: e_phoff and e_phnum.
        const E_PHOFF: usize = 32;
        const E_PHNUM: usize = 56;
        // SAFETY: the caller's promise.
        unsafe {
            let at = map.base + *((map.base + E_PHOFF) as *const usize);
            Self { at, count: usize::from(*((map.base + E_PHNUM) as *const u16)) }
        }
    }

    /// Those of a library that may not begin at its base.
    ///
    /// # Safety
    /// Nothing is unmapped meanwhile.
    unsafe fn of_file_at(base: usize) -> Option<Self> {
        const E_PHOFF: usize = 32;
        const E_PHNUM: usize = 56;
        const MAGIC: u32 = u32::from_le_bytes(*b"\x7FELF");
        // SAFETY: the page can be read, and holds a whole header: it begins on a page's border.
        unsafe {
            if base & 4095 != 0 || !sys::is_readable(base) || *(base as *const u32) != MAGIC {
                return None;
            }
            let at = base.wrapping_add(*((base + E_PHOFF) as *const usize));
            let count = usize::from(*((base + E_PHNUM) as *const u16));
            let end = at.checked_add(count * size_of::<Segment>())?;
            let is_there = sys::is_readable(at) && sys::is_readable(end - 1);
            (count > 0 && is_there).then_some(Self { at, count })
        }
    }
}

impl Headers {
    /// The parts of the file that are loaded and can be read (PT_LOAD), as whole pages.
    ///
    /// # Safety
    /// There are so many headers.
    pub(crate) unsafe fn readable_parts(self, base: usize) -> impl Iterator<Item = Range<usize>> {
        const PT_LOAD: u32 = 1;
        const PF_R: u32 = 4;
        (0..self.count).filter_map(move |number| {
            // SAFETY: the caller's promise.
            let segment = unsafe { &*(self.at as *const Segment).add(number) };
            let start = base.wrapping_add(segment.address);
            let end = (start + segment.in_memory).next_multiple_of(4096);
            let is_there = segment.kind == PT_LOAD && segment.flags & PF_R != 0;
            (is_there && segment.in_memory > 0).then_some(start & !4095..end)
        })
    }
}

/// The code of an object, and by what its file is known.
pub(crate) struct Code {
    pub(crate) range: Range<usize>,
    /// The first eight bytes of its build id; 0 where it has none.
    pub(crate) build_id: u64,
}

impl Code {
    /// `None` where no headers are found, and for code that can be executed alone.
    ///
    /// # Safety
    /// The object is loaded. `program` are the headers of the program itself, for its own code.
    pub(crate) unsafe fn of_object(map: &LinkMap, program: Option<Headers>) -> Option<Self> {
        const PT_LOAD: u32 = 1;
        const PT_NOTE: u32 = 4;
        const EXECUTE_AND_READ: u32 = 1 | 4;
        let headers = match program {
            Some(headers) => headers,
            // SAFETY: the caller's promise; its first page is looked at before it is read.
            None => unsafe { Headers::of_file_at(map.base)? },
        };
        let mut first = usize::MAX;
        let mut end = 0;
        let mut build_id = 0;
        for number in 0..headers.count {
            // SAFETY: as many segments as the header says.
            let segment = unsafe { &*(headers.at as *const Segment).add(number) };
            let start = map.base.wrapping_add(segment.address);
            match segment.kind {
                PT_LOAD if segment.flags & EXECUTE_AND_READ == EXECUTE_AND_READ => {
                    first = first.min(start);
                    end = end.max(start + segment.in_memory);
                }
                PT_NOTE if build_id == 0 => {
                    // SAFETY: notes are a part of what is loaded.
                    build_id = unsafe { build_id_in(start, segment.in_memory) };
                }
                _ => {}
            }
        }
        (first < end).then_some(Self { range: first..end, build_id })
    }
}

/// The first eight bytes of the build id among notes (NT_GNU_BUILD_ID), or 0.
///
/// # Safety
/// So many bytes are notes, or cannot be read.
unsafe fn build_id_in(start: usize, bytes: usize) -> u64 {
    const NT_GNU_BUILD_ID: u32 = 3;
    const GNU: u32 = u32::from_le_bytes(*b"GNU\0");
    const HEAD: usize = 12;
    let end = start.saturating_add(bytes);
    if bytes < HEAD || !sys::is_readable(start) || !sys::is_readable(end - 1) {
        return 0;
    }
    let mut at = start;
    while at + HEAD + 4 <= end {
        // SAFETY: inside the notes: three numbers, and the owner's name.
        let [name, length, kind, owner] = unsafe { (at as *const [u32; 4]).read_unaligned() };
        let name = (name as usize).next_multiple_of(4);
        let length = length as usize;
        let id = at + HEAD + name;
        if kind == NT_GNU_BUILD_ID && owner == GNU && length >= 8 && id + length <= end {
            // SAFETY: inside the notes.
            return unsafe { (id as *const u64).read_unaligned() };
        }
        at = id.saturating_add(length.next_multiple_of(4));
    }
    0
}

/// Writes a slot of an object, which may be read-only by now (PT_GNU_RELRO).
///
/// # Safety
/// The slot is that object's. `program` are the headers of the program itself, for its own slots.
pub(crate) unsafe fn write(
    map: &LinkMap,
    program: Option<Headers>,
    slot: *mut usize,
    value: usize,
) {
    const PAGE: usize = 4096;
    let page = slot as usize & !(PAGE - 1);
    // SAFETY: the page holds the slot, so it is mapped; it is made as it was.
    unsafe {
        if !sys::protect(page, PAGE, true) {
            return;
        }
        slot.write_volatile(value);
        if is_read_only(map, program, slot as usize) {
            sys::protect(page, PAGE, false);
        }
    }
}

/// # Safety
/// As for [`write`].
unsafe fn is_read_only(map: &LinkMap, program: Option<Headers>, address: usize) -> bool {
    const PT_GNU_RELRO: u32 = 0x6474_e552;
    // SAFETY: as many segments as the header says.
    unsafe {
        let Headers { at, count } = program.unwrap_or_else(|| Headers::of_library(map));
        (0..count).any(|number| {
            let segment = &*(at as *const Segment).add(number);
            let start = map.base + segment.address;
            // The linker protects whole pages, from the first down to the last.
            let end = (start + segment.in_memory) & !4095;
            segment.kind == PT_GNU_RELRO && (start & !4095..end).contains(&address)
        })
    }
}
