//! Functions that are not recorded, but say what the probe has to know: that calls are left without
//! returning, that the program limits its memory, that it starts another one, in which the probe
//! then begins, or does not, and that it ends.

use tapstone_probe_core::foreign::{is_foreign, names_probe};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::names::{Hook, environment_argument, hook};
use tapstone_probe_core::program_memory::ProgramMemory;
use tapstone_probe_core::wire::{
    EVENT_ENDS, EVENT_STARTS, Head, MOST_BYTES, STARTS_CHILD, STARTS_HERE,
};

use crate::file::SharedFile;
use crate::memory::memory_of;
use crate::process::now;
use crate::thread;
use crate::{fixes, limit, process, sys};

/// Before one of them is called: the number is its place in
/// [`HOOKS`](tapstone_probe_core::names::HOOKS).
///
/// # Safety
/// The frame is a call of that function.
pub(crate) unsafe fn hook_called(number: usize, frame: &mut Frame) {
    let [first, second, third, ..] = frame.arguments;
    let here = frame.place();
    match hook(number) {
        // SAFETY: a jmp_buf.
        Hook::LongJump => thread::left(here, unsafe { jump_target(first) }),
        // The handler is in the function that calls this one: what was below that is gone.
        Hook::Catch => thread::left(here, frame.stack as usize),
        // SAFETY: a call of that function.
        Hook::SetLimit => unsafe { limit::set_limit(first, second, &memory_of(frame)) },
        Hook::SetLimitOf if first as u32 == 0 || first as u32 == sys::process() => {
            // SAFETY: as above; only of this process.
            unsafe { limit::set_limit(second, third, &memory_of(frame)) };
        }
        Hook::SetLimitOf => {}
        Hook::LockMemory => limit::lock_memory(),
        // SAFETY: a call of that function.
        Hook::Exec => unsafe {
            program_starts(frame, first, STARTS_HERE);
            spare_foreign_program(number, frame, first);
        },
        // SAFETY: as above.
        Hook::Spawn => unsafe {
            program_starts(frame, second, STARTS_CHILD);
            spare_foreign_program(number, frame, second);
        },
        Hook::Exit => process_ends(here),
    }
}

/// The process is about to end: what it took is known to it alone, since whoever waits for it may
/// wait for others too.
pub(crate) fn process_ends(here: usize) {
    if process::is_borrowed() {
        return;
    }
    fixes::process_ends();
    let id = u64::from(sys::process());
    let [mut ran, waited] = sys::scheduled().unwrap_or_default();
    if sys::thread_from_kernel() == sys::process() {
        // What the kernel tells in /proc is from its last look at the thread.
        ran = sys::thread_nanos();
    }
    if let Some(thread) = thread::enter(here) {
        let words = [id, ran, waited, sys::process_nanos()];
        thread.journal.write_event(&SharedFile, Head::new(now(), EVENT_ENDS, 0), words, &[]);
        thread.leave();
    }
}

/// Another program is about to be started: whether the probe begins in it will be seen.
///
/// # Safety
/// The frame is a call that starts a program.
unsafe fn program_starts(frame: &Frame, path: u64, how: u64) {
    // SAFETY: the caller's promise.
    let path = unsafe { memory_of(frame).text(path, MOST_BYTES) };
    if path.is_empty() {
        return;
    }
    // Asked of the kernel: the child of a vfork(2) writes in its parent's place.
    let word = u64::from(sys::process()) | how << 32;
    if let Some(thread) = thread::enter(frame.place()) {
        let head = Head::new(now(), EVENT_STARTS, 0);
        thread.journal.write_event(&SharedFile, head, [word], path);
        thread.leave();
    }
}

/// The dynamic linker of a program of another machine would complain of the probe: such a program is
/// given an environment without it. (Functions that take none leave that to the C library.)
///
/// # Safety
/// The frame is a call that starts a program.
unsafe fn spare_foreign_program(number: usize, frame: &mut Frame, path: u64) {
    let Some(argument) = environment_argument(number) else { return };
    let memory = memory_of(frame);
    // SAFETY: the caller's promise.
    let Some(text) = (unsafe { memory.whole_text(path, MOST_BYTES) }) else { return };
    // What is no path is searched for.
    if text.len() == MOST_BYTES || !text.contains(&b'/') {
        return;
    }
    // SAFETY: it ends with a zero.
    let beginning = unsafe { sys::beginning(path as *const u8) };
    if beginning.as_ref().is_some_and(is_foreign) {
        // SAFETY: as above.
        let spared = unsafe { without_probe(frame.arguments[argument], &memory) };
        frame.arguments[argument] = spared.unwrap_or(frame.arguments[argument]);
    }
}

/// A copy of an environment without the variable that names the probe; `None` where that is not in it.
/// Nobody gives it back: when the program has begun, nobody is asked any more. So each start of such a
/// program by posix_spawn(3), or after vfork(2), costs its parent a page.
///
/// # Safety
/// `environment` is what a program is started with.
unsafe fn without_probe(environment: u64, memory: &ProgramMemory) -> Option<u64> {
    const WORD: u64 = size_of::<u64>() as u64;
    // SAFETY: the caller's promise.
    let variable = |at: u64| unsafe { memory.words::<1>(environment + at * WORD) };
    // SAFETY: as above.
    let is_probe = |text: u64| names_probe(unsafe { memory.text(text, MOST_BYTES) });
    let mut count = 0;
    let mut names = false;
    loop {
        match variable(count)? {
            [0] => break,
            [text] => names |= is_probe(text),
        }
        count += 1;
    }
    if !names {
        return None;
    }
    let copy = sys::memory(((count + 1) * WORD) as usize).cast::<u64>();
    if copy.is_null() {
        return None;
    }
    let mut kept = 0;
    for at in 0..count {
        let [text] = variable(at)?;
        if !is_probe(text) {
            // SAFETY: there is room for all, and for a zero behind them.
            unsafe { copy.add(kept).write(text) };
            kept += 1;
        }
    }
    Some(copy as u64)
}

/// Where longjmp(3) will put the stack. glibc on x86-64 keeps eight registers, %rsp the seventh,
/// and mangles it: an exclusive or with a secret of the thread, and a rotation.
///
/// # Safety
/// `buffer` is a jmp_buf that setjmp(3) has filled.
unsafe fn jump_target(buffer: u64) -> usize {
    const STACK: usize = 6;
    const ROTATION: u32 = 17;
    // SAFETY: the caller's promise.
    let mangled = unsafe { *(buffer as *const u64).add(STACK) };
    (mangled.rotate_right(ROTATION) ^ sys::pointer_guard()) as usize
}
