//! A coordinator's questions to agents, and their answers: signed both ways.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use tokio::time::timeout;

use crate::connection::Server;
use crate::enrolment::Enrolment;
use crate::envelope::{Direction, Head, open, seal};
use crate::error::HostsError;
use crate::identity::{Identity, PacketKey, random};
use crate::wire::{Answer, Question, question_subject};

/// A coordinator of one run. Clones speak for the same.
#[derive(Clone)]
pub(crate) struct Coordinator {
    pub(crate) client: Client,
    pub(crate) key: Arc<PacketKey>,
    pub(crate) agents: Arc<BTreeMap<String, Identity>>,
    /// Its number, which nobody can foresee: nothing of an earlier run means anything in this one.
    pub(crate) run: u64,
    numbers: Arc<AtomicU64>,
}

/// What an agent answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The version of its program.
    pub(crate) version: String,
    /// `None`: it is of another version.
    pub(crate) answer: Option<Answer>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The server says that nobody listens.
    NotConnected,
    /// Nothing came in time.
    Silent,
    /// Something came that this agent did not sign as an answer to this question.
    Unsigned,
}

impl NoAnswer {
    /// In words that follow the agent's name.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::NotConnected => "is not connected",
            Self::Silent => "does not answer",
            Self::Unsigned => "gets an answer that it has not signed",
        }
    }
}

impl Coordinator {
    /// Connects as the coordinator that the enrolment describes, for a new run.
    pub(crate) async fn connect(
        server: &Server,
        name: &str,
        enrolment: &Enrolment,
    ) -> Result<Self, HostsError> {
        let key = Arc::clone(&enrolment.key);
        let client = server.connect(name, key.identity()).await?;
        let run = u64::from_le_bytes(random());
        let agents = Arc::new(enrolment.agents.clone());
        Ok(Self { client, key, agents, run, numbers: Arc::default() })
    }

    /// Asks an agent, and waits so long for what it has signed.
    pub(crate) async fn ask(
        &self,
        agent: Identity,
        question: &Question,
        patience: Duration,
    ) -> Result<Answered, NoAnswer> {
        let number = self.numbers.fetch_add(1, Relaxed);
        let me = self.key.identity();
        let direction = Direction::Question;
        let head = Head { from: me, to: agent, run: self.run, direction, number };
        let body = serde_json::to_vec(question).unwrap_or_default();
        let sealed = seal(&self.key, &head, &body);
        let asked = self.client.request(question_subject(agent), sealed.into());
        let heard = match timeout(patience, asked).await {
            Ok(Ok(heard)) => heard,
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                return Err(NoAnswer::NotConnected);
            }
            _ => return Err(NoAnswer::Silent),
        };
        let is_mine = |head: &Head| (head.from, head.run, head.number) == (agent, self.run, number);
        let opened = open(&heard.payload, me, Direction::Answer, is_mine);
        let opened = opened.map_err(|_| NoAnswer::Unsigned)?;
        let answer = match opened.is_ours() {
            true => Some(serde_json::from_slice(opened.body).map_err(|_| NoAnswer::Unsigned)?),
            false => None,
        };
        Ok(Answered { version: crate::wire::printable(opened.version), answer })
    }
}
