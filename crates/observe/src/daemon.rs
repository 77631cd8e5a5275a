//! A daemon that a command talks to, started for the length of a trace so that both are seen.
//!
//! One that runs already is left alone: it belongs to others, and a probe cannot be put into it.

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

use crate::probe::Probe;
use tapstone_command::command::Command;
use tapstone_command::observation::Observation;

/// Where pcsc-lite's daemon and its clients meet.
const SOCKETS: [&str; 2] = ["/run/pcscd/pcscd.comm", "/var/run/pcscd/pcscd.comm"];
/// A daemon that takes longer than that to start, or to stop, hangs.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two looks for the daemon.
const PAUSE: Duration = Duration::from_millis(10);

/// A daemon with the probe inside. It is stopped when this is dropped.
#[derive(Debug)]
pub struct ProbedDaemon {
    child: Child,
}

/// Why there is none. The text ends with a hint.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Another pcscd answers at the socket.
    #[error(
        "a pcscd runs already ({}): it is left alone\n\
         hint: stop it for the time of the trace, for example: systemctl stop pcscd.socket \
         pcscd.service", .0.display()
    )]
    Runs(PathBuf),
    /// It was not started.
    #[error("`{command}` cannot be started: {why}\nhint: as root, from a shell, it should run")]
    Start {
        /// The command that was run to start it.
        command: String,
        /// What the system says.
        why: io::Error,
    },
    /// It ended at once.
    #[error(
        "`{command}` ended at once ({status})\n\
         hint: run it by hand to see why: it must stay in the foreground, and pcscd needs root"
    )]
    Ended {
        /// The command that was run to start it.
        command: String,
        /// How the daemon ended.
        status: process::ExitStatus,
    },
    /// It does not answer.
    #[error("`{command}` does not answer after {} s\nhint: is it pcscd?", TIME_LIMIT.as_secs())]
    Silent {
        /// The command that was run to start it.
        command: String,
    },
}

impl ProbedDaemon {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// When another runs, and when it does not come up.
    pub fn start(command: &Command, probe: &Probe) -> Result<Self, DaemonError> {
        if let Some(socket) = answering() {
            return Err(DaemonError::Runs(socket));
        }
        let shown = || command.shown().to_owned();
        let mut start = process::Command::new(command.program());
        start.args(command.arguments()).envs(probe.environment());
        start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A program that ends in good order on Ctrl-C needs it until then.
        start.process_group(0);
        // Whatever ends this process (SIGKILL), nobody else would stop it.
        let ends_with_parent = || Ok(set_pdeathsig(Signal::SIGTERM)?);
        // SAFETY: one system call, which a child may make before it executes.
        unsafe { start.pre_exec(ends_with_parent) };
        let child = start.spawn().map_err(|why| DaemonError::Start { command: shown(), why })?;
        let mut daemon = Self { child };
        let until = Instant::now() + TIME_LIMIT;
        while answering().is_none() {
            if let Ok(Some(status)) = daemon.child.try_wait() {
                return Err(DaemonError::Ended { command: shown(), status });
            }
            if Instant::now() > until {
                return Err(DaemonError::Silent { command: shown() });
            }
            probe.look_after();
            thread::sleep(PAUSE);
        }
        Ok(daemon)
    }

    /// Stops it, and waits until it is gone.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        // It may have ended by itself meanwhile.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let until = Instant::now() + TIME_LIMIT;
        while !matches!(self.child.try_wait(), Ok(Some(_))) {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for ProbedDaemon {
    fn drop(&mut self) {
        self.end();
    }
}

fn answering() -> Option<PathBuf> {
    let socket = SOCKETS.into_iter().find(|socket| UnixStream::connect(socket).is_ok());
    socket.map(|socket| Path::new(socket).to_owned())
}
