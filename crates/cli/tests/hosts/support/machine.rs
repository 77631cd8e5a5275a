//! A machine in small: a network of its own, and a monotonic clock that is off.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::{Network, Process, command, skip};

/// What runs on it sees only its own loopback, and another CLOCK_MONOTONIC.
pub(crate) struct Machine {
    network: Network,
    clock_ahead_seconds: i64,
}

impl Machine {
    /// With a clock that is that far ahead of this machine's; behind it when negative, by less than
    /// this machine has been up. `None`, which has been said then: this user may not make one.
    pub(crate) fn new(clock_ahead_seconds: i64) -> Option<Self> {
        let network = Network::new()?;
        let machine = Self { network, clock_ahead_seconds };
        let possible = machine.command("true").stderr(Stdio::null()).status();
        if !possible.is_ok_and(|status| status.success()) {
            skip("time namespaces (Linux 5.6), and unshare (Debian: util-linux)");
            return None;
        }
        Some(machine)
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// A command in the making. It is this machine's when `start` starts it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut unshare = command("unshare");
        // A time namespace is for children, so a fork is needed; the kernel kills the child when
        // `unshare` ends.
        unshare.args(["--time", "--monotonic", &self.clock_ahead_seconds.to_string()]);
        unshare.args(["--fork", "--kill-child=KILL", "--"]).arg(program).stdin(Stdio::null());
        unshare
    }

    pub(crate) fn start(&self, mut command: Command) -> Process {
        Process::new(self.network.within(|| command.spawn()).unwrap())
    }
}
