//! What a coordinator makes of an agent that shows other results than it kept: somebody who holds the
//! agent's machine, and so its packet key, stands between the two and changes what they say.
//!
//!     coordinator ── nats-server ── who holds the key ── nats-server ── the agent

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use async_nats::{Client, Message};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tapstone_record::{Outcome as CaseOutcome, OwnSample};
use tapstone_token::protocol::{Report, ShownResults, Task};

use crate::keys::{COORDINATOR, identity_of};
use crate::laboratory::{Agent, Home};
use crate::packets::{Head, Signer};
use crate::run::{Outcome, Tapstone};
use crate::support::{Nats, eventually, is_heard};

const LOAD: &str = "--op rsa1024.sign --seconds 1 --warm-up 0.2";

const NAME: &str = "two-faced";

/// Directions of envelopes.
const TO_AGENT: u8 = 2;
const TO_COORDINATOR: u8 = 3;

/// A packet of a run, as `crates/hosts/src/wire.rs` describes it.
#[derive(Serialize, Deserialize)]
struct Packet {
    ack: u64,
    body: Body,
}

#[derive(Serialize, Deserialize)]
enum Body {
    Beat,
    Chunk { number: u64, last: bool, bytes: Vec<u8> },
    Bye(String),
}

#[derive(Serialize, Deserialize)]
enum ToAgent {
    Join { worker: u32 },
    Task { worker: u32, task: Task },
}

/// What an agent's report begins with: the first thing that it says besides is that it joined.
#[derive(Serialize, Deserialize)]
struct FromAgent {
    kind: u32,
    worker: u32,
    report: Report,
}

const REPORT: u32 = 1;

/// What is changed on the way.
#[derive(Clone, Copy)]
struct Lie {
    drawn: fn(&mut Vec<Vec<u64>>),
    shown: fn(&mut ShownResults),
}

impl Lie {
    const NONE: Self = Self { drawn: |_| (), shown: |_| () };

    fn to_agent(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Ok(ToAgent::Task { worker, task: Task::Show { mut drawn } }) =
            postcard::from_bytes(bytes)
        else {
            return None;
        };
        (self.drawn)(&mut drawn);
        postcard::to_stdvec(&ToAgent::Task { worker, task: Task::Show { drawn } }).ok()
    }

    fn to_coordinator(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut said: FromAgent = postcard::from_bytes(bytes).ok()?;
        let Report::Shown(shown) = &mut said.report else { return None };
        if said.kind != REPORT {
            return None;
        }
        (self.shown)(shown);
        postcard::to_stdvec(&said).ok()
    }

    /// The packet as it goes on, signed anew where it was changed.
    fn pass(self, message: &Message) -> Vec<u8> {
        let unchanged = message.payload.to_vec();
        let head = Head::parse(&unchanged);
        let Ok(packet) = postcard::from_bytes::<Packet>(&head.body) else { return unchanged };
        let Body::Chunk { number, last: true, bytes } = packet.body else { return unchanged };
        let goes_out = message.subject.starts_with("tapstone.coordinator.");
        let changed = if goes_out { self.to_coordinator(&bytes) } else { self.to_agent(&bytes) };
        let Some(bytes) = changed else { return unchanged };
        let body = Body::Chunk { number, last: true, bytes };
        let body = postcard::to_stdvec(&Packet { ack: packet.ack, body }).unwrap();
        if goes_out {
            let signer = Signer::for_name(NAME);
            let to = identity_of(COORDINATOR);
            return signer.seal(&to, head.run, TO_COORDINATOR, head.number, &body);
        }
        Signer::coordinator().seal(&identity_of(NAME), head.run, TO_AGENT, head.number, &body)
    }
}

/// Carries everything from one server to the other, until it is ended.
async fn carry(outside: &str, inside: &str, lie: Lie, ready: &AtomicBool, ended: &AtomicBool) {
    let outer = async_nats::connect(outside).await.unwrap();
    let inner = async_nats::connect(inside).await.unwrap();
    let agent = identity_of(NAME);
    let mut asked = outer.subscribe(format!("tapstone.agent.{agent}.>")).await.unwrap();
    let runs = inner.subscribe("tapstone.coordinator.>").await.unwrap();
    let answers = inner.subscribe("_INBOX.>").await.unwrap();
    let mut said = futures_util::stream::select(runs, answers);
    assert!(is_heard(&outer).await);
    // Whoever hears every inbox may take the answer that nobody is there: it hears itself instead.
    inner.publish("_INBOX.ready", "ready".into()).await.unwrap();
    said.next().await.unwrap();
    ready.store(true, Relaxed);
    while !ended.load(Relaxed) {
        tokio::select! {
            Some(message) = asked.next() => forward(&inner, &message, lie).await,
            Some(message) = said.next() => forward(&outer, &message, lie).await,
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
}

async fn forward(to: &Client, message: &Message, lie: Lie) {
    let is_packet =
        message.subject.ends_with(".run") || message.subject.starts_with("tapstone.coordinator.");
    let payload = if is_packet { lie.pass(message) } else { message.payload.to_vec() };
    let subject = message.subject.clone();
    let _ = match message.reply.clone() {
        Some(reply) => to.publish_with_reply(subject, reply, payload.into()).await,
        None => to.publish(subject, payload.into()).await,
    };
}

/// A run with an agent whose words are changed so; `None`: no server here, which has been said.
fn run_with(lie: Lie) -> Option<Outcome> {
    let outside = Nats::open()?;
    let inside = Nats::open()?;
    let agent = Agent::start(Home::new(NAME, ""), &inside.url(), &[("MODEL", "honest")]);
    let ready = AtomicBool::new(false);
    let ended = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            runtime.block_on(carry(&outside.url(), &inside.url(), lie, &ready, &ended));
        });
        assert!(eventually(Duration::from_secs(10), || ready.load(Relaxed)));
        let outcome = Tapstone::on_hosts(1, &outside.url()).args(LOAD).run();
        ended.store(true, Relaxed);
        outcome
    });
    drop(agent);
    Some(outcome)
}

fn own_sample(outcome: &Outcome) -> OwnSample {
    outcome.row().verification.unwrap().own_sample.unwrap()
}

#[test]
fn an_honest_agent_is_believed() {
    let Some(outcome) = run_with(Lie::NONE) else { return };
    let outcome = outcome.exits(0);
    let own = own_sample(&outcome);
    assert_eq!((own.drawn, own.checked, own.wrong, own.unproven), (32, 32, 0, 0), "{own:?}");
    assert_eq!(outcome.row().status.outcome, CaseOutcome::Ok);
}

#[test]
fn an_agent_that_shows_what_was_not_drawn_or_not_kept_is_named_and_not_believed() {
    let other = "it showed another result than the one that it had committed itself to";
    let nothing = "it did not show the results that were drawn";
    let lies = [
        // Another result than it had committed itself to.
        (Lie { shown: |shown| shown.lanes[0].results[5].output.bytes[0] ^= 1, ..Lie::NONE }, other),
        // It refuses.
        (Lie { shown: |shown| *shown = ShownResults::default(), ..Lie::NONE }, nothing),
        // It opens its neighbour, a right result that it kept and that was not asked for.
        (Lie { drawn: |drawn| drawn[0][0] ^= 1, ..Lie::NONE }, other),
        // Its inputs were those of another nonce.
        (Lie { shown: |shown| shown.nonce[0] ^= 1, ..Lie::NONE }, other),
    ];
    for (lie, told) in lies {
        let Some(outcome) = run_with(lie) else { return };
        let outcome = outcome.exits(2);
        let stderr = &outcome.stderr;
        let hint = format!("hint: trust no figure of this case, and measure without {NAME}");
        assert!(stderr.contains(&format!("error: {NAME}: {told}\n{hint}")), "{stderr}");
        let own = own_sample(&outcome);
        assert_eq!((own.drawn, own.checked, own.unproven), (32, 0, 32), "{told}: {own:?}");
        assert_eq!(own.largest_wrong_share, None);
        let status = outcome.row().status;
        assert_eq!(status.outcome, CaseOutcome::Partial);
        assert_eq!(status.code.unwrap(), format!("{NAME}: {told}"));
        let printed: Vec<&str> = outcome.stdout.split_whitespace().collect();
        assert!(printed.join(" ").contains("32 NOT PROVEN"), "{}", outcome.stdout);
    }
}
