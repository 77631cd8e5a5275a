//! A command in the making, and a run under way.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Outcome;

/// No run of these tests takes so long: one that does hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks at something that others change.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so; says whether it came to be.
pub(crate) fn eventually(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// `tapstone` with arguments, which leaves what it says in a directory of its own.
pub(crate) struct Tapstone {
    command: Command,
    directory: TempDir,
}

impl Tapstone {
    pub(super) fn new(verb: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.env_remove("TAPSTONE_MODULE").arg(verb).stdin(Stdio::null());
        Self { command, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Arguments in one string, separated by blanks.
    pub(crate) fn args(mut self, arguments: &str) -> Self {
        self.command.args(arguments.split_whitespace());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs to its end, and writes a record.
    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Runs to its end; there is no record but what it prints.
    pub(crate) fn run_without_record(self) -> Outcome {
        self.spawn().wait()
    }

    pub(crate) fn start(self) -> Running {
        let record = self.path("record.json");
        self.arg("--output").arg(record).spawn()
    }

    fn spawn(mut self) -> Running {
        // Into files: nobody has to read a pipe while the run goes on.
        let stdout = File::create(self.path("stdout")).unwrap();
        let stderr = File::create(self.path("stderr")).unwrap();
        let child = self.command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Running { child, directory: self.directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// See the module's text.
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> Outcome {
        let mut status = None;
        let ended = eventually(PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            self.child.kill().unwrap();
        }
        let outcome = Outcome::new(status.and_then(|status| status.code()), self.directory);
        assert!(ended, "still running after {PATIENCE:?}\n{}", outcome.stderr);
        outcome
    }
}
