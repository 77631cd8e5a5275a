//! What happens before and after a call that is watched.
//!
//! A call of PKCS#11, PC/SC or a driver is a *span*: an event at its beginning, one at its end, so
//! that a crash shows which one was open. A call of libc is a *leaf*: one event, which is counted
//! with its like when it was short. Reading a clock is shorter than writing about it, so leaves
//! that cannot wait are written only when they are over.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::capture::Before;
use crate::fixes::{self, Answer};
use crate::stubs::{Frame, Slot, kind, slot};
use crate::thread::{self, DEPTH, Thread, now};
use crate::{capture, hooks, state, sys, tables};
use tapstone_probe_core::functions::{FUNCTIONS, Kind};
use tapstone_probe_core::wire::{
    EVENT_ENTER, EVENT_EXIT, EVENT_LEAF, FLAG_REPLACED, FLAG_SERVICE, FLAG_TERMINAL, Head, Leaf,
};

const NOT_WATCHED: u64 = 0;
const SPAN: u64 = 1;
const LEAF: u64 = 2;
const QUICK: u64 = 3;
/// Or'ed: a fix answered.
const REPLACED: u64 = 8;

/// Shorter ones are counted, not listed, in microseconds: nothing sleeps and wakes up in less.
const LISTED_MICROS: u64 = 20;
/// Locks that were free are no waiting.
const LOCKED_MICROS: u64 = 10;
/// Only those who wait for people wait so long; asking the kernel what a descriptor is takes time.
const TERMINAL_MICROS: u64 = 1_000;

fn ticks(micros: u64) -> u64 {
    micros * u64::from(state().header().ticks_per_micro)
}

/// Before the call. Returns what to call; null when a fix has answered.
pub(crate) unsafe extern "C" fn enter(frame: &mut Frame) -> usize {
    let slot = slot(frame.slot as u32);
    let original = slot.original.load(Ordering::Relaxed);
    let function = slot.function.load(Ordering::Relaxed);
    (frame.state, frame.function) = (NOT_WATCHED, function);
    // SAFETY: a call of that function.
    if unsafe { capture::is_free_lock(function, frame) } {
        return original;
    }
    enter_watched(frame, slot, original)
}

/// Apart, so that a call of which nothing is written costs next to nothing.
#[inline(never)]
fn enter_watched(frame: &mut Frame, slot: &Slot, original: usize) -> usize {
    let function = frame.function;
    if let Some(hook) = (function as usize).checked_sub(FUNCTIONS.len()) {
        // SAFETY: a call of that function.
        unsafe { hooks::called(hook, frame) };
        return original;
    }
    let here = ptr::from_ref(frame) as usize;
    let Some(thread) = thread::enter(here) else { return original };
    thread.forget_abandoned(here);
    let answer = match kind(function) {
        None => enter_span(thread, frame, slot),
        Some(kind) => enter_leaf(thread, frame, slot, kind),
    };
    thread.leave();
    match answer {
        Answer::Call => original,
        Answer::Replaced(result) => {
            frame.result = result;
            frame.state |= REPLACED;
            0
        }
    }
}

/// After the call.
pub(crate) unsafe extern "C" fn leave(frame: &mut Frame) {
    let end = now();
    if let Some(thread) = thread::enter(ptr::from_ref(frame) as usize) {
        match frame.state & !REPLACED {
            SPAN => leave_span(thread, frame, end),
            LEAF => leave_leaf(thread, frame, end),
            _ => leave_quick(thread, frame, end),
        }
        thread.leave();
    }
    if frame.result == 0 && tables::hands_out_a_list(frame.function) {
        // SAFETY: the function's own arguments, after it succeeded.
        unsafe { tables::replace(frame, slot(frame.slot as u32)) };
    }
}

fn enter_span(thread: &mut Thread, frame: &mut Frame, slot: &Slot) -> Answer {
    thread.journal.make_room();
    if thread.depth >= DEPTH {
        thread::dropped(&state().header().crowded);
        return Answer::Call;
    }
    frame.id = slot.id(thread);
    let function = frame.function;
    // SAFETY: the arguments are that function's.
    let Before { words, bytes, flags } = unsafe { capture::before(function, frame) };
    thread.push(ptr::from_ref(frame) as usize, frame.id, function);
    frame.state = SPAN;
    frame.start = now();
    thread.journal.put(frame.start, EVENT_ENTER, flags, frame.id, words, bytes);
    // SAFETY: as above.
    unsafe { fixes::before_span(frame, function) }
}

fn leave_span(thread: &mut Thread, frame: &mut Frame, mut end: u64) {
    let function = frame.function;
    // SAFETY: the arguments are that function's, and it has returned.
    let changed =
        unsafe { fixes::after_span(thread, frame, function, frame.state & REPLACED != 0) };
    if changed {
        end = now();
    }
    // SAFETY: as above.
    let word = unsafe { capture::after(function, frame) };
    if thread.pop(ptr::from_ref(frame) as usize) {
        let flags = if frame.state & REPLACED == 0 { 0 } else { FLAG_REPLACED };
        thread.journal.put(end, EVENT_EXIT, flags, frame.id, [frame.result, word], &[]);
    }
}

fn enter_leaf(thread: &mut Thread, frame: &mut Frame, slot: &Slot, kind: Kind) -> Answer {
    let function = frame.function;
    // SAFETY: the arguments are that function's.
    let (a, b) = unsafe { capture::leaf(function, kind, frame) };
    let outside = thread.depth == 0;
    let quick = match kind {
        Kind::Clock => true,
        Kind::Poll => b == 0,
        Kind::Write | Kind::Close => true,
        _ => false,
    };
    // Outside of any call, what a program does with clocks and locks is its own affair.
    if outside && (kind == Kind::Lock || (quick && kind != Kind::Close && kind != Kind::Write)) {
        return Answer::Call;
    }
    frame.id = slot.id(thread);
    frame.note = a;
    frame.state = if quick { QUICK } else { LEAF };
    // SAFETY: as above.
    let answer = unsafe { fixes::before_leaf(thread, frame, function, kind) };
    if !quick {
        // SAFETY: as above.
        let bytes = unsafe { capture::text(function, kind, frame) };
        // Calls with the same text are alike.
        let a = if bytes.is_empty() || kind == Kind::Connect { a } else { capture::hash(bytes) };
        let start = now();
        let leaf = leaf(frame, start, (a, b));
        frame.start = start;
        let written = thread.journal.put_leaf(&leaf, bytes);
        frame.written = thread.begin_wait(ptr::from_ref(frame) as usize, written);
    } else {
        frame.start = now();
    }
    answer
}

fn leaf(frame: &Frame, start: u64, (a, b): (u64, u64)) -> Leaf {
    let head = Head { time: start, kind: EVENT_LEAF, flags: 0, words: 0, slot: frame.id };
    Leaf { head, end: 0, count: 1, sum: 0, min: 0, max: 0, result: 0, a, b }
}

fn close(leaf: &mut Leaf, frame: &Frame, end: u64, flags: u8) {
    let time = end.saturating_sub(frame.start);
    (leaf.end, leaf.sum, leaf.min, leaf.max) = (end, time, time, time);
    leaf.result = frame.result;
    leaf.head.flags = flags;
}

fn leave_quick(thread: &mut Thread, frame: &mut Frame, end: u64) {
    let function = frame.function;
    let Some(kind) = kind(function) else { return };
    // SAFETY: the arguments are that function's, and it has returned.
    let (_, b) = unsafe {
        fixes::after_leaf(thread, frame, function, kind, true);
        capture::leaf(function, kind, frame)
    };
    // select(2) has overwritten the set in which it was.
    let a = frame.note;
    capture::note_descriptor(kind, frame, a);
    let mut leaf = leaf(frame, frame.start, (a, b));
    close(&mut leaf, frame, end, flags(frame, kind, a, 0));
    // Descriptors are told apart only where that says who is waited for.
    if matches!(kind, Kind::Clock) {
        leaf.a = 0;
    }
    if end.saturating_sub(frame.start) < ticks(LISTED_MICROS) && kind != Kind::Close {
        thread.journal.count(&leaf);
    } else {
        thread.journal.put_leaf(&leaf, &[]);
    }
}

fn leave_leaf(thread: &mut Thread, frame: &mut Frame, end: u64) {
    let function = frame.function;
    let Some(kind) = kind(function) else { return };
    // SAFETY: the arguments are that function's, and it has returned.
    unsafe { fixes::after_leaf(thread, frame, function, kind, false) };
    capture::note_descriptor(kind, frame, frame.note);
    let written = frame.written;
    if written.is_null() || !thread.end_wait(ptr::from_ref(frame) as usize) {
        return;
    }
    let time = end.saturating_sub(frame.start);
    // SAFETY: written by this call, into a chunk that is this thread's for good.
    let event = unsafe { &mut *written };
    close(event, frame, end, flags(frame, kind, event.a, time));
    let short = time < ticks(LISTED_MICROS);
    match kind {
        Kind::Lock if time < ticks(LOCKED_MICROS) => thread.journal.take_back(written),
        Kind::Sleep | Kind::Connect => {}
        _ if short => thread.journal.join(written),
        _ => {}
    }
}

fn flags(frame: &Frame, kind: Kind, descriptor: u64, time: u64) -> u8 {
    let mut flags = if frame.state & REPLACED == 0 { 0 } else { FLAG_REPLACED };
    if matches!(kind, Kind::Poll | Kind::Read | Kind::Write) {
        if capture::is_service(descriptor) {
            flags |= FLAG_SERVICE;
        } else if time > ticks(TERMINAL_MICROS) && sys::is_terminal(descriptor as u32) {
            flags |= FLAG_TERMINAL;
        }
    }
    flags
}
