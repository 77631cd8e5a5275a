//! Who is there: every agent that is enrolled is asked, and says what it offers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock::{ClockTrouble, Offset, RoundTrip};
use crate::connection::Server;
use crate::coordinator::{Coordinator, NoAnswer};
use crate::enrolment::Enrolment;
use crate::error::HostsError;
use crate::identity::Identity;
use crate::names::natural;
use crate::wire::{Answer, Calling, Facts, Nonce, Question, printable};

/// An agent that answered.
#[derive(Clone, Debug)]
pub struct Present {
    /// Which agent it is.
    pub calling: Calling,
    /// What it says of itself; `None` when it is of another version.
    pub facts: Option<Facts>,
    /// What a claim has to repeat.
    pub(crate) nonce: Nonce,
    /// Its clock less ours, or why that is not known.
    pub offset: Result<Offset, ClockTrouble>,
}

/// Who answered, and who did not.
#[derive(Debug, Default)]
pub struct Around {
    /// The agents that answered, by name.
    pub present: Vec<Present>,
    /// Names of those that are enrolled and did not, each with why in words that follow it.
    pub absent: Vec<(String, &'static str)>,
}

/// How long an answer may take before it is asked for again: it is lost when a connection breaks.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// When enough have answered, others may still be on their way.
const QUIET: Duration = Duration::from_millis(150);

/// Round trips that an offset rests on.
pub(crate) const ROUND_TRIPS: usize = 8;

/// How long an offset may take.
const CLOCK_TIME_LIMIT: Duration = Duration::from_secs(3);

/// Asks who is there, for so long, and how their clocks stand.
///
/// # Errors
/// The server cannot be reached.
pub fn look_around(
    server: &Server,
    enrolment: &Enrolment,
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<Around, HostsError> {
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let coordinator = Coordinator::connect(server, "tapstone hosts", enrolment).await?;
        let mut around = discover(&coordinator, patience, interrupt, |_| false).await?;
        let usable = around.present.iter().filter(|present| present.facts.is_some());
        let agents = usable.map(|present| present.calling.agent).collect();
        for (agent, trips) in clocks(&coordinator, agents).await {
            let of_it = |present: &&mut Present| present.calling.agent == agent;
            if let Some(present) = around.present.iter_mut().find(of_it) {
                present.offset = Offset::from_round_trips(&trips);
            }
        }
        Ok(around)
    })
}

/// All that answer within `patience`, or until they are enough; by name.
pub(crate) async fn discover(
    coordinator: &Coordinator,
    patience: Duration,
    interrupt: &AtomicBool,
    enough: impl Fn(&[Present]) -> bool,
) -> Result<Around, HostsError> {
    let begun = Instant::now();
    let (sender, mut answers) = unbounded_channel();
    let mut asking = JoinSet::new();
    for (name, &agent) in coordinator.agents.iter() {
        let coordinator = coordinator.clone();
        let sender = sender.clone();
        let name = name.clone();
        asking.spawn(async move {
            let answer = ask_for_facts(&coordinator, &name, agent, patience).await;
            let _ = sender.send((name, answer));
        });
    }
    drop(sender);
    let mut around = Around::default();
    let mut last_news = begun;
    while begun.elapsed() < patience + QUIET {
        if interrupt.load(Relaxed) {
            return Err(HostsError::Interrupted);
        }
        match timeout(QUIET / 3, answers.recv()).await {
            Ok(Some((_, Ok(present)))) => {
                last_news = Instant::now();
                around.present.push(present);
            }
            Ok(Some((name, Err(why)))) => around.absent.push((name, why.words())),
            Ok(None) => break,
            Err(_) => {}
        }
        if enough(&around.present) && last_news.elapsed() >= QUIET {
            break;
        }
    }
    around.present.sort_by(|a, b| natural(&a.calling.name, &b.calling.name));
    around.absent.sort_by(|a, b| natural(&a.0, &b.0));
    Ok(around)
}

/// Asks one agent until it answers or patience ends.
async fn ask_for_facts(
    coordinator: &Coordinator,
    name: &str,
    agent: Identity,
    patience: Duration,
) -> Result<Present, NoAnswer> {
    let begun = Instant::now();
    loop {
        let why = match coordinator.ask(agent, &Question::Facts, ASK_AGAIN).await {
            Ok(answered) => {
                let calling = Calling { agent, name: name.to_owned(), version: answered.version };
                let offset = Err(ClockTrouble::Silent);
                let (nonce, facts) = match answered.answer {
                    Some(Answer::Facts { nonce, facts }) => {
                        (nonce, serde_json::from_value(facts).ok().map(printable_facts))
                    }
                    _ => (Nonce::new(), None),
                };
                return Ok(Present { calling, facts, nonce, offset });
            }
            Err(why) => why,
        };
        if begun.elapsed() + QUIET >= patience {
            return Err(why);
        }
        // It may just be coming back; nobody else is kept waiting by a look now and then.
        tokio::time::sleep(QUIET).await;
    }
}

fn printable_facts(mut facts: Facts) -> Facts {
    for target in &mut facts.targets {
        for text in [&mut target.name, &mut target.module, &mut target.sha256, &mut target.token] {
            *text = printable(text);
        }
    }
    facts.busy = facts.busy.map(|by| printable(&by));
    facts
}

/// Round trips to the clocks of agents, all at once; of those that answered.
pub(crate) async fn clocks(
    coordinator: &Coordinator,
    agents: Vec<Identity>,
) -> BTreeMap<Identity, Vec<RoundTrip>> {
    let mut asking = JoinSet::new();
    for agent in agents {
        let coordinator = coordinator.clone();
        asking.spawn(async move { (agent, round_trips(&coordinator, agent).await) });
    }
    asking.join_all().await.into_iter().collect()
}

async fn round_trips(coordinator: &Coordinator, agent: Identity) -> Vec<RoundTrip> {
    let begun = Instant::now();
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    while trips.len() < ROUND_TRIPS && begun.elapsed() < CLOCK_TIME_LIMIT {
        let sent = Monotonic.now();
        // What a broken connection swallowed is not waited for as long as the client would.
        let answered = coordinator.ask(agent, &Question::Clock, CLOCK_TIME_LIMIT / 3).await;
        let heard = Monotonic.now();
        match answered.ok().and_then(|answered| answered.answer) {
            Some(Answer::Clock(there)) => {
                trips.push(RoundTrip { sent, there: Nanos(there), heard });
            }
            _ => tokio::time::sleep(QUIET).await,
        }
    }
    trips
}
