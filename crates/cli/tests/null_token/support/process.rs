//! A run under way, with its worker processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Outcome;
use super::turn::Turn;

/// No run of these tests takes so long: one that does hangs.
const PATIENCE: Duration = Duration::from_secs(150);

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

/// See the module's text.
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
    _turn: Turn,
}

impl Running {
    pub(super) fn new(child: Child, directory: TempDir, turn: Turn) -> Self {
        Self { child, directory, _turn: turn }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The worker processes that are alive.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)
        });
        processes.filter(|process| parent(*process) == Some(self.pid())).collect()
    }

    /// Waits for the keys of a run with `--token-keys`, and then until it measures.
    pub(crate) fn wait_until_it_measures(&self) {
        let store = self.store();
        let made = eventually(PATIENCE, || objects(&store).len() == 2);
        assert!(made, "a key pair is on the token: {:?}", objects(&store));
        // Trial, warm-up and notices take a fifth of a second together.
        sleep(Duration::from_millis(500));
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ends the run and its workers at one moment, so that nobody can clean up.
    pub(crate) fn kill_all(mut self) -> TempDir {
        self.signal(Signal::STOP);
        for worker in self.workers() {
            kill_process(worker, Signal::KILL).unwrap();
        }
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        self.directory
    }

    /// Ends the run alone.
    pub(crate) fn kill(mut self) -> TempDir {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        self.directory
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

/// Names of the objects in a store.
pub(super) fn objects(store: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(store) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut objects: Vec<String> = names.filter(|name| name.ends_with(".object")).collect();
    objects.sort();
    objects
}

/// A living process's parent, from proc_pid_stat(5): `pid (name) state parent …`.
fn parent(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    (fields.next()? != "Z").then_some(())?;
    Pid::from_raw(fields.next()?.parse().ok()?)
}
