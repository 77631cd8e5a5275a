//! A laboratory of many machines on this one: a real nats-server, machines with networks and clocks
//! of their own, and relays between them that can be slow and can fail.
//!
//!     this machine's network                    a machine's own network, its own clock
//!     nats-server <──────────────── Relay <──── 127.0.0.1:PORT <──── a process
//!
//! A machine has nothing but its loopback, so its one way out is the relay that listens there.
//! Nothing of this has a name in the system: networks and clocks end with the last process or
//! descriptor that holds them, also when a test is killed.

mod machine;
mod nats;
mod network;
mod process;
mod relay;

use std::ffi::{OsStr, OsString};
use std::process::Command;

pub(crate) use tapstone_testing::{eventually, skip};

pub(crate) use self::machine::Machine;
pub(crate) use self::nats::{Credentials, DEPLOY, Nats, is_heard};
pub(crate) use self::network::Network;
pub(crate) use self::process::{Process, has_gone};
pub(crate) use self::relay::Relay;

/// A command that is also looked for where daemons are, which is not in everybody's path.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}
