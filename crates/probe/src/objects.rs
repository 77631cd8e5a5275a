//! Loaded objects: what they are called, whose calls are watched, and those of their calls that
//! go past the linker's questions.
//!
//! Code without a procedure linkage table (Rust, `-fno-plt`) calls through a slot that the linker
//! fills without asking the auditor (R_X86_64_GLOB_DAT). Such slots are rewritten here: at
//! la_preinit for the objects of the start, and at the next dlsym(3) for those of a dlopen(3),
//! since la_activity comes before they are relocated.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::{stubs, sys};

/// What `<link.h>` shows of an object.
#[repr(C)]
pub struct LinkMap {
    base: usize,
    name: *const u8,
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

const OBJECTS: usize = 2048;
/// More objects than that share the last number, and have no name.
const LAST: usize = OBJECTS - 1;
const NAME: usize = 128;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static PATCHED: AtomicUsize = AtomicUsize::new(0);
static MAPS: [AtomicUsize; OBJECTS] = [const { AtomicUsize::new(0) }; OBJECTS];
static mut NAMES: [[u8; NAME]; OBJECTS] = [[0; NAME]; OBJECTS];
/// The program headers of the program itself, from the kernel (AT_PHDR).
static PROGRAM_HEADERS: AtomicUsize = AtomicUsize::new(0);
static PROGRAM_HEADER_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reads what the kernel says of the program.
pub(crate) fn begin(mut auxiliary: *const [usize; 2]) {
    const AT_PHDR: usize = 3;
    const AT_PHNUM: usize = 5;
    // SAFETY: the vector ends with a pair of zeros.
    unsafe {
        while !auxiliary.is_null() && (*auxiliary)[0] != 0 {
            match *auxiliary {
                [AT_PHDR, at] => PROGRAM_HEADERS.store(at, Ordering::Relaxed),
                [AT_PHNUM, count] => PROGRAM_HEADER_COUNT.store(count, Ordering::Relaxed),
                _ => {}
            }
            auxiliary = auxiliary.add(1);
        }
    }
}

/// Takes an object in and returns its number.
///
/// # Safety
/// The linker's description of an object.
pub(crate) unsafe fn add(map: *const LinkMap) -> usize {
    let number = COUNT.fetch_add(1, Ordering::Relaxed).min(LAST);
    // SAFETY: the name ends with a zero; only the linker, under its lock, comes here.
    unsafe {
        let path = (*map).name;
        let length = sys::length(path, 4096);
        let mut start = length;
        while start > 0 && *path.add(start - 1) != b'/' {
            start -= 1;
        }
        let kept = (length - start).min(NAME - 1);
        let name = (&raw mut NAMES[number]).cast::<u8>();
        ptr::write_bytes(name, 0, NAME);
        ptr::copy_nonoverlapping(path.add(start), name, kept);
    }
    MAPS[number].store(map as usize, Ordering::Release);
    number
}

pub(crate) fn remove(number: usize) {
    if let Some(map) = MAPS.get(number) {
        map.store(0, Ordering::Release);
    }
}

/// An object's file name; empty for the program itself.
pub(crate) fn name(number: usize) -> &'static [u8] {
    // SAFETY: names change only when the linker, under its lock, loads another object.
    let name: &'static [u8; NAME] = unsafe { &*(&raw const NAMES[number.min(LAST)]) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    name.get(..length).unwrap_or_default()
}

/// Libraries whose own calls of libc say nothing about who asked for them.
pub(crate) fn is_system(number: usize) -> bool {
    const SYSTEM: [&[u8]; 9] = [
        b"libc.so", b"ld-linux", b"libpthread", b"libdl.so", b"libm.so", b"libgcc_s", b"libstdc++",
        b"librt.so", b"linux-vdso",
    ];
    let name = name(number);
    SYSTEM.iter().any(|start| name.starts_with(start))
}

/// Rewrites the slots of objects that were loaded since the last time.
pub(crate) fn patch_pending() {
    let count = COUNT.load(Ordering::Acquire).min(LAST);
    let from = PATCHED.swap(count, Ordering::AcqRel);
    for number in from..count {
        let map = MAPS[number].load(Ordering::Acquire) as *const LinkMap;
        if !map.is_null() && !is_system(number) {
            // SAFETY: the linker keeps the description while the object is loaded.
            unsafe { patch(number, &*map) };
        }
    }
}

/// # Safety
/// The object is loaded and relocated.
unsafe fn patch(number: usize, map: &LinkMap) {
    const DT_STRTAB: usize = 5;
    const DT_SYMTAB: usize = 6;
    const DT_RELA: usize = 7;
    const DT_RELASZ: usize = 8;
    const R_X86_64_GLOB_DAT: usize = 6;
    let (mut names, mut symbols) = (ptr::null::<u8>(), ptr::null::<Symbol>());
    let (mut relocations, mut bytes) = (ptr::null::<Relocation>(), 0);
    let mut entry = map.dynamic;
    // SAFETY: a dynamic section ends with DT_NULL; glibc has made its addresses absolute.
    unsafe {
        while !entry.is_null() && (*entry)[0] != 0 {
            let [tag, value] = *entry;
            match tag {
                DT_STRTAB => names = value as *const u8,
                DT_SYMTAB => symbols = value as *const Symbol,
                DT_RELA => relocations = value as *const Relocation,
                DT_RELASZ => bytes = value,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    // The vDSO's stay relative; it calls nobody.
    if names.is_null() || (names as usize) < map.base || relocations.is_null() {
        return;
    }
    for at in 0..bytes / size_of::<Relocation>() {
        // SAFETY: inside the table; an index into the symbols; a name that ends with a zero.
        unsafe {
            let relocation = &*relocations.add(at);
            if relocation.info as u32 as usize != R_X86_64_GLOB_DAT {
                continue;
            }
            let symbol = &*symbols.add(relocation.info >> 32);
            let slot = (map.base + relocation.offset) as *mut usize;
            let address = *slot;
            let definer = definer(address);
            if address == 0 || definer == number {
                continue;
            }
            let stub = stubs::watch(names.add(symbol.name as usize), address, number, definer);
            if let Some(stub) = stub {
                write(map, number, slot, stub);
            }
        }
    }
}

/// The object that lies at or below an address: good enough for a name.
fn definer(address: usize) -> usize {
    let mut best = (0, LAST);
    for (number, map) in MAPS.iter().enumerate().take(COUNT.load(Ordering::Relaxed).min(LAST)) {
        let map = map.load(Ordering::Acquire) as *const LinkMap;
        // SAFETY: the linker keeps the description while the object is loaded.
        let base = if map.is_null() { 0 } else { unsafe { (*map).base } };
        if base <= address && base > best.0 {
            best = (base, number);
        }
    }
    best.1
}

/// Writes a slot, which may be read-only by now (PT_GNU_RELRO).
///
/// # Safety
/// A slot of that object.
unsafe fn write(map: &LinkMap, number: usize, slot: *mut usize, value: usize) {
    const PAGE: usize = 4096;
    let page = slot as usize & !(PAGE - 1);
    // SAFETY: the page holds the slot, so it is mapped; it is made as it was.
    unsafe {
        if !sys::protect(page, PAGE, true) {
            return;
        }
        slot.write_volatile(value);
        if is_read_only(map, number, slot as usize) {
            sys::protect(page, PAGE, false);
        }
    }
}

/// # Safety
/// The object is loaded.
unsafe fn is_read_only(map: &LinkMap, number: usize, address: usize) -> bool {
    const PT_GNU_RELRO: u32 = 0x6474_e552;
    // Elf64_Ehdr: e_phoff and e_phnum.
    const E_PHOFF: usize = 32;
    const E_PHNUM: usize = 56;
    let (mut segment, count) = if number == 0 {
        let at = PROGRAM_HEADERS.load(Ordering::Relaxed);
        (at as *const Segment, PROGRAM_HEADER_COUNT.load(Ordering::Relaxed))
    } else {
        // SAFETY: the first page of a library is its ELF header.
        unsafe {
            let at = map.base + *((map.base + E_PHOFF) as *const usize);
            (at as *const Segment, usize::from(*((map.base + E_PHNUM) as *const u16)))
        }
    };
    for _ in 0..count {
        // SAFETY: as many as the header says.
        unsafe {
            let Segment { kind, address: start, in_memory, .. } = *segment;
            let start = map.base + start;
            // The linker protects whole pages, from the first down to the last.
            let end = (start + in_memory) & !4095;
            if kind == PT_GNU_RELRO && (start & !4095..end).contains(&address) {
                return true;
            }
            segment = segment.add(1);
        }
    }
    false
}
