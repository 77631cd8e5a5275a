//! An agent: it offers the targets of its configuration, and runs one plan at a time for whoever
//! claims it.
//!
//! All that waits for the network is in one thread; a plan has another (`work`), which owns the
//! workers. When its coordinator is silent for longer than a lease, or says that the run is over,
//! the plan is dropped: its workers remove what they made, log out and go.

mod micro;
mod news;
mod questions;
mod session;
mod spool;
mod work;

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_pin::PinSource;
use tapstone_record::Environment;
use tapstone_token::controller::{TokenChoice, WorkerCommand};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::micro::{SERVICE_SUBJECT, service_answer};
use self::news::News;
use self::questions::Questions;
use self::session::AgentSession;
use crate::config::Config;
use crate::connection::Server;
use crate::dropped::DroppedCounts;
use crate::envelope::{Direction, Dropped, Head, open, seal};
use crate::error::HostsError;
use crate::identity::{Identity, PacketKey, random};
use crate::peer::{Ends, settle};
use crate::wire::{Answer, Body, Claim, Claimed, Facts, LEASE, Nonce, Question, TargetFacts};
use crate::wire::{presence_subject, printable, question_subject, run_subject};

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
            let key = Arc::new(PacketKey::read(&key_path(&options, copy))?);
            let targets = targets.clone();
            agents.spawn(async move {
                let agent = Agent::start(options, targets, key, copy).await?;
                agent.serve().await;
                Ok(())
            });
        }
        agents.join_all().await.into_iter().collect()
    })
}

/// Where the packet key of a copy is; with one agent, where its configuration says.
fn key_path(options: &Options, copy: u32) -> PathBuf {
    let path = &options.config.packet_key;
    match options.copies {
        1 => path.clone(),
        _ => {
            let mut numbered = path.as_os_str().to_owned();
            numbered.push(format!(".{:03}", copy + 1));
            numbered.into()
        }
    }
}

/// See the module's text.
struct Agent {
    options: Arc<Options>,
    client: Client,
    key: Arc<PacketKey>,
    name: String,
    targets: Vec<TargetFacts>,
    questions: Subscriber,
    packets: Subscriber,
    services: Subscriber,
    /// Nobody is answered there: that somebody listens is the answer.
    _presence: Subscriber,
    news: UnboundedReceiver<(u64, News)>,
    news_sender: UnboundedSender<(u64, News)>,
    /// What a claim has to repeat.
    nonce: Nonce,
    asked: Questions,
    dropped: DroppedCounts,
    session: Option<AgentSession>,
    ended: VecDeque<Ends>,
    refused: RefusedPins,
}

impl Agent {
    async fn start(
        options: Arc<Options>,
        targets: Vec<TargetFacts>,
        key: Arc<PacketKey>,
        copy: u32,
    ) -> Result<Self, HostsError> {
        let me = key.identity();
        let client = options.server.connect("tapstone agent", me).await?;
        let name = options.config.name.clone().unwrap_or_else(host_name);
        let name = if options.copies > 1 { format!("{name}-{:03}", copy + 1) } else { name };
        let subscribe = async |subject: String| {
            let subscribed = client.subscribe(subject).await;
            subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))
        };
        let (news_sender, news) = unbounded_channel();
        let started = Self {
            questions: subscribe(question_subject(me)).await?,
            packets: subscribe(run_subject(me)).await?,
            services: subscribe(SERVICE_SUBJECT.to_owned()).await?,
            _presence: subscribe(presence_subject(me)).await?,
            options,
            client: client.clone(),
            key,
            name,
            targets,
            news,
            news_sender,
            nonce: fresh_nonce(),
            asked: Questions::default(),
            dropped: DroppedCounts::default(),
            session: None,
            ended: VecDeque::new(),
            refused: RefusedPins::default(),
        };
        // Who hears that it is there may ask at once.
        settle(&client).await;
        started.say(&format!("{} ({me}) is there and free", started.name));
        Ok(started)
    }

    async fn serve(mut self) {
        let mut tick = tokio::time::interval(TICK);
        // After a while in which it was stopped, once is enough.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.options.interrupt.load(Relaxed) {
            tokio::select! {
                Some(message) = self.questions.next() => self.answer(message).await,
                Some((run, news)) = self.news.recv() => self.pass_on(run, news).await,
                Some(message) = self.packets.next() => self.hear(&message.payload).await,
                Some(message) = self.services.next() => self.show_as_service(message).await,
                _ = tick.tick() => self.look_after().await,
            }
        }
        self.end().await;
    }

    async fn answer(&mut self, message: Message) {
        let Some(reply) = message.reply else { return };
        let (head, question) = match self.open_question(&message.payload) {
            Ok(asked) => asked,
            Err(why) => return self.dropped.note(why),
        };
        let answer = match question {
            None => Answer::OtherVersion,
            Some(Question::Clock) => Answer::Clock(Monotonic.now().0),
            Some(Question::Facts) => self.facts(),
            Some(Question::Claim(claim)) => Answer::Claimed(self.judge_claim(head, claim)),
        };
        let answered = Head { from: head.to, to: head.from, direction: Direction::Answer, ..head };
        let body = serde_json::to_vec(&answer).unwrap_or_default();
        let sealed = seal(&self.key, &answered, &body);
        let _ = self.client.publish(reply, sealed.into()).await;
    }

    /// What an enrolled coordinator asks for the first time; no question, if it is of another
    /// version.
    fn open_question(&mut self, bytes: &[u8]) -> Result<(Head, Option<Question>), Dropped> {
        let coordinators = &self.options.config.coordinators;
        let is_enrolled = |head: &Head| coordinators.values().any(|one| *one == head.from);
        let opened = open(bytes, self.key.identity(), Direction::Question, is_enrolled)?;
        let head = opened.head;
        if !self.asked.is_new(head.from, head.run, head.number) {
            return Err(Dropped::Replayed);
        }
        if !opened.is_ours() {
            return Ok((head, None));
        }
        let question = serde_json::from_slice(opened.body).map_err(|_| Dropped::Foreign)?;
        Ok((head, Some(question)))
    }

    fn facts(&self) -> Answer {
        let facts = Facts {
            targets: self.targets.clone(),
            environment: self.options.environment.clone(),
            busy: self.session.as_ref().map(|session| session.coordinator.clone()),
        };
        let facts = serde_json::to_value(facts).unwrap_or_default();
        Answer::Facts { nonce: self.nonce.clone(), facts }
    }

    /// A hint for NATS's own tools: it is not signed, and says nothing of targets.
    async fn show_as_service(&self, message: Message) {
        let answer = service_answer(&message.subject, self.key.identity(), &self.name);
        if let (Some(reply), Some(answer)) = (message.reply, answer) {
            let _ = self.client.publish(reply, answer.into()).await;
        }
    }

    fn judge_claim(&mut self, head: Head, mut claim: Claim) -> Claimed {
        claim.coordinator = printable(&claim.coordinator);
        match &self.session {
            Some(session) if session.is_for(head.run) && session.is_of(head.from) => {
                return Claimed::Yes;
            }
            Some(session) => return Claimed::Busy(session.coordinator.clone()),
            None if self.ended.iter().any(|ended| ended.run == head.run) => {
                return Claimed::Refused("that run is over".into());
            }
            None => {}
        }
        if claim.nonce != self.nonce {
            return Claimed::OtherNonce(self.nonce.clone());
        }
        let Some(target) = self.options.config.targets.get(&claim.target) else {
            return Claimed::NoTarget(self.options.config.targets.keys().cloned().collect());
        };
        let names = (claim.target.clone(), Arc::clone(&self.refused));
        let news = self.news_sender.clone();
        let direction = Direction::ToCoordinator;
        let ends = Ends { me: Arc::clone(&self.key), other: head.from, run: head.run, direction };
        match AgentSession::start(&self.client, ends, &self.options, target, names, &claim, news) {
            Ok(session) => {
                let by = self.name_of(head.from);
                self.say(&format!("{} has the plan of {by}: {}", self.name, claim.coordinator));
                self.session = Some(session);
                self.nonce = fresh_nonce();
                Claimed::Yes
            }
            Err(why) => Claimed::Refused(why),
        }
    }

    /// What the configuration calls a coordinator.
    fn name_of(&self, coordinator: Identity) -> &str {
        let mut enrolled = self.options.config.coordinators.iter();
        enrolled.find(|(_, one)| **one == coordinator).map_or("nobody", |(name, _)| name)
    }

    async fn hear(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.session {
            match session.open(bytes) {
                Ok(packet) => {
                    return match packet.body {
                        Body::Bye(why) => session.drop_plan(&printable(&why)),
                        body => session.take(packet.ack, body, &self.client).await,
                    };
                }
                Err(why @ (Dropped::Replayed | Dropped::Unsigned)) => {
                    return self.dropped.note(why);
                }
                Err(Dropped::Foreign) => {}
            }
        }
        self.answer_about_no_run(bytes).await;
    }

    /// Whoever still speaks of a run that is not, or no longer, is told so.
    async fn answer_about_no_run(&mut self, bytes: &[u8]) {
        let coordinators = &self.options.config.coordinators;
        let is_enrolled = |head: &Head| coordinators.values().any(|one| *one == head.from);
        let opened = open(bytes, self.key.identity(), Direction::ToAgent, is_enrolled);
        let head = match opened {
            Ok(opened) if opened.is_ours() => opened.head,
            Ok(_) => return self.dropped.note(Dropped::Foreign),
            Err(why) => return self.dropped.note(why),
        };
        if self.session.as_ref().is_some_and(|session| session.is_for(head.run)) {
            return self.dropped.note(Dropped::Foreign);
        }
        let direction = Direction::ToCoordinator;
        let ends = Ends { me: Arc::clone(&self.key), other: head.from, run: head.run, direction };
        let is_over = self.ended.iter().any(|ended| ended.run == head.run);
        let why = if is_over {
            "its agent has dropped the plan"
        } else {
            "its agent knows nothing of the run: it was started anew"
        };
        ends.farewell(&self.client, why).await;
    }

    async fn pass_on(&mut self, run: u64, news: News) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_for(run)) else {
            return;
        };
        match news {
            News::Message(message) => session.send(&message, &self.client).await,
            News::Ended(trouble) => {
                let why = session.ending().unwrap_or("its work ended").to_owned();
                (self.options.say)(&format!("{} dropped its plan: {why}", self.name));
                if let Some(trouble) = trouble {
                    (self.options.say)(&format!("error: {trouble}"));
                }
                let ends = session.ends().clone();
                ends.farewell(&self.client, "its agent has dropped the plan").await;
                self.session = None;
                self.ended.push_back(ends);
                if self.ended.len() > REMEMBERED {
                    self.ended.pop_front();
                }
            }
        }
    }

    async fn look_after(&mut self) {
        if let Some(news) = self.dropped.news() {
            self.say(&format!("{} {news}", self.name));
        }
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

fn fresh_nonce() -> Nonce {
    hex::encode(random::<16>())
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
