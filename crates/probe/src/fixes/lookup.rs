//! `memoise:FUNCTION`: [`lookup`](tapstone_probe_core::lookup) in the program's memory.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::FUNCTIONS;
use tapstone_probe_core::lookup::{
    AnswerShape, Arena, LookupEntry, Question, answer_shape, copy_answer, find_answer, give_answer,
    keep_answer,
};
use tapstone_probe_core::wire::{FIX_MEMOISE, Fix};

use super::{FixAnswer, are_on, of_kind};
use crate::sys;

const ENTRIES: usize = 512;
const ARENA_BYTES: usize = 1 << 20;

static TABLE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static ARENA: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);

/// A question that a fix is about.
struct FixedQuestion {
    question: Question,
    shape: AnswerShape,
    fix: &'static Fix,
}

/// Where a caller wants the answer.
struct CallersRoom {
    structure: *mut usize,
    buffer: (*mut u8, usize),
    /// Where the structure's address goes.
    result: *mut usize,
}

impl CallersRoom {
    fn of(frame: &Frame, first: usize) -> Option<Self> {
        let [structure, buffer, length, result] = *frame.arguments.get(first..first + 4)? else {
            return None;
        };
        let result = result as *mut usize;
        let buffer = (buffer as *mut u8, length as usize);
        let structure = structure as *mut usize;
        (!structure.is_null() && !result.is_null()).then_some(Self { structure, buffer, result })
    }
}

/// # Safety
/// The frame is a call of that function.
unsafe fn fixed_question(frame: &Frame, function: u32) -> Option<FixedQuestion> {
    let fix = of_kind(FIX_MEMOISE).find(|fix| fix.is_about(function))?;
    let shape = answer_shape(FUNCTIONS.get(function as usize)?.name)?;
    let [first, second, ..] = frame.arguments;
    // SAFETY: arguments of that function.
    let question = unsafe { Question::read(function, shape.asked, first, second) }?;
    are_on().then_some(FixedQuestion { question, shape, fix })
}

/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(frame: &Frame, function: u32) -> FixAnswer {
    // SAFETY: as above.
    let Some(asked) = (unsafe { fixed_question(frame, function) }) else { return FixAnswer::Call };
    let Some(answer) = find_answer(entries(), &asked.question) else { return FixAnswer::Call };
    let result = match asked.shape.room {
        None => answer as u64,
        Some(first) => {
            let Some(room) = CallersRoom::of(frame, first) else { return FixAnswer::Call };
            // SAFETY: as much room as the caller says; an answer of that shape was kept.
            unsafe {
                let is_given = answer == 0
                    || give_answer(answer, asked.shape.fields, room.structure, room.buffer);
                if !is_given {
                    return FixAnswer::Call;
                }
                *room.result = if answer == 0 { 0 } else { room.structure as usize };
            }
            0
        }
    };
    asked.fix.count_applied();
    FixAnswer::Replaced(result)
}

/// What a lookup that has returned has found, or null. `None`: it failed, and nothing is kept.
///
/// # Safety
/// The frame is a call of a function of that shape, which has returned.
unsafe fn found(frame: &Frame, shape: AnswerShape) -> Option<*const usize> {
    let Some(first) = shape.room else { return Some(frame.result as *const usize) };
    let room = CallersRoom::of(frame, first).filter(|_| frame.result as i32 == 0)?;
    // SAFETY: the function has written there.
    Some(unsafe { *room.result } as *const usize)
}

/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_call(frame: &Frame, function: u32) {
    // SAFETY: as above.
    let Some(asked) = (unsafe { fixed_question(frame, function) }) else { return };
    if find_answer(entries(), &asked.question).is_some() {
        return;
    }
    // SAFETY: as above.
    let Some(answer) = (unsafe { found(frame, asked.shape) }) else { return };
    let arena = Arena { start: memory(&ARENA, ARENA_BYTES), bytes: ARENA_BYTES, used: &ARENA_USED };
    // SAFETY: what the function returned, of that shape.
    let answer = unsafe { copy_answer(answer, asked.shape.fields, &arena) };
    let table = table();
    let places = if table.is_null() { 0 } else { ENTRIES };
    // SAFETY: the table has as many places.
    let keep = |answer| unsafe { keep_answer(table, places, &asked.question, answer) };
    if !answer.is_some_and(keep) {
        asked.fix.count_refused();
    }
}

fn table() -> *mut LookupEntry {
    memory(&TABLE, ENTRIES * size_of::<LookupEntry>()).cast()
}

fn entries() -> &'static [LookupEntry] {
    let table = table();
    if table.is_null() {
        return &[];
    }
    // SAFETY: mapped for good, zeroed, and as long.
    unsafe { core::slice::from_raw_parts(table, ENTRIES) }
}

/// Zeroed memory for good, mapped when it is first asked for; null when there is none.
fn memory(place: &AtomicPtr<u8>, bytes: usize) -> *mut u8 {
    if place.load(Ordering::Acquire).is_null() {
        let made = sys::memory(bytes);
        let none = ptr::null_mut();
        let _ = place.compare_exchange(none, made, Ordering::AcqRel, Ordering::Relaxed);
    }
    place.load(Ordering::Acquire)
}
