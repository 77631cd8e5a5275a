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
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) use self::machine::Machine;
pub(crate) use self::nats::{DEPLOY, Nats};
pub(crate) use self::network::Network;
pub(crate) use self::process::{Process, has_gone};
pub(crate) use self::relay::Relay;

/// Between two looks at something that others change.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so; says whether it came to be.
pub(crate) fn eventually(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// Says that the test is skipped, and what was missing.
pub(crate) fn skip(missing: &str) {
    let test = std::thread::current();
    eprintln!("SKIPPED {}: needs {missing}", test.name().unwrap_or("a test"));
}

/// A command that is also looked for where daemons are, which is not in everybody's path.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}
