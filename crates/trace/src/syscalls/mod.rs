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
mod log;
mod memory;
mod names;
mod placement;
mod probes;
mod ptrace;
mod set;
mod signals;
mod space;
mod stacks;
mod start;
mod symbols;
mod table;
mod tracer;
mod walk;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use tapstone_measure::units::Nanos;

pub use self::cost::StopCost;
pub use self::error::TracingError;
pub use self::log::{Calls, SystemCall};
pub use self::names::{NameId, Names};
pub use self::set::{Set, SetError};
pub use self::stacks::{Frame, StackId, Stacks};

use self::probes::Loading;
use crate::probe;
use tapstone_command::command::Command;
use tapstone_command::observation::{Observation, Observations};
use tapstone_command::run::Exit;

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
    pub set: Set,
    /// The most memory for the calls, in bytes; at about 20 a call. What does not fit is counted.
    pub most_bytes: usize,
}

impl Default for Options {
    /// The default calls, in at most half a gigabyte: some 25 million.
    fn default() -> Self {
        Self { set: Set::default_set(), most_bytes: 512 << 20 }
    }
}

/// A process that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub process: u32,
    /// Who made it, if that was seen.
    pub parent: Option<u32>,
    /// What it ran last.
    pub program: PathBuf,
    /// When it was first seen, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it had ended.
    pub ended: Nanos,
    /// How.
    pub exit: Exit,
}

/// What was seen of a program.
#[derive(Debug)]
pub struct Observed {
    /// How the program itself ended.
    pub exit: Exit,
    /// Just before its process was made, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it had ended. Children may have gone on, and were waited for.
    pub ended: Nanos,
    /// Processor time of the program, and of the children that it waited for, in user space.
    pub user: Nanos,
    /// The same in the kernel; this includes the stops.
    pub system: Nanos,
    /// The chosen calls.
    pub calls: Calls,
    /// The stacks that they were made from.
    pub stacks: Stacks,
    /// What they worked on.
    pub names: Names,
    /// All processes, in the order in which they ended.
    pub processes: Vec<Process>,
    /// Calls that did not fit.
    pub dropped: u64,
    /// What a reader has to know, in sentences.
    pub warnings: Vec<String>,
    /// What the stops cost.
    pub stop_cost: StopCost,
    /// Ctrl-C, SIGTERM or SIGHUP came while the program ran.
    pub interrupted: bool,
}

impl Observed {
    /// Whether a call slept, so that its duration is more than that of the stops around it.
    #[must_use]
    pub fn slept(&self, call: &SystemCall) -> bool {
        let may_wait = table::by_number(call.number).is_some_and(|known| known.waits);
        may_wait && call.end - call.start >= self.stop_cost.shortest_sleep()
    }
}

impl Observed {
    /// All calls but those that the probe makes, and those that load it.
    pub fn program_calls(&self) -> impl Iterator<Item = SystemCall> {
        let innermost = |call: &SystemCall| self.stacks.frames(call.stack).next();
        let by_probe = move |call: &SystemCall| innermost(call).is_some_and(Frame::is_of_probe);
        let mut loading = Loading::default();
        self.calls.iter().filter(move |call| {
            let on = call.on.map(|name| &self.names.get(name)[..]);
            !loading.includes(call, on) && !by_probe(call)
        })
    }

    /// The frames of a stack, the innermost first, without the probe's: it stands between a caller
    /// and what it calls.
    pub fn program_frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.stacks.frames(stack).filter(|frame| !frame.is_of_probe())
    }
}

impl Frame {
    fn is_of_probe(&self) -> bool {
        &*self.module == probe::FILE
    }
}

impl SystemCall {
    /// The call's name as in syscalls(2).
    #[must_use]
    pub fn name(&self) -> &'static str {
        table::by_number(self.number).map_or("unknown", |known| known.name)
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
