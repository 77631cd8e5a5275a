//! How long things may take, and how often a controller looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two reports of progress to whoever watches a run.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// How long a worker may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For one call; one that takes longer hangs, and its process is killed.
    pub call: Duration,
    /// The same for a call that waits for another program
    /// ([`WorkerProtocol::waits_for_others`](crate::WorkerProtocol::waits_for_others)).
    pub waiting_call: Duration,
    /// To stand still while it cleans up, once its orders have ended; then its process is killed.
    /// In a call that makes or removes what outlives the process
    /// ([`WorkerProtocol::outlives_process`](crate::WorkerProtocol::outlives_process)) it has the time of `call`.
    pub clean_up: Duration,
}

/// What becomes of an answer that is waited for when the user asks to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Nobody waits for it any longer, and its worker is ended in good order.
    GiveUp,
    /// It is waited for, because something has to be cleaned up; but so long after the interrupt
    /// no call may take longer than this.
    Shorten(Duration),
}

/// The user's wish to end, as a controller sees it.
#[derive(Clone, Debug)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    policy: OnInterrupt,
    noticed: Option<Instant>,
}

impl Interrupt {
    /// The wish is told by `flag`, which a signal's handler sets.
    #[must_use]
    pub fn new(flag: Arc<AtomicBool>, policy: OnInterrupt) -> Self {
        Self { flag, policy, noticed: None }
    }

    /// The user has asked to end.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Relaxed)
    }

    /// Answers are not waited for any longer.
    pub(crate) fn gives_up(&self) -> bool {
        self.policy == OnInterrupt::GiveUp && self.is_set()
    }

    /// The user has asked to end so long ago that nothing is waited for any more.
    pub(crate) fn is_overdue(&self) -> bool {
        match (self.policy, self.noticed) {
            (OnInterrupt::Shorten(grace), Some(at)) => at.elapsed() > grace,
            _ => false,
        }
    }

    /// Starts the clock of [`OnInterrupt::Shorten`] when the user has asked to end.
    pub(crate) fn look(&mut self) {
        if self.noticed.is_none() && self.is_set() {
            self.noticed = Some(Instant::now());
        }
    }

    /// A call's limit, shorter some time after the user has asked to end.
    pub(crate) fn limit(&self, limit: Duration) -> Duration {
        match (self.policy, self.noticed) {
            (OnInterrupt::Shorten(grace), Some(at)) if at.elapsed() > grace => grace.min(limit),
            _ => limit,
        }
    }
}

/// Something that is done again and again while a run goes on.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    interval: Duration,
    last: Instant,
}

impl Periodic {
    /// Due for the first time after one interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, last: Instant::now() }
    }

    /// Whether the interval has passed since this last said so.
    pub fn is_due(&mut self) -> bool {
        let due = self.last.elapsed() >= self.interval;
        if due {
            self.last = Instant::now();
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_interrupt_shortens_limits_after_its_grace_only() {
        let flag = Arc::new(AtomicBool::new(false));
        let mut interrupt = Interrupt::new(Arc::clone(&flag), OnInterrupt::Shorten(Duration::ZERO));
        interrupt.look();
        assert_eq!(interrupt.limit(LONG), LONG);
        flag.store(true, Relaxed);
        assert_eq!(interrupt.limit(LONG), LONG, "not noticed yet");
        interrupt.look();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(interrupt.limit(LONG), Duration::ZERO);
        assert!(!interrupt.gives_up());

        let mut patient = Interrupt::new(flag, OnInterrupt::Shorten(LONG));
        patient.look();
        assert_eq!(patient.limit(2 * LONG), 2 * LONG);
    }

    #[test]
    fn an_interrupt_that_gives_up_shortens_nothing() {
        let mut interrupt = Interrupt::new(Arc::new(AtomicBool::new(true)), OnInterrupt::GiveUp);
        interrupt.look();
        assert!(interrupt.gives_up());
        assert_eq!(interrupt.limit(LONG), LONG);
    }

    #[test]
    fn what_is_periodic_is_due_once_an_interval() {
        assert!(!Periodic::new(LONG).is_due());
        let mut often = Periodic::new(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(2));
        assert!(often.is_due());
    }
}
