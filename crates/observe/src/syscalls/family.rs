//! The observed processes and their threads: who there is, and who has been.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use libc::pid_t;
use tapstone_measure::units::Nanos;

use super::call::{GET_AFFINITY, PendingCall};
use super::exec;
use super::placement::Placement;
use super::signals::Listener;
use super::space::Space;
use tapstone_events::Exit;
use tapstone_events::system_calls::TracedProcess;

/// All that are observed.
pub(super) struct ProcessTree<'a> {
    threads: HashMap<pid_t, TracedThread>,
    processes: HashMap<pid_t, Alive>,
    ended: Vec<TracedProcess>,
    listener: &'a Listener,
    placement: Placement,
}

/// A thread that has not ended.
pub(super) struct TracedThread {
    /// The id of the process that the thread belongs to.
    pub(super) process: pid_t,
    /// The call that it is in, or was in when it was interrupted.
    pub(super) call: Option<PendingCall>,
}

impl TracedThread {
    fn is_told_its_place(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.known.number == GET_AFFINITY)
    }
}

/// A process that has not ended.
struct Alive {
    parent: Option<pid_t>,
    program: PathBuf,
    started: Nanos,
    space: Space,
}

impl<'a> ProcessTree<'a> {
    pub(super) fn new(listener: &'a Listener) -> Self {
        Self {
            threads: HashMap::new(),
            processes: HashMap::new(),
            ended: Vec::new(),
            listener,
            placement: Placement::new(),
        }
    }

    /// A thread, which is followed from now on if it was not already.
    pub(super) fn thread(&mut self, thread: pid_t, seen: Nanos) -> &mut TracedThread {
        if !self.threads.contains_key(&thread) {
            self.adopt(thread, process_of(thread), None, seen);
        }
        self.threads.get_mut(&thread).expect("it was adopted")
    }

    /// The code of a thread's process.
    pub(super) fn space(&mut self, thread: pid_t) -> Option<&mut Space> {
        let process = self.threads.get(&thread)?.process;
        self.processes.get_mut(&process).map(|alive| &mut alive.space)
    }

    /// A thread has made another thread or process. That one may have been seen first, and may
    /// even be gone.
    pub(super) fn born(&mut self, parent: pid_t, child: pid_t, seen: Nanos) {
        let parent = self.thread(parent, seen).process;
        let exists = |path: String| Path::new(&path).exists();
        if exists(format!("/proc/{parent}/task/{child}")) {
            self.adopt(child, parent, Some(parent), seen);
        } else if exists(format!("/proc/{child}")) {
            self.adopt(child, child, Some(parent), seen);
        }
    }

    /// Follows a thread. What is new about one that is followed already is noted.
    fn adopt(&mut self, thread: pid_t, process: pid_t, parent: Option<pid_t>, seen: Nanos) {
        if let Entry::Vacant(place) = self.threads.entry(thread) {
            place.insert(TracedThread { process, call: None });
            self.placement.began(thread);
        }
        if thread != process {
            return;
        }
        if let Some(alive) = self.processes.get_mut(&process) {
            alive.parent = parent.or(alive.parent);
            return;
        }
        let maker = parent.and_then(|parent| self.processes.get(&parent));
        let program = maker.map_or_else(|| exec::program(process), |maker| maker.program.clone());
        let space = Space::new();
        self.processes.insert(process, Alive { parent, program, started: seen, space });
        self.listener.began(process);
    }

    /// A process runs another program from now on. One thread is left, which had the number
    /// `former` until now; what the others were doing is returned.
    pub(super) fn executed(
        &mut self,
        process: pid_t,
        former: pid_t,
        program: PathBuf,
    ) -> Vec<(pid_t, TracedThread)> {
        let only = self.threads.remove(&former);
        let others: Vec<_> =
            self.threads.extract_if(|_, thread| thread.process == process).collect();
        others.iter().for_each(|(thread, _)| self.placement.ended(*thread));
        self.placement.renamed(former, process);
        self.threads.insert(process, only.unwrap_or(TracedThread { process, call: None }));
        if let Some(alive) = self.processes.get_mut(&process) {
            alive.program = program;
            alive.space = Space::new();
        }
        others
    }

    /// A thread is no more; what it was doing is returned. With its first thread goes the process:
    /// the kernel reports that one last.
    pub(super) fn ended(&mut self, thread: pid_t, exit: Exit, seen: Nanos) -> Option<TracedThread> {
        let last = self.threads.remove(&thread);
        self.placement.ended(thread);
        if let Some(alive) = self.processes.remove(&thread) {
            self.listener.ended(thread);
            self.ended.push(TracedProcess {
                process: thread as u32,
                parent: alive.parent.map(|parent| parent as u32),
                program: alive.program,
                started: alive.started,
                ended: seen,
                exit,
            });
        }
        last
    }

    /// A thread has stopped: it may be the one to share the tracer's processor. Not while another
    /// is told where all of them run.
    pub(super) fn place(&mut self, thread: pid_t) {
        if self.placement.stopped(thread)
            && !self.threads.values().any(TracedThread::is_told_its_place)
        {
            self.placement.share(thread);
        }
    }

    /// On which processors tracer and program run.
    pub(super) fn placement(&mut self) -> &mut Placement {
        &mut self.placement
    }

    /// All processes, when the last of them has ended.
    pub(super) fn into_ended(self) -> Vec<TracedProcess> {
        self.ended
    }
}

/// A thread's process; the thread itself, if it is gone already.
fn process_of(thread: pid_t) -> pid_t {
    status(thread, "Tgid:").and_then(|text| text.parse().ok()).unwrap_or(thread)
}

/// Whether a thread's process has a handler for a signal.
pub(super) fn is_caught(thread: pid_t, signal: i32) -> bool {
    let caught = status(thread, "SigCgt:").and_then(|text| u64::from_str_radix(&text, 16).ok());
    caught.is_some_and(|caught| caught >> (signal - 1) & 1 == 1)
}

/// A line of /proc/PID/status.
fn status(thread: pid_t, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}
