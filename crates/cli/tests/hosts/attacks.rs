//! What somebody can do who holds one agent's credentials: a client written with the plain NATS
//! library, on a real server with the shipped permissions.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use rustix::process::Signal;
use tapstone_record::HostState;

use crate::keys::identity_of;
use crate::laboratory::{Agent, Home};
use crate::packets::{Head, Signer};
use crate::run::Tapstone;
use crate::support::{Nats, eventually, is_heard};

const MODEL: [(&str, &str); 2] = [("SERVICE", "1ms"), ("WAIT", "sleep")];
const LOAD: &str = "--op rsa1024.sign --no-verify --seconds 2 --warm-up 0.2";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(future)
}

/// A client of the secured laboratory with a user's credentials.
async fn client_with(nats: &Nats, creds: &Path) -> Client {
    let options =
        ConnectOptions::new().add_root_certificates(nats.credentials().unwrap().ca.clone());
    let options = options.credentials_file(creds).await.unwrap();
    options.connect(nats.url()).await.unwrap()
}

/// What a thief hears and does while somebody else's run goes on.
struct Thief {
    heard: AtomicUsize,
    sent: AtomicUsize,
    ended: AtomicBool,
}

impl Thief {
    /// Answers whatever it hears, and speaks as the victim and to the victim, until it is ended.
    async fn attack(&self, nats: &Nats, victim: &str, coordinator: &str) {
        let made = nats.credentials().unwrap();
        let client = client_with(nats, &made.agent("thief")).await;
        let own = Signer::from_file(&made.of_member("thief", "packet.key"));
        let mut ears = Vec::new();
        for subject in [
            ">".to_owned(),
            "tapstone.>".to_owned(),
            "tapstone.coordinator.>".to_owned(),
            "tapstone.agent.*.ask".to_owned(),
            format!("tapstone.agent.{victim}.>"),
            format!("tapstone.agent.{victim}.ask"),
            "_INBOX.>".to_owned(),
            format!("_INBOX.{coordinator}.>"),
        ] {
            ears.push(client.subscribe(subject).await.unwrap());
        }
        let mut all = futures_util::stream::select_all(ears);
        let mut number = 0;
        while !self.ended.load(Relaxed) {
            let next = tokio::time::timeout(Duration::from_millis(2), all.next()).await;
            if let Ok(Some(message)) = next {
                self.heard.fetch_add(1, Relaxed);
                if let Some(reply) = message.reply {
                    let _ = client
                        .publish(reply, 1_000_000_000_000_000u64.to_le_bytes().to_vec().into())
                        .await;
                }
            }
            number += 1;
            let bye = own.seal_as(victim, coordinator, number, 3, number, b"\0\x02\x03bye");
            for subject in [
                format!("tapstone.coordinator.{coordinator}.{number:016x}.{victim}"),
                format!("tapstone.agent.{victim}.run"),
                format!("tapstone.agent.{victim}.ask"),
                format!("_INBOX.{coordinator}.x"),
            ] {
                self.sent.fetch_add(1, Relaxed);
                let _ = client.publish(subject, bye.clone().into()).await;
            }
        }
    }
}

#[test]
fn one_agents_credential_hears_and_disturbs_nobody_else() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let _agents = ["client-1", "client-2"].map(|name| Agent::in_lab(&nats, name, "", &MODEL));
    let victim = made.identity_of("client-1");
    let coordinator = made.identity_of_coordinator("lab");
    let thief = Thief {
        heard: AtomicUsize::new(0),
        sent: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
    };
    let (outcome, took) = thread::scope(|scope| {
        scope.spawn(|| block_on(thief.attack(&nats, &victim, &coordinator)));
        assert!(eventually(Duration::from_secs(10), || thief.sent.load(Relaxed) > 0));
        let begun = Instant::now();
        let outcome = Tapstone::in_lab(&nats, "lab", 2).args(LOAD).run();
        thief.ended.store(true, Relaxed);
        (outcome, begun.elapsed())
    });
    let outcome = outcome.exits(0);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(thief.heard.load(Relaxed), 0, "it hears nobody");
    let row = outcome.row();
    assert!(row.completed > 1000 && row.window.unwrap().seconds.0 > 1.9, "{row:?}");
    assert!(outcome.record().hosts.iter().all(|host| host.state == HostState::Done));
}

#[test]
fn one_coordinator_does_not_hear_another() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let _agent = Agent::in_lab(&nats, "client-1", "", &MODEL);
    let heard = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    let listening = AtomicBool::new(false);
    let lab = made.identity_of_coordinator("lab");
    thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                let client = client_with(&nats, &made.coordinator("other")).await;
                let mut ears = Vec::new();
                for subject in [
                    "tapstone.>",
                    "tapstone.coordinator.>",
                    "_INBOX.>",
                    &format!("tapstone.coordinator.{lab}.>"),
                ] {
                    ears.push(client.subscribe(subject.to_owned()).await.unwrap());
                }
                client.flush().await.unwrap();
                listening.store(true, Relaxed);
                let mut all = futures_util::stream::select_all(ears);
                while !ended.load(Relaxed) {
                    let next = tokio::time::timeout(Duration::from_millis(20), all.next()).await;
                    heard.fetch_add(usize::from(matches!(next, Ok(Some(_)))), Relaxed);
                }
            });
        });
        assert!(eventually(Duration::from_secs(10), || listening.load(Relaxed)));
        Tapstone::in_lab(&nats, "lab", 1).args(LOAD).run().exits(0);
        ended.store(true, Relaxed);
    });
    assert_eq!(heard.load(Relaxed), 0);
}

/// An agent that signs whatever it likes: it lies about its clock, and grants every claim.
async fn lie(url: &str, signer: &Signer, clock: impl Fn(u64) -> u64, ended: &AtomicBool) {
    let client = async_nats::connect(url).await.unwrap();
    let me = signer.identity();
    let mut questions = client.subscribe(format!("tapstone.agent.{me}.ask")).await.unwrap();
    let _there = client.subscribe(format!("tapstone.agent.{me}.there")).await.unwrap();
    lie_with(&client, signer, &mut questions, clock, ended, |_, _| ()).await;
}

/// The same, and does something once it is claimed, for this coordinator and run.
async fn lie_with(
    client: &Client,
    signer: &Signer,
    questions: &mut async_nats::Subscriber,
    clock: impl Fn(u64) -> u64,
    ended: &AtomicBool,
    mut claimed: impl FnMut(String, u64),
) {
    let mut asked = 0;
    while !ended.load(Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(50), questions.next()).await;
        let Ok(Some(question)) = next else { continue };
        let head = Head::parse(&question.payload);
        let facts = r#"{"facts":{"nonce":"","facts":{"targets":[{"name":"null","module":"m","sha256":"","token":"t","logs_in":false}],"environment":{"load":{}},"busy":null}}}"#;
        let body = if head.body == b"\"clock\"" {
            asked += 1;
            format!("{{\"clock\":{}}}", clock(asked))
        } else if head.body == b"\"facts\"" {
            facts.to_owned()
        } else {
            claimed(head.from.clone(), head.run);
            "{\"claimed\":\"yes\"}".to_owned()
        };
        let answer = signer.seal(&head.from, head.run, 1, head.number, body.as_bytes());
        let _ = client.publish(question.reply.unwrap(), answer.into()).await;
    }
}

#[test]
fn a_clock_that_cannot_be_is_named_with_its_agent() {
    let Some(nats) = Nats::open() else { return };
    let liar = Signer::for_name("liar");
    let _ = Home::new("liar", "");
    type Clock = fn(u64) -> u64;
    let clocks: [(Clock, &str); 3] = [
        (|_| 0, "0 ns since the start of its machine, which cannot be"),
        (|_| u64::MAX, "which cannot be"),
        (|asked| 1_000_000_000_000_000 * asked, "contradicts itself about its clock"),
    ];
    for (clock, told) in clocks {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| block_on(lie(&nats.url(), &liar, clock, &ended)));
            thread::sleep(Duration::from_millis(300));
            let listed = Tapstone::listing(&nats.url()).run();
            ended.store(true, Relaxed);
            assert!(
                listed.stdout.contains("liar") && listed.stdout.contains(told),
                "{}",
                listed.stdout
            );
        });
    }
}

/// A packet that was heard on the way is of no use to whoever says it again.
#[test]
fn what_was_said_once_means_nothing_again() {
    let Some(nats) = Nats::open() else { return };
    let agent = Agent::start(Home::new("echoed", ""), &nats.url(), &MODEL);
    let me = identity_of("echoed");
    let heard = std::sync::Mutex::new(Vec::new());
    let ended = AtomicBool::new(false);
    let listening = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                let client = async_nats::connect(nats.url()).await.unwrap();
                let mut all = client.subscribe(format!("tapstone.agent.{me}.*")).await.unwrap();
                assert!(is_heard(&client).await);
                listening.store(true, Relaxed);
                while !ended.load(Relaxed) {
                    let next = tokio::time::timeout(Duration::from_millis(20), all.next()).await;
                    if let Ok(Some(message)) = next {
                        heard.lock().unwrap().push((message.subject, message.payload));
                    }
                }
            });
        });
        assert!(eventually(Duration::from_secs(10), || listening.load(Relaxed)));
        Tapstone::on_hosts(1, &nats.url()).args(LOAD).run().exits(0);
        ended.store(true, Relaxed);
    });
    let heard = heard.into_inner().unwrap();
    assert!(heard.len() > 10, "{}", heard.len());
    let plans = || agent.home.log().matches("has the plan").count();
    let before = plans();
    let say_again = || {
        block_on(async {
            let client = async_nats::connect(nats.url()).await.unwrap();
            let inbox = client.new_inbox();
            let mut answers = client.subscribe(inbox.clone()).await.unwrap();
            for (subject, payload) in &heard {
                let reply = inbox.clone();
                let _ = client.publish_with_reply(subject.clone(), reply, payload.clone()).await;
            }
            client.flush().await.unwrap();
            let next = tokio::time::timeout(Duration::from_millis(500), answers.next()).await;
            next.is_ok_and(|answer| answer.is_some())
        })
    };
    assert!(!say_again(), "nothing of it is answered");
    assert_eq!(plans(), before);
    agent.home.wait_until_it_says("replayed");
    // Nor after the agent was started anew: its nonce is another one. What only reads is answered.
    agent.signal(Signal::TERM);
    let home = Home::new("echoed", "");
    drop(agent);
    let agent = Agent::start(home, &nats.url(), &MODEL);
    say_again();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(agent.home.log().matches("has the plan").count(), 0, "{}", agent.home.log());
}

/// Packets of a client that holds everything that one agent has, in a run that it takes part in.
const FLOOD: u64 = 10_000;

#[test]
fn ten_thousand_packets_of_one_agent_hang_nobody_and_count_for_nothing() {
    let Some(nats) = Nats::secured() else { return };
    let made = nats.credentials().unwrap();
    let good = Agent::in_lab(&nats, "client-1", "", &MODEL);
    let hostile = Signer::from_file(&made.of_member("client-2", "packet.key"));
    let victim = made.identity_of("client-1");
    let ended = AtomicBool::new(false);
    let sent = AtomicUsize::new(0);
    let (outcome, took) = thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                let client = client_with(&nats, &made.agent("client-2")).await;
                let me = hostile.identity();
                let mut questions =
                    client.subscribe(format!("tapstone.agent.{me}.ask")).await.unwrap();
                let _there = client.subscribe(format!("tapstone.agent.{me}.there")).await.unwrap();
                let mut told = None;
                let flood = |coordinator: String, run: u64| {
                    if told.replace(run).is_some() {
                        return;
                    }
                    let packets: Vec<(String, Vec<u8>)> = (0..FLOOD)
                        .map(|n| hostile_packet(&hostile, &victim, &coordinator, run, n))
                        .collect();
                    let client = client.clone();
                    let sent = &sent;
                    sent.fetch_add(packets.len(), Relaxed);
                    tokio::spawn(async move {
                        // The coordinator listens once all have been claimed.
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        for (subject, packet) in packets {
                            let _ = client.publish(subject, packet.into()).await;
                        }
                    });
                };
                lie_with(&client, &hostile, &mut questions, |n| 1_000_000_000 * n, &ended, flood)
                    .await;
            });
        });
        thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        let outcome = Tapstone::in_lab(&nats, "lab", 2).args(LOAD).run();
        ended.store(true, Relaxed);
        (outcome, begun.elapsed())
    });
    assert_eq!(sent.load(Relaxed), FLOOD as usize);
    assert!(took < Duration::from_secs(40), "{took:?}");
    let outcome = outcome.exits(2);
    assert!(outcome.stderr.contains("client-2"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("dropped ") && outcome.stderr.contains("unsigned"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.record().results[0].completed, 0, "nothing of it counts");
    // The good agent had no load, and is as it was before.
    assert_eq!(good.home.ends_ns().len(), 0);
    let again = Tapstone::in_lab(&nats, "lab", 1).args(LOAD).run().exits(0);
    assert!(again.row().completed > 500);
}

/// One of many kinds: bytes that are nothing, an envelope cut off, another's name, a body that is
/// nothing, a packet of another run, and words for the wrong one.
fn hostile_packet(
    signer: &Signer,
    victim: &str,
    coordinator: &str,
    run: u64,
    number: u64,
) -> (String, Vec<u8>) {
    let me = signer.identity();
    let own = format!("tapstone.coordinator.{coordinator}.{run:016x}.{me}");
    let noise: Vec<u8> = (0..number % 300).map(|at| (at * 31 + number * 17) as u8).collect();
    match number % 8 {
        0 => (own, noise),
        1 => (
            own,
            signer.seal(coordinator, run, 3, number, &noise)[..(number % 200) as usize].to_vec(),
        ),
        2 => (own, signer.seal_as(victim, coordinator, run, 3, number, &noise)),
        3 => (own, signer.seal(coordinator, run ^ number, 3, number, &noise)),
        4 => (own, signer.seal(victim, run, 2, number, &noise)),
        5 => (
            format!("tapstone.coordinator.{coordinator}.{run:016x}.{victim}"),
            signer.seal_as(victim, coordinator, run, 3, number, b"\0\x02\x03bye"),
        ),
        6 => (format!("tapstone.agent.{victim}.run"), signer.seal(victim, run, 2, number, &noise)),
        _ => (own, [&b"tapstone"[..], &noise].concat()),
    }
}

/// A coordinator is no oracle: keys that were there before are used only as the agent's
/// configuration says, and what they sign comes from the agent.
#[test]
fn existing_keys_are_used_only_where_the_agent_allows_it() {
    let Some(nats) = Nats::open() else { return };
    let store = tempfile::tempdir().unwrap();
    let path = store.path().display().to_string();
    let model = [MODEL[0], MODEL[1], ("STORE", &path)];
    let load = "--op rsa1024.sign --seconds 1 --key-label payroll";
    let refused = Agent::start(Home::new("strict", ""), &nats.url(), &model);
    let stderr = Tapstone::on_hosts(1, &nats.url()).args(load).run().exits(2).stderr;
    let line = "would: existing-keys = [\"payroll\"]";
    assert!(
        stderr.contains("does not allow the existing key") && stderr.contains(line),
        "{stderr}"
    );
    let by_id = "--op rsa1024.sign --seconds 1 --key-id 01";
    let stderr = Tapstone::on_hosts(1, &nats.url()).args(by_id).run().exits(2).stderr;
    assert!(stderr.contains("by their label only"), "{stderr}");
    assert_eq!(refused.home.ends_ns().len(), 0, "nothing was signed");
    drop(refused);
    // With the line that was told it is looked for; here it is not on the token.
    let allowed = Home::new("lenient", "existing-keys = ['payroll']\n");
    let _allowed = Agent::start(allowed, &nats.url(), &model);
    let stderr = Tapstone::on_hosts(1, &nats.url()).args(load).run().exits(2).stderr;
    assert!(stderr.contains("payroll") && !stderr.contains("does not allow"), "{stderr}");
    // Signing is one thing, and decrypting another.
    let decrypt = "--op rsa1024.decrypt --seconds 1 --key-label payroll";
    let stderr = Tapstone::on_hosts(1, &nats.url()).args(decrypt).run().exits(2).stderr;
    assert!(stderr.contains("key-operations.\"payroll\" = [\"decrypt\"]"), "{stderr}");
}

/// What an enrolled coordinator orders is held to each limit; what just keeps to it is measured.
#[test]
fn no_load_goes_beyond_the_agents_limits() {
    let Some(nats) = Nats::open() else { return };
    let limits =
        "limits = { threads = 2, processes = 1, rate = 50, seconds = 3, operations = 1000 }\n";
    let agent = Agent::start(Home::new("small", limits), &nats.url(), &MODEL);
    let ask = |load: &str| {
        let lab = Tapstone::on_hosts(1, &nats.url());
        lab.args("--op rsa1024.sign --no-verify").args(load).run()
    };
    for (beyond, line) in [
        ("--seconds 1 --threads 3", "limits.threads = 3"),
        ("--seconds 1 --processes 2", "limits.processes = 2"),
        ("--seconds 1 --rate 51", "limits.rate = 51"),
        ("--count 1001", "limits.operations = 1001"),
        ("--seconds 30", "limits.seconds = "),
        ("--seconds 1 --warm-up 4", "limits.seconds = 4"),
    ] {
        let stderr = ask(beyond).exits(2).stderr;
        let told = format!(
            "hint: this line under [targets.null] of the agent's configuration would: {line}"
        );
        assert!(stderr.contains(&told), "{beyond}: {stderr}");
    }
    assert_eq!(agent.home.ends_ns().len(), 0, "nothing was done beyond the limits");
    for within in [
        "--seconds 2 --warm-up 0.2 --threads 2 --processes 1",
        "--seconds 1 --rate 50",
        "--count 1000",
    ] {
        assert!(ask(within).exits(0).row().completed > 30, "{within}");
    }
}

#[test]
fn results_are_judged_where_they_are_made() {
    let Some(nats) = Nats::open() else { return };
    let sound = [("MODEL", "honest")];
    let _agents =
        ["near", "far"].map(|name| Agent::start(Home::new(name, ""), &nats.url(), &sound));
    let outcome = Tapstone::on_hosts(2, &nats.url())
        .args("--op rsa1024.sign --seconds 2 --warm-up 0.2")
        .run()
        .exits(0);
    let verification = outcome.row().verification.unwrap();
    assert_eq!(verification.by, tapstone_record::Verifier::Agent);
    assert!(verification.checked > 100 && verification.wrong == 0, "{verification:?}");
    assert!(verification.largest_wrong_share.is_some(), "{verification:?}");
    assert!(outcome.stdout.contains("by the agent"), "{}", outcome.stdout);
    // Of each host 32 were drawn, and judged here.
    let own = verification.own_sample.unwrap();
    assert_eq!((own.drawn, own.checked, own.wrong, own.unproven), (64, 64, 0, 0), "{own:?}");
    assert!(own.kept > 100 && own.largest_wrong_share.unwrap().0 < 0.05, "{own:?}");
    let told = "64 drawn and judged by the coordinator, none wrong";
    let printed: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert!(printed.join(" ").contains(told), "{}", outcome.stdout);
}
