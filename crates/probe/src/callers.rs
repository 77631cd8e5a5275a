//! Where calls come from: what is kept of the stacks of the first calls of each place.
//!
//! Only addresses are kept ([`tapstone_probe_core::callers`]); whoever reads them undoes the stack's
//! frames with the unwinding tables of the files of code.

use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use tapstone_probe_core::callers::{
    CallPlace, FRAME_WORDS, LONGEST_CALL, MOST_WORDS, STACK_BYTES, kept_word, place_and_word,
};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::Kind;
use tapstone_probe_core::names::libc_kind;
use tapstone_probe_core::wire::{CAPTURE_CALLERS, EVENT_OBJECT, EVENT_STACK, Head, PROBE_NAME};

use crate::file::SharedFile;
use crate::process::now;
use crate::stubs::own_code;
use crate::thread::Thread;
use crate::{objects, state, sys};

const PAGE_BYTES: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Writes where a call comes from that began at this moment, or begins now, if it is one of the first
/// from there. Returns the event, which is to get the call's own time; null where there is none.
#[inline(always)]
pub(crate) fn note(thread: &mut Thread, frame: &Frame, at: Option<u64>) -> *mut Head {
    let state = state();
    let is_quick =
        matches!(libc_kind(frame.function), Some(Kind::Clock | Kind::Write | Kind::Close));
    if state.header().options & CAPTURE_CALLERS == 0 || is_quick {
        return ptr::null_mut();
    }
    let place = CallPlace {
        stub: frame.slot as u32,
        returns_to: returns_to(frame),
        depth: sys::thread_pointer().wrapping_sub(frame.place()),
    };
    if state.call_places().is_due(place) {
        write(thread, frame, at.unwrap_or_else(now))
    } else {
        ptr::null_mut()
    }
}

/// Where the call returns to: the word in front of its caller's frame.
fn returns_to(frame: &Frame) -> usize {
    // SAFETY: a stub's frame lies below it.
    unsafe { *frame.stack.sub(1) as usize }
}

#[cold]
fn write(thread: &mut Thread, frame: &Frame, at: u64) -> *mut Head {
    let frames = looked_at(frame.stack as usize);
    let start = frames.start;
    let stack = start as u64..frames.end as u64;
    // SAFETY: the stub has pushed it.
    let frame_pointer = unsafe { *frame.stack.sub(2) };
    let fill = |words: &mut [u64]| {
        let [stack_pointer, base, returns, kept @ ..] = words else { return 0 };
        *stack_pointer = start as u64;
        *base = if stack.contains(&frame_pointer) { frame_pointer } else { 0 };
        *returns = returns_to(frame) as u64;
        let mut count = 0;
        for (place, word) in words_of(frames.clone()).enumerate() {
            let Some(word) = kept_word(place, word, stack.clone(), bytes_before) else { continue };
            let Some(to) = kept.get_mut(count) else { break };
            *to = word;
            count += 1;
        }
        FRAME_WORDS + count
    };
    let head = Head::new(at, EVENT_STACK, 0);
    let written = thread.journal.write_words(&SharedFile, head, FRAME_WORDS + MOST_WORDS, fill);
    if !written.is_null() {
        tell_of_objects(thread, written, at);
    }
    written
}

/// The part of a stack that is looked at. Frames end at what the kernel left there for the program,
/// or, in a thread that the C library made, at what it keeps of that thread.
fn looked_at(start: usize) -> Range<usize> {
    let ends = [crate::environment(), sys::thread_pointer()];
    let end = ends.into_iter().filter(|end| start < *end).fold(start + STACK_BYTES, usize::min);
    start..end
}

/// The words of a stack, up to the first page that cannot be read.
fn words_of(stack: Range<usize>) -> impl Iterator<Item = u64> {
    let start = stack.start;
    let is_there = move |at: &usize| {
        let is_new = *at == start || at.is_multiple_of(PAGE_BYTES);
        !is_new || sys::is_readable(*at)
    };
    let places = stack.step_by(WORD).take_while(is_there);
    // SAFETY: the page can be read; no other thread unmaps the stack of one that is in a call.
    places.map(|at| unsafe { *(at as *const u64) })
}

/// The bytes in front of an address of loaded code.
fn bytes_before(address: u64) -> Option<[u8; LONGEST_CALL]> {
    let before = (address as usize).checked_sub(LONGEST_CALL)?;
    if !own_code().contains(&before) {
        let (first, last) =
            (objects::with_code_at(before)?, objects::with_code_at(before + LONGEST_CALL - 1)?);
        if first != last {
            return None;
        }
    }
    // SAFETY: code of an object that is loaded, and can be read.
    Some(unsafe { *(before as *const [u8; LONGEST_CALL]) })
}

/// Says of the objects that a stack leads into where they are, as of the moment that it is of.
fn tell_of_objects(thread: &mut Thread, stack: *const Head, at: u64) {
    // SAFETY: just written, into a chunk that is this thread's for good.
    let words = unsafe {
        let count = usize::from((*stack).words).saturating_sub(2);
        core::slice::from_raw_parts(stack.add(1).cast::<u64>(), count)
    };
    let returns = words.get(2).copied();
    let kept = words.iter().skip(FRAME_WORDS).map(|word| place_and_word(*word).1);
    for address in returns.into_iter().chain(kept) {
        let mut say = |base: usize, range: Range<usize>, build_id: u64, path: &[u8]| {
            let words = [base as u64, range.start as u64, range.end as u64, build_id];
            let head = Head::new(at, EVENT_OBJECT, 0);
            !thread.journal.write_event(&SharedFile, head, words, path).is_null()
        };
        if own_code().contains(&(address as usize)) {
            if !TOLD_OF_OWN.load(Ordering::Relaxed) {
                TOLD_OF_OWN.store(say(0, own_code(), 0, PROBE_NAME), Ordering::Relaxed);
            }
        } else if let Some(number) = objects::with_code_at(address as usize) {
            objects::tell(number, |base, code, path| say(base, code.range, code.build_id, path));
        }
    }
}

/// Whether events say where the probe's own code is.
static TOLD_OF_OWN: AtomicBool = AtomicBool::new(false);

impl crate::State {
    fn call_places(&self) -> &'static tapstone_probe_core::callers::CallPlaces {
        // SAFETY: a part of the table, which is mapped for good; all zeros know no place.
        unsafe { &(*self.threads).call_places }
    }
}
