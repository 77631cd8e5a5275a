//! A process in a time namespace, which ends with its guard.

use std::fs;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::eventually;

/// How long `unshare` may take to start a program, which is milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A program that runs under `unshare --fork`, which waits for it and passes on how it ended.
pub(crate) struct Process {
    unshare: Child,
    program: Option<Pid>,
}

impl Process {
    pub(super) fn new(mut unshare: Child) -> Self {
        let mut program = None;
        let started = eventually(TIME_LIMIT, || {
            program = started_by(Pid::from_child(&unshare));
            program.is_some() || unshare.try_wait().unwrap().is_some()
        });
        let process = Self { unshare, program };
        assert!(started, "unshare starts the program");
        process
    }

    /// The program itself, when it ran long enough to be found.
    pub(crate) fn pid(&self) -> Pid {
        self.program.expect("the program had not ended when it was looked for")
    }

    /// To the program, which still runs.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.unshare.try_wait().unwrap().is_some()
    }

    /// Waits for the program to end; kills it, and fails, when that takes too long. `None`: a
    /// signal ended it.
    pub(crate) fn wait(mut self, patience: Duration) -> Option<i32> {
        let mut status: Option<ExitStatus> = None;
        let ended = eventually(patience, || {
            status = self.unshare.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "still running after {patience:?}");
        status.expect("it has ended").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended()
            && let Some(program) = self.program
        {
            let _ = kill_process(program, Signal::KILL);
        }
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        if let Some(program) = self.program {
            // Until it is gone, so that what it held is free: it is nobody's to wait for.
            eventually(TIME_LIMIT, || has_gone(program));
        }
    }
}

/// The program that `unshare` forked (proc_pid_task(5): `children`), when it is no longer `unshare`
/// itself: before that it would not end with it.
fn started_by(unshare: Pid) -> Option<Pid> {
    let unshare = unshare.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).ok()?;
    let child = children.split_whitespace().next()?;
    let runs = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
    if runs(child)? == runs(&unshare.to_string())? {
        return None;
    }
    child.parse().ok().and_then(Pid::from_raw)
}

/// Whether nothing is left of a process, or only its entry in the table.
pub(crate) fn has_gone(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.map_or(true, |stat| {
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
    })
}
