//! What may not happen: a PIN tried twice, a path over the network, a plan on an agent that has
//! one, a message that counts twice, an agent that is not understood.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::StreamExt;
use tapstone_record::HostState;

use crate::keys::identity_of;
use crate::laboratory::{Agent, Home, PIN, within};
use crate::packets::{Head, Signer};
use crate::run::Tapstone;
use crate::support::{Nats, eventually, is_heard};

const MODEL: [(&str, &str); 2] = [("SERVICE", "1ms"), ("WAIT", "sleep")];
const LOAD: &str = "--op rsa1024.sign --no-verify --seconds 2 --warm-up 0.5";
const LONG: &str = "--op rsa1024.sign --no-verify --seconds 4";

fn agent(name: &str, nats: &Nats) -> Agent {
    Agent::start(Home::new(name, ""), &nats.url(), &MODEL)
}

fn wrong_pins(store: &Path) -> Option<u32> {
    fs::read_to_string(store.join("slot-0.pin-failures")).ok()?.parse().ok()
}

#[test]
fn a_wrong_pin_is_tried_once_in_all() {
    let Some(nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let path = store.path().display().to_string();
    let model = [MODEL[0], MODEL[1], ("STORE", &path)];
    let start = |name, pin| Agent::start(Home::with_pin(name, pin), &nats.url(), &model);
    let wrong = ["a", "b", "c"].map(|name| start(name, "9999"));
    let run = || Tapstone::on_hosts(3, &nats.url()).args(LOAD).run();
    let outcome = run().exits(2);
    assert!(outcome.stderr.contains("CKR_PIN_INCORRECT"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("9999"));
    assert_eq!(outcome.record().results[0].completed, 0);
    assert_eq!(wrong_pins(store.path()), Some(1));
    // Again: the agent remembers, and the others see by the token's flags that one was wrong.
    let outcome = run().exits(2);
    assert!(outcome.stderr.contains("is not tried again"), "{}", outcome.stderr);
    assert_eq!(wrong_pins(store.path()), Some(1));
    drop(wrong);

    // The first agent's PIN is right, the second's is not, and the third does not try.
    fs::remove_file(store.path().join("slot-0.pin-failures")).unwrap();
    let _right = start("a", PIN);
    let _wrong = ["b", "c"].map(|name| start(name, "9999"));
    let outcome = run().exits(2);
    assert!(outcome.stderr.contains("error: b: "), "{}", outcome.stderr);
    assert_eq!(wrong_pins(store.path()), Some(1));
}

#[test]
fn with_the_right_pin_all_log_in() {
    let Some(nats) = Nats::open() else { return };
    let start = |name| Agent::start(Home::with_pin(name, PIN), &nats.url(), &MODEL);
    let _agents = ["a", "b", "c"].map(start);
    let outcome =
        Tapstone::on_hosts(3, &nats.url()).args(LOAD).args("--processes 2").run().exits(0);
    assert_eq!(outcome.row().concurrency.hosts, 3);
    let _more = Tapstone::on_hosts(3, &nats.url()).args("--op login --seconds 1").run().exits(0);
}

#[test]
fn only_what_an_agents_configuration_names_is_offered() {
    let Some(nats) = Nats::open() else { return };
    let _agent = agent("a", &nats);
    let url = nats.url();
    let asked = |target: &str| {
        let lab = Tapstone::new("token").args(&format!("--hosts 1 --nats {url} {LOAD}"));
        lab.enrolled().arg("--target").arg(target).run().exits(2).stderr
    };
    for target in ["other", "/usr/lib/softhsm/libsofthsm2.so", "null\nmodule = 'x'", ""] {
        let stderr = asked(target);
        assert!(stderr.contains("a offers null only"), "{stderr}");
        assert!(stderr.contains("\nhint: "), "{stderr}");
    }
    // What an agent reads from its own configuration is no option of the coordinator's.
    for option in ["--pin-file /etc/passwd", "--token-label x", "--slot 0", "--leftovers"] {
        let lab = Tapstone::on_hosts(1, &url).args(LOAD).args(option);
        let stderr = lab.run().exits(2).stderr;
        assert!(stderr.contains("cannot be used with"), "{stderr}");
    }
    let stderr = Tapstone::on_hosts(1, &url).args(LOAD).args("--module x.so").run().exits(2).stderr;
    assert!(stderr.contains("--module is of no use with --hosts\nhint: "), "{stderr}");
}

#[test]
fn the_second_coordinator_is_told_that_they_are_busy() {
    let Some(nats) = Nats::open() else { return };
    let agents = [agent("a", &nats), agent("b", &nats)];
    let first = Tapstone::on_hosts(2, &nats.url()).args(LONG).start();
    agents[1].home.wait_until_it_says("has the plan");
    let second = Tapstone::on_hosts(2, &nats.url()).args(LOAD).run().exits(2);
    assert!(second.stderr.contains("a is busy with "), "{}", second.stderr);
    let record = second.record();
    assert!(record.hosts.iter().all(|host| host.state == HostState::Refused));
    assert!(record.hosts[0].reason.as_ref().unwrap().contains("is busy with"));
    let listed = Tapstone::listing(&nats.url()).run().exits(0);
    assert!(listed.stdout.contains("busy with "), "{}", listed.stdout);
    // The first has noticed nothing.
    let first = first.wait().exits(0);
    assert!(first.record().hosts.iter().all(|host| host.state == HostState::Done));
}

#[test]
fn two_coordinators_at_the_same_moment_never_share_an_agent() {
    let Some(nats) = Nats::open() else { return };
    let agents = [agent("a", &nats), agent("b", &nats)];
    let runs: Vec<_> =
        (0..4).map(|_| Tapstone::on_hosts(2, &nats.url()).args(LOAD).start()).collect();
    let outcomes: Vec<_> = runs.into_iter().map(|run| run.wait()).collect();
    for outcome in &outcomes {
        let record = outcome.record();
        match outcome.exit {
            Some(0) => {
                let window = record.results[0].window.unwrap();
                let done: u64 =
                    agents.iter().map(|agent| within(&agent.home.ends_ns(), window, 0)).sum();
                assert!(record.results[0].completed.abs_diff(done) <= done / 100);
            }
            _ => assert!(record.hosts.iter().all(|host| host.state == HostState::Refused)),
        }
    }
    // They are nobody's in the end.
    Tapstone::on_hosts(2, &nats.url()).args(LOAD).run().exits(0);
}

#[test]
fn messages_that_come_twice_and_late_count_once() {
    let Some(nats) = Nats::open() else { return };
    let agents = [agent("a", &nats), agent("b", &nats)];
    let echo = Echo::start(&nats.url());
    for _ in 0..2 {
        let before = echo.repeated.load(Relaxed);
        let lab = Tapstone::on_hosts(2, &nats.url()).args(LOAD);
        let samples = lab.path("samples.parquet");
        let outcome = lab.arg("--samples").arg(&samples).run().exits(0);
        let record = outcome.record();
        let row = outcome.row();
        let window = row.window.unwrap();
        let done: u64 = agents.iter().map(|a| within(&a.home.ends_ns(), window, 0)).sum();
        assert!(row.completed.abs_diff(done) <= 2, "{} {done}", row.completed);
        assert_eq!(record.samples.unwrap().count, row.completed);
        assert!(echo.repeated.load(Relaxed) > before + 100, "there was something to repeat");
    }
    // What comes late does not start, end or disturb anything.
    thread::sleep(Duration::from_secs(2));
    let listed = Tapstone::listing(&nats.url()).run().exits(0);
    assert_eq!(listed.stdout.matches(" free ").count(), 2, "{}", listed.stdout);
}

/// Says everything of every run again: at once, and a second later.
struct Echo {
    repeated: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(url: &str) -> Self {
        let repeated = Arc::<AtomicUsize>::default();
        let ended = Arc::<AtomicBool>::default();
        let ready = Arc::<AtomicBool>::default();
        let thread = {
            let url = url.to_owned();
            let ready = Arc::clone(&ready);
            let repeated = Arc::clone(&repeated);
            let ended = Arc::clone(&ended);
            thread::spawn(move || block_on(repeat(&url, &ready, &repeated, &ended)))
        };
        assert!(eventually(Duration::from_secs(10), || ready.load(Relaxed)));
        Self { repeated, ended, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(future)
}

async fn repeat(url: &str, ready: &AtomicBool, repeated: &AtomicUsize, ended: &AtomicBool) {
    let client = async_nats::connect(url).await.unwrap();
    let agents = client.subscribe("tapstone.agent.*.run").await.unwrap();
    let runs = client.subscribe("tapstone.coordinator.>").await.unwrap();
    assert!(is_heard(&client).await);
    ready.store(true, Relaxed);
    let mut all = futures_util::stream::select(agents, runs);
    // What it says itself comes back to it.
    let mut said = HashSet::new();
    while !ended.load(Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(50), all.next()).await;
        let Ok(Some(message)) = next else { continue };
        if !said.insert((message.subject.to_string(), message.payload.clone())) {
            continue;
        }
        repeated.fetch_add(1, Relaxed);
        let again = client.clone();
        tokio::spawn(async move {
            for wait in [0, 1000] {
                tokio::time::sleep(Duration::from_millis(wait)).await;
                let subject = message.subject.clone();
                let payload = message.payload.clone();
                let _ = again.publish(subject, payload).await;
            }
        });
    }
}

#[test]
fn an_agent_of_another_version_is_named_and_not_used() {
    let Some(nats) = Nats::open() else { return };
    let _ours = agent("ours", &nats);
    let strange = Signer::for_name("strange").of_version(9, "9.9.9");
    let _ = Home::new("strange", "");
    let ended = AtomicBool::new(false);
    let url = nats.url();
    thread::scope(|scope| {
        scope.spawn(|| block_on(stranger(&url, &strange, &ended)));
        thread::sleep(Duration::from_millis(500));
        let listed = Tapstone::listing(&url).run().exits(0);
        assert!(listed.stdout.contains("version 9.9.9, this is "), "{}", listed.stdout);
        let one = Tapstone::on_hosts(1, &url).args(LOAD).run().exits(0);
        assert_eq!(one.record().hosts[0].name, "ours");
        let two = Tapstone::on_hosts(2, &url).args(LOAD).run().exits(2);
        assert!(two.stderr.contains("strange is of version 9.9.9, this is "), "{}", two.stderr);
        let record = two.record();
        let strange = record.hosts.iter().find(|host| host.name == "strange").unwrap();
        assert_eq!((strange.state, &strange.version[..]), (HostState::Refused, "9.9.9"));
        ended.store(true, Relaxed);
    });
    // And the other way round: a coordinator of another version is told of which the agent is.
    let agent = identity_of("ours");
    let coordinator = Signer::coordinator().of_version(9, "9.9.9");
    let sealed = coordinator.seal(&agent, 1, 0, 0, b"what is new");
    let answer = block_on(async {
        let client = async_nats::connect(&url).await.unwrap();
        client.request(format!("tapstone.agent.{agent}.ask"), sealed.into()).await.unwrap()
    });
    let head = Head::parse(&answer.payload);
    assert_eq!(
        (&head.version[..], &head.body[..]),
        (env!("CARGO_PKG_VERSION"), &b"\"other_version\""[..])
    );
}

/// An agent of a later version, which is told apart by its envelope.
async fn stranger(url: &str, signer: &Signer, ended: &AtomicBool) {
    let client = async_nats::connect(url).await.unwrap();
    let heard = format!("tapstone.agent.{}.ask", signer.identity());
    let mut questions = client.subscribe(heard).await.unwrap();
    while !ended.load(Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(50), questions.next()).await;
        if let Ok(Some(question)) = next {
            let head = Head::parse(&question.payload);
            let answer = signer.seal(&head.from, head.run, 1, head.number, b"news");
            let _ = client.publish(question.reply.unwrap(), answer.into()).await;
        }
    }
}

#[test]
fn tls_and_credentials_are_used_where_they_are_asked_for() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let _agent = Agent::in_lab(&nats, "client-1", "", &MODEL);
    Tapstone::in_lab(&nats, "lab", 1).args(LOAD).run().exits(0);
    let trust = format!("--ca {}", made.ca.display());
    let lab = || Tapstone::on_hosts(1, &nats.url()).args(LOAD).args(&trust);
    let strangers = Nats::secured().unwrap();
    let strange = strangers.credentials().unwrap().coordinator("lab");
    for (what, lab) in [
        ("no credentials", lab()),
        ("another laboratory's", lab().arg("--creds").arg(strange)),
        ("no trust", Tapstone::on_hosts(1, &nats.url()).args(LOAD)),
        ("no such file", lab().args("--creds /nonexistent")),
        ("no TLS", Tapstone::on_hosts(1, &nats.url().replace("tls:", "nats:")).args(LOAD)),
    ] {
        let stderr = lab.run().exits(2).stderr;
        assert!(stderr.starts_with("error: ") && stderr.contains("\nhint: "), "{what}: {stderr}");
        // Wrong credentials are no matter of TLS.
        let is_refusal = what == "no credentials" || what == "another laboratory's";
        assert_eq!(
            stderr.contains("does not take these credentials"),
            is_refusal,
            "{what}: {stderr}"
        );
        assert!(!is_refusal || !stderr.contains("speak TLS"), "{what}: {stderr}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused() {
    let shipped = Path::new(crate::support::DEPLOY).join("agent.toml");
    let started = |config: &Path| {
        let lab = Tapstone::new("agent")
            .without_record()
            .args("--nats nats://127.0.0.1:1")
            .arg("--config")
            .arg(config);
        lab.run().exits(2).stderr
    };
    // The shipped one names no key that somebody could have.
    let stderr = started(&shipped);
    assert!(stderr.contains("a public packet key has 64 hexadecimal digits"), "{stderr}");
    // With one all is well, but for the module of a vendor that nobody is.
    let directory = tempfile::tempdir().unwrap();
    let filled_in = directory.path().join("agent.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let digits = "the 64 digits of the coordinator's public packet key";
    assert!(text.contains(digits));
    std::fs::write(&filled_in, text.replace(digits, &identity_of("lab"))).unwrap();
    let stderr = started(&filled_in);
    assert!(
        stderr.contains("target hsm-a: /opt/vendor/lib/libpkcs11.so: no such module"),
        "{stderr}"
    );
    let home = Home::new("a", "pin-file = '/nonexistent/pin'\n");
    let stderr = started(&home.path("agent.toml"));
    assert!(stderr.contains("/nonexistent/pin") && stderr.contains("\nhint: "), "{stderr}");
}

#[test]
fn without_tls_the_network_is_not_used() {
    for (url, told) in [
        ("nats://192.0.2.1:4222", "hint: "),
        ("nats://user:secret@127.0.0.1:1", "other users could see"),
        ("nats://127.0.0.1:1", "is `nats-server -c FILE` running there"),
        ("http://127.0.0.1", "an address is tls://hub:4222"),
    ] {
        let stderr = Tapstone::new("hosts")
            .without_record()
            .arg("--nats")
            .arg(url)
            .enrolled()
            .run()
            .exits(2)
            .stderr;
        assert!(stderr.starts_with("error: ") && stderr.contains(told), "{url}: {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}
