//! What a loaded object says of itself: its dynamic section, and the tables that this points to.

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
