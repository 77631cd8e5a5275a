//! Whatever breaks, a run ends within a stated time, in a record that says what was lost; nothing
//! hangs, no key stays on the token, and no rate counts what did not happen.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use tapstone_record::{HostState, Outcome as RowOutcome, Record, ShareKind, StoppedBy};
use tapstone_testing::{hold, undisturbed};
use tempfile::TempDir;

use crate::laboratory::{Agent, Away, Home, LEASE, TIME_LIMIT, objects, within};
use crate::run::{Running, Tapstone};
use crate::support::{Nats, eventually};

/// After a lease has run out, workers have five seconds to clean up, and verification follows.
const END: Duration = Duration::from_secs(LEASE.as_secs() + 10);

/// What a signature of the model takes.
const SERVICE: Duration = Duration::from_millis(2);

const MODEL: [(&str, &str); 2] = [("SERVICE", "2ms"), ("WAIT", "sleep")];

/// Long enough that a fault comes in its middle.
const LOAD: &str = "--op rsa1024.sign --no-verify --seconds 8 --threads 2 --warm-up 0.5";

/// The model, with token objects that outlive the module in this folder.
fn stored(store: &Path) -> Vec<(&'static str, String)> {
    let mut model: Vec<_> = MODEL.map(|(name, value)| (name, value.to_owned())).into();
    model.push(("STORE", store.display().to_string()));
    model
}

fn agent(name: &str, nats: &Nats, store: &Path) -> Agent {
    let variables = stored(store);
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &value[..])).collect();
    Agent::start(Home::new(name, ""), &nats.url(), &variables)
}

fn wait_for_keys(store: &Path, count: usize) {
    let made = eventually(TIME_LIMIT, || objects(store).len() == count);
    assert!(made, "keys are on the token: {:?}", objects(store));
}

fn wait_until_clean(store: &Path) {
    let clean = eventually(END, || objects(store).is_empty());
    assert!(clean, "keys are left on the token: {:?}", objects(store));
}

/// Only `lost` is lost, and what counts was done by all of them together.
fn assert_lost(record: &Record, lost: &str, agents: &[&Home]) {
    for host in &record.hosts {
        let state = if host.name == lost { HostState::Lost } else { HostState::Done };
        assert_eq!(host.state, state, "{host:?}");
        assert_eq!(host.reason.is_some(), host.name == lost, "{host:?}");
    }
    let row = &record.results[0];
    assert_eq!(row.status.outcome, RowOutcome::Partial, "{:?}", row.status);
    assert_eq!(row.stopped_by, Some(StoppedBy::Failures));
    let window = row.window.unwrap();
    assert!(window.seconds.0 < 8.0, "{window:?} ends with the last that was heard of {lost}");
    let of_lost = record.hosts.iter().find(|host| host.name == lost).unwrap();
    assert_eq!(of_lost.window, row.window);
    let done: u64 = agents.iter().map(|home| within(&home.ends_ns(), window, 0)).sum();
    assert!(row.completed > 100 && row.completed <= done + 8, "{} {done}", row.completed);
    assert!(row.completed as f64 >= 0.95 * done as f64, "{} {done}", row.completed);
}

/// Two agents in the middle of a run, whose keys are in the store.
struct Middle {
    nats: Nats,
    store: TempDir,
    lost: Agent,
    other: Agent,
    run: Running,
}

impl Middle {
    /// `None`, which has been said then: there is no server.
    fn reach() -> Option<Self> {
        let nats = Nats::open()?;
        let store = tempfile::tempdir().unwrap();
        let [lost, other] = ["lost", "other"].map(|name| agent(name, &nats, store.path()));
        let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).args("--token-keys").start();
        wait_for_keys(store.path(), 4);
        thread::sleep(Duration::from_secs(3));
        Some(Self { nats, store, lost, other, run })
    }
}

#[test]
fn an_agent_is_killed() {
    let Some(Middle { nats, store, lost, other, run }) = Middle::reach() else { return };
    lost.signal(Signal::KILL);
    let begun = Instant::now();
    let named = || run.said().contains("lost is not connected");
    assert!(eventually(LEASE, named), "{}", run.said());
    eprintln!("named after {:.2?}", begun.elapsed());
    let outcome = run.wait().exits(2);
    assert!(begun.elapsed() < END);
    assert_lost(&outcome.record(), "lost", &[&lost.home, &other.home]);
    for told in ["warning: lost is not connected", "lost was lost: it was not connected"] {
        assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    }
    wait_until_clean(store.path());
    assert_eq!(free(&nats), ["other"]);
}

#[test]
fn an_agent_is_ended_by_its_administrator() {
    let Some(Middle { nats: _nats, store, lost, other, run }) = Middle::reach() else { return };
    lost.signal(Signal::TERM);
    let begun = Instant::now();
    let outcome = run.wait().exits(2);
    // Nobody waits for a lease: it has said so.
    assert!(begun.elapsed() < LEASE);
    assert_lost(&outcome.record(), "lost", &[&lost.home, &other.home]);
    assert!(outcome.stderr.contains("its agent was ended"), "{}", outcome.stderr);
    wait_until_clean(store.path());
    assert_eq!(lost.wait(), Some(0));
}

/// Who is asked to end begins no call 200 ms later, and has ended after two seconds.
#[test]
fn a_signal_to_an_agent_or_a_coordinator_ends_the_load_at_once() {
    for to_agent in [true, false] {
        let ended = undisturbed(
            1.5,
            2.0,
            || {
                let Middle { nats: _nats, store, mut lost, other, run } = Middle::reach()?;
                if to_agent {
                    lost.signal(Signal::TERM)
                } else {
                    run.signal(Signal::TERM)
                }
                let signalled = monotonic();
                let begun = Instant::now();
                if to_agent {
                    assert_eq!(lost.wait_for_end(), Some(0));
                } else {
                    run.wait().exits(2);
                }
                let whole = begun.elapsed();
                wait_until_clean(store.path());
                drop(other);
                Some((last_end(&lost.home).saturating_sub(signalled), whole))
            },
            |ended| {
                let Some((load, whole)) = ended else { return Ok(()) };
                println!("the last call ended after {load:.0?}, all after {whole:.2?}");
                let is_at_once = *load <= Duration::from_millis(200) + SERVICE;
                hold(is_at_once && *whole <= Duration::from_secs(2), format_args!("{ended:?}"))
            },
        );
        if ended.is_none_or(|ended| ended.is_none()) {
            return;
        }
    }
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// When the module's last signature ended, on the clock of [`monotonic`].
fn last_end(home: &Home) -> Duration {
    Duration::from_nanos(home.ends_ns().into_iter().max().unwrap())
}

#[test]
fn an_agent_stalls_and_comes_back() {
    let Some(Middle { nats, store, lost, other, run }) = Middle::reach() else { return };
    lost.signal(Signal::STOP);
    let stopped = Instant::now();
    let silent = || run.said().contains("lost is silent: nothing was heard of it for 3 s");
    assert!(eventually(LEASE, silent), "{}", run.said());
    eprintln!("called silent after {:.2?}", stopped.elapsed());
    let outcome = run.wait().exits(2);
    eprintln!("the run ended after {:.2?}", stopped.elapsed());
    assert!(outcome.stderr.contains("lost was lost: nothing was heard of it for 10 s"));
    assert_lost(&outcome.record(), "lost", &[&lost.home, &other.home]);
    lost.signal(Signal::CONT);
    wait_until_clean(store.path());
    // It has dropped the plan, and takes the next one.
    assert!(eventually(END, || free(&nats) == ["lost", "other"]), "{:?}", free(&nats));
    let again =
        Tapstone::on_hosts(2, &nats.url()).args("--op rsa1024.sign --no-verify --seconds 1");
    assert!(again.run().exits(0).record().hosts.iter().all(|host| host.state == HostState::Done));
}

#[test]
fn an_agent_is_lost_before_it_measures() {
    let Some(nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let lost = agent("lost", &nats, store.path());
    let _other = agent("other", &nats, store.path());
    lost.signal(Signal::STOP);
    // It cannot answer, so it is not there; the one that is left is too few.
    let begun = Instant::now();
    let outcome = Tapstone::on_hosts(2, &nats.url()).args(LOAD).run().exits(2);
    assert!(begun.elapsed() < END);
    let record = outcome.record();
    assert_eq!(record.hosts.len(), 1);
    assert_eq!((&record.hosts[0].name[..], record.hosts[0].state), ("other", HostState::Refused));
    assert_eq!(record.results[0].completed, 0);
    lost.signal(Signal::CONT);
    let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).args("--token-keys").start();
    // Keys are there, and sessions and warm-up take half a second more.
    wait_for_keys(store.path(), 4);
    lost.signal(Signal::KILL);
    let begun = Instant::now();
    let outcome = run.wait().exits(2);
    assert!(begun.elapsed() < END);
    let record = outcome.record();
    let states: Vec<_> = record.hosts.iter().map(|host| host.state).collect();
    assert_eq!(states, [HostState::Lost, HostState::Done]);
    let row = &record.results[0];
    assert_eq!((row.status.outcome, row.completed), (RowOutcome::Failed, 0), "{:?}", row.status);
    wait_until_clean(store.path());
}

/// From the search for hosts to the fetching of samples: every third of a second something else
/// goes on.
#[test]
fn an_agent_is_killed_or_stalls_at_any_moment() {
    // Not all at once: that many agents would keep the processors from one another.
    let half = |first: u64| -> usize {
        thread::scope(|scope| {
            let at = |number: u64| scope.spawn(move || ends_well(number));
            let runs: Vec<_> = (first..first + 5).map(at).collect();
            runs.into_iter().map(|run| usize::from(run.join().unwrap())).sum()
        })
    };
    let lost = half(0) + half(5);
    eprintln!("{lost} of 10 runs lost a host");
    assert!(lost >= 5 || Nats::open().is_none(), "{lost}");
}

/// A run that a host leaves after so many thirds of a second. Whether that was noticed.
fn ends_well(number: u64) -> bool {
    let Some(nats) = Nats::open() else { return false };
    let store = tempfile::tempdir().unwrap();
    let lost = agent("lost", &nats, store.path());
    let _other = agent("other", &nats, store.path());
    let lab = Tapstone::on_hosts(2, &nats.url());
    let samples = lab.path("samples.parquet");
    let load = "--op rsa1024.sign --seconds 1 --threads 2 --warm-up 0.2 --token-keys";
    let run = lab.args(load).arg("--samples").arg(&samples).start();
    thread::sleep(Duration::from_millis(333 * number));
    lost.signal(if number.is_multiple_of(2) { Signal::KILL } else { Signal::STOP });
    let begun = Instant::now();
    let outcome = run.wait();
    assert!(begun.elapsed() < END, "{number}: {:?}", begun.elapsed());
    let record = outcome.record();
    let of_it = record.hosts.iter().find(|host| host.name == "lost");
    let noticed = of_it.is_none_or(|host| host.state != HostState::Done);
    // Whoever lost a host is told of it, by its name and with advice.
    let said = &outcome.stderr;
    let told = said.contains("lost was lost: ") || said.contains("were asked for: ");
    assert_eq!((told, said.contains("hint: ")), (noticed, noticed), "{number}: {said}");
    // The module signs nothing, which is noticed too unless that was cut short.
    assert_eq!(outcome.exit, Some(2), "{number}: {said}");
    if !noticed {
        // A quick machine had ended before.
        let states: Vec<_> = record.hosts.iter().map(|host| host.state).collect();
        assert_eq!(states, [HostState::Done; 2], "{number}");
        let whole = record.results.iter().all(|row| row.status.outcome == RowOutcome::Ok);
        assert!(whole && !record.results.is_empty(), "{number}: {:?}", record.results);
    }
    for row in &record.results {
        let rate = row.throughput.map_or(0.0, |throughput| throughput.estimate);
        let window = row.window.map_or(0.0, |window| window.seconds.0);
        assert!(rate * window <= row.completed as f64 * 1.2 + 1.0, "{number}: {rate} {window}");
    }
    if !number.is_multiple_of(2) {
        lost.signal(Signal::CONT);
    }
    wait_until_clean(store.path());
    noticed
}

#[test]
fn a_machine_is_cut_off() {
    let Some(nats) = Nats::open() else { return };
    let start = |name| Away::start(Home::new(name, ""), &nats, 0, Duration::ZERO, &MODEL);
    let Some(lost) = start("lost") else { return };
    let Some(other) = start("other") else { return };
    for (quietly, times) in [(true, 1), (false, 2)] {
        let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).start();
        lost.home.wait_until_it_has_said("has the plan", times);
        thread::sleep(Duration::from_secs(4));
        let begun = Instant::now();
        if quietly {
            lost.relay.stall()
        } else {
            lost.relay.cut_off()
        }
        let outcome = run.wait().exits(2);
        assert!(begun.elapsed() < END);
        assert_lost(&outcome.record(), "lost", &[&lost.home, &other.home]);
        // It has noticed by itself.
        lost.home.wait_until_it_has_said("its coordinator was silent for 10 s", times);
        lost.relay.come_back();
        assert!(eventually(END, || free(&nats) == ["lost", "other"]), "{:?}", free(&nats));
    }
}

#[test]
fn a_machine_is_cut_off_for_a_moment() {
    let Some(nats) = Nats::open() else { return };
    let Some(away) = Away::start(Home::new("away", ""), &nats, 50, Duration::ZERO, &MODEL) else {
        return;
    };
    let run = Tapstone::on_hosts(1, &nats.url()).args(LOAD).start();
    away.home.wait_until_it_says("has the plan");
    thread::sleep(Duration::from_secs(3));
    away.relay.cut_off();
    thread::sleep(Duration::from_secs(3));
    away.relay.come_back();
    let outcome = run.wait().exits(0);
    let row = outcome.row();
    let done = within(&away.home.ends_ns(), row.window.unwrap(), 50_000_000_000);
    assert!(row.completed.abs_diff(done) <= done / 200, "{} {done}", row.completed);
}

#[test]
fn the_server_is_restarted_in_mid_run() {
    let Some(mut nats) = Nats::open() else { return };
    let agents = ["a", "b"].map(|name| Agent::start(Home::new(name, ""), &nats.url(), &MODEL));
    for (kill, times) in [(false, 1), (true, 2)] {
        let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).start();
        agents[0].home.wait_until_it_has_said("has the plan", times);
        thread::sleep(Duration::from_secs(3));
        if kill {
            nats.kill()
        } else {
            nats.stop()
        }
        thread::sleep(Duration::from_secs(2));
        nats.start_again();
        let record = run.wait().exits(0).record();
        assert!(record.hosts.iter().all(|host| host.state == HostState::Done));
        let row = &record.results[0];
        let window = row.window.unwrap();
        let done: u64 = agents.iter().map(|a| within(&a.home.ends_ns(), window, 0)).sum();
        assert!(window.seconds.0 > 7.9 && row.completed.abs_diff(done) <= done / 200, "{done}");
    }
}

#[test]
fn the_server_stays_away() {
    let Some(mut nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let agents = [agent("a", &nats, store.path()), agent("b", &nats, store.path())];
    let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).args("--token-keys").start();
    wait_for_keys(store.path(), 4);
    thread::sleep(Duration::from_secs(3));
    nats.kill();
    let begun = Instant::now();
    let outcome = run.wait().exits(2);
    assert!(begun.elapsed() < END);
    let record = outcome.record();
    assert!(record.hosts.iter().all(|host| host.state == HostState::Lost), "{:?}", record.hosts);
    // One sentence about the server, and none about each host.
    let said = &outcome.stderr;
    assert_eq!(said.matches("the server was gone").count(), 1, "{said}");
    assert!(!said.contains("was lost:") && !said.contains("is silent"), "{said}");
    for agent in &agents {
        agent.home.wait_until_it_says("its coordinator was silent for 10 s");
    }
    wait_until_clean(store.path());
    nats.start_again();
    assert!(eventually(END, || free(&nats) == ["a", "b"]), "{:?}", free(&nats));
}

#[test]
fn the_coordinator_is_killed() {
    let Some(nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let agents = [agent("a", &nats, store.path()), agent("b", &nats, store.path())];
    let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).args("--token-keys").start();
    wait_for_keys(store.path(), 4);
    thread::sleep(Duration::from_secs(2));
    run.signal(Signal::KILL);
    drop(run);
    for agent in &agents {
        agent.home.wait_until_it_says("its coordinator was silent for 10 s");
    }
    wait_until_clean(store.path());
    assert!(eventually(END, || free(&nats) == ["a", "b"]), "{:?}", free(&nats));
}

#[test]
fn the_user_ends_a_run() {
    let Some(nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let agents = [agent("a", &nats, store.path()), agent("b", &nats, store.path())];
    for signal in [Signal::INT, Signal::TERM] {
        let run = Tapstone::on_hosts(2, &nats.url()).args(LOAD).args("--token-keys").start();
        wait_for_keys(store.path(), 4);
        thread::sleep(Duration::from_secs(3));
        run.signal(signal);
        let begun = Instant::now();
        let record = run.wait().exits(2).record();
        assert!(begun.elapsed() < LEASE);
        let row = &record.results[0];
        assert_eq!(row.stopped_by, Some(StoppedBy::Interrupted));
        let window = row.window.unwrap();
        let done: u64 = agents.iter().map(|a| within(&a.home.ends_ns(), window, 0)).sum();
        assert!(row.completed.abs_diff(done) <= done / 100, "{} {done}", row.completed);
        assert!(objects(store.path()).is_empty(), "{:?}", objects(store.path()));
        assert_eq!(free(&nats), ["a", "b"], "they are free when the run has ended");
    }
}

#[test]
fn a_worker_dies_on_one_machine() {
    let Some(nats) = Nats::open() else { return };
    let mut crashing = MODEL.to_vec();
    crashing.push(("CRASH", "C_Sign/1500"));
    let _sound = Agent::start(Home::new("sound", ""), &nats.url(), &MODEL);
    let _crashes = Agent::start(Home::new("crashes", ""), &nats.url(), &crashing);
    let outcome = Tapstone::on_hosts(2, &nats.url()).args(LOAD).run().exits(2);
    let record = outcome.record();
    let row = &record.results[0];
    assert_eq!(row.status.outcome, RowOutcome::Partial);
    assert_eq!(row.status.step.as_deref(), Some("C_Sign"), "the call that it died in");
    // Its agent lives, and says so.
    assert!(record.hosts.iter().all(|host| host.state == HostState::Done), "{:?}", record.hosts);
    let shares = row.shares.iter().filter(|share| share.kind == ShareKind::Host);
    assert_eq!(shares.map(|share| share.completed).sum::<u64>(), row.completed);
}

/// Who is there and free, by name.
fn free(nats: &Nats) -> Vec<String> {
    let listed = Tapstone::listing(&nats.url()).args("--format json").run().exits(0);
    let hosts: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let free = hosts.as_array().unwrap().iter().filter(|host| host["busy"].is_null());
    free.map(|host| host["name"].as_str().unwrap().to_owned()).collect()
}
