//! Signals from a terminal and from those who end processes. They reach all observers of a
//! process, so each of these tests starts a process of its own: this same program, as [`observer`].

use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command as Plain, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tapstone_trace::command::Command;
use tapstone_trace::run::Exit;
use tapstone_trace::syscalls::{Launch, Options, observe};

use crate::support::fixture;

/// The words of the command that [`observer`] is to observe.
const WORDS: &str = "TAPSTONE_TEST_OBSERVED";

/// Not a test: what the tests below start.
#[test]
#[ignore = "started by other tests"]
fn observer() {
    let Ok(text) = env::var(WORDS) else { return };
    let command = Command::from_text(&text).unwrap();
    let seen = observe(&Launch::new(&command), &Options::default()).unwrap();
    println!("\nexit {:?} interrupted {}", seen.exit, seen.interrupted);
}

/// An observer in a process group of its own, and its output after the fixture's first line.
fn started(arguments: &str) -> (Child, BufReader<ChildStdout>) {
    let mut observer = Plain::new(env::current_exe().unwrap())
        .args(["terminal::observer", "--exact", "--ignored", "--nocapture"])
        .env(WORDS, format!("{} {arguments}", fixture().display()))
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
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
    let started = started("wait-for-signals 500");
    killpg(Pid::from_raw(started.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(said(started), format!("exit {:?} interrupted true", Exit::Code(10)));
}

#[test]
fn sigterm_is_passed_on() {
    let started = started("wait-for-signals 500");
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
