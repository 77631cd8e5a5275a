//! A run under way, with its worker processes.

use std::any::Any;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tapstone_testing::eventually;
use tempfile::TempDir;

use super::Outcome;

/// No run of these tests takes so long: one that does hangs.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(300);

/// See the module's text.
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
    secrets: Vec<String>,
    _held: Box<dyn Any>,
}

impl Running {
    pub(super) fn new(
        child: Child,
        directory: TempDir,
        secrets: Vec<String>,
        held: Box<dyn Any>,
    ) -> Self {
        Self { child, directory, secrets, _held: held }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Signals its whole group, as Ctrl-C does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    pub(crate) fn is_alive(&self) -> bool {
        parent(self.pid()).is_some()
    }

    /// What it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What it tells on the socket `live` of its directory (`--live live`), from now to its end.
    pub(crate) fn live_lines(&self) -> Vec<String> {
        let socket = self.path("live");
        let looks = || UnixStream::connect(&socket);
        assert!(eventually(TIME_LIMIT, || looks().is_ok() || !self.is_alive()), "{}", self.said());
        let lines = BufReader::new(looks().unwrap()).lines();
        lines.map(Result::unwrap).collect()
    }

    /// Its worker processes that are alive.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)
        });
        processes.filter(|process| parent(*process) == Some(self.pid())).collect()
    }

    /// Ends the run and its workers at one moment, so that nobody can clean up.
    pub(crate) fn kill_all(self) -> TempDir {
        self.signal(Signal::STOP);
        for worker in self.workers() {
            kill_process(worker, Signal::KILL).unwrap();
        }
        self.kill()
    }

    /// Ends the run alone.
    pub(crate) fn kill(mut self) -> TempDir {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        self.directory
    }

    pub(crate) fn wait(self) -> Outcome {
        self.wait_for(TIME_LIMIT)
    }

    /// Longer than that it does not run.
    pub(crate) fn wait_for(mut self, limit: Duration) -> Outcome {
        let mut status = None;
        let ended = eventually(limit, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
        let exit = status.and_then(|status| status.code());
        let outcome = Outcome::new(exit, self.directory, &self.secrets);
        assert!(ended, "still running after {limit:?}\n{}", outcome.stderr);
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
