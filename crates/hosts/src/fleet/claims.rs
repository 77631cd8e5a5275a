//! Hosts are found and claimed: all that are wanted, or none.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{Host, Wish};
use crate::coordinator::Coordinator;
use crate::discovery::{Present, discover};
use crate::envelope::Direction;
use crate::error::{Absent, HostsError};
use crate::identity::Identity;
use crate::names::natural;
use crate::peer::{Ends, settle};
use crate::wire::{Answer, Claim, Claimed, Nonce, Question, VERSION, printable};

/// How long agents are looked for.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// How long an agent may take to answer a claim, which is asked so often.
const ANSWER: Duration = Duration::from_secs(1);
const TRIES: usize = 3;

/// A host that may be claimed, and the nonce that this takes.
type Candidate = (Host, Nonce);

/// As many free hosts as are wanted, claimed for the coordinator's run.
pub(super) async fn claim(coordinator: &Coordinator, wish: &Wish) -> Result<Vec<Host>, HostsError> {
    let suits = |present: &Present| reason_against(present, &wish.target).is_none();
    let enough = |all: &[Present]| all.iter().filter(|one| suits(one)).count() >= wish.count;
    let around = discover(coordinator, TIME_LIMIT, &wish.interrupt, enough).await?;
    let mut absent: Vec<Absent> = Vec::new();
    let mut claimed: Vec<Host> = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for present in around.present {
        match (reason_against(&present, &wish.target), host(&present, &wish.target)) {
            (None, Some(host)) => candidates.push((host, present.nonce)),
            (why, _) => {
                absent.push(Absent { calling: present.calling, why: why.unwrap_or_default() });
            }
        }
    }
    let mut candidates = candidates.into_iter();
    while claimed.len() < wish.count {
        let next: Vec<Candidate> = candidates.by_ref().take(wish.count - claimed.len()).collect();
        if next.is_empty() {
            break;
        }
        for (host, refused) in claim_all(coordinator, next, wish).await {
            match refused {
                None => claimed.push(host),
                Some(why) => absent.push(Absent { calling: host.calling, why }),
            }
        }
    }
    if claimed.len() < wish.count {
        for host in claimed {
            release(coordinator, host.calling.agent).await;
            absent.push(Absent { calling: host.calling, why: "is free".into() });
        }
        settle(&coordinator.client).await;
        absent.sort_by(|a, b| natural(&a.calling.name, &b.calling.name));
        let wanted = wish.count;
        let target = wish.target.clone();
        let hint = "`tapstone hosts` with the same options shows who is there, with which targets";
        let silent = around.absent;
        return Err(HostsError::TooFew { wanted, target, absent, silent, hint });
    }
    claimed.sort_by(|a, b| natural(&a.calling.name, &b.calling.name));
    Ok(claimed)
}

fn host(present: &Present, target: &str) -> Option<Host> {
    let facts = present.facts.clone()?;
    let target = facts.targets.iter().find(|offered| offered.name == target)?.clone();
    Some(Host { calling: present.calling.clone(), facts, target })
}

/// Why an agent cannot take part, in words that follow its name.
fn reason_against(present: &Present, target: &str) -> Option<String> {
    let Some(facts) = &present.facts else {
        return Some(other_version(&present.calling.version));
    };
    if !facts.targets.iter().any(|offered| offered.name == target) {
        let names: Vec<&str> = facts.targets.iter().map(|offered| &offered.name[..]).collect();
        return Some(format!("offers {} only", names.join(", ")));
    }
    facts.busy.as_ref().map(|by| format!("is busy with {by}"))
}

fn other_version(version: &str) -> String {
    format!("is of version {version}, this is {VERSION}")
}

async fn claim_all(
    coordinator: &Coordinator,
    candidates: Vec<Candidate>,
    wish: &Wish,
) -> Vec<(Host, Option<String>)> {
    let words = coordinator_words();
    let mut asking = JoinSet::new();
    for (host, nonce) in candidates {
        let claim = Claim {
            nonce,
            coordinator: words.clone(),
            target: wish.target.clone(),
            timeout_ms: wish.timeout.as_millis() as u64,
        };
        let coordinator = coordinator.clone();
        asking.spawn(async move {
            let refused = ask_for_grant(&coordinator, host.calling.agent, claim).await;
            (host, refused)
        });
    }
    asking.join_all().await
}

/// Asks one agent; `None`: it is ours. Asking twice does no harm: it knows the run.
async fn ask_for_grant(
    coordinator: &Coordinator,
    agent: Identity,
    mut claim: Claim,
) -> Option<String> {
    let mut why = "does not answer";
    for _ in 0..TRIES {
        let question = Question::Claim(claim.clone());
        let answered = match coordinator.ask(agent, &question, ANSWER).await {
            Ok(answered) => answered,
            Err(no_answer) => {
                why = no_answer.words();
                continue;
            }
        };
        let refusal = match answered.answer {
            Some(Answer::Claimed(Claimed::Yes)) => return None,
            Some(Answer::Claimed(Claimed::OtherNonce(nonce))) => {
                claim.nonce = nonce;
                continue;
            }
            Some(Answer::Claimed(Claimed::Busy(by))) => format!("is busy with {by}"),
            Some(Answer::Claimed(Claimed::NoTarget(names))) => {
                format!("offers {} only", names.join(", "))
            }
            Some(Answer::Claimed(Claimed::Refused(why))) => format!("refuses: {why}"),
            None => other_version(&answered.version),
            Some(_) => "does not answer as it should".into(),
        };
        return Some(printable(&refusal));
    }
    Some(why.into())
}

/// Tells an agent that it was not needed.
async fn release(coordinator: &Coordinator, agent: Identity) {
    let me = std::sync::Arc::clone(&coordinator.key);
    let direction = Direction::ToAgent;
    let ends = Ends { me, other: agent, run: coordinator.run, direction };
    ends.farewell(&coordinator.client, "it was not needed").await;
}

/// Who we are, for whoever finds an agent busy.
fn coordinator_words() -> String {
    let name = rustix::system::uname();
    format!("{} (process {})", name.nodename().to_string_lossy(), std::process::id())
}
