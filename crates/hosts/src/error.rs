//! What can stand in the way of many hosts, in words that say what to do.

use std::path::PathBuf;

use tapstone_record as record;

use crate::wire::Calling;

/// Why hosts cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// No server answers, or it does not let us in.
    #[error("{url}: {text}\nhint: {hint}")]
    Connect {
        /// The URL of the NATS server.
        url: String,
        /// Why the connection was not made, in words.
        text: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// The server's address is none.
    #[error("--nats {url}: {text}\nhint: an address is tls://hub:4222, or nats://127.0.0.1:4222")]
    Url {
        /// The URL as the user typed it.
        url: String,
        /// What is wrong with it, in words.
        text: String,
    },
    /// Other users see a command line.
    #[error(
        "--nats: the address holds a user or a password, which other users could see\n\
         hint: --creds, --nkey and --user-file read them from a file"
    )]
    SecretInUrl,
    /// A file with credentials cannot be used. What it holds is not shown.
    #[error("{}: {text}\nhint: {hint}", .path.display())]
    Credentials {
        /// The file with the credential or certificate.
        path: PathBuf,
        /// Why it cannot be used, in words.
        text: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// Too few agents are there and free.
    #[error("{}\nhint: {hint}", too_few(*.wanted, .target, .absent, .silent))]
    TooFew {
        /// How many were asked for.
        wanted: usize,
        /// The name of the target that was asked for.
        target: String,
        /// Who is there and cannot take part, or is too few.
        absent: Vec<Absent>,
        /// Who is enrolled and did not answer, each with why in words that follow the name.
        silent: Vec<(String, &'static str)>,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// A thread or a runtime could not be started.
    #[error(
        "the connection to the hosts could not be served: {0}\nhint: is there room for another thread?"
    )]
    Start(std::io::Error),
    /// The connection would not take a subscription.
    #[error(
        "the server took no subscription: {0}\nhint: may these credentials use the subjects tapstone.>?"
    )]
    Subscribe(String),
    /// A target's PIN cannot be read.
    #[error(transparent)]
    Pin(#[from] tapstone_pin::PinError),
    /// A packet key cannot be read.
    #[error(transparent)]
    Key(#[from] crate::identity::PacketKeyError),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

/// An agent that does not take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The agent that does not take part.
    pub calling: Calling,
    /// Why, in words that follow its name.
    pub why: String,
}

impl HostsError {
    /// The hosts for a record of a run that could not begin.
    #[must_use]
    pub fn hosts(&self) -> Vec<record::Host> {
        let Self::TooFew { absent, .. } = self else { return Vec::new() };
        let host = |absent: &Absent| record::Host {
            name: absent.calling.name.clone(),
            agent: absent.calling.agent.to_string(),
            version: absent.calling.version.clone(),
            state: record::HostState::Refused,
            reason: Some(absent.why.clone()),
            environment: None,
            clock: None,
            window: None,
        };
        absent.iter().map(host).collect()
    }
}

/// So many agents that do not answer are named; others are counted.
const NAMED: usize = 8;

fn too_few(
    wanted: usize,
    target: &str,
    absent: &[Absent],
    silent: &[(String, &'static str)],
) -> String {
    let all = format!("{wanted} hosts with target {target} were asked for");
    let there = absent.iter().map(|absent| format!("{} {}", absent.calling.name, absent.why));
    let mut each: Vec<String> = there.collect();
    if each.is_empty() {
        each.push("no agent answers".into());
    }
    each.extend(silent.iter().take(NAMED).map(|(name, why)| format!("{name} {why}")));
    if silent.len() > NAMED {
        each.push(format!("and {} others that are enrolled", silent.len() - NAMED));
    }
    format!("{all}: {}", each.join(", "))
}
