//! What is to be said of a program that a process begins to run.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::pid_t;
use rustix::fs::getxattr;
use rustix::process::{getegid, geteuid};

/// The program of a process.
pub(super) fn program(process: pid_t) -> PathBuf {
    fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default()
}

/// What a reader has to know of it.
pub(super) fn warning(process: pid_t, program: &Path) -> Option<String> {
    let exe = format!("/proc/{process}/exe");
    let shown = program.display();
    if let Some(privilege) = lost_privilege(&exe, &Identity::of_process(process)) {
        return Some(format!(
            "{shown} {privilege}; observed programs cannot gain privileges, so it ran without them"
        ));
    }
    is_of_32_bits(&exe)
        .then(|| format!("{shown} is a program of 32 bits: its system calls were not seen"))
}

/// As whom a process acts.
struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    /// Of one that has gained nothing, by proc(5). The observer's own, where that cannot be read.
    fn of_process(process: pid_t) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        // The real one, then the effective one.
        let effective = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        let user = effective("Uid:").unwrap_or_else(|| geteuid().as_raw());
        Self { user, group: effective("Gid:").unwrap_or_else(|| getegid().as_raw()) }
    }
}

/// What a file would give whoever executes it.
fn lost_privilege(exe: &str, who: &Identity) -> Option<&'static str> {
    let metadata = fs::metadata(exe).ok()?;
    // Without the group's right to execute, the second bit is about locks (fcntl(2)).
    const SETGID: u32 = libc::S_ISGID | libc::S_IXGRP;
    if metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != who.user {
        return Some("is setuid");
    }
    if metadata.mode() & SETGID == SETGID && metadata.gid() != who.group {
        return Some("is setgid");
    }
    let mut capabilities = [0u8; 64];
    let found = getxattr(exe, "security.capability", &mut capabilities[..]);
    (found.is_ok() && who.user != 0).then_some("has capabilities")
}

/// Whether the kernel knows its calls by other numbers: i386 and x32.
fn is_of_32_bits(exe: &str) -> bool {
    let mut head = [0; 5];
    let read = File::open(exe).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}
