//! A command, run once, as its user would run it: what it took, how it ended, what it printed.
//!
//! - **Wall time** is CLOCK_MONOTONIC from just before the process is made to the return of wait4,
//!   so fork and exec are in it.
//! - **User and system time** are those of wait4: of the process and of all its descendants that
//!   were waited for. The kernel knows their sum exactly; unless it counts at every entry
//!   (CONFIG_VIRT_CPU_ACCOUNTING), it divides the sum by clock ticks, of which a short run may
//!   meet none.
//! - The command stays in the foreground with Tapstone, so that the terminal's Ctrl-C reaches it
//!   once, from the terminal; [`Signals`] sees to the rest.

mod output;
mod signals;
mod witness;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, ExitStatus, Stdio};

use nix::errno::Errno;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::command::Command;
use crate::observation::Observations;

pub use output::{ProgramOutput, Stream};
pub use signals::Signals;
pub use tapstone_events::Exit;
pub use witness::Witness;

use output::Readers;

/// How a command is to be run.
#[derive(Clone, Debug)]
pub struct ProgramRun<'a> {
    command: &'a Command,
    output: ProgramOutput,
    input: ProgramInput,
    observations: Observations<'a>,
}

/// What a command reads from standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramInput {
    /// What Tapstone itself would read.
    #[default]
    Passed,
    /// Nothing: the end of the input comes at once.
    Null,
}

/// A run that came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// When it began, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// From just before the process was made until it had ended.
    pub wall: Nanos,
    /// Processor time in user mode.
    pub user: Nanos,
    /// Processor time in the kernel.
    pub system: Nanos,
    /// The most memory that one of its processes had, in bytes. `None` where that is no more than
    /// Tapstone's own: the kernel begins to count before exec.
    pub max_rss_bytes: Option<u64>,
    /// How the command ended: its code, or a signal.
    pub exit: Exit,
    /// Its standard output, where it was kept.
    pub stdout: Option<Stream>,
    /// Its standard error, where it was kept.
    pub stderr: Option<Stream>,
}

impl Finished {
    /// User and system time together: what the kernel knows exactly.
    #[must_use]
    pub fn processor(&self) -> Nanos {
        self.user + self.system
    }
}

/// A command could not be started, or not be followed to its end. The text ends with a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{command}`: {call} failed: {code:?}, {}\nhint: {}", code.desc(), hint(*code))]
pub struct RunError {
    /// The command, as it may be shown.
    pub command: String,
    /// The name of the call that failed.
    pub call: &'static str,
    /// What the system said.
    pub code: Errno,
}

impl<'a> ProgramRun<'a> {
    /// As its user would run it: nothing added, nothing kept.
    #[must_use]
    pub fn new(command: &'a Command) -> Self {
        Self {
            command,
            output: ProgramOutput::default(),
            input: ProgramInput::default(),
            observations: Observations::default(),
        }
    }

    /// The same run, with what observes it.
    #[must_use]
    pub fn observed(self, observations: Observations<'a>) -> Self {
        Self { observations, ..self }
    }

    /// Where its output goes.
    #[must_use]
    pub fn output(self, output: ProgramOutput) -> Self {
        Self { output, ..self }
    }

    /// The same run, with this on its standard input.
    #[must_use]
    pub fn input(self, input: ProgramInput) -> Self {
        Self { input, ..self }
    }

    /// Runs it to its end. `signals` passes on to it what it has to hear of.
    ///
    /// # Errors
    /// When the system does not start it. An exit code that is not 0 is no error here.
    pub fn finish(&self, signals: &Signals) -> Result<Finished, RunError> {
        let mut command = self.prepared().map_err(|error| self.failed("dup", &error))?;
        self.observations.look_after();
        let started = Monotonic.now();
        let mut child = command.spawn().map_err(|error| self.failed("execve", &error))?;
        let mut readers = Readers::of_child(self.output, &mut child);
        let ended = signals.running(&child).and_then(|running| {
            readers.read_until_exit(running.process(), &self.observations)?;
            wait(&child)
        });
        let wall = Monotonic.now() - started;
        let (exit, usage) = ended.map_err(|error| {
            abandon(&mut child);
            self.failed("wait4", &error)
        })?;
        let (stdout, stderr) = readers.finish();
        Ok(Finished {
            started,
            wall,
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            max_rss_bytes: above_our_own(&usage),
            exit,
            stdout,
            stderr,
        })
    }

    fn prepared(&self) -> io::Result<process::Command> {
        let mut command = process::Command::new(self.command.program());
        command.arg0(self.command.name()).args(self.command.arguments());
        let variables = self.observations.variables();
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let (stdout, stderr) = match self.output {
            ProgramOutput::Passed => (Stdio::inherit(), Stdio::inherit()),
            ProgramOutput::Shown => {
                (Stdio::from(io::stderr().as_fd().try_clone_to_owned()?), Stdio::inherit())
            }
            ProgramOutput::Kept | ProgramOutput::Tail => (Stdio::piped(), Stdio::piped()),
        };
        let stdin = match self.input {
            ProgramInput::Passed => Stdio::inherit(),
            ProgramInput::Null => Stdio::null(),
        };
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        Ok(command)
    }

    fn failed(&self, call: &'static str, error: &io::Error) -> RunError {
        let code = Errno::from_raw(error.raw_os_error().unwrap_or_default());
        RunError { command: self.command.shown().to_owned(), call, code }
    }
}

/// Waits for a child, and asks what it and its descendants used.
fn wait(child: &Child) -> io::Result<(Exit, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable memory of the right type. The child is ours
        // and not yet waited for: `Child::wait` is never called once this has returned well.
        let waited = unsafe {
            libc::wait4(child.id().cast_signed(), &raw mut status, 0, usage.as_mut_ptr())
        };
        if waited >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeros are a valid rusage, and wait4 has filled it in.
    let usage = unsafe { usage.assume_init() };
    let status = ExitStatus::from_raw(status);
    let exit = status.code().map(Exit::Code).or(status.signal().map(Exit::Signal));
    Ok((exit.expect("without WUNTRACED only an end is reported"), usage))
}

/// A child that cannot be followed is not left behind.
fn abandon(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn nanos(time: libc::timeval) -> Nanos {
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000)
}

/// The largest memory, unless it may be Tapstone's: until exec, the child counts as it.
fn above_our_own(child: &libc::rusage) -> Option<u64> {
    let more = child.ru_maxrss > our_own().ru_maxrss;
    more.then(|| child.ru_maxrss.unsigned_abs() * 1024)
}

fn our_own() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeros are a valid rusage; getrusage(2) can only fail for another `who`.
    unsafe { usage.assume_init() }
}

/// What to do about a command that the system does not start.
const fn hint(code: Errno) -> &'static str {
    match code {
        Errno::ENOENT => {
            "the program is there, but not the interpreter that its first line (#!) or its header \
             names"
        }
        Errno::ENOEXEC => {
            "it is no program for this machine; a script needs a first line such as #!/bin/sh"
        }
        Errno::EACCES | Errno::EPERM => {
            "check the permissions of the program and of its interpreter, and whether the file \
             system is mounted with noexec"
        }
        Errno::E2BIG => "the arguments and the environment are too long together",
        Errno::ETXTBSY => "somebody is writing to the program: let that end first",
        Errno::EAGAIN | Errno::ENOMEM => "no more processes or no memory: see ulimit -u, and free",
        Errno::EMFILE | Errno::ENFILE => "too many open files: see ulimit -n",
        _ => "see the manual page of the call",
    }
}

#[cfg(test)]
mod tests {

    use std::fs;

    use tapstone_testing::write_program;

    use super::*;

    fn run(text: &str, output: ProgramOutput) -> Finished {
        let command = Command::by_shell(text).unwrap();
        let signals = Signals::watch().unwrap();
        ProgramRun::new(&command).output(output).input(ProgramInput::Null).finish(&signals).unwrap()
    }

    #[test]
    fn how_it_ended_is_told() {
        assert_eq!(run("exit 0", ProgramOutput::Tail).exit, Exit::Code(0));
        assert_eq!(run("exit 3", ProgramOutput::Tail).exit, Exit::Code(3));
        let killed = run("kill -KILL $$", ProgramOutput::Tail).exit;
        assert_eq!((killed, killed.to_string()), (Exit::Signal(9), "SIGKILL".to_owned()));
    }

    #[test]
    fn both_streams_are_read_at_once_and_apart() {
        // More than a pipe holds, first to the one and then to the other.
        let script = "head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero; echo end";
        let finished = run(script, ProgramOutput::Kept);
        let stdout = finished.stdout.unwrap();
        let stderr = finished.stderr.unwrap();
        assert_eq!((stdout.bytes, stderr.bytes), (200_004, 300_000));
        assert!(stdout.kept.ends_with(b"\0end\n") && stdout.kept.len() == 200_004);
        assert!(stderr.kept.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn time_in_the_processor_is_that_of_descendants_too() {
        let nothing = run(":", ProgramOutput::Tail);
        // In a process of its own, which the shell waits for.
        let child =
            run("(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); :", ProgramOutput::Tail);
        assert!(child.processor().0 > 3 * nothing.processor().0, "{child:?} {nothing:?}");
        assert!(child.wall > nothing.wall && child.started > nothing.started);
    }

    #[test]
    fn who_holds_the_output_open_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("echo before; sleep 600 & echo $! > {}", pid.display());
        let finished = run(&script, ProgramOutput::Tail);
        let sleeper: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(sleeper), nix::sys::signal::SIGKILL)
            .unwrap();
        assert_eq!(finished.stdout.unwrap().kept, b"before\n");
        assert!(finished.wall < Nanos::from_secs(60));
    }

    #[test]
    fn variables_are_added_and_nothing_is_read() {
        let command = Command::by_shell("cat; echo $TAPSTONE_TEST $HOME").unwrap();
        let signals = Signals::watch().unwrap();
        let added = Observations::default().variable("TAPSTONE_TEST", "a b");
        let run = ProgramRun::new(&command).observed(added).input(ProgramInput::Null);
        let finished = run.output(ProgramOutput::Kept).finish(&signals).unwrap();
        let home = std::env::var("HOME").unwrap_or_default();
        let told = String::from_utf8(finished.stdout.unwrap().kept).unwrap();
        assert_eq!(told.trim_end(), format!("a b {home}").trim_end());
    }

    #[test]
    fn memory_is_told_only_where_it_can_be_the_programs() {
        assert_eq!(
            run("exit 0", ProgramOutput::Tail).max_rss_bytes,
            None,
            "less than this test has"
        );
        let mut usage = our_own();
        usage.ru_maxrss += 1 << 30;
        let kibibytes = usage.ru_maxrss.unsigned_abs();
        assert_eq!(above_our_own(&usage), Some(kibibytes * 1024));
    }

    #[test]
    fn what_the_system_does_not_start_is_an_error_with_its_code_and_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let signals = Signals::watch().unwrap();
        for (content, code) in [("echo no first line\n", "ENOEXEC"), ("#!/no/such\n", "ENOENT")] {
            let path = folder.path().join(code);
            write_program(&path, content, 0o755);
            let command = Command::from_words([path.clone().into()]).unwrap();
            let error = ProgramRun::new(&command).finish(&signals).unwrap_err().to_string();
            assert!(error.contains(code) && error.contains(path.to_str().unwrap()), "{error}");
            assert!(error.lines().last().unwrap().starts_with("hint: "), "{error}");
        }
    }
}
