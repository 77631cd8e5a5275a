//! Signals from a terminal and from those who end processes. They reach all observers of a
//! process, so each of these tests starts a process of its own: this same program, as [`observer`].

use std::env;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command as Plain, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tapstone_command::command::Command;
use tapstone_command::run::Exit;
use tapstone_observe::syscalls::{Launch, TracingOptions, observe};

use crate::support::fixture;

/// The words of the command that [`observer`] is to observe.
const WORDS: &str = "TAPSTONE_TEST_OBSERVED";

/// Not a test: what the tests below start.
#[test]
#[ignore = "started by other tests"]
fn observer() {
    let Ok(text) = env::var(WORDS) else { return };
    let command = Command::from_text(&text).unwrap();
    let seen = observe(&Launch::new(&command), &TracingOptions::default());
    let seen = seen.unwrap_or_else(|error| panic!("{error}"));
    println!("\nexit {:?} interrupted {}", seen.exit, seen.interrupted);
}

fn observer_of(arguments: &str) -> Plain {
    let mut observer = Plain::new(env::current_exe().unwrap());
    observer.args(["terminal::observer", "--exact", "--ignored", "--nocapture"]);
    observer.env(WORDS, format!("{} {arguments}", fixture().display())).process_group(0);
    observer
}

/// An observer in a process group of its own, and its output after the fixture's first line.
fn started(arguments: &str) -> (Child, BufReader<ChildStdout>) {
    let mut observer = observer_of(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(observer.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "ready" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
    }
    (observer, output)
}

/// What the observer says at its end.
fn said((mut observer, output): (Child, BufReader<ChildStdout>)) -> String {
    let lines = output.lines().map(Result::unwrap);
    let said = lines.filter(|line| line.starts_with("exit ")).last();
    assert!(observer.wait().unwrap().success());
    said.expect("it says how its program ended")
}

#[test]
fn ctrl_c_reaches_the_program_once_and_the_observer_sees_it_through() {
    let started = started("wait-for-signals 60000 1");
    killpg(Pid::from_raw(started.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(said(started), format!("exit {:?} interrupted true", Exit::Code(10)));
}

#[test]
fn sigterm_is_passed_on() {
    let started = started("wait-for-signals 60000 1");
    kill(Pid::from_raw(started.0.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(said(started), format!("exit {:?} interrupted true", Exit::Code(1)));
}

#[test]
fn without_a_signal_nothing_was_interrupted() {
    let started = started("wait-for-signals 20");
    assert_eq!(said(started), format!("exit {:?} interrupted false", Exit::Code(0)));
}

#[test]
fn children_that_are_left_behind_can_be_ended() {
    let (mut observer, output) = started("left-behind 600000");
    // The program has ended, though its observer may not know it yet: then the signal is for that.
    while observer.try_wait().unwrap().is_none() {
        kill(Pid::from_raw(observer.id() as i32), Signal::SIGTERM).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(said((observer, output)), format!("exit {:?} interrupted true", Exit::Code(0)));
}

#[test]
fn nothing_outlives_a_killed_observer() {
    let (mut observer, output) = started("wait-for-signals 60000");
    kill(Pid::from_raw(observer.id() as i32), Signal::SIGKILL).unwrap();
    observer.wait().unwrap();
    // The fixture has the other end of this pipe: it ends when the fixture has ended.
    assert!(output.lines().all(|line| line.is_ok_and(|line| !line.starts_with("exit "))));
}

/// As containers do whose filter has no ptrace(2).
#[test]
fn where_ptrace_is_refused_nothing_hangs() {
    let mut observer = observer_of("wait-for-signals 20");
    // SAFETY: two system calls on memory that was prepared before.
    unsafe { observer.pre_exec(refuse_ptrace) };
    let output = observer.output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ptrace_scope"), "{said}");
}

/// EPERM for ptrace(2), on x86-64.
fn refuse_ptrace() -> io::Result<()> {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut steps = [
        step(LOAD_NUMBER, 0, 0),
        step(IF_EQUAL, 1, libc::SYS_ptrace as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the filter is alive.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}
