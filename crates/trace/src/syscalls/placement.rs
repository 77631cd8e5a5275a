//! Where the program and its tracer run.
//!
//! They work in turns, so on one processor a stop is a switch between two threads; on two it wakes
//! an idle processor each time, which takes several times as long. So they share one as long as
//! the program has a single thread. As soon as it has a second one, all go where they like.
//!
//! The program does not notice: when it asks for its processors or sets them (sched_getaffinity(2),
//! sched_setaffinity(2), by which programs choose how many threads to make), they are as they were.

use libc::pid_t;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Where the observed threads run.
pub(super) struct Placement {
    /// Who shares a processor with the tracer, and what it was allowed before.
    pinned: Option<(Pid, CpuSet)>,
    /// What the tracer was allowed before.
    own: Option<CpuSet>,
    /// The program has said where it wants to run.
    given_up: bool,
}

impl Placement {
    /// Everyone runs anywhere.
    pub(super) fn new() -> Self {
        let own = sched_getaffinity(None).ok();
        Self { pinned: None, given_up: own.is_none(), own }
    }

    /// There is only this thread.
    pub(super) fn alone(&mut self, thread: pid_t) {
        let Some(thread) = Pid::from_raw(thread).filter(|_| !self.given_up) else { return };
        if self.pinned.is_some() {
            return;
        }
        let Ok(allowed) = sched_getaffinity(Some(thread)) else { return };
        let here = sched_getcpu();
        if !allowed.is_set(here) || allowed.count() < 2 {
            return;
        }
        let mut one = CpuSet::new();
        one.set(here);
        if sched_setaffinity(None, &one).is_ok() {
            let _ = sched_setaffinity(Some(thread), &one);
            self.pinned = Some((thread, allowed));
        }
    }

    /// Everyone runs where it may. Who was made by the pinned thread is bound like it.
    pub(super) fn apart(&mut self, child: Option<pid_t>) {
        let Some((thread, allowed)) = self.pinned.take() else { return };
        // Threads that have just ended need no place.
        for thread in [Some(thread), child.and_then(Pid::from_raw)].into_iter().flatten() {
            let _ = sched_setaffinity(Some(thread), &allowed);
        }
        if let Some(own) = &self.own {
            let _ = sched_setaffinity(None, own);
        }
    }

    /// The program is about to say where it wants to run.
    pub(super) fn give_up(&mut self) {
        self.apart(None);
        self.given_up = true;
    }
}
