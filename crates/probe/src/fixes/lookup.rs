//! `memoise:FUNCTION`: the first answer of a lookup is kept, for each argument, and given again.
//!
//! Only for functions of which the answer's layout is known ([`shape`]) and that hand out storage
//! of their own: the copy is deep, and as the original, it is overwritten by nobody else.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Answer, FIX_MEMOISE, are_on, of_kind};
use crate::stubs::Frame;
use crate::sys;
use tapstone_probe_core::functions::FUNCTIONS;
use tapstone_probe_core::wire::Fix;

const ENTRIES: usize = 512;
const KEY: usize = 96;
const ARENA: usize = 1 << 20;
const EMPTY: usize = 0;
const FILLING: usize = 1;
const READY: usize = 2;

/// One answer.
#[repr(C)]
struct Entry {
    state: AtomicUsize,
    function: u32,
    length: u32,
    key: [u8; KEY],
    answer: usize,
}

static TABLE: AtomicUsize = AtomicUsize::new(0);
static ARENA_AT: AtomicUsize = AtomicUsize::new(0);
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);

/// A word of a structure that a lookup returns.
#[derive(Clone, Copy)]
enum Field {
    /// char *.
    Text,
    /// char **, which ends with null.
    Texts,
    /// Anything that is no pointer.
    Plain,
}

/// What `<netdb.h>`, `<pwd.h>` and `<grp.h>` say of the structure, and whether a second argument
/// (the protocol) belongs to the question.
fn shape(function: &str) -> Option<(&'static [Field], bool)> {
    use Field::{Plain, Text, Texts};
    Some(match function {
        "getprotobyname" | "getprotobynumber" => (&[Text, Texts, Plain], false),
        "getservbyname" | "getservbyport" => (&[Text, Texts, Plain, Text], true),
        "getpwnam" | "getpwuid" => (&[Text, Text, Plain, Text, Text, Text], false),
        "getgrnam" | "getgrgid" => (&[Text, Text, Plain, Texts], false),
        _ => return None,
    })
}

fn by_number(function: &str) -> bool {
    function.ends_with("number")
        || function.ends_with("port")
        || function.ends_with("uid")
        || function.ends_with("gid")
}

struct Question {
    function: u32,
    key: [u8; KEY],
    length: usize,
    fields: &'static [Field],
    fix: &'static Fix,
}

/// # Safety
/// The frame is a call of that function.
unsafe fn question(frame: &Frame, function: u32) -> Option<Question> {
    let fix = of_kind(FIX_MEMOISE).find(|fix| fix.is_about(function))?;
    let name = FUNCTIONS.get(function as usize)?.name;
    let (fields, protocol) = shape(name)?;
    let (mut key, mut length) = ([0; KEY], 0);
    let mut add = |text: *const u8, bytes: usize| {
        for at in 0..bytes {
            // SAFETY: inside the text.
            *key.get_mut(length)? = unsafe { *text.add(at) };
            length += 1;
        }
        length += 1;
        Some(())
    };
    let first = frame.arguments[0];
    // SAFETY: names end with a zero.
    unsafe {
        if by_number(name) {
            let number = (first as u32).to_ne_bytes();
            add(number.as_ptr(), number.len())?;
        } else {
            add(first as *const u8, sys::length(first as *const u8, KEY))?;
        }
        if protocol {
            let second = frame.arguments[1] as *const u8;
            add(second, sys::length(second, KEY))?;
        }
    }
    Some(Question { function, key, length, fields, fix })
}

fn entries() -> &'static [Entry] {
    let size = ENTRIES * size_of::<Entry>();
    if TABLE.load(Ordering::Acquire) == 0 {
        let made = sys::memory(size) as usize;
        let _ = TABLE.compare_exchange(0, made, Ordering::AcqRel, Ordering::Relaxed);
    }
    let table = TABLE.load(Ordering::Acquire) as *const Entry;
    if table.is_null() {
        return &[];
    }
    // SAFETY: mapped for good, zeroed, and as long.
    unsafe { core::slice::from_raw_parts(table, ENTRIES) }
}

fn find(question: &Question) -> Option<&'static Entry> {
    let known = entries().iter().take_while(|entry| entry.state.load(Ordering::Acquire) != EMPTY);
    known.filter(|entry| entry.state.load(Ordering::Acquire) == READY).find(|entry| {
        entry.function == question.function
            && entry.length as usize == question.length
            && entry.key == question.key
    })
}

/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before(frame: &Frame, function: u32) -> Answer {
    // SAFETY: as above.
    let question = unsafe { question(frame, function) };
    let Some(question) = question.filter(|_| are_on()) else { return Answer::Call };
    match find(&question) {
        Some(entry) => {
            question.fix.count_applied();
            Answer::Replaced(entry.answer as u64)
        }
        None => Answer::Call,
    }
}

/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after(frame: &Frame, function: u32) {
    // SAFETY: as above.
    let question = unsafe { question(frame, function) };
    let Some(question) = question.filter(|_| are_on()) else { return };
    if find(&question).is_some() {
        return;
    }
    // SAFETY: what the function returned, of that shape.
    let Some(answer) = (unsafe { copy(frame.result as *const usize, question.fields) }) else {
        question.fix.count_refused();
        return;
    };
    let mine = entries().iter().find(|entry| {
        let claimed =
            entry.state.compare_exchange(EMPTY, FILLING, Ordering::AcqRel, Ordering::Relaxed);
        claimed.is_ok()
    });
    let Some(entry) = mine else {
        question.fix.count_refused();
        return;
    };
    let at = ptr::from_ref(entry).cast_mut();
    // SAFETY: claimed by this thread; nobody reads it before it is ready.
    unsafe {
        (&raw mut (*at).function).write(question.function);
        (&raw mut (*at).length).write(question.length as u32);
        (&raw mut (*at).key).write(question.key);
        (&raw mut (*at).answer).write(answer);
    }
    entry.state.store(READY, Ordering::Release);
}

/// A deep copy; of nothing, nothing. `None`: there is no room.
///
/// # Safety
/// `from` is null or a structure of that shape.
unsafe fn copy(from: *const usize, fields: &[Field]) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    let to = allocate(fields.len() * 8)?.cast::<usize>();
    for (at, field) in fields.iter().enumerate() {
        // SAFETY: as many words; texts end with a zero, lists with null.
        unsafe {
            let value = *from.add(at);
            *to.add(at) = match field {
                Field::Plain => value,
                Field::Text => copy_text(value as *const u8)?,
                Field::Texts => copy_texts(value as *const usize)?,
            };
        }
    }
    Some(to as usize)
}

/// # Safety
/// `from` is null or a text that ends with a zero.
unsafe fn copy_text(from: *const u8) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    // SAFETY: the text and its zero.
    unsafe {
        let length = sys::length(from, 4096);
        let to = allocate(length + 1)?;
        ptr::copy_nonoverlapping(from, to, length);
        Some(to as usize)
    }
}

/// # Safety
/// `from` is null or a list of texts that ends with null.
unsafe fn copy_texts(from: *const usize) -> Option<usize> {
    if from.is_null() {
        return Some(0);
    }
    // SAFETY: the list and its null.
    unsafe {
        let mut count = 0;
        while *from.add(count) != 0 {
            count += 1;
        }
        let to = allocate((count + 1) * 8)?.cast::<usize>();
        for at in 0..count {
            *to.add(at) = copy_text(*from.add(at) as *const u8)?;
        }
        Some(to as usize)
    }
}

/// Zeroed memory for good.
fn allocate(bytes: usize) -> Option<*mut u8> {
    if ARENA_AT.load(Ordering::Acquire) == 0 {
        let made = sys::memory(ARENA) as usize;
        let _ = ARENA_AT.compare_exchange(0, made, Ordering::AcqRel, Ordering::Relaxed);
    }
    let start = ARENA_AT.load(Ordering::Acquire);
    let at = ARENA_USED.fetch_add(bytes.next_multiple_of(16), Ordering::AcqRel);
    (start != 0 && at + bytes <= ARENA).then_some((start + at) as *mut u8)
}
