//! ptrace(2) and what wait(2) says of a traced thread, as types.
//!
//! Raw calls, because signals are numbers here: a program may use real-time signals (glibc itself
//! does, to cancel threads), which libraries with an enumeration of signals refuse to pass on.

use std::io;
use std::ptr;

use libc::{c_int, c_long, c_uint, pid_t, user_regs_struct};

/// What a traced thread has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadEvent {
    /// It ended with this exit code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It is about to make a chosen system call.
    Entry,
    /// It has made the system call.
    Return,
    /// It has made another process or thread.
    Child,
    /// It runs another program from now on.
    Exec,
    /// Its process was stopped by a signal, and stays so until it is continued.
    GroupStop,
    /// A new thread's first stop, or the end of a group stop.
    Ready,
    /// A signal is about to be delivered to it.
    Signal(i32),
}

/// How a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Until a chosen call, a signal, or its end.
    Entry,
    /// Until the system call that it is in returns.
    Return,
}

/// One stop, or an end.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub(super) thread: pid_t,
    pub(super) event: ThreadEvent,
    /// What the thread's process has used so far.
    pub(super) usage: libc::rusage,
}

/// PTRACE_EVENT_STOP of linux/ptrace.h, which the libc crate does not have for glibc.
const EVENT_STOP: c_int = 128;

/// Where `rax` is in `struct user`, which begins with the registers.
const RESULT_OFFSET: c_long = libc::RAX as c_long * 8;

/// Follow all children, stop where the filter says so, and let nothing outlive the tracer: without
/// one, every chosen call would fail with ENOSYS.
const OPTIONS: c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

/// Makes the calling thread the tracer of a process.
pub(super) fn seize(process: pid_t) -> io::Result<()> {
    // SAFETY: PTRACE_SEIZE takes its options as a number and touches no memory.
    let code = unsafe { request(libc::PTRACE_SEIZE, process, 0, OPTIONS as c_long) };
    done(code)
}

/// Lets a stopped thread go on, with a signal (0: none).
pub(super) fn resume(thread: pid_t, until: Until, signal: i32) -> io::Result<()> {
    let how = match until {
        Until::Entry => libc::PTRACE_CONT,
        Until::Return => libc::PTRACE_SYSCALL,
    };
    // SAFETY: both take a signal as a number and touch no memory.
    let code = unsafe { request(how, thread, 0, c_long::from(signal)) };
    done(code)
}

/// Leaves a thread of a stopped process stopped, and hears of it again when it is continued.
pub(super) fn listen(thread: pid_t) -> io::Result<()> {
    // SAFETY: PTRACE_LISTEN takes nothing and touches no memory.
    let code = unsafe { request(libc::PTRACE_LISTEN, thread, 0, 0) };
    done(code)
}

/// The registers of a stopped thread.
pub(super) fn registers(thread: pid_t) -> io::Result<user_regs_struct> {
    let mut registers = std::mem::MaybeUninit::<user_regs_struct>::uninit();
    // SAFETY: PTRACE_GETREGS writes one user_regs_struct to the address in `data`.
    let code =
        unsafe { request(libc::PTRACE_GETREGS, thread, 0, registers.as_mut_ptr() as c_long) };
    done(code)?;
    // SAFETY: it succeeded, so all of it is written.
    Ok(unsafe { registers.assume_init() })
}

/// What the system call that a thread has just made returned.
pub(super) fn result(thread: pid_t) -> io::Result<i64> {
    let mut word: c_long = 0;
    // SAFETY: the system call PTRACE_PEEKUSER (unlike glibc's function) writes one word to the
    // address in `data`.
    let code = unsafe {
        request(libc::PTRACE_PEEKUSER, thread, RESULT_OFFSET, ptr::from_mut(&mut word) as c_long)
    };
    done(code)?;
    Ok(word)
}

/// Of [`ThreadEvent::Child`]: the new thread.
pub(super) fn new_thread(thread: pid_t) -> io::Result<pid_t> {
    event_message(thread)
}

/// Of [`ThreadEvent::Exec`]: which thread called exec; it is the only one left, and has the process's
/// number now.
pub(super) fn former_thread(thread: pid_t) -> io::Result<pid_t> {
    event_message(thread)
}

fn event_message(thread: pid_t) -> io::Result<pid_t> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: PTRACE_GETEVENTMSG writes one unsigned long to the address in `data`.
    let code = unsafe {
        request(libc::PTRACE_GETEVENTMSG, thread, 0, ptr::from_mut(&mut message) as c_long)
    };
    done(code)?;
    Ok(message as pid_t)
}

/// Waits for the next stop or end among the calling thread's own children and tracees; `None` when
/// there are none left. Other threads' children are theirs.
pub(super) fn wait() -> io::Result<Option<Stop>> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both addresses are those of live variables of the right types.
        let thread = unsafe {
            libc::wait4(-1, &mut status, libc::__WALL | libc::__WNOTHREAD, usage.as_mut_ptr())
        };
        if thread > 0 {
            // SAFETY: numbers, of which zeroes are valid, and wait4 has filled them.
            let usage = unsafe { usage.assume_init() };
            return Ok(Some(Stop { thread, event: event(status), usage }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

fn event(status: c_int) -> ThreadEvent {
    if libc::WIFEXITED(status) {
        return ThreadEvent::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return ThreadEvent::Killed(libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => ThreadEvent::Entry,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            ThreadEvent::Child
        }
        libc::PTRACE_EVENT_EXEC => ThreadEvent::Exec,
        EVENT_STOP if signal == libc::SIGTRAP => ThreadEvent::Ready,
        EVENT_STOP => ThreadEvent::GroupStop,
        _ if signal == libc::SIGTRAP | 0x80 => ThreadEvent::Return,
        _ => ThreadEvent::Signal(signal),
    }
}

/// # Safety
/// What `data` must be depends on the request, see ptrace(2).
unsafe fn request(request: c_uint, thread: pid_t, address: c_long, data: c_long) -> c_long {
    // SAFETY: the caller's duty.
    unsafe { libc::syscall(libc::SYS_ptrace, c_long::from(request), thread, address, data) }
}

fn done(code: c_long) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_has_come_to_pass() {
        let stopped = |signal: c_int, event: c_int| event << 16 | signal << 8 | 0x7F;
        for (status, expected) in [
            (3 << 8, ThreadEvent::Exited(3)),
            (libc::SIGSEGV | 0x80, ThreadEvent::Killed(libc::SIGSEGV)),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP), ThreadEvent::Entry),
            (stopped(libc::SIGTRAP | 0x80, 0), ThreadEvent::Return),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_VFORK), ThreadEvent::Child),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXEC), ThreadEvent::Exec),
            (stopped(libc::SIGTRAP, EVENT_STOP), ThreadEvent::Ready),
            (stopped(libc::SIGTSTP, EVENT_STOP), ThreadEvent::GroupStop),
            (stopped(libc::SIGTRAP, 0), ThreadEvent::Signal(libc::SIGTRAP)),
            (stopped(libc::SIGSTOP, 0), ThreadEvent::Signal(libc::SIGSTOP)),
            (stopped(libc::SIGRTMIN(), 0), ThreadEvent::Signal(libc::SIGRTMIN())),
        ] {
            assert_eq!(event(status), expected, "{status:#x}");
        }
    }
}
