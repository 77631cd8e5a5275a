//! Starting a program so that its first instruction is observed already.
//!
//! The new process waits until it is traced, gives up new privileges (the kernel's condition for
//! a filter without being root, prctl(2)), installs the filter and becomes the program. All that
//! it does between fork and exec is safe in a process with other threads (signal-safety(7)):
//! system calls on memory that was prepared before.

use std::env;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::iter;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use libc::{c_char, c_int, pid_t, sock_filter};
use rustix::pipe::{PipeFlags, pipe_with};

use super::error::TracingError;
use super::launch::Launch;
use super::ptrace;

/// A process that will become the program, traced by the thread that made it.
pub(super) struct Started {
    pub(super) process: pid_t,
    /// Says why the program could not be started; ends without a word when it was.
    errors: File,
}

/// The step at which starting failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The filter could not be installed.
    Filter,
    /// The program could not be executed.
    Exec,
}

/// What execve(2) is given.
struct Texts {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Texts {
    fn of_launch(launch: &Launch<'_>) -> Result<Self, NulError> {
        let command = launch.command;
        let text = |text: &OsStr| CString::new(text.as_bytes());
        // In the order in which they are: programs that print them must not differ.
        let variables = launch.observations.variables();
        let is_replaced = |name: &OsStr| variables.iter().any(|(added, _)| added == name);
        let kept = env::vars_os().filter(|(name, _)| !is_replaced(name));
        let environment = kept.chain(variables.iter().cloned());
        let variables = environment
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
        let arguments = command.arguments().iter().map(OsString::as_os_str);
        Ok(Self {
            program: text(command.program().as_os_str())?,
            arguments: iter::once(command.name())
                .chain(arguments)
                .map(text)
                .collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
        })
    }
}

/// All that the new process needs, made ready before it exists.
struct StartPlan {
    program: *const c_char,
    /// These end with a null pointer.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    filter: libc::sock_fprog,
    /// What becomes standard input, output and error.
    streams: [Option<RawFd>; 3],
    go: RawFd,
    /// The other end, which the new process has too, and must not: it would wait for itself.
    go_write: RawFd,
    errors: RawFd,
}

/// Starts a command; the calling thread is its tracer.
pub(super) fn start(
    launch: &Launch<'_>,
    filter: &mut [sock_filter],
) -> Result<Started, TracingError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
    let refused = |call| move |cause: io::Error| TracingError::refused(call, &cause);
    let (go_read, go_write) = pipe().map_err(refused("pipe"))?;
    let (errors_read, errors_write) = pipe().map_err(refused("pipe"))?;
    let texts = Texts::of_launch(launch).map_err(|_| {
        // A zero inside a text; what execve(2) would say of it.
        TracingError::exec(launch.command.shown(), &io::Error::from_raw_os_error(libc::EINVAL))
    })?;
    let stream = |stream: &Option<OwnedFd>| stream.as_ref().map(AsRawFd::as_raw_fd);
    let plan = StartPlan {
        program: texts.program.as_ptr(),
        arguments: pointers(&texts.arguments),
        environment: pointers(&texts.environment),
        filter: libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() },
        streams: [stream(&launch.stdin), stream(&launch.stdout), stream(&launch.stderr)],
        go: go_read.as_raw_fd(),
        go_write: go_write.as_raw_fd(),
        errors: errors_write.as_raw_fd(),
    };
    let process = fork_and(&plan).map_err(refused("fork"))?;
    drop((go_read, errors_write));
    let seized = ptrace::seize(process).and_then(|()| File::from(go_write).write_all(&[1]));
    if let Err(cause) = seized {
        // The end of its pipe has ended the process.
        let _ = ptrace::wait();
        return Err(TracingError::refused("ptrace", &cause));
    }
    Ok(Started { process, errors: File::from(errors_read) })
}

impl Started {
    /// Why the process did not become the program. To be asked when it has ended.
    pub(super) fn failure(mut self) -> Option<(Step, io::Error)> {
        let mut said = Vec::new();
        self.errors.read_to_end(&mut said).ok()?;
        let (step, code) = said.split_first()?;
        let code = i32::from_ne_bytes(code.try_into().ok()?);
        let step = if *step == Step::Exec as u8 { Step::Exec } else { Step::Filter };
        Some((step, io::Error::from_raw_os_error(code)))
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Makes a process that follows the plan.
fn fork_and(plan: &StartPlan) -> io::Result<pid_t> {
    // Signals wait until the new process has handlers of its own no more: those of this process
    // would answer a signal twice.
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: the first call fills `all`, the second reads it and fills `before`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: the child only calls `become_program`, which is safe after a fork.
    let process = unsafe { libc::fork() };
    if process == 0 {
        // SAFETY: this is the child, and the plan's pointers are alive: its memory is a copy.
        unsafe { become_program(plan) }
    }
    let error = io::Error::last_os_error();
    // SAFETY: the set was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    if process < 0 { Err(error) } else { Ok(process) }
}

/// # Safety
/// Only in a process that was just forked, whose memory holds what the plan points to.
unsafe fn become_program(plan: &StartPlan) -> ! {
    // SAFETY: system calls with live addresses, and no allocation, lock or destructor.
    unsafe {
        libc::close(plan.go_write);
        let mut word = 0u8;
        if libc::read(plan.go, ptr::from_mut(&mut word).cast(), 1) != 1 {
            libc::_exit(127);
        }
        for (number, stream) in plan.streams.iter().enumerate() {
            if let Some(stream) = stream {
                libc::dup2(*stream, number as c_int);
            }
        }
        reset_signals();
        let mode = libc::SECCOMP_MODE_FILTER;
        let none = 0;
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, none, none, none) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, mode, ptr::from_ref(&plan.filter)) != 0
        {
            give_up(plan, Step::Filter);
        }
        // Like a shell, this also runs a script that names no interpreter.
        libc::execvpe(plan.program, plan.arguments.as_ptr(), plan.environment.as_ptr());
        give_up(plan, Step::Exec)
    }
}

/// Signals as any program finds them: no handlers, what was ignored stays so, nothing is blocked.
/// Rust programs ignore SIGPIPE, which no other program expects.
///
/// # Safety
/// Only in a process that was just forked.
unsafe fn reset_signals() {
    // SAFETY: zeroes are a valid `sigaction` (SIG_DFL) and a valid empty set; all are live.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        for signal in 1..=libc::SIGRTMAX() {
            let mut current: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &mut current) == 0;
            if known && (current.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE) {
                libc::sigaction(signal, &default, ptr::null_mut());
            }
        }
        let nothing: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &nothing, ptr::null_mut());
    }
}

/// # Safety
/// Only in a process that was just forked.
unsafe fn give_up(plan: &StartPlan, step: Step) -> ! {
    // SAFETY: the buffer is alive, and write(2) and _exit(2) may be called here.
    unsafe {
        let code = (*libc::__errno_location()).to_ne_bytes();
        let said = [step as u8, code[0], code[1], code[2], code[3]];
        libc::write(plan.errors, said.as_ptr().cast(), said.len());
        libc::_exit(127)
    }
}
