//! Loaded objects: what they are called, and whose calls are watched.
//!
//! Objects go by numbers. One that was closed leaves its number to the next of the same name, so
//! that a program may load and close a module as often as it likes.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use tapstone_probe_core::names::HASHES;
use tapstone_probe_core::text::text_up_to;
use tapstone_probe_core::wire::MOST_BYTES;

use crate::elf::{Code, Dynamic, Headers, LinkMap};

const OBJECTS: usize = 2048;
/// More objects than that share the last number; they have no name, and their slots stay.
const LAST: usize = OBJECTS - 1;
const NAME: usize = 128;
/// The program itself: the linker opens it first.
pub(crate) const PROGRAM: usize = 0;

static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Numbers that can be given again.
static CLOSED: AtomicUsize = AtomicUsize::new(0);
/// Objects whose slots were not looked at yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static WAITS: [AtomicBool; OBJECTS] = [const { AtomicBool::new(false) }; OBJECTS];
/// Whether an object defines something to watch.
static DEFINES: [AtomicBool; OBJECTS] = [const { AtomicBool::new(true) }; OBJECTS];
static MAPS: [AtomicUsize; OBJECTS] = [const { AtomicUsize::new(0) }; OBJECTS];
/// Where an object's code begins and ends, once that was asked for; [`NO_CODE`] where it has none.
static CODE: [[AtomicUsize; 2]; OBJECTS] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; OBJECTS];
const NO_CODE: usize = 1;
/// Objects that were ever taken in, and how many of these had been when all were last asked for
/// their code.
static ADDED: AtomicUsize = AtomicUsize::new(0);
static LOOKED: AtomicUsize = AtomicUsize::new(0);
/// By the lower bits of the number of a block of the address space: 0 where no object has code in
/// such a one, else one more than the object that was found in one last. Of hundreds of words on a
/// stack most lie in none, the others mostly where the last did, and there may be a hundred objects.
static FOUND: [AtomicU16; 4096] = [const { AtomicU16::new(0) }; 4096];
const BLOCK_BYTES: usize = 64 << 10;
/// Whether events say where an object's code is.
static TOLD: [AtomicBool; OBJECTS] = [const { AtomicBool::new(false) }; OBJECTS];
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

/// Which of an object's symbols the linker is to ask about.
pub(crate) struct Bindings {
    /// Those that it calls.
    pub(crate) from: bool,
    /// Those that it defines.
    pub(crate) to: bool,
}

/// Takes an object in and returns its number. `before_reuse` hears of a number that was another
/// object's.
///
/// # Safety
/// The linker's description of an object.
pub(crate) unsafe fn add(
    map: *const LinkMap,
    before_reuse: impl FnOnce(usize),
) -> (usize, Bindings) {
    // SAFETY: only the linker, under its lock, comes here; the name ends with a zero.
    unsafe {
        let path = text_up_to((*map).name, 4096);
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let file = file.get(..NAME - 1).unwrap_or(file);
        let number = number_for(file, before_reuse);
        if number < LAST {
            TOLD[number].store(false, Ordering::Relaxed);
            MAPS[number].store(map as usize, Ordering::Release);
            CODE[number][1].store(0, Ordering::Release);
            ADDED.fetch_add(1, Ordering::Release);
            WAITS[number].store(true, Ordering::Release);
            WAITING.fetch_add(1, Ordering::Release);
        }
        if number == PROGRAM {
            note_program(&*map);
        }
        let to = Dynamic::from_link_map(&*map).is_none_or(|object| object.defines_one_of(&HASHES));
        DEFINES[number].store(to || number == LAST, Ordering::Relaxed);
        (number, Bindings { from: !is_system(number), to })
    }
}

/// A number for an object of that name.
///
/// # Safety
/// Under the linker's lock.
unsafe fn number_for(file: &[u8], before_reuse: impl FnOnce(usize)) -> usize {
    let count = COUNT.load(Ordering::Relaxed);
    let is_closed = |number: &usize| MAPS[*number].load(Ordering::Relaxed) == 0;
    let mut closed = (0..count.min(LAST)).filter(is_closed);
    let again = match CLOSED.load(Ordering::Relaxed) {
        0 => None,
        _ => closed.clone().find(|number| name(*number) == file),
    };
    if let Some(number) = again {
        CLOSED.fetch_sub(1, Ordering::Relaxed);
        return number;
    }
    let number = if count < LAST {
        COUNT.store(count + 1, Ordering::Release);
        count
    } else if let Some(number) = closed.next() {
        CLOSED.fetch_sub(1, Ordering::Relaxed);
        before_reuse(number);
        number
    } else {
        return LAST;
    };
    // SAFETY: inside the table; the linker's lock is held.
    unsafe {
        let to = (&raw mut NAMES[number]).cast::<u8>();
        ptr::write_bytes(to, 0, NAME);
        ptr::copy_nonoverlapping(file.as_ptr(), to, file.len());
    }
    number
}

/// Whether objects share this number: it has no name, and is nobody's in particular.
pub(crate) fn is_shared(number: usize) -> bool {
    number >= LAST
}

/// An object is closed: what is known of it may be another's soon.
pub(crate) fn remove(number: usize) {
    if is_shared(number) {
        return;
    }
    if WAITS[number].swap(false, Ordering::AcqRel) {
        WAITING.fetch_sub(1, Ordering::Release);
    }
    MAPS[number].store(0, Ordering::Release);
    // Its code will be gone: nobody is to look there.
    CODE[number][1].store(0, Ordering::Release);
    CLOSED.fetch_add(1, Ordering::Relaxed);
}

/// An object's file name; empty for the program itself.
pub(crate) fn name(number: usize) -> &'static [u8] {
    let number = number.min(LAST);
    // SAFETY: names change only when the linker, under its lock, loads another object.
    let name: &'static [u8; NAME] =
        unsafe { &*(&raw const NAMES).cast::<[u8; NAME]>().add(number) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    name.get(..length).unwrap_or_default()
}

/// Whether it is the C library itself, whose functions do what their names say.
pub(crate) fn is_c_library(number: usize) -> bool {
    name(number).starts_with(b"libc.so")
}

/// Libraries whose own calls of libc say nothing about who asked for them.
pub(crate) fn is_system(number: usize) -> bool {
    const SYSTEM: [&[u8]; 9] = [
        b"libc.so",
        b"ld-linux",
        b"libpthread",
        b"libdl.so",
        b"libm.so",
        b"libgcc_s",
        b"libstdc++",
        b"librt.so",
        b"linux-vdso",
    ];
    let name = name(number);
    SYSTEM.iter().any(|start| name.starts_with(start))
}

/// Goes through the objects whose slots were not looked at yet, with their numbers.
pub(crate) fn each_waiting(mut visit: impl FnMut(usize, &LinkMap)) {
    if WAITING.load(Ordering::Acquire) == 0 {
        return;
    }
    for number in 0..COUNT.load(Ordering::Acquire).min(LAST) {
        if !WAITS[number].swap(false, Ordering::AcqRel) {
            continue;
        }
        WAITING.fetch_sub(1, Ordering::Release);
        let map = MAPS[number].load(Ordering::Acquire) as *const LinkMap;
        if !map.is_null() {
            // SAFETY: the linker keeps the description while the object is loaded.
            visit(number, unsafe { &*map });
        }
    }
}

/// The program headers of the program itself, for its own number.
pub(crate) fn program_headers(number: usize) -> Option<Headers> {
    (number == PROGRAM).then(|| Headers {
        at: PROGRAM_HEADERS.load(Ordering::Relaxed),
        count: PROGRAM_HEADER_COUNT.load(Ordering::Relaxed),
    })
}

/// Parts of the program's own file that are remembered.
const PARTS: usize = 8;
/// Their first addresses and those behind their last.
static PROGRAM_PARTS: [[AtomicUsize; 2]; PARTS] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; PARTS];

/// Whether an address lies in what is loaded of the program's own file, and can be read there. That
/// is never unloaded.
pub(crate) fn is_of_program(address: usize) -> bool {
    PROGRAM_PARTS.iter().any(|[start, end]| {
        address < end.load(Ordering::Relaxed) && start.load(Ordering::Relaxed) <= address
    })
}

/// Notes where the program's own file is loaded.
///
/// # Safety
/// The linker's description of the program.
unsafe fn note_program(map: &LinkMap) {
    let Some(headers) = program_headers(PROGRAM) else { return };
    // SAFETY: the headers that the kernel tells of.
    let parts = unsafe { headers.readable_parts(map.base) };
    for ([start, end], part) in PROGRAM_PARTS.iter().zip(parts) {
        start.store(part.start, Ordering::Relaxed);
        end.store(part.end, Ordering::Relaxed);
    }
}

/// Whether an object defines something to watch.
pub(crate) fn defines_watched(number: usize) -> bool {
    DEFINES[number].load(Ordering::Relaxed)
}

/// The object whose code an address lies in.
pub(crate) fn with_code_at(address: usize) -> Option<usize> {
    if LOOKED.load(Ordering::Acquire) != ADDED.load(Ordering::Acquire) {
        look_for_code();
    }
    let found = found_near(address);
    let last = usize::from(found.load(Ordering::Relaxed)).checked_sub(1)?;
    if has_code_at(last, address) {
        return Some(last);
    }
    let count = COUNT.load(Ordering::Acquire).min(LAST);
    let number = (0..count).find(|number| has_code_at(*number, address))?;
    found.store(number as u16 + 1, Ordering::Relaxed);
    Some(number)
}

fn has_code_at(number: usize, address: usize) -> bool {
    let [start, end] = &CODE[number];
    address < end.load(Ordering::Acquire) && start.load(Ordering::Relaxed) <= address
}

/// Asks the objects for their code that were not asked yet.
#[cold]
fn look_for_code() {
    let added = ADDED.load(Ordering::Acquire);
    let count = COUNT.load(Ordering::Acquire).min(LAST);
    for (number, [start, end]) in CODE.iter().enumerate().take(count) {
        if end.load(Ordering::Acquire) != 0 {
            continue;
        }
        let range = code(number).map_or(NO_CODE..NO_CODE, |code| code.range);
        let is_empty = range.is_empty();
        let all = range.clone().step_by(BLOCK_BYTES).chain([range.end - 1]).filter(|_| !is_empty);
        for address in all {
            found_near(address).store(number as u16 + 1, Ordering::Relaxed);
        }
        start.store(range.start, Ordering::Relaxed);
        end.store(range.end, Ordering::Release);
    }
    LOOKED.store(added, Ordering::Release);
}

fn found_near(address: usize) -> &'static AtomicU16 {
    &FOUND[address / BLOCK_BYTES % FOUND.len()]
}

fn code(number: usize) -> Option<Code> {
    let map = MAPS[number].load(Ordering::Acquire) as *const LinkMap;
    // SAFETY: the linker keeps the description while the object is loaded.
    let map = unsafe { map.as_ref()? };
    // SAFETY: as above.
    unsafe { Code::of_object(map, program_headers(number)) }
}

/// Hands over what is to be said of an object whose code a stack leads into, unless it was said
/// already: where it lies, its code, and its path.
pub(crate) fn tell(number: usize, say: impl FnOnce(usize, Code, &[u8]) -> bool) {
    if TOLD[number].load(Ordering::Relaxed) {
        return;
    }
    let map = MAPS[number].load(Ordering::Acquire) as *const LinkMap;
    // SAFETY: the linker keeps the description while the object is loaded; a name ends with a zero.
    let (Some(map), Some(code)) = (unsafe { map.as_ref() }, code(number)) else { return };
    // SAFETY: as above.
    let path = unsafe { text_up_to(map.name, MOST_BYTES) };
    TOLD[number].store(say(map.base, code, path), Ordering::Relaxed);
}

/// The object that lies at or below an address: good enough for a name.
pub(crate) fn definer_of(address: usize) -> usize {
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
