//! Signals while commands run.
//!
//! The command is in Tapstone's own process group, so the terminal sends Ctrl-C (SIGINT) and its
//! end (SIGHUP) to both. Tapstone remembers that they came and waits for the command, which may
//! have its own mind; the exit that follows is no failure. SIGTERM is sent to Tapstone alone, and
//! is passed on. Ctrl-\ (SIGQUIT) ends both at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Arriving};

/// Watches for signals as long as it lives, for one command at a time.
#[derive(Debug)]
pub struct Signals {
    shared: Arc<Shared>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    target: Mutex<Target>,
}

/// Who is to hear of SIGTERM.
#[derive(Debug, Default)]
struct Target {
    /// A pidfd: a process id may by then be another's.
    process: Option<Arc<OwnedFd>>,
    /// It came.
    terminate: bool,
}

impl Target {
    fn tell(&self) {
        if let (Some(process), true) = (&self.process, self.terminate) {
            // It may have ended meanwhile.
            let _ = pidfd_send_signal(process, Signal::TERM);
        }
    }
}

impl Shared {
    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrived(&self, signal: i32) {
        self.asked.store(true, Ordering::SeqCst);
        if signal == SIGTERM {
            let mut target = self.target();
            target.terminate = true;
            target.tell();
        }
    }
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP no longer end this process.
    ///
    /// # Errors
    /// When the system refuses a handler or a thread.
    pub fn watch() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut arriving = Arriving::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = arriving.handle();
        let watcher = Arc::clone(&shared);
        let watch = move || arriving.forever().for_each(|signal| watcher.arrived(signal));
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(Self { shared, handle, thread: Some(thread) })
    }

    /// Whether one of them has come: end soon, and keep what there is.
    #[must_use]
    pub fn asked_to_end(&self) -> bool {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// Passes SIGTERM on to this child until the guard is dropped, also one that came before.
    pub(super) fn running(&self, child: &Child) -> io::Result<Running<'_>> {
        let process = Arc::new(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?);
        let mut target = self.shared.target();
        target.process = Some(Arc::clone(&process));
        target.tell();
        Ok(Running { shared: &self.shared, process })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A child that hears of SIGTERM.
pub(super) struct Running<'a> {
    shared: &'a Shared,
    process: Arc<OwnedFd>,
}

impl Running<'_> {
    pub(super) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.target().process = None;
    }
}
