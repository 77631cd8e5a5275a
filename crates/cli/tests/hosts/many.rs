//! Many light agents, coordinated by one machine. They share a process and this machine, so only
//! the coordinator is looked at.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use tapstone_record::{HostState, ShareKind};

use crate::keys::agents_part;
use crate::laboratory::{Agent, Home, TIME_LIMIT};
use crate::run::Tapstone;
use crate::support::{Nats, eventually};

/// What a coordinator took.
struct Effort {
    /// From its start to the window's opening.
    preparation: Duration,
    memory_bytes: u64,
}

/// So many agents in one process, all there and free.
fn light_agents(nats: &Nats, model: &[(&str, &str)], count: u32) -> Agent {
    let copies = count.to_string();
    let home = Home::new("light", "");
    for number in 1..=count {
        agents_part(&format!("light-{number:03}"), &home.path(&format!("packet.key.{number:03}")));
    }
    // The module's notes would take each worker a while to make room for.
    let agent = Agent::start_as(home, &nats.url(), model, |command| {
        command.env_remove("NULL_MODULE_LOG").args(["--copies", &copies])
    });
    let there = || agent.home.log().matches("is there and free").count() == count as usize;
    assert!(eventually(TIME_LIMIT, there), "{count} agents are there");
    agent
}

fn coordinate(count: u32) -> Option<Effort> {
    let nats = Nats::open()?;
    let _agents = light_agents(&nats, &[("SERVICE", "100ms"), ("WAIT", "sleep")], count);

    let lab = Tapstone::on_hosts(count as usize, &nats.url());
    let lab = lab.args("--op rsa1024.sign --no-verify --seconds 4 --warm-up 0.1");
    let begun_ns = now_ns();
    let run = lab.start();
    let pid = run.pid();
    let mut memory_bytes = 0;
    let ended = eventually(TIME_LIMIT, || {
        let now = peak_memory_bytes(pid);
        memory_bytes = memory_bytes.max(now.unwrap_or(0));
        now.is_none()
    });
    assert!(ended, "it ends");
    let record = run.wait().exits(0).record();
    assert_eq!(record.hosts.len(), count as usize);
    assert!(record.hosts.iter().all(|host| host.state == HostState::Done));
    let row = &record.results[0];
    assert_eq!(row.concurrency.hosts, count);
    // 100 ms each; the first operations begin together.
    assert!(row.completed > u64::from(count) * 30, "{}", row.completed);
    let preparation = Duration::from_nanos(row.window.unwrap().start_ns.0 - begun_ns);
    let worst = record.hosts.iter().map(|host| host.clock.unwrap().bound_ns).max();
    // Each host's own rate, summed, beside the rate of all in the common window.
    let hosts = row.shares.iter().filter(|share| share.kind == ShareKind::Host);
    let sum: u64 = hosts.map(|share| share.completed).sum();
    let rate = row.throughput.unwrap().estimate;
    let of_hosts = sum as f64 / row.window.unwrap().seconds.0;
    assert!((rate / of_hosts - 1.0).abs() <= 0.005, "{rate} {of_hosts}");
    eprintln!("{count} agents: {rate:.2}/s together, {of_hosts:.2}/s as their sum");
    eprintln!(
        "{count} agents: window open after {preparation:.1?}, {} MB, worst clock ± {}",
        memory_bytes >> 20,
        worst.unwrap()
    );
    Some(Effort { preparation, memory_bytes })
}

#[test]
fn many_light_agents_are_one_measurement() {
    let Some(effort) = coordinate(32) else { return };
    assert!(effort.memory_bytes < 300 << 20);
}

/// `cargo test -p tapstone --test hosts -- --ignored many --nocapture`, for docs/evidence.md.
#[test]
#[ignore = "512 worker processes"]
fn five_hundred_and_twelve_agents_are_one_measurement() {
    for count in [32, 128, 512] {
        let Some(effort) = coordinate(count) else { return };
        assert!(effort.memory_bytes <= 100 << 20, "{}", effort.memory_bytes);
    }
}

/// What a host sends and is sent in a window of a minute, results judged where they are made; and
/// beside it, without a limit, what raw samples and a search cost.
#[test]
#[ignore = "minutes, and what goes through the server"]
fn a_minute_of_a_host_is_less_than_a_megabyte() {
    const HOSTS: u64 = 2;
    let Some(nats) = Nats::open() else { return };
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("MODEL", "honest")];
    let start = |name| {
        Agent::start_as(Home::new(name, ""), &nats.url(), &model, |command| {
            command.env_remove("NULL_MODULE_LOG")
        })
    };
    let _agents = ["near", "far"].map(start);
    let traffic_of = |args: &str| {
        let before = nats.bytes_sent();
        let lab = Tapstone::on_hosts(HOSTS as usize, &nats.url());
        let run = lab.args("--op rsa1024.sign --warm-up 0.2").args(args).run();
        let rows = run.record().results;
        let bytes = (nats.bytes_sent() - before) / HOSTS;
        let operations: u64 = rows.iter().map(|row| row.completed).sum();
        let last = &rows.last().unwrap().verification;
        eprintln!(
            "{args}: {bytes} bytes for each host, {} cases, {operations} operations, {last:?}",
            rows.len()
        );
        bytes
    };
    let minute = traffic_of("--seconds 60");
    let samples = tempfile::tempdir().unwrap();
    let samples = samples.path().join("samples");
    traffic_of(&format!("--seconds 10 --samples {}", samples.display()));
    traffic_of("--seconds 1 --find-limit --max-threads 8 --max-processes 2");
    assert!(minute < 1 << 20, "{minute}");
}

/// 32 hosts with four threads each, whose module sleeps for as little as it can: how much they do
/// together, and how soon after its window the run has ended, results judged.
#[test]
#[ignore = "32 machines as busy as one can be"]
fn a_run_of_32_busy_hosts_ends_soon_after_its_window() {
    const HOSTS: u32 = 32;
    let Some(nats) = Nats::open() else { return };
    let model = [("SERVICE", "50us"), ("WAIT", "sleep"), ("MODEL", "honest")];
    let _agent = light_agents(&nats, &model, HOSTS);
    let run = Tapstone::on_hosts(HOSTS as usize, &nats.url())
        .args("--op sha256.digest --threads 4 --seconds 5 --warm-up 0.1")
        .run();
    let ended_ns = now_ns();
    let row = run.exits(0).row();
    let window = row.window.unwrap();
    let closed_ns = window.start_ns.0 + (window.seconds.0 * 1e9) as u64;
    eprintln!(
        "{HOSTS} hosts: {:.0}/s together, ended {:.2?} after the window, {:?}",
        row.throughput.unwrap().estimate,
        Duration::from_nanos(ended_ns - closed_ns),
        row.verification
    );
    assert_eq!(row.verification.unwrap().wrong, 0);
}

/// `cargo test -p tapstone --test hosts -- --ignored many`, on a machine with nothing else to do.
#[test]
#[ignore = "256 worker processes, and a time that is asserted"]
fn two_hundred_and_fifty_six_agents_start_within_five_seconds() {
    let Some(effort) = coordinate(256) else { return };
    assert!(effort.preparation < Duration::from_secs(5), "{:?}", effort.preparation);
    assert!(effort.memory_bytes < 300 << 20, "{}", effort.memory_bytes);
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// VmHWM of proc_pid_status(5); `None` when the process has ended.
fn peak_memory_bytes(process: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
