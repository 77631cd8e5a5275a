//! Machines have networks and clocks of their own, and leave nothing behind.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::support::{Machine, Nats, Network, Relay, eventually, has_gone, skip};

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Prints CLOCK_MONOTONIC in nanoseconds.
const CLOCK: &str = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))";

fn here_ns() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// Runs a command on a machine to its end, and gives what it printed.
fn printed(machine: &Machine, mut command: Command) -> String {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("stdout");
    command.stdout(fs::File::create(&file).unwrap());
    assert_eq!(machine.start(command).wait(TIME_LIMIT), Some(0));
    fs::read_to_string(&file).unwrap()
}

#[test]
fn a_clock_is_off_by_what_was_asked() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("python3 (Debian: python3)");
    }
    for ahead_seconds in [100_000, 0, -60] {
        let Some(machine) = Machine::new(ahead_seconds) else { return };
        let mut clock = machine.command("python3");
        clock.args(["-c", CLOCK]);
        let before = here_ns();
        let there: i128 = printed(&machine, clock).trim().parse().unwrap();
        let after = here_ns();
        let ahead = i128::from(ahead_seconds) * 1_000_000_000;
        assert!(
            (before + ahead..=after + ahead).contains(&there),
            "{before} {there} {after} {ahead_seconds}"
        );
    }
}

#[test]
fn the_relay_is_the_only_way_out() {
    let Some(network) = Network::new() else { return };
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let relay = Relay::from_within(&network, address);
    assert!(network.within(|| TcpStream::connect(address)).is_err(), "a loopback of its own");
    assert!(TcpStream::connect(relay.address()).is_err(), "the relay listens over there");
    network.within(|| TcpStream::connect(relay.address())).unwrap();
    assert!(listener.accept().is_ok());
}

#[test]
fn processes_are_where_they_were_started() {
    let Some(machine) = Machine::new(5) else { return };
    let mut links = machine.command("readlink");
    links.args(["/proc/self/ns/net", "/proc/self/ns/time", "/proc/self/ns/pid"]);
    let text = printed(&machine, links);
    let [net, time, pid] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let here = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
    assert_eq!(net, format!("net:[{}]", machine.network().inode()));
    assert_ne!(Path::new(time), here("time"));
    // Its number is the same in here, so signals reach it.
    assert_eq!(Path::new(pid), here("pid"));
}

#[test]
fn signals_reach_the_program() {
    let Some(machine) = Machine::new(0) else { return };
    let sleeper = || {
        let mut sleep = machine.command("sleep");
        sleep.arg("1000");
        machine.start(sleep)
    };
    let mut stopped = sleeper();
    stopped.signal(Signal::STOP);
    assert!(eventually(TIME_LIMIT, || state(stopped.pid()) == Some('T')));
    assert!(!stopped.has_ended());
    stopped.signal(Signal::CONT);
    stopped.signal(Signal::TERM);
    assert_eq!(stopped.wait(TIME_LIMIT), None);

    let mut fails = machine.command("sh");
    fails.args(["-c", "exit 7"]);
    assert_eq!(machine.start(fails).wait(TIME_LIMIT), Some(7));
}

/// The letter of proc_pid_stat(5).
fn state(process: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// All that a test can leave behind.
struct Left {
    processes: Vec<Pid>,
    network: u64,
    listening: SocketAddr,
}

#[test]
fn nothing_is_left_behind_by_a_test_that_panics() {
    let mut left = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let Some(machine) = Machine::new(1000) else { return };
        let Some(nats) = Nats::open() else { return };
        let relay = Relay::from_within(machine.network(), nats.address());
        relay.stall();
        let mut sleep = machine.command("sleep");
        let sleep = machine.start({
            sleep.arg("1000").stdout(Stdio::null());
            sleep
        });
        // A stopped process ends as well.
        sleep.signal(Signal::STOP);
        let connected = machine.network().within(|| TcpStream::connect(relay.address()));
        left = Some(Left {
            processes: vec![sleep.pid(), nats.pid().unwrap()],
            network: machine.network().inode(),
            listening: nats.address(),
        });
        assert!(held(machine.network().inode()), "somebody holds the network now");
        panic!("as tests do, connected to {connected:?}");
    }));
    let Some(left) = left else { return };
    assert!(panicked.is_err());
    assert!(left.processes.iter().all(|process| has_gone(*process)));
    assert!(TcpStream::connect(left.listening).is_err());
    // Threads that had entered it may still be on their way out.
    assert!(eventually(TIME_LIMIT, || !held(left.network)));
}

/// Whether anybody on this machine is in a network, or has it open.
fn held(inode: u64) -> bool {
    let name = format!("net:[{inode}]");
    let is_it = |path: &Path| fs::read_link(path).is_ok_and(|link| link == Path::new(&name));
    let entries = |path: String| fs::read_dir(path).into_iter().flatten().flatten();
    entries("/proc".to_owned()).any(|process| {
        let process = process.path().display().to_string();
        entries(format!("{process}/task")).any(|thread| is_it(&thread.path().join("ns/net")))
            || entries(format!("{process}/fd")).any(|file| is_it(&file.path()))
    })
}
