//! A command in the making, and a run under way.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Outcome, Slot};

/// No run of these tests takes so long: one that does hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks at something that others change.
const LOOK: Duration = Duration::from_millis(20);

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

/// `tapstone` with arguments, in a directory of its own: files go by their names there.
pub(crate) struct Tapstone {
    command: Command,
    directory: TempDir,
    writes_record: bool,
}

impl Tapstone {
    /// A verb and nothing else.
    pub(crate) fn new(verb: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        command.current_dir(directory.path()).arg(verb).stdin(Stdio::null());
        Self { command, directory, writes_record: true }
    }

    /// A verb with a reader.
    pub(crate) fn at(slot: Slot, verb: &str) -> Self {
        Self::new(verb).args("--reader").arg(slot.reader())
    }

    /// `tapstone card` in the first reader with a suite that is a file of this text.
    pub(crate) fn suite(text: &str) -> Self {
        Self::at(Slot::First, "card").file("suite.toml", text).args("--suite suite.toml")
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

    /// A file that nobody else may read, as one with a PIN has to be.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        self
    }

    /// With this PIN in a file.
    pub(crate) fn pin(self, pin: &str) -> Self {
        self.file("pin", pin).args("--pin-file pin")
    }

    /// Without `--output`.
    pub(crate) fn without_record(mut self) -> Self {
        self.writes_record = false;
        self
    }

    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }

    pub(crate) fn start(mut self) -> Running {
        if self.writes_record {
            self = self.args("--output record.json");
        }
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
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// What it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    /// Its worker processes that are alive.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)
        });
        processes.filter(|process| parent(*process) == Some(self.pid())).collect()
    }

    /// Waits until a worker has lived for a second: the one that looks at the readers is gone
    /// sooner, so this one measures.
    pub(crate) fn wait_until_it_measures(&self) {
        let mut last = (Vec::new(), Instant::now());
        let measures = eventually(PATIENCE, || {
            let workers = self.workers();
            if workers.is_empty() || workers != last.0 {
                last = (workers, Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(1)
        });
        assert!(measures, "{}", self.said());
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

/// A living process's parent, from proc_pid_stat(5): `pid (name) state parent …`.
fn parent(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    (fields.next()? != "Z").then_some(())?;
    Pid::from_raw(fields.next()?.parse().ok()?)
}
