//! A network namespace with nothing but a loopback.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

use rustix::process::geteuid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::{command, skip};

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A machine's own network. It lasts as long as this, what was opened in it, and processes in it.
pub(crate) struct Network(File);

impl Network {
    /// `None`, which has been said then: this user may not make one.
    pub(crate) fn new() -> Option<Self> {
        if !geteuid().is_root() || command("ip").arg("-Version").output().is_err() {
            skip("root, and ip (Debian: iproute2)");
            return None;
        }
        // A thread of its own goes into the new network, and takes nobody with it.
        let namespace = in_a_thread(|| {
            // SAFETY: no file descriptors are unshared, which is what can go wrong.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
            let up = command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
            assert!(up.success(), "the loopback comes up");
            File::open(OWN).unwrap()
        });
        Some(Self(namespace))
    }

    /// Does something in this network. Sockets opened and processes started there stay there.
    pub(crate) fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        in_a_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            act()
        })
    }

    /// What tells it from other networks.
    pub(crate) fn inode(&self) -> u64 {
        self.0.metadata().unwrap().ino()
    }
}

fn in_a_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope.spawn(act).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
