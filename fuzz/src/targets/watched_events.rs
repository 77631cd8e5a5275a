//! A file of calls that `trace --pid --events` kept, through to what `trace --read` makes of it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};
use tapstone_attach::kept::{KeptWatch, MAGIC};

use super::events::read_through;
use crate::FuzzTarget;
use crate::structure::{Structure, messages};

/// The first message is the head, each other one a call.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "watched-events",
    reads: "kept events of a watched program",
    structure: Structure::Messages,
    longest: 8192,
    check,
};

fn check(input: &[u8]) {
    let file = kept_file(input);
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(kept) = KeptWatch::read(&path) else { return };
    let kept = kept.expect("it begins like one");
    read_through(&kept.events);
    let mut again = Vec::new();
    KeptWatch::write(&kept.events, kept.has_unseen_returns, &kept.warnings, &mut again)
        .expect("memory");
    assert!(again.starts_with(&MAGIC));
}

/// The file that an input stands for, in memory.
fn kept_file(input: &[u8]) -> File {
    let mut file = File::from(memfd_create("watched", MemfdFlags::CLOEXEC).expect("memory"));
    let mut messages = messages(input);
    let head = messages.next().unwrap_or_default();
    let length = (head.len() as u64).to_le_bytes();
    let calls: Vec<u8> = messages.flatten().copied().collect();
    for part in [&MAGIC[..], &length, head, &calls] {
        file.write_all(part).expect("memory");
    }
    file
}
