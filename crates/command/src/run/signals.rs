//! Signals while commands run.
//!
//! The command is in Tapstone's own process group, so the terminal sends Ctrl-C (SIGINT), Ctrl-\
//! (SIGQUIT) and its end (SIGHUP) to both. Tapstone remembers that they came and waits for the
//! command, which may have its own mind; the exit that follows is no failure. What is sent to
//! Tapstone alone is passed on, so that the command hears of each once.
//!
//! A signal that is ignored already stays so, for Tapstone and for the command (nohup(1)): exec
//! keeps what is ignored, but a handler becomes the default.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Arriving};
use signal_hook::{SigId, flag, low_level};

use super::witness::Witness;

/// Watches for signals as long as it lives, for one command at a time.
#[derive(Debug)]
pub struct Signals {
    /// Set by the handler itself: when the terminal's SIGINT has ended a command, the same SIGINT
    /// is pending here before wait4 can return.
    asked: Arc<AtomicBool>,
    target: Arc<Mutex<Target>>,
    flags: Vec<SigId>,
    handle: Handle,
    passes_on: Option<JoinHandle<()>>,
}

/// Signals that end a run.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Who is to hear of signals.
#[derive(Debug, Default)]
struct Target {
    /// A pidfd: a process id may by then be another's.
    process: Option<Arc<OwnedFd>>,
    /// What came to Tapstone alone, also before the command was known here.
    came: Vec<Signal>,
}

impl Target {
    fn hear(&self, signal: Signal) {
        if let Some(process) = &self.process {
            // It may have ended meanwhile.
            let _ = pidfd_send_signal(process, signal);
        }
    }
}

fn locked(target: &Mutex<Target>) -> MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signals {
    /// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end this process. Those that it
    /// ignores it goes on to ignore.
    ///
    /// # Errors
    /// When the system refuses a handler or a thread.
    pub fn watch() -> io::Result<Self> {
        let asked = Arc::default();
        let target = Arc::<Mutex<Target>>::default();
        let set = |signal| flag::register(signal, Arc::clone(&asked));
        let heard = |signal: &i32| !is_ignored(*signal);
        let asking = ENDING.into_iter().filter(heard);
        let flags = asking.map(set).collect::<io::Result<_>>()?;
        let mut arriving = Arriving::new(ENDING.iter().filter(|signal| heard(signal)))?;
        let handle = arriving.handle();
        let to = Arc::clone(&target);
        let pass_on = move || {
            let mut witness = Witness::start().ok();
            for number in arriving.forever() {
                let Some(signal) = Signal::from_named_raw(number) else { continue };
                let is_groups = witness.as_mut().and_then(|witness| witness.saw(number));
                // Where nobody knows: a terminal sends SIGTERM to nobody.
                if !is_groups.unwrap_or(signal != Signal::TERM) {
                    let mut target = locked(&to);
                    target.came.push(signal);
                    target.hear(signal);
                }
            }
        };
        let passes_on = Some(thread::Builder::new().name("signals".to_owned()).spawn(pass_on)?);
        Ok(Self { asked, target, flags, handle, passes_on })
    }

    /// Whether one of them has come: end soon, and keep what there is.
    #[must_use]
    pub fn asked_to_end(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Passes signals on to this child until the guard is dropped, also those that came before.
    pub(super) fn running(&self, child: &Child) -> io::Result<Running<'_>> {
        let process = Arc::new(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?);
        let mut target = locked(&self.target);
        target.process = Some(Arc::clone(&process));
        target.came.iter().for_each(|signal| target.hear(*signal));
        Ok(Running { target: &self.target, process })
    }
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and the pointer is to live, writable memory of the right type.
    unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    // SAFETY: zeros are a valid sigaction, that of a signal that is not ignored.
    unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        let _ = self.passes_on.take().map(JoinHandle::join);
        for flag in &self.flags {
            low_level::unregister(*flag);
        }
    }
}

/// A child that hears of signals.
pub(super) struct Running<'a> {
    target: &'a Mutex<Target>,
    process: Arc<OwnedFd>,
}

impl Running<'_> {
    pub(super) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        locked(self.target).process = None;
    }
}
