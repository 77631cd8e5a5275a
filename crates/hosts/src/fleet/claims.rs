//! Hosts are found and claimed: all that are wanted, or none.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use async_nats::Client;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Host, Wish};
use crate::discovery::{Present, discover};
use crate::error::{Absent, HostsError};
use crate::peer::settle;
use crate::wire::{AgentId, Body, Claim, Claimed, PROTOCOL, Packet, VERSION};
use crate::wire::{claim_subject, printable, run_subject};

/// How long agents are looked for.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// How long an agent may take to answer a claim, which is asked so often.
const ANSWER: Duration = Duration::from_secs(1);
const TRIES: usize = 3;

/// As many free hosts as are wanted, claimed for a new run.
pub(super) async fn claim(client: &Client, wish: &Wish) -> Result<(u64, Vec<Host>), HostsError> {
    let run = RandomState::new().hash_one(std::process::id());
    let suits = |present: &Present| reason_against(present, &wish.target).is_none();
    let enough = |all: &[Present]| all.iter().filter(|one| suits(one)).count() >= wish.count;
    let all = discover(client, TIME_LIMIT, &wish.interrupt, enough).await?;
    let mut absent: Vec<Absent> = Vec::new();
    let mut claimed: Vec<Host> = Vec::new();
    let mut candidates = Vec::new();
    for present in all {
        match (reason_against(&present, &wish.target), host(&present, &wish.target)) {
            (None, Some(host)) => candidates.push(host),
            (why, _) => {
                absent.push(Absent { calling: present.calling, why: why.unwrap_or_default() });
            }
        }
    }
    let mut candidates = candidates.into_iter();
    while claimed.len() < wish.count {
        let next: Vec<Host> = candidates.by_ref().take(wish.count - claimed.len()).collect();
        if next.is_empty() {
            break;
        }
        for (host, refused) in claim_all(client, next, run, wish).await {
            match refused {
                None => claimed.push(host),
                Some(why) => absent.push(Absent { calling: host.calling, why }),
            }
        }
    }
    if claimed.len() < wish.count {
        for host in claimed {
            release(client, run, host.calling.agent).await;
            absent.push(Absent { calling: host.calling, why: "is free".into() });
        }
        absent.sort_by(|a, b| a.calling.name.cmp(&b.calling.name));
        let wanted = wish.count;
        let target = wish.target.clone();
        let hint = "`tapstone hosts` with the same options shows who is there, with which targets";
        return Err(HostsError::TooFew { wanted, target, absent, hint });
    }
    claimed.sort_by(|a, b| {
        (&a.calling.name, a.calling.agent).cmp(&(&b.calling.name, b.calling.agent))
    });
    Ok((run, claimed))
}

fn host(present: &Present, target: &str) -> Option<Host> {
    let facts = present.facts.clone()?;
    let target = facts.targets.iter().find(|offered| offered.name == target)?.clone();
    Some(Host { calling: present.calling.clone(), facts, target })
}

/// Why an agent cannot take part, in words that follow its name.
fn reason_against(present: &Present, target: &str) -> Option<String> {
    let Some(facts) = &present.facts else {
        return Some(format!("is of version {}, this is {VERSION}", present.calling.version));
    };
    if !facts.targets.iter().any(|offered| offered.name == target) {
        let names: Vec<&str> = facts.targets.iter().map(|offered| &offered.name[..]).collect();
        return Some(format!("offers {} only", names.join(", ")));
    }
    facts.busy.as_ref().map(|by| format!("is busy with {by}"))
}

async fn claim_all(
    client: &Client,
    hosts: Vec<Host>,
    run: u64,
    wish: &Wish,
) -> Vec<(Host, Option<String>)> {
    let claim = Claim {
        protocol: PROTOCOL,
        version: VERSION.to_owned(),
        run,
        coordinator: coordinator(),
        target: wish.target.clone(),
        timeout_ms: wish.timeout.as_millis() as u64,
    };
    let mut asking = JoinSet::new();
    for host in hosts {
        let client = client.clone();
        let claim = claim.clone();
        asking.spawn(async move {
            let refused = ask(&client, host.calling.agent, &claim).await;
            (host, refused)
        });
    }
    asking.join_all().await
}

/// Asks one agent; `None`: it is ours. Asking twice does no harm: it knows the run.
async fn ask(client: &Client, agent: AgentId, claim: &Claim) -> Option<String> {
    let question = serde_json::to_vec(claim).unwrap_or_default();
    for _ in 0..TRIES {
        let asked = client.request(claim_subject(agent), question.clone().into());
        let Ok(Ok(answer)) = timeout(ANSWER, asked).await else { continue };
        let refusal: Result<Claimed, _> = serde_json::from_slice(&answer.payload);
        let refusal = match refusal {
            Ok(Claimed::Yes) => None,
            Ok(Claimed::Busy(by)) => Some(format!("is busy with {by}")),
            Ok(Claimed::NoTarget(names)) => Some(format!("offers {} only", names.join(", "))),
            Ok(Claimed::OtherVersion(version)) => Some(format!("is of version {version}")),
            Ok(Claimed::Refused(why)) => Some(format!("refuses: {why}")),
            Err(_) => Some("does not answer as it should".into()),
        };
        return refusal.map(|why| printable(&why));
    }
    Some("does not answer".into())
}

/// Tells an agent that it was not needed.
async fn release(client: &Client, run: u64, agent: AgentId) {
    let body = Body::Bye("it was not needed".into());
    if let Ok(bytes) = postcard::to_stdvec(&Packet { run, agent, ack: 0, body }) {
        let _ = client.publish(run_subject(agent), bytes.into()).await;
    }
    settle(client).await;
}

/// Who we are, for whoever finds an agent busy.
fn coordinator() -> String {
    let name = rustix::system::uname();
    format!("{} (process {})", name.nodename().to_string_lossy(), std::process::id())
}
