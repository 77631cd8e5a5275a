//! The system calls that a program and its children make, with the stacks that made them.
//!
//! Without privileges: a seccomp filter stops only the chosen calls, and ptrace(2) tells the
//! tracer; everything else runs at full speed. It changes three things for the program: it cannot
//! gain privileges (setuid programs run without theirs; [`Observed::warnings`] names them), it
//! cannot trace others, and a thread that stops several times in a row stays on the tracer's
//! processor.
//!
//! How often calls are made, and from where, is exact, but for this: a call that a signal's
//! handler interrupts and the kernel then begins again counts twice. How long a short call takes
//! under ptrace is the tracer's time; [`Observed::slept`] says which durations are worth something.
//!
//! Linux on x86-64. Calls of other kinds of programs are not seen: those of 32 bits are named in
//! the warnings; `int 0x80` in a program of 64 bits is not noticed.

mod call;
mod cost;
mod elf;
mod error;
mod exec;
mod family;
mod filter;
mod image;
mod images;
mod memory;
mod names;
mod placement;
mod ptrace;
mod signals;
mod space;
mod stacks;
mod start;
mod symbols;
mod tracer;
mod walk;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

pub use self::error::TracingError;

use tapstone_command::command::Command;
use tapstone_command::observation::{Observation, Observations};
use tapstone_events::system_calls::{Observed, SystemCallSet};

/// How a command is to be run.
#[derive(Debug)]
pub struct Launch<'a> {
    command: &'a Command,
    variables: Vec<(OsString, OsString)>,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    observations: Observations<'a>,
}

impl<'a> Launch<'a> {
    /// As its user would run it.
    #[must_use]
    pub fn new(command: &'a Command) -> Self {
        Self {
            command,
            variables: Vec::new(),
            stdin: None,
            stdout: None,
            stderr: None,
            observations: Observations::default(),
        }
    }

    /// With an environment variable added or replaced.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Observed from the inside too.
    #[must_use]
    pub fn observed(mut self, observation: &'a dyn Observation) -> Self {
        self.variables.extend(observation.environment());
        self.beside(Some(observation))
    }

    /// Beside a program that is observed (a daemon), whose observation is looked after too.
    #[must_use]
    pub fn beside(self, observation: Option<&'a dyn Observation>) -> Self {
        Self { observations: self.observations.and(observation), ..self }
    }

    /// With another standard input.
    #[must_use]
    pub fn stdin(self, stdin: OwnedFd) -> Self {
        Self { stdin: Some(stdin), ..self }
    }

    /// With another standard output.
    #[must_use]
    pub fn stdout(self, stdout: OwnedFd) -> Self {
        Self { stdout: Some(stdout), ..self }
    }

    /// With another standard error.
    #[must_use]
    pub fn stderr(self, stderr: OwnedFd) -> Self {
        Self { stderr: Some(stderr), ..self }
    }
}

/// What to look at.
#[derive(Clone, Debug)]
pub struct Options {
    /// The calls that are stopped at.
    pub set: SystemCallSet,
    /// The most memory for the calls, in bytes; at about 20 a call. What does not fit is counted.
    pub most_bytes: usize,
}

impl Default for Options {
    /// The default calls, in at most half a gigabyte: some 25 million.
    fn default() -> Self {
        Self { set: SystemCallSet::default_set(), most_bytes: 512 << 20 }
    }
}

/// Starts a program, observes it and all its children, and returns when the last of them has ended
/// (like `strace -f`): without a tracer the chosen calls of those that remain would fail.
///
/// While it runs, Ctrl-C and SIGHUP do not end this process, and SIGTERM is passed on to the
/// program. The process keeps handlers for them; a caller that wants them to act before or
/// afterwards registers its own. When only children are left, each of them ends those.
///
/// # Errors
/// The program cannot be started, or the kernel does not let it be observed.
pub fn observe(launch: &Launch<'_>, options: &Options) -> Result<Observed, TracingError> {
    // A thread of its own: the kernel ties tracees, and whom to wait for, to the thread.
    thread::scope(|scope| {
        let tracer = thread::Builder::new().name("tracer".to_owned());
        let (done, ended) = mpsc::channel::<()>();
        let tracer = tracer.spawn_scoped(scope, move || {
            // Dropped at the end, whatever it is.
            let _done = done;
            tracer::observe(launch, options)
        });
        let refused = |cause: io::Error| TracingError::refused("pthread_create", &cause);
        let tracer = tracer.map_err(refused)?;
        while let Some(pause) = launch.observations.period()
            && ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
        {
            launch.observations.look_after();
        }
        let observed = tracer.join();
        observed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
