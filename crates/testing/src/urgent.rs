//! A part of a test that the rest of the machine does not hold up.

#![expect(clippy::unwrap_used, reason = "a test that cannot look at its own thread fails")]

use std::fs;
use std::process::{Command, Stdio};

/// SCHED_RR of sched(7), as a thread's `stat` has it.
const ROUND_ROBIN: &str = "2";

/// For as long as this lives, the thread that made it, and each thread and program that it starts
/// meanwhile, runs before all ordinary ones: who computes on the same processors holds it up no
/// longer. What is measured so has to sleep most of its time.
///
/// Where the user has no right to that, nothing changes.
#[derive(Debug)]
pub struct Urgent(String);

impl Urgent {
    /// From now on.
    #[must_use = "it ends when this is dropped"]
    pub fn start() -> Self {
        let thread = fs::read_link("/proc/thread-self").unwrap();
        let thread = thread.file_name().unwrap().to_string_lossy().into_owned();
        schedule(&["--rr", "--pid", "10", &thread]);
        Self(thread)
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        schedule(&["--other", "--pid", "0", &self.0]);
    }
}

/// Without chrt(1), or the right to use it, everything stays as it is.
fn schedule(arguments: &[&str]) {
    let mut command = Command::new("chrt");
    let _ = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Whether the thread that asks runs before all ordinary ones.
pub(crate) fn is_urgent() -> bool {
    // Field 41 of proc_pid_stat(5). The second one, in brackets, may have spaces.
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(38) == Some(ROUND_ROBIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_meanwhile_is_urgent_too_and_then_nothing_is() {
        assert!(!is_urgent());
        let urgent = Urgent::start();
        if is_urgent() {
            assert!(std::thread::spawn(is_urgent).join().unwrap());
        } else {
            crate::skip("the right to run before others");
        }
        drop(urgent);
        assert!(!is_urgent());
    }
}
