//! Signals to the tracer while a program is observed.
//!
//! Ctrl-C (SIGINT), Ctrl-\ (SIGQUIT) and the terminal's end (SIGHUP) go to all in its foreground,
//! so the program has them already: the tracer only remembers them, and sees the program to its
//! end. What comes to the tracer alone is passed on. Once the program itself has ended, and only
//! children that it left behind go on, any of them ends those: by SIGTERM the first time, by
//! SIGKILL after that.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use libc::pid_t;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tapstone_command::run::Witness;

/// Listens as long as it lives.
pub(super) struct Listener {
    state: Arc<Mutex<SignalState>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SignalState {
    program: pid_t,
    /// All processes that are followed and have not ended.
    alive: BTreeSet<pid_t>,
    interrupted: bool,
    asked_to_end: bool,
}

impl Listener {
    /// Begins to listen, for a program that has just been started.
    pub(super) fn start(program: pid_t) -> io::Result<Self> {
        let alive = BTreeSet::from([program]);
        let state = Arc::new(Mutex::new(SignalState { program, alive, ..SignalState::default() }));
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let handle = signals.handle();
        let shared = Arc::clone(&state);
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            // Made here: it is a child of this thread, and the tracer waits for its own children.
            let mut witness = Witness::start().ok();
            for number in signals.forever() {
                let Some(signal) = Signal::from_named_raw(number) else { continue };
                shared.lock().unwrap_or_else(PoisonError::into_inner).interrupted = true;
                let is_groups = witness.as_mut().and_then(|witness| witness.saw(number));
                // Where nobody knows: a terminal sends SIGTERM to nobody.
                let is_alone = !is_groups.unwrap_or(signal != Signal::TERM);
                shared.lock().unwrap_or_else(PoisonError::into_inner).answer(signal, is_alone);
            }
        })?;
        Ok(Self { state, handle, thread: Some(thread) })
    }

    /// A process is followed from now on.
    pub(super) fn began(&self, process: pid_t) {
        self.lock().alive.insert(process);
    }

    /// A process has ended.
    pub(super) fn ended(&self, process: pid_t) {
        self.lock().alive.remove(&process);
    }

    /// Whether a signal asked for the end.
    pub(super) fn interrupted(&self) -> bool {
        self.lock().interrupted
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.handle.close();
        // It ends at once; a panic in it has been printed, and there is nothing to add.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl SignalState {
    /// `is_alone`: the program has not heard of it.
    fn answer(&mut self, signal: Signal, is_alone: bool) {
        if self.alive.contains(&self.program) {
            if is_alone {
                send(self.program, signal);
            }
            return;
        }
        let signal = if self.asked_to_end { Signal::KILL } else { Signal::TERM };
        self.asked_to_end = true;
        for process in &self.alive {
            send(*process, signal);
        }
    }
}

/// A process that has just ended has nothing to hear.
fn send(process: pid_t, signal: Signal) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, signal);
    }
}
