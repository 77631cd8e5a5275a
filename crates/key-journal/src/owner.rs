//! The process that a key belongs to, and whether it lives.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// A process, so that no other one is taken for it: numbers are given again, after a restart of
/// the machine and in every namespace, but not with the same start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    machine: String,
    boot: String,
    namespace: String,
    process: u32,
    /// In ticks since the machine started (proc_pid_stat(5)).
    start: u64,
}

/// What is known of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Alive,
    Dead,
    /// It is of another machine, or of another container on this one.
    Unknown,
}

impl Owner {
    /// # Errors
    /// What /proc says.
    pub(super) fn this_process() -> io::Result<Self> {
        let process = std::process::id();
        let start = start_of(process).ok_or_else(|| io::Error::other("/proc/self/stat"))?;
        let namespace = fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self { machine: machine(), boot, namespace, process, start })
    }

    /// Whether it lives, as far as `here`, a process of this machine, can know.
    pub(super) fn life(&self, here: &Self) -> Life {
        if self.machine != here.machine {
            return Life::Unknown;
        }
        if self.boot != here.boot {
            return Life::Dead;
        }
        if self.namespace != here.namespace {
            return Life::Unknown;
        }
        match start_of(self.process) {
            Some(start) if start == self.start => Life::Alive,
            _ => Life::Dead,
        }
    }

    /// Different for each process.
    pub(super) fn as_file_name(&self) -> String {
        let boot: String = self.boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        format!("{boot}-{}-{}", self.process, self.start)
    }
}

/// When a living process started.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything. State is field 3, starttime 22.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_dead = matches!(fields.next()?, "Z" | "X");
    if is_dead { None } else { fields.nth(18)?.parse().ok() }
}

/// machine-id(5), or the name of a machine that has none.
fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned());
    match id {
        Ok(id) if !id.is_empty() => id,
        _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_dead_only_where_that_can_be_known() {
        let here = Owner::this_process().unwrap();
        assert_eq!(here.life(&here), Life::Alive);
        let other = |change: fn(&mut Owner)| {
            let mut owner = here.clone();
            change(&mut owner);
            owner.life(&here)
        };
        assert_eq!(other(|owner| owner.start += 1), Life::Dead, "the number was given again");
        assert_eq!(other(|owner| owner.boot = "another".into()), Life::Dead);
        assert_eq!(other(|owner| owner.machine = "another".into()), Life::Unknown);
        assert_eq!(other(|owner| owner.namespace = "another".into()), Life::Unknown);
        assert_eq!(other(|owner| owner.process = u32::MAX), Life::Dead);
    }
}
