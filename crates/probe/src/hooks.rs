//! Functions that are not recorded, but say what the probe has to know: that calls are left without
//! returning, that the program limits its memory, and that it starts another one, in which the
//! probe then begins, or does not.
//!
//! Those of the exec family that take any number of arguments (execl and the like) are not among
//! them: a stub passes on nine.

use core::ptr;

use crate::stubs::Frame;
use crate::thread;
use crate::{limit, sys};
use tapstone_probe_core::wire::{EVENT_STARTS, MOST_BYTES, STARTS_CHILD, STARTS_HERE};

/// Their names. Their numbers follow those of the functions that are watched.
pub(crate) const HOOKS: [&str; 16] = [
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__cxa_begin_catch",
    "setrlimit",
    "setrlimit64",
    "prlimit",
    "prlimit64",
    "mlockall",
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "posix_spawn",
    "posix_spawnp",
];
const BEGIN_CATCH: usize = 4;
const SETRLIMIT: usize = 5;
const PRLIMIT: usize = 7;
const MLOCKALL: usize = 9;
const EXEC: usize = 10;
const SPAWN: usize = 14;

/// Before one of them is called.
///
/// # Safety
/// The frame is a call of that function.
pub(crate) unsafe fn called(hook: usize, frame: &Frame) {
    let [first, second, third, ..] = frame.arguments;
    let here = ptr::from_ref(frame) as usize;
    match hook {
        // SAFETY: a jmp_buf.
        ..BEGIN_CATCH => thread::left(here, unsafe { target(first) }),
        // The handler is in the function that calls this one: what was below that is gone.
        BEGIN_CATCH => thread::left(here, frame.stack as usize),
        // SAFETY: a struct rlimit that the function reads itself.
        SETRLIMIT..PRLIMIT => unsafe { limit::set(first, second) },
        MLOCKALL => limit::lock(),
        // SAFETY: a path, which ends with a zero.
        EXEC..SPAWN => unsafe { starts(here, first, STARTS_HERE) },
        // SAFETY: as above.
        SPAWN.. => unsafe { starts(here, second, STARTS_CHILD) },
        // SAFETY: as above; only of this process.
        _ if first as u32 == 0 || first as u32 == sys::process() => unsafe {
            limit::set(second, third);
        },
        _ => {}
    }
}

/// Another program is about to be started: whether the probe begins in it will be seen.
///
/// # Safety
/// `path` is null or ends with a zero.
unsafe fn starts(here: usize, path: u64, how: u64) {
    let path = path as *const u8;
    if path.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { core::slice::from_raw_parts(path, sys::length(path, MOST_BYTES)) };
    // Asked of the kernel: the child of a vfork(2) writes in its parent's place.
    let word = u64::from(sys::process()) | how << 32;
    if let Some(thread) = thread::enter(here) {
        thread.journal.put(thread::now(), EVENT_STARTS, 0, 0, [word], path);
        thread.leave();
    }
}

/// Where longjmp(3) will put the stack. glibc on x86-64 keeps eight registers, %rsp the seventh,
/// and mangles it: an exclusive or with a secret of the thread, and a rotation.
///
/// # Safety
/// `buffer` is a jmp_buf that setjmp(3) has filled.
unsafe fn target(buffer: u64) -> usize {
    const STACK: usize = 6;
    const ROTATION: u32 = 17;
    // SAFETY: the caller's promise.
    let mangled = unsafe { *(buffer as *const u64).add(STACK) };
    (mangled.rotate_right(ROTATION) ^ sys::pointer_guard()) as usize
}
