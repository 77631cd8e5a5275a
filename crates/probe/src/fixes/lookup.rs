//! `memoise:FUNCTION`: [`lookup`](tapstone_probe_core::lookup) in the program's memory.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::FUNCTIONS;
use tapstone_probe_core::lookup::{
    Arena, Field, LookupEntry, Question, answer_shape, copy_answer, find_answer, keep_answer,
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
    fields: &'static [Field],
    fix: &'static Fix,
}

/// # Safety
/// The frame is a call of that function.
unsafe fn fixed_question(frame: &Frame, function: u32) -> Option<FixedQuestion> {
    let fix = of_kind(FIX_MEMOISE).find(|fix| fix.is_about(function))?;
    let (fields, asked) = answer_shape(FUNCTIONS.get(function as usize)?.name)?;
    let [first, second, ..] = frame.arguments;
    // SAFETY: arguments of that function.
    let question = unsafe { Question::read(function, asked, first, second) }?;
    are_on().then_some(FixedQuestion { question, fields, fix })
}

/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(frame: &Frame, function: u32) -> FixAnswer {
    // SAFETY: as above.
    let Some(asked) = (unsafe { fixed_question(frame, function) }) else { return FixAnswer::Call };
    match find_answer(entries(), &asked.question) {
        Some(answer) => {
            asked.fix.count_applied();
            FixAnswer::Replaced(answer as u64)
        }
        None => FixAnswer::Call,
    }
}

/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_call(frame: &Frame, function: u32) {
    // SAFETY: as above.
    let Some(asked) = (unsafe { fixed_question(frame, function) }) else { return };
    if find_answer(entries(), &asked.question).is_some() {
        return;
    }
    let arena = Arena { start: memory(&ARENA, ARENA_BYTES), bytes: ARENA_BYTES, used: &ARENA_USED };
    // SAFETY: what the function returned, of that shape.
    let answer = unsafe { copy_answer(frame.result as *const usize, asked.fields, &arena) };
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
