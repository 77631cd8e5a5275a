//! What happens before and after a call that is watched.
//!
//! A call of PKCS#11, PC/SC or a driver is a *span*: an event at its beginning, one at its end, so
//! that a crash shows which one was open. A call of libc is a *leaf*: one event, which is counted
//! with its like when it was short. Reading a clock is shorter than writing about it, so leaves
//! that cannot wait are written only when they are over.
//!
//! Once the file lists no more calls, they are summed when they are over.

use core::ptr;
use core::sync::atomic::Ordering;

use tapstone_probe_core::capture::{self, Beginning, CaptureRules, LeafWords};
use tapstone_probe_core::cost::{StubCost, StubRunning};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::{FUNCTIONS, Kind};
use tapstone_probe_core::last_calls::LastCall;
use tapstone_probe_core::leaf::{
    LeafEnding, LeafTiming, Ticks, leaf_that_begins, leaf_timing, uses_descriptor,
};
use tapstone_probe_core::names::libc_kind;
use tapstone_probe_core::program_memory::ProgramMemory;
use tapstone_probe_core::questions;
use tapstone_probe_core::text::text_digest;
use tapstone_probe_core::wire::{
    EVENT_ENTER, EVENT_EXIT, FLAG_REPLACED, FLAG_SERVICE, FLAG_TERMINAL, Head, Leaf, MOST_BYTES,
};

use crate::file::SharedFile;
use crate::fixes::{self, AnsweredBy, FixAnswer};
use crate::memory::{memory_at_hand, memory_of};
use crate::process::now;
use crate::stubs::{StubSlot, slot};
use crate::thread::{self, DEPTH, Popped, Thread};
use crate::{callers, hooks, objects, service, state, sys, tables};

const NOT_WATCHED: u64 = 0;
const SPAN: u64 = 1;
const LEAF: u64 = 2;
const QUICK: u64 = 3;
/// A call of libc that is summed.
const SUMMED_LEAF: u64 = 4;
/// Or'ed: a fix answered.
const REPLACED: u64 = 8;

fn ticks() -> Ticks {
    Ticks { per_micro: state().header().ticks_per_micro }
}

fn capture_rules() -> CaptureRules {
    let header = state().header();
    CaptureRules { options: header.options, key: header.key }
}

/// Before the call. Returns what to call; null when a fix has answered.
pub(crate) unsafe extern "C" fn enter(frame: &mut Frame) -> usize {
    let slot = slot(frame.slot as u32);
    let original = slot.original.load(Ordering::Relaxed);
    let function = slot.function.load(Ordering::Relaxed);
    frame.state = NOT_WATCHED;
    frame.function = function;
    // SAFETY: a call of that function.
    if unsafe { capture::does_not_wait(function, frame) } {
        return original;
    }
    enter_watched(frame, slot, original)
}

/// Apart, so that a call of which nothing is written costs next to nothing.
#[inline(never)]
fn enter_watched(frame: &mut Frame, slot: &StubSlot, original: usize) -> usize {
    let function = frame.function;
    if let Some(hook) = (function as usize).checked_sub(FUNCTIONS.len()) {
        // SAFETY: a call of that function.
        unsafe { hooks::hook_called(hook, frame) };
        return original;
    }
    let here = frame.place();
    let Some(thread) = thread::enter(here) else { return original };
    thread.forget_abandoned(here);
    let sums = thread.journal.is_summing();
    let kind = libc_kind(function);
    let looks = !sums && !kind.is_some_and(|kind| is_looked_at_afterwards(kind, thread));
    let stack = if looks { callers::note(thread, frame, None) } else { ptr::null_mut() };
    // Costs are for what is found in calls that are listed.
    let chunk = thread.journal.chunk();
    let timed_from = (!sums && thread.cost_sampling.is_due()).then(now);
    let answer = match kind {
        None => enter_span(thread, frame, slot),
        Some(kind) => enter_leaf(thread, frame, slot, kind),
    };
    // That room was made for another chunk is an event of its own.
    if let (Some(from), Some(cost), true) =
        (timed_from, cost_of(frame), chunk == thread.journal.chunk())
    {
        cost.add_beginning(from, frame.start, now());
    }
    if frame.state != NOT_WATCHED {
        begin_at(stack, frame.start);
    }
    thread.leave();
    match answer {
        FixAnswer::Call => original,
        FixAnswer::Replaced(result) => {
            frame.result = result;
            frame.state |= REPLACED;
            0
        }
    }
}

/// Whether it is asked where a call comes from when it is over: inside a call of PKCS#11, PC/SC or a
/// driver, the waits that matter are those that took long, and were not for pcscd's answer.
fn is_looked_at_afterwards(kind: Kind, thread: &Thread) -> bool {
    thread.depth > 0 && uses_descriptor(kind)
}

/// Gives the event of a stack, if there is one, the time of its call.
fn begin_at(stack: *mut Head, start: u64) {
    if !stack.is_null() {
        // SAFETY: written by this call, into a chunk that is this thread's for good.
        unsafe { (*stack).time = start };
    }
}

/// Called by a stub after the call: notes how it ended.
pub(crate) unsafe extern "C" fn leave(frame: &mut Frame) {
    let end = now();
    if let Some(thread) = thread::enter(frame.place()) {
        let chunk = thread.journal.chunk();
        match frame.state & !REPLACED {
            SPAN => leave_span(thread, frame, end),
            LEAF => leave_leaf(thread, frame, end),
            SUMMED_LEAF => leave_summed_leaf(thread, frame, end),
            _ => leave_quick(thread, frame, end),
        }
        if !thread.journal.is_summing()
            && thread.cost_sampling.is_due()
            && chunk == thread.journal.chunk()
            && let Some(cost) = cost_of(frame)
        {
            cost.add_end(end, now());
        }
        thread.leave();
    }
    if frame.result == 0 && tables::hands_out_a_list(frame.function) {
        // SAFETY: the function's own arguments, after it succeeded.
        unsafe { tables::replace(frame, slot(frame.slot as u32)) };
    }
}

/// Where it is noted what watching this call costs: nowhere when nothing is written of it, or when
/// fixes work besides.
fn cost_of(frame: &Frame) -> Option<&'static StubCost> {
    let header = state().header();
    let is_written = frame.state != NOT_WATCHED;
    (is_written && header.fix_count == 0).then(|| header.costs.get(frame.function as usize))?
}

/// Where it is noted how much of this call's time its thread has a processor.
fn running_of(frame: &Frame) -> Option<&'static StubRunning> {
    let header = state().header();
    (header.fix_count == 0).then(|| header.running.get(frame.function as usize))?
}

fn enter_span(thread: &mut Thread, frame: &mut Frame, slot: &StubSlot) -> FixAnswer {
    let is_listed = thread.journal.lists_calls(&SharedFile);
    if thread.depth >= DEPTH {
        thread::dropped(&state().header().crowded);
        return FixAnswer::Call;
    }
    frame.id = slot.id(thread);
    let function = frame.function;
    let memory = memory_of(frame);
    let capture =
        // SAFETY: the arguments are that function's.
        || unsafe { capture::capture_beginning(function, frame, capture_rules(), &memory) };
    let beginning = is_listed.then(capture);
    if !is_listed {
        // SAFETY: as above.
        frame.question = unsafe { question(thread, frame, &memory) };
        frame.note = thread::changes();
    }
    // Processor times are for what is found in calls that are listed.
    let short = ticks().short_call();
    let running = running_of(frame).filter(|_| is_listed);
    let stands_for = running.and_then(|it| it.is_due(&mut thread.running_sampling, short));
    thread.look_at(frame.place(), stands_for.map(|calls| [sys::thread_nanos(), calls]));
    thread.push(frame.place(), frame.id, function);
    frame.state = SPAN;
    frame.start = now();
    match beginning {
        Some(Beginning { words, bytes, flags }) => {
            let head = Head::new(frame.start, EVENT_ENTER, frame.id).with_flags(flags);
            thread.journal.write_event(&SharedFile, head, words, bytes);
        }
        // Nothing else is kept there of such a call.
        None => frame.written = ptr::without_provenance_mut(thread.begin_sum(frame.id) as usize),
    }
    // SAFETY: as above.
    unsafe { fixes::before_span(thread, frame, function) }
}

fn leave_span(thread: &mut Thread, frame: &mut Frame, mut end: u64) {
    let function = frame.function;
    if let Some(([before, calls], running)) =
        thread.ran_before(frame.place()).zip(running_of(frame))
    {
        let ran = sys::thread_nanos().saturating_sub(before);
        running.add(end.saturating_sub(frame.start), ran, calls);
    }
    // SAFETY: the arguments are that function's, and it has returned.
    let changed = unsafe { fixes::after_span(thread, frame, function, answered_by(frame)) };
    if changed {
        end = now();
    }
    // Also where it is listed: another thread may only count its calls by now.
    if questions::may_change_answers(function) {
        thread::note_change();
    }
    let popped = thread.pop(frame.place());
    if popped == Some(Popped::Summed) {
        let call = LastCall::new(frame.id, frame.start, end, frame.result);
        let asked = answered_question(frame);
        thread.end_sum(frame.id, call, frame.written.addr() as u64, asked);
    }
    if popped == Some(Popped::Listed) {
        // SAFETY: as above.
        let word =
            unsafe { capture::capture_end(function, frame, capture_rules(), &memory_of(frame)) };
        let head = Head::new(end, EVENT_EXIT, frame.id).with_flags(replaced_flag(frame));
        thread.journal.write_event(&SharedFile, head, [frame.result, word], &[]);
    }
}

/// What a call asks that is about to begin and will be summed; 0: nothing that is to be known. With
/// fixes that is theirs.
///
/// # Safety
/// The arguments are the function's.
unsafe fn question(thread: &mut Thread, frame: &Frame, memory: &ProgramMemory) -> u64 {
    let may_ask = questions::may_ask(frame.function) && state().header().fix_count == 0;
    if !may_ask || !thread.keeps_questions(frame.id, frame.function) {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { questions::question_of(frame.id, frame, capture_rules().key, memory) }
}

/// What a summed call that is over has asked, with its answer; 0: nothing.
fn answered_question(frame: &Frame) -> u64 {
    let function = frame.function;
    let has_asked = questions::may_ask(function) && state().header().fix_count == 0;
    // What changed meanwhile may have come before the answer, or after it.
    if !has_asked || frame.question == 0 || frame.note != thread::changes() {
        return 0;
    }
    if !questions::is_answered(function) {
        return frame.question;
    }
    // SAFETY: a call of that function, which has returned.
    let answer =
        unsafe { capture::capture_end(function, frame, capture_rules(), &memory_of(frame)) };
    questions::with_answer(frame.question, answer)
}

fn enter_leaf(thread: &mut Thread, frame: &mut Frame, slot: &StubSlot, kind: Kind) -> FixAnswer {
    let function = frame.function;
    let memory = memory_of(frame);
    // SAFETY: the arguments are that function's.
    let LeafWords { a, b } = unsafe { capture::capture_leaf(function, kind, frame, &memory) };
    let timing = leaf_timing(kind, b, thread.depth);
    frame.state = match timing {
        LeafTiming::Unwritten => return FixAnswer::Call,
        LeafTiming::AtEnd => QUICK,
        LeafTiming::AtBeginning => LEAF,
    };
    frame.id = slot.id(thread);
    frame.note = a;
    // SAFETY: as above.
    let answer = unsafe { fixes::before_leaf(thread, frame, function, kind) };
    if timing == LeafTiming::AtBeginning && !thread.journal.lists_calls(&SharedFile) {
        frame.state = SUMMED_LEAF;
        thread.begin_summed(frame.id);
        frame.start = now();
    } else if timing == LeafTiming::AtBeginning {
        let bytes = match capture::path_argument(function, kind, frame) {
            // Others are read when the kernel has read them: asking it takes as long as all else.
            // SAFETY: nobody takes away what is known to be there.
            Some(path) => unsafe { memory_at_hand(frame).whole_text(path, MOST_BYTES) },
            // SAFETY: as above.
            None => Some(unsafe { capture::leaf_bytes(function, kind, frame, &memory) }),
        };
        let bytes = bytes.unwrap_or_default();
        // Calls with the same text are alike.
        let a = if bytes.is_empty() || kind == Kind::Connect { a } else { text_digest(bytes) };
        frame.start = now();
        let leaf = leaf_that_begins(frame.id, frame.start, a, b);
        let written = thread.journal.write_leaf(&SharedFile, &leaf, bytes);
        frame.written = thread.begin_wait(frame.place(), written);
    } else {
        frame.start = now();
    }
    answer
}

fn leave_quick(thread: &mut Thread, frame: &mut Frame, end: u64) {
    let function = frame.function;
    let Some(kind) = libc_kind(function) else { return };
    // SAFETY: the arguments are that function's, and it has returned.
    unsafe { fixes::after_leaf(thread, frame, function, kind, LeafTiming::AtEnd) };
    // A poll that could not wait: its time limit was 0.
    let b = match kind {
        Kind::Poll => 0,
        // SAFETY: as above.
        _ => unsafe { capture::capture_leaf(function, kind, frame, &memory_of(frame)).b },
    };
    let a = descriptor_of(frame);
    service::note_descriptor(kind, frame, a);
    let mut leaf = leaf_that_begins(frame.id, frame.start, a, b);
    leaf.close_at(end, frame.result, flags(frame, kind, a, 0));
    // Descriptors are told apart only where that says who is waited for.
    if matches!(kind, Kind::Clock) {
        leaf.a = 0;
    }
    if !thread.journal.lists_calls(&SharedFile) {
        thread.begin_summed(frame.id);
        let call = LastCall::new(frame.id, frame.start, end, frame.result);
        return thread.sum_leaf(frame.id, call, false);
    }
    match ticks().ending_of_quick(kind, leaf.sum) {
        LeafEnding::Counted => thread.journal.count_leaf(&SharedFile, &leaf),
        LeafEnding::Listed | LeafEnding::TakenBack => {
            thread.journal.write_leaf(&SharedFile, &leaf, &[]);
        }
    }
}

fn leave_summed_leaf(thread: &mut Thread, frame: &mut Frame, end: u64) {
    let function = frame.function;
    let Some(kind) = libc_kind(function) else { return };
    // SAFETY: the arguments are that function's, and it has returned.
    unsafe { fixes::after_leaf(thread, frame, function, kind, LeafTiming::AtBeginning) };
    let descriptor = descriptor_of(frame);
    service::note_descriptor(kind, frame, descriptor);
    let time = end.saturating_sub(frame.start);
    if ticks().ending_of_wait(kind, time) == LeafEnding::TakenBack {
        return thread.take_back_summed(frame.id);
    }
    let waits_for = flags(frame, kind, descriptor, time) & (FLAG_SERVICE | FLAG_TERMINAL);
    let waited = matches!(kind, Kind::Lock | Kind::Children) || waits_for != 0;
    let call = LastCall::new(frame.id, frame.start, end, frame.result);
    thread.sum_leaf(frame.id, call, waited);
}

fn leave_leaf(thread: &mut Thread, frame: &mut Frame, end: u64) {
    let function = frame.function;
    let Some(kind) = libc_kind(function) else { return };
    // SAFETY: the arguments are that function's, and it has returned.
    unsafe { fixes::after_leaf(thread, frame, function, kind, LeafTiming::AtBeginning) };
    service::note_descriptor(kind, frame, frame.note);
    let written = frame.written;
    if written.is_null() || !thread.end_wait(frame.place()) {
        return;
    }
    let time = end.saturating_sub(frame.start);
    let written = with_path(thread, frame, kind, time, written);
    // SAFETY: written by this call, into a chunk that is this thread's for good.
    let event = unsafe { &mut *written };
    if kind == Kind::Poll {
        event.a = descriptor_of(frame);
    }
    event.close_at(end, frame.result, flags(frame, kind, event.a, time));
    let waited_for_pcscd = event.head.flags & FLAG_SERVICE != 0;
    match ticks().ending_of_wait(kind, time) {
        // SAFETY: as above.
        LeafEnding::TakenBack => unsafe { thread.journal.take_back(written) },
        // SAFETY: as above.
        LeafEnding::Counted => unsafe { thread.journal.count_written(written) },
        LeafEnding::Listed if is_looked_at_afterwards(kind, thread) && !waited_for_pcscd => {
            callers::note(thread, frame, Some(frame.start));
        }
        LeafEnding::Listed => {}
    }
}

/// The event of a call that is over with the path that it names, if it has none yet: what is there
/// now, which another thread may have changed.
///
/// Where the C library has just found that path, its beginning is there. Somebody else's function of
/// that name, or a long call, says nothing of it.
fn with_path(
    thread: &mut Thread,
    frame: &Frame,
    kind: Kind,
    time: u64,
    written: *mut Leaf,
) -> *mut Leaf {
    let function = frame.function;
    let Some(path) = capture::path_argument(function, kind, frame) else { return written };
    // SAFETY: written by this call, into a chunk that is this thread's for good.
    let event = unsafe { &mut *written };
    if event.has_bytes() {
        return written;
    }
    let (_, definer) = slot(frame.slot as u32).objects();
    let was_read = capture::has_found_path(function, frame)
        && objects::is_c_library(definer)
        && ticks().is_short(time);
    let memory = memory_of(frame);
    let memory = if was_read { memory.after_read_of(path) } else { memory };
    // SAFETY: the arguments are that function's.
    let bytes = unsafe { capture::leaf_bytes(function, kind, frame, &memory) };
    if !bytes.is_empty() {
        event.a = text_digest(bytes);
    }
    // SAFETY: as above.
    unsafe { thread.journal.add_bytes(&SharedFile, written, bytes) }
}

/// What a call that is over has worked on. select(2) has overwritten the set in which that was.
fn descriptor_of(frame: &Frame) -> u64 {
    // SAFETY: the call has returned.
    unsafe { capture::polled_descriptor(frame.function, frame) }.unwrap_or(frame.note)
}

fn answered_by(frame: &Frame) -> AnsweredBy {
    if frame.state & REPLACED == 0 { AnsweredBy::Function } else { AnsweredBy::Fix }
}

fn replaced_flag(frame: &Frame) -> u8 {
    if frame.state & REPLACED == 0 { 0 } else { FLAG_REPLACED }
}

fn flags(frame: &Frame, kind: Kind, descriptor: u64, time: u64) -> u8 {
    let mut flags = replaced_flag(frame);
    if uses_descriptor(kind) {
        if service::leads_to_pcscd(descriptor) {
            flags |= FLAG_SERVICE;
        } else if ticks().is_as_long_as_people_take(time) && sys::is_terminal(descriptor as u32) {
            flags |= FLAG_TERMINAL;
        }
    }
    flags
}
