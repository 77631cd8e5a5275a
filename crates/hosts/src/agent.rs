//! An agent: it offers the targets of its configuration, and runs one plan at a time for whoever
//! claims it.
//!
//! All that waits for the network is in one thread; a plan has another (`work`), which owns the
//! workers. When its coordinator is silent for longer than a lease, or says that the run is over,
//! the plan is dropped: its workers remove what they made, log out and go.

mod news;
mod session;
mod spool;
mod work;

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_record::Environment;
use tapstone_token::controller::{TokenChoice, WorkerCommand};
use tapstone_token::pin_source::PinSource;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::news::News;
use self::session::AgentSession;
use crate::config::Config;
use crate::connection::Server;
use crate::discovery::DiscoveryAnswer;
use crate::error::HostsError;
use crate::peer::settle;
use crate::wire::run_subject;
use crate::wire::{AgentId, Body, Calling, Claim, Claimed, DISCOVER, Facts, LEASE, PROTOCOL};
use crate::wire::{Packet, TargetFacts, VERSION, claim_subject, clock_subject, printable};

/// What an agent is and does.
#[derive(Clone, Debug)]
pub struct Options {
    /// The NATS server and how to log in there.
    pub server: Server,
    /// The targets that the agent offers.
    pub config: Config,
    /// CPU, kernel and clock of the machine that the agent runs on.
    pub environment: Environment,
    /// What to run as a worker.
    pub worker: WorkerCommand,
    /// How many agents this process is; more than one only to try a coordinator out.
    pub copies: u32,
    /// The user has asked to end.
    pub interrupt: Arc<AtomicBool>,
    /// Tells the user what happens.
    pub say: fn(&str),
}

/// How often leases and acknowledgements are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How long a plan may take to be dropped when the agent ends.
const FAREWELL: Duration = Duration::from_secs(8);

/// Runs that have ended are remembered: a claim that comes late must not start one again.
const REMEMBERED: usize = 64;

/// Targets whose PIN was refused. It is not tried again until the agent is started anew.
pub(crate) type RefusedPins = Arc<Mutex<HashSet<String>>>;

/// Serves until the user asks to end.
///
/// # Errors
/// The server cannot be reached at the start, or a PIN cannot be read. Later a lost connection is
/// made again.
pub fn serve(options: Options) -> Result<(), HostsError> {
    for target in options.config.targets.values() {
        let source = target.pin();
        source.read()?;
        if let Some(warning) = source.warning() {
            (options.say)(&format!("warning: {warning}"));
        }
    }
    let options = Arc::new(options);
    let targets = targets(&options.config);
    crate::runtime::runtime()?.block_on(async {
        let mut agents = JoinSet::new();
        for copy in 0..options.copies {
            let options = Arc::clone(&options);
            let targets = targets.clone();
            agents.spawn(async move {
                let agent = Agent::start(options, targets, copy).await?;
                agent.serve().await;
                Ok(())
            });
        }
        agents.join_all().await.into_iter().collect()
    })
}

/// See the module's text.
struct Agent {
    options: Arc<Options>,
    client: Client,
    calling: Calling,
    targets: Vec<TargetFacts>,
    discoveries: Subscriber,
    claims: Subscriber,
    clocks: Subscriber,
    packets: Subscriber,
    news: UnboundedReceiver<(u64, News)>,
    news_sender: UnboundedSender<(u64, News)>,
    session: Option<AgentSession>,
    ended: VecDeque<u64>,
    refused: RefusedPins,
}

impl Agent {
    async fn start(
        options: Arc<Options>,
        targets: Vec<TargetFacts>,
        copy: u32,
    ) -> Result<Self, HostsError> {
        let client = options.server.connect("tapstone agent").await?;
        let agent = AgentId(RandomState::new().hash_one((std::process::id(), copy)));
        let name = options.config.name.clone().unwrap_or_else(host_name);
        let name = if options.copies > 1 { format!("{name}-{:03}", copy + 1) } else { name };
        let calling = Calling { agent, name, protocol: PROTOCOL, version: VERSION.to_owned() };
        let subscribe = async |subject: String| {
            let subscribed = client.subscribe(subject).await;
            subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))
        };
        let (news_sender, news) = unbounded_channel();
        let started = Self {
            discoveries: subscribe(DISCOVER.to_owned()).await?,
            claims: subscribe(claim_subject(agent)).await?,
            clocks: subscribe(clock_subject(agent)).await?,
            packets: subscribe(run_subject(agent)).await?,
            options,
            client: client.clone(),
            calling,
            targets,
            news,
            news_sender,
            session: None,
            ended: VecDeque::new(),
            refused: RefusedPins::default(),
        };
        // Who hears that it is there may ask at once.
        settle(&client).await;
        started.say(&format!("{} ({agent}) is there and free", started.calling.name));
        Ok(started)
    }

    async fn serve(mut self) {
        let mut tick = tokio::time::interval(TICK);
        // After a while in which it was stopped, once is enough.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.options.interrupt.load(Relaxed) {
            tokio::select! {
                biased;
                Some(message) = self.clocks.next() => self.tell_time(message).await,
                Some(message) = self.discoveries.next() => self.tell_facts(message).await,
                Some(message) = self.claims.next() => self.answer_claim(message).await,
                Some((run, news)) = self.news.recv() => self.pass_on(run, news).await,
                Some(message) = self.packets.next() => self.hear(&message.payload).await,
                _ = tick.tick() => self.look_after().await,
            }
        }
        self.end().await;
    }

    async fn tell_time(&self, message: Message) {
        if let Some(reply) = message.reply {
            let now = Monotonic.now().0.to_le_bytes().to_vec();
            let _ = self.client.publish(reply, now.into()).await;
        }
    }

    async fn tell_facts(&self, message: Message) {
        let Some(reply) = message.reply else { return };
        let facts = Facts {
            targets: self.targets.clone(),
            environment: self.options.environment.clone(),
            busy: self.session.as_ref().map(|session| session.coordinator.clone()),
        };
        let facts = serde_json::to_value(facts).unwrap_or_default();
        let answer = DiscoveryAnswer { calling: self.calling.clone(), facts };
        let _ = self.client.publish(reply, json(&answer).into()).await;
    }

    async fn answer_claim(&mut self, message: Message) {
        let Some(reply) = message.reply else { return };
        let claimed = self.judge_claim(&message.payload);
        let _ = self.client.publish(reply, json(&claimed).into()).await;
    }

    fn judge_claim(&mut self, claim: &[u8]) -> Claimed {
        let Ok(mut claim) = serde_json::from_slice::<Claim>(claim) else {
            return Claimed::OtherVersion(VERSION.to_owned());
        };
        claim.coordinator = printable(&claim.coordinator);
        if (claim.protocol, &claim.version[..]) != (PROTOCOL, VERSION) {
            return Claimed::OtherVersion(VERSION.to_owned());
        }
        match &self.session {
            Some(session) if session.is_for(claim.run) => return Claimed::Yes,
            Some(session) => return Claimed::Busy(session.coordinator.clone()),
            None if self.ended.contains(&claim.run) => {
                return Claimed::Refused("that run is over".into());
            }
            None => {}
        }
        let Some(target) = self.options.config.targets.get(&claim.target) else {
            return Claimed::NoTarget(self.options.config.targets.keys().cloned().collect());
        };
        let names = (claim.target.clone(), Arc::clone(&self.refused));
        let news = self.news_sender.clone();
        let agent = self.calling.agent;
        match AgentSession::start(&self.client, agent, &self.options, target, names, &claim, news) {
            Ok(session) => {
                self.say(&format!("{} has the plan of {}", self.calling.name, claim.coordinator));
                self.session = Some(session);
                Claimed::Yes
            }
            Err(why) => Claimed::Refused(why),
        }
    }

    async fn hear(&mut self, bytes: &[u8]) {
        let Ok(packet) = postcard::from_bytes::<Packet>(bytes) else { return };
        if packet.agent != self.calling.agent {
            return;
        }
        match &mut self.session {
            Some(session) if session.is_for(packet.run) => match packet.body {
                Body::Bye(why) => session.drop_plan(&printable(&why)),
                body => session.take(packet.ack, body, &self.client).await,
            },
            // Whoever still speaks of an ended run is told again that it has ended.
            _ if self.ended.contains(&packet.run) => {
                AgentSession::farewell(&self.client, packet.run, self.calling.agent).await;
            }
            // Late, or another's.
            _ => {}
        }
    }

    async fn pass_on(&mut self, run: u64, news: News) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_for(run)) else {
            return;
        };
        match news {
            News::Message(message) => session.send(&message, &self.client).await,
            News::Ended(trouble) => {
                let why = session.ending().unwrap_or("its work ended").to_owned();
                self.say(&format!("{} dropped its plan: {why}", self.calling.name));
                if let Some(trouble) = trouble {
                    self.say(&format!("error: {trouble}"));
                }
                AgentSession::farewell(&self.client, run, self.calling.agent).await;
                self.session = None;
                self.ended.push_back(run);
                if self.ended.len() > REMEMBERED {
                    self.ended.pop_front();
                }
            }
        }
    }

    async fn look_after(&mut self) {
        let Some(session) = &mut self.session else { return };
        if session.ending().is_none() && session.is_silent() {
            let silence = LEASE.as_secs();
            session.drop_plan(&format!("its coordinator was silent for {silence} s"));
        }
        session.look_after(&self.client).await;
    }

    /// Drops the plan, tells its coordinator, and waits until the workers have cleaned up.
    async fn end(mut self) {
        if let Some(session) = &mut self.session {
            session.drop_plan("the agent was ended");
            session.bye(&self.client, "its agent was ended").await;
        }
        let begun = Instant::now();
        while self.session.is_some() && begun.elapsed() < FAREWELL {
            if let Ok(Some((run, news))) = tokio::time::timeout(TICK, self.news.recv()).await {
                self.pass_on(run, news).await;
            }
        }
        settle(&self.client).await;
    }

    fn say(&self, text: &str) {
        (self.options.say)(text);
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn targets(config: &Config) -> Vec<TargetFacts> {
    let facts = |(name, target): (&String, &crate::TargetConfig)| TargetFacts {
        name: name.clone(),
        module: target.module.display().to_string(),
        sha256: sha256(&target.module).unwrap_or_default(),
        token: match target.token() {
            TokenChoice::Only => "the only token".into(),
            TokenChoice::Label(label) => label,
            TokenChoice::Serial(serial) => format!("serial {serial}"),
            TokenChoice::Slot(slot) => format!("slot {slot}"),
        },
        logs_in: target.pin() != PinSource::None,
    };
    config.targets.iter().map(facts).collect()
}

/// A module that is found by a bare name has no file to hash.
fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hex::encode(hash.finalize()))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a target's PIN was refused; a lock that a panic poisoned still holds.
pub(crate) fn is_refused(refused: &RefusedPins, target: &str) -> bool {
    refused.lock().unwrap_or_else(PoisonError::into_inner).contains(target)
}

pub(crate) fn refuse(refused: &RefusedPins, target: &str) {
    refused.lock().unwrap_or_else(PoisonError::into_inner).insert(target.to_owned());
}
