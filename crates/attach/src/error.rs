//! Why a process cannot be watched, and what to do about it.

use std::fs;
use std::io;

use thiserror::Error;

use crate::bpf::LoadError;
use crate::process;

/// Why nothing is watched.
#[derive(Debug, Error)]
pub enum AttachError {
    /// No process has this number, or no longer.
    #[error("there is no process {0}\nhint: `pgrep -a NAME` lists processes by name")]
    NoProcess(u32),
    /// It is this one.
    #[error("process {0} is tapstone itself\nhint: --pid takes the process that is to be watched")]
    Oneself(u32),
    /// Nobody uses the module.
    #[error(
        "no process has {0} loaded\nhint: a path or a file name, such as libsofthsm2.so; processes of \
         other users are seen by root only"
    )]
    NoUsers(String),
    /// The kernel refuses for want of rights; the text says which.
    #[error("{0}")]
    Rights(String),
    /// A process has no functions that are watched.
    #[error(
        "process {process} ({program}) has no PKCS#11 module, PC/SC library or reader driver loaded{anonymous}\nhint: watch it when it \
         has loaded one; the module's users are found by --users-of MODULE"
    )]
    NoModules {
        /// The number of the process.
        process: u32,
        /// The path of the program that it runs.
        program: String,
        /// Lists in it that are in no file, in words; or empty.
        anonymous: String,
    },
    /// Its memory cannot be looked at.
    #[error("process {process} cannot be looked at: {why}")]
    Look {
        /// The number of the process.
        process: u32,
        /// What the system says.
        why: io::Error,
    },
    /// The kernel does not take the programs.
    #[error("{0}\nhint: watching needs Linux 6.6 or later on x86-64, with BTF and uprobes")]
    Kernel(String),
    /// Probes cannot be set.
    #[error("{module} cannot be watched: {why}")]
    Probes {
        /// The path of the module's file.
        module: String,
        /// What the kernel says.
        why: io::Error,
    },
    /// A system call fails.
    #[error("watching failed: {0}")]
    System(#[from] io::Error),
}

impl From<LoadError> for AttachError {
    fn from(error: LoadError) -> Self {
        match error.why().and_then(io::Error::raw_os_error) {
            Some(libc::EPERM | libc::EACCES) => match missing_rights() {
                Some(sentence) => Self::Rights(sentence),
                None => Self::Kernel(error.to_string()),
            },
            _ => Self::Kernel(error.to_string()),
        }
    }
}

const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// The rights that are missing to watch anything, as one sentence.
pub(crate) fn missing_rights() -> Option<String> {
    missing_of(&[(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")], own_rights())
        .map(|missing| format!("watching a running process needs {missing}, which tapstone does not have\nhint: run it as root, or with `capsh`, `setcap` or the service manager's AmbientCapabilities="))
}

/// The right that is missing to watch a process of another user, as one sentence.
pub(crate) fn missing_for(process: u32) -> Option<String> {
    // SAFETY: it cannot fail and touches no memory.
    let own = unsafe { libc::geteuid() };
    let user = process::user(process)?;
    let missing = missing_of(&[(SYS_PTRACE, "CAP_SYS_PTRACE")], own_rights())?;
    (user != own).then(|| {
        format!("process {process} is another user's (uid {user}): watching it needs {missing} too, which tapstone does not have\nhint: run it as root")
    })
}

fn missing_of(wanted: &[(u32, &str)], rights: u64) -> Option<String> {
    let has = |right: u32| rights >> right & 1 != 0;
    // CAP_SYS_ADMIN stands for the two that were split off from it.
    let is_covered = |right: u32| right != SYS_PTRACE && has(SYS_ADMIN);
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|(right, _)| !has(*right) && !is_covered(*right))
        .map(|(_, name)| *name)
        .collect();
    (!missing.is_empty()).then(|| missing.join(" and "))
}

fn own_rights() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sentence_names_the_rights_that_are_missing() {
        let wanted = [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")];
        assert_eq!(missing_of(&wanted, 0).as_deref(), Some("CAP_BPF and CAP_PERFMON"));
        assert_eq!(missing_of(&wanted, 1 << BPF).as_deref(), Some("CAP_PERFMON"));
        assert_eq!(missing_of(&wanted, 1 << BPF | 1 << PERFMON), None);
        assert_eq!(missing_of(&wanted, 1 << SYS_ADMIN), None);
        let ptrace = [(SYS_PTRACE, "CAP_SYS_PTRACE")];
        assert_eq!(missing_of(&ptrace, 1 << SYS_ADMIN).as_deref(), Some("CAP_SYS_PTRACE"));
    }
}
