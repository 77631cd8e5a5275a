//! The other side of a run: what goes to it and comes from it, and whether it is still there.

use async_nats::Client;
use async_nats::connection::State;
use serde::Serialize;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tokio::time::timeout;

use crate::stream::{Incoming, Outgoing};
use crate::wire::{AgentId, BEAT, Body, LEASE, Packet};

/// The longest chunk: well below the 1 MB that a server takes.
const CHUNK_BYTES: usize = 256 << 10;

/// What a packet has besides its chunk, at most.
const HEAD_BYTES: usize = 128;

/// A repetition waits for four round trips, and for this: the other side's tick and its work.
const REPEAT_AFTER: Nanos = Nanos::from_millis(300);

/// Waits until the server has what was published, while it is there.
pub(crate) async fn settle(client: &Client) {
    let _ = timeout(BEAT, client.flush()).await;
}

/// See the module's text.
pub(crate) struct Peer {
    run: u64,
    agent: AgentId,
    subject: String,
    incoming: Incoming,
    outgoing: Outgoing,
    last_heard: Nanos,
    last_sent: Nanos,
    /// How long a round trip takes, as far as that is known.
    pub(crate) round_trip: Nanos,
}

impl Peer {
    pub(crate) fn new(client: &Client, run: u64, agent: AgentId, subject: String) -> Self {
        let room = client.max_payload().saturating_sub(HEAD_BYTES);
        let now = Monotonic.now();
        Self {
            run,
            agent,
            subject,
            incoming: Incoming::default(),
            outgoing: Outgoing::new(CHUNK_BYTES.min(room)),
            last_heard: now,
            last_sent: now,
            round_trip: Nanos::ZERO,
        }
    }

    /// Takes a packet of this run and agent; a whole message, if it completes one.
    pub(crate) fn take(&mut self, ack: u64, body: Body) -> Option<Vec<u8>> {
        self.last_heard = Monotonic.now();
        self.outgoing.acknowledge(ack, self.last_heard);
        match body {
            Body::Chunk(chunk) => self.incoming.take(chunk),
            Body::Beat | Body::Bye(_) => None,
        }
    }

    /// One more message; it goes with the next [`Self::flush`].
    pub(crate) fn push(&mut self, message: &impl Serialize) {
        if let Ok(bytes) = postcard::to_stdvec(message) {
            self.outgoing.push(&bytes);
        }
    }

    /// Bytes that the other side does not have yet.
    pub(crate) const fn backlog_bytes(&self) -> usize {
        self.outgoing.backlog_bytes()
    }

    /// Nothing was heard for too long.
    pub(crate) fn is_silent(&self) -> bool {
        Monotonic.now() - self.last_heard > Nanos(LEASE.as_nanos() as u64)
    }

    /// Sends what is due: chunks, and a sign of life when it is time for one.
    pub(crate) async fn flush(&mut self, client: &Client) {
        let patience = Nanos(REPEAT_AFTER.0 + 4 * self.round_trip.0);
        for chunk in self.outgoing.due(Monotonic.now(), patience) {
            self.send(client, Body::Chunk(chunk)).await;
        }
        let silent = Monotonic.now() - self.last_sent >= Nanos(BEAT.as_nanos() as u64);
        if silent || self.incoming.owes_ack() {
            self.send(client, Body::Beat).await;
        }
    }

    /// The run is over.
    pub(crate) async fn bye(&mut self, client: &Client, why: &str) {
        self.send(client, Body::Bye(why.to_owned())).await;
    }

    async fn send(&mut self, client: &Client, body: Body) {
        self.last_sent = Monotonic.now();
        // What cannot go now is repeated later: waiting here would stop the signs of life, too.
        if client.connection_state() != State::Connected {
            return;
        }
        let packet = Packet { run: self.run, agent: self.agent, ack: self.incoming.ack(), body };
        if let Ok(bytes) = postcard::to_stdvec(&packet) {
            let _ = client.publish(self.subject.clone(), bytes.into()).await;
        }
    }
}
