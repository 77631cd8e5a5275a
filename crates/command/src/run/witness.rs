//! Whether a signal came to the whole process group, or to this process alone.
//!
//! A terminal's Ctrl-C reaches every process in its foreground, `kill PID` one of them, and nothing
//! in a signal tells the two apart when both are sent by kill(2). So another process of the group
//! watches: it blocks every signal and sleeps, and what was sent to the group is pending there
//! (ShdPnd in proc_pid_status(5)).

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// How long a signal to a group takes to reach all of it, and many times more.
const REACHES_ALL: Duration = Duration::from_millis(10);

/// A process of this one's group that sleeps until it is dropped, or the thread that made it ends.
#[derive(Debug)]
pub struct Witness {
    process: Pid,
}

impl Witness {
    /// Starts it. A signal that came before is not known to it.
    ///
    /// # Errors
    /// When the system makes no more processes.
    pub fn start() -> io::Result<Self> {
        let parent = getpid();
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: both are live, writable memory of the right type; `all` is filled before it is
        // read. The child calls nothing but functions that are async-signal-safe
        // (signal-safety(7)), and never returns from here.
        let forked = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            let forked = libc::fork();
            if forked == 0 {
                sleep_until_killed(parent);
            }
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
            if forked < 0 { Err(error) } else { Ok(forked) }
        }?;
        let process = Pid::from_raw(forked).ok_or_else(|| io::Error::other("no process id"))?;
        Ok(Self { process })
    }

    /// Whether a signal that has just come here came to the group. `None` when nobody knows.
    pub fn saw(&mut self, signal: i32) -> Option<bool> {
        thread::sleep(REACHES_ALL);
        let status = fs::read_to_string(format!("/proc/{}/status", self.process)).ok()?;
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?;
        let pending = u64::from_str_radix(pending.trim(), 16).ok()?;
        let saw = pending >> (signal - 1) & 1 == 1;
        if saw {
            // What is pending stays so: the next signal needs another witness.
            *self = Self::start().ok()?;
        }
        Some(saw)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = kill_process(self.process, Signal::KILL);
        let _ = waitpid(Some(self.process), WaitOptions::empty());
    }
}

/// What the child does. Without its descriptors it holds no pipe or file open.
///
/// # Safety
/// Only in a process that has just been forked, which it never leaves.
unsafe fn sleep_until_killed(parent: Pid) -> ! {
    // SAFETY: numbers only; each of these is async-signal-safe.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The parent may have ended before that was set.
        if libc::getppid() != parent.as_raw_nonzero().get() {
            libc::_exit(0);
        }
        libc::syscall(libc::SYS_close_range, 0_u32, u32::MAX, 0_u32);
        loop {
            libc::pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::kill_process_group;

    use super::*;

    #[test]
    fn a_signal_to_the_group_is_told_from_one_to_a_process() {
        // A group of its own, in which the program itself is asked by its name.
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("setsid");
        command.arg(program).args(["--ignored", "--exact", "run::witness::tests::in_a_group"]);
        let ended = command.stdout(Stdio::piped()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }

    #[test]
    #[ignore = "the test above starts it in a process group of its own"]
    fn in_a_group() {
        use signal_hook::consts::SIGUSR1;
        let _heard = signal_hook::flag::register(SIGUSR1, std::sync::Arc::default()).unwrap();
        let mut witness = Witness::start().unwrap();
        for _ in 0..3 {
            kill_process(getpid(), Signal::USR1).unwrap();
            assert_eq!(witness.saw(SIGUSR1), Some(false));
            kill_process_group(getpid(), Signal::USR1).unwrap();
            assert_eq!(witness.saw(SIGUSR1), Some(true));
        }
    }
}
