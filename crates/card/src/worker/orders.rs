//! The controller's orders, without a thread that waits for them.
//!
//! A second thread, even a sleeping one, makes every system call of a process a little dearer, and
//! with it every call of PC/SC that is measured. So orders are looked for between operations; and
//! that the controller has died while a call hangs is told by a signal.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use signal_hook::consts::SIGALRM;
use signal_hook::{flag, low_level};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_worker::{Controller, receive, signal_at_controllers_death};

use crate::protocol::Order;

/// How long a worker may clean up after its controller has died: nobody is left to kill it.
const LAST_RESPITE_SECONDS: u32 = 10;

/// Orders are looked for no more often than this: a look is a system call.
const LOOK: Nanos = Nanos::from_millis(5);

/// The worker's end of the pipe.
pub(super) struct Orders {
    pipe: File,
    /// No further operation is to start.
    closed: Arc<AtomicBool>,
    last_look: Nanos,
}

impl Orders {
    /// Orders from a pipe; from now on the process does not outlive its controller for long.
    pub(super) fn new(pipe: File) -> io::Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        // The first alarm is the controller's death; the second comes when cleaning up took too long.
        flag::register_conditional_shutdown(SIGALRM, 3, Arc::clone(&closed))?;
        flag::register(SIGALRM, Arc::clone(&closed))?;
        // SAFETY: alarm(2) is among the functions that a signal's handler may call
        // (signal-safety(7)), and it is all that this one does.
        unsafe {
            low_level::register(SIGALRM, || {
                libc::alarm(LAST_RESPITE_SECONDS);
            })?;
        }
        if signal_at_controllers_death(Signal::ALARM)? == Controller::Gone {
            closed.store(true, Relaxed);
        }
        Ok(Self { pipe, closed, last_look: Nanos::ZERO })
    }

    /// Waits for the next order; `None` when there are no more.
    pub(super) fn next(&mut self) -> Option<Order> {
        let order = receive(&mut self.pipe).ok().flatten();
        match order {
            None | Some(Order::Close) => self.closed.store(true, Relaxed),
            Some(Order::Prepare(_)) => self.closed.store(false, Relaxed),
            Some(_) => {}
        }
        order
    }

    /// Whether no further operation is to start. It is between two operations, at this moment.
    #[inline]
    pub(super) fn closed_at(&mut self, now: Nanos) -> bool {
        if now - self.last_look >= LOOK {
            self.look(now);
        }
        self.closed.load(Relaxed)
    }

    /// The same, looked for at once.
    pub(super) fn closed(&mut self) -> bool {
        self.look(Monotonic.now());
        self.closed.load(Relaxed)
    }

    #[cold]
    fn look(&mut self, now: Nanos) {
        self.last_look = now;
        let mut pipe = [PollFd::new(&self.pipe, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut pipe, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            self.next();
        }
    }
}
