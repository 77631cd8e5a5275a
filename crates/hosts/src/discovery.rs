//! Who is there: every agent of every version answers, and says what it offers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use async_nats::Client;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock::{Offset, RoundTrip};
use crate::connection::Server;
use crate::error::HostsError;
use crate::wire::{AgentId, Calling, DISCOVER, Facts, clock_subject, printable};

/// An agent that answered.
#[derive(Clone, Debug)]
pub struct Present {
    /// The agent, as it names itself.
    pub calling: Calling,
    /// What it says of itself; `None` when it is of another version.
    pub facts: Option<Facts>,
    /// Its clock less ours.
    pub offset: Option<Offset>,
}

/// The answer to the question who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DiscoveryAnswer {
    #[serde(flatten)]
    pub(crate) calling: Calling,
    /// Facts, in the form of the agent's version.
    pub(crate) facts: Value,
}

/// The question is lost when a connection breaks, so it is asked again.
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
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<Vec<Present>, HostsError> {
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let client = server.connect("tapstone hosts").await?;
        let mut all = discover(&client, patience, interrupt, |_| false).await?;
        let agents = all.iter().map(|present| present.calling.agent).collect();
        for (agent, trips) in clocks(&client, agents).await {
            if let Some(present) = all.iter_mut().find(|one| one.calling.agent == agent) {
                present.offset = Offset::from_round_trips(&trips);
            }
        }
        Ok(all)
    })
}

/// All that answer within `patience`, or until they are enough; by name.
pub(crate) async fn discover(
    client: &Client,
    patience: Duration,
    interrupt: &AtomicBool,
    enough: impl Fn(&[Present]) -> bool,
) -> Result<Vec<Present>, HostsError> {
    let inbox = client.new_inbox();
    let subscribed = client.subscribe(inbox.clone()).await;
    let mut answers = subscribed.map_err(|error| HostsError::Subscribe(error.to_string()))?;
    let begun = Instant::now();
    let mut asked: Option<Instant> = None;
    let mut last_news = begun;
    let mut found = BTreeMap::new();
    while begun.elapsed() < patience {
        if interrupt.load(Relaxed) {
            return Err(HostsError::Interrupted);
        }
        if asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN) {
            let _ = client.publish_with_reply(DISCOVER, inbox.clone(), "".into()).await;
            asked = Some(Instant::now());
        }
        if let Ok(Some(message)) = timeout(QUIET / 3, answers.next()).await
            && let Ok(answer) = serde_json::from_slice::<DiscoveryAnswer>(&message.payload)
        {
            let facts = answer.calling.is_ours().then(|| serde_json::from_value(answer.facts));
            let Calling { name, version, .. } = &answer.calling;
            let name = printable(name);
            let version = printable(version);
            let calling = Calling { name, version, ..answer.calling };
            let facts = facts.and_then(Result::ok).map(printable_facts);
            let present = Present { facts, calling, offset: None };
            if found.insert(present.calling.agent, present).is_none() {
                last_news = Instant::now();
            }
        }
        let so_far: Vec<Present> = found.values().cloned().collect();
        if enough(&so_far) && last_news.elapsed() >= QUIET {
            break;
        }
    }
    let mut all: Vec<Present> = found.into_values().collect();
    all.sort_by(|a, b| (&a.calling.name, a.calling.agent).cmp(&(&b.calling.name, b.calling.agent)));
    Ok(all)
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
    client: &Client,
    agents: Vec<AgentId>,
) -> Vec<(AgentId, Vec<RoundTrip>)> {
    let mut asking = JoinSet::new();
    for agent in agents {
        let client = client.clone();
        asking.spawn(async move { (agent, round_trips(&client, agent).await) });
    }
    asking.join_all().await
}

async fn round_trips(client: &Client, agent: AgentId) -> Vec<RoundTrip> {
    let begun = Instant::now();
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    while trips.len() < ROUND_TRIPS && begun.elapsed() < CLOCK_TIME_LIMIT {
        let sent = Monotonic.now();
        let asked = client.request(clock_subject(agent), "".into());
        // What a broken connection swallowed is not waited for as long as the client would.
        let Ok(answer) = timeout(CLOCK_TIME_LIMIT / 3, asked).await else { continue };
        let heard = Monotonic.now();
        match answer.ok().and_then(|answer| answer.payload[..].try_into().ok()) {
            Some(there) => {
                let there = Nanos(u64::from_le_bytes(there));
                trips.push(RoundTrip { sent, there, heard });
            }
            None => tokio::time::sleep(QUIET).await,
        }
    }
    trips
}
