//! Where the program and its tracer run.
//!
//! They work in turns, so on one processor a stop is a switch between two threads; on two it wakes
//! an idle processor each time, which takes several times as long. So the tracer shares one with
//! the thread that stops again and again while the others sleep or compute; those go where they
//! like.
//!
//! A program that asks for its processors or sets them (sched_getaffinity(2),
//! sched_setaffinity(2), by which programs choose how many threads to make) finds them as they
//! were; /proc/PID/status shows them as they are.

use libc::pid_t;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Who stops so often in a row stops alone. Moving costs as much as a few stops.
const IN_A_ROW: u32 = 4;

/// After so many stops of others, the partner does something else.
const OF_OTHERS: u32 = 64;

/// Where the observed threads run.
pub(super) struct Placement {
    /// What the tracer was allowed at first, and the program by inheritance. `None`: that is one
    /// processor anyway, or the program has said where it wants to run.
    allowed: Option<CpuSet>,
    /// Who shares a processor with the tracer.
    partner: Option<pid_t>,
    /// Who stopped last, and how often in a row.
    last: (pid_t, u32),
    /// Stops of others since the partner's last.
    of_others: u32,
}

impl Placement {
    /// A placement in which everyone may run on any processor.
    pub(super) fn new() -> Self {
        let allowed = sched_getaffinity(None).ok().filter(|allowed| allowed.count() > 1);
        Self { allowed, partner: None, last: (0, 0), of_others: 0 }
    }

    /// A thread has stopped. Whether it should share the tracer's processor from now on.
    pub(super) fn stopped(&mut self, thread: pid_t) -> bool {
        let (last, count) = self.last;
        let count = if thread == last { count.saturating_add(1) } else { 1 };
        self.last = (thread, count);
        if self.partner == Some(thread) {
            self.of_others = 0;
            return false;
        }
        self.of_others = self.of_others.saturating_add(1);
        if self.of_others >= OF_OTHERS {
            self.apart();
        }
        count >= IN_A_ROW && self.allowed.is_some()
    }

    /// This thread shares the tracer's processor, and no other does.
    pub(super) fn share(&mut self, thread: pid_t) {
        self.apart();
        let here = sched_getcpu();
        let mut one = CpuSet::new();
        one.set(here);
        self.partner = Some(thread);
        self.of_others = 0;
        if !bind(0, &one) || !bind(thread, &one) {
            self.give_up();
        }
    }

    /// A thread has begun, and who made it may have been the tracer's partner: it goes where it
    /// likes.
    pub(super) fn began(&self, thread: pid_t) {
        if let Some(allowed) = &self.allowed {
            bind(thread, allowed);
        }
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: pid_t) {
        if self.partner == Some(thread) {
            self.apart();
        }
    }

    /// A thread has another number now.
    pub(super) fn renamed(&mut self, former: pid_t, thread: pid_t) {
        if self.partner == Some(former) {
            self.partner = Some(thread);
        }
    }

    /// Everyone runs where it may.
    pub(super) fn apart(&mut self) {
        let (Some(partner), Some(allowed)) = (self.partner.take(), &self.allowed) else { return };
        // Threads that have just ended need no place.
        bind(partner, allowed);
        bind(0, allowed);
    }

    /// The program is about to say where it wants to run, or they cannot share. (A thread that the
    /// partner is making in this very moment stays where that one is.)
    pub(super) fn give_up(&mut self) {
        self.apart();
        self.allowed = None;
    }
}

/// Says where a thread (0: the calling one) may run, if it still runs.
fn bind(thread: pid_t, to: &CpuSet) -> bool {
    sched_setaffinity(Pid::from_raw(thread), to).is_ok()
}
