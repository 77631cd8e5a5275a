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
    if let Some(privilege) = lost_privilege(&exe) {
        return Some(format!(
            "{shown} {privilege}; observed programs cannot gain privileges, so it ran without them"
        ));
    }
    is_of_32_bits(&exe)
        .then(|| format!("{shown} is a program of 32 bits: its system calls were not seen"))
}

/// What a file would give whoever executes it.
fn lost_privilege(exe: &str) -> Option<&'static str> {
    let metadata = fs::metadata(exe).ok()?;
    // Without the group's right to execute, the second bit is about locks (fcntl(2)).
    const SETGID: u32 = libc::S_ISGID | libc::S_IXGRP;
    if metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != geteuid().as_raw() {
        return Some("is setuid");
    }
    if metadata.mode() & SETGID == SETGID && metadata.gid() != getegid().as_raw() {
        return Some("is setgid");
    }
    let mut capabilities = [0u8; 64];
    let found = getxattr(exe, "security.capability", &mut capabilities[..]);
    (found.is_ok() && !geteuid().is_root()).then_some("has capabilities")
}

/// Whether the kernel knows its calls by other numbers: i386 and x32.
fn is_of_32_bits(exe: &str) -> bool {
    let mut head = [0; 5];
    let read = File::open(exe).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}
