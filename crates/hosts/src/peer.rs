//! The other side of a run: what goes to it and comes from it, and whether it is still there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use serde::Serialize;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tokio::time::timeout;

use crate::envelope::{Direction, Dropped, ENVELOPE_BYTES, Head, open, seal};
use crate::identity::{Identity, PacketKey};
use crate::stream::{Incoming, Outgoing};
use crate::wire::{BEAT, Body, LEASE, Packet, coordinator_subject, run_subject};

/// The longest chunk: well below the 1 MB that a server takes.
const CHUNK_BYTES: usize = 256 << 10;

/// What a packet has besides its chunk, at most.
const HEAD_BYTES: usize = 128 + ENVELOPE_BYTES;

/// A repetition waits for four round trips, and for this: the other side's tick and its work.
const REPEAT_AFTER: Nanos = Nanos::from_millis(300);

/// Waits until the server has what was published, while it is there.
pub(crate) async fn settle(client: &Client) {
    let _ = timeout(BEAT, client.flush()).await;
}

/// Between whom the packets of a run go, as one of them sees it.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) me: Arc<PacketKey>,
    pub(crate) other: Identity,
    pub(crate) run: u64,
    /// Of what `me` sends.
    pub(crate) direction: Direction,
}

impl Ends {
    /// Where the other hears packets.
    fn subject(&self) -> String {
        match self.direction {
            Direction::ToCoordinator => {
                coordinator_subject(self.other, self.run, &self.me.identity().to_string())
            }
            _ => run_subject(self.other),
        }
    }

    const fn incoming_direction(&self) -> Direction {
        match self.direction {
            Direction::ToCoordinator => Direction::ToAgent,
            _ => Direction::ToCoordinator,
        }
    }

    /// Says something, signed, if there is a connection: what cannot go now is repeated later, and
    /// waiting here would stop the signs of life, too.
    async fn send(&self, client: &Client, number: u64, ack: u64, body: Body) {
        if client.connection_state() != State::Connected {
            return;
        }
        let Ok(bytes) = postcard::to_stdvec(&Packet { ack, body }) else { return };
        let from = self.me.identity();
        let head = Head { from, to: self.other, run: self.run, direction: self.direction, number };
        let _ = client.publish(self.subject(), seal(&self.me, &head, &bytes).into()).await;
    }

    /// Tells the other that a run is over of which nothing else is known here.
    pub(crate) async fn farewell(&self, client: &Client, why: &str) {
        self.send(client, u64::MAX, 0, Body::Bye(why.to_owned())).await;
    }
}

/// See the module's text.
pub(crate) struct Peer {
    ends: Ends,
    incoming: Incoming,
    outgoing: Outgoing,
    next_number: u64,
    /// Packets have to have this number or a later one.
    expected_number: u64,
    last_heard: Nanos,
    last_sent: Nanos,
    /// How long a round trip takes, as far as that is known.
    pub(crate) round_trip: Nanos,
}

impl Peer {
    pub(crate) fn new(client: &Client, ends: Ends) -> Self {
        let room = client.max_payload().saturating_sub(HEAD_BYTES);
        let now = Monotonic.now();
        Self {
            ends,
            incoming: Incoming::default(),
            outgoing: Outgoing::new(CHUNK_BYTES.min(room)),
            next_number: 0,
            expected_number: 0,
            last_heard: now,
            last_sent: now,
            round_trip: Nanos::ZERO,
        }
    }

    /// What the other has signed for this run, and not said before. A packet that comes late is
    /// dropped, too: what it carried is repeated under another number.
    pub(crate) fn open(&mut self, bytes: &[u8]) -> Result<Packet, Dropped> {
        let ends = &self.ends;
        let is_theirs = |head: &Head| (head.from, head.run) == (ends.other, ends.run);
        let opened = open(bytes, ends.me.identity(), ends.incoming_direction(), is_theirs)?;
        if !opened.is_ours() {
            return Err(Dropped::Foreign);
        }
        if opened.head.number < self.expected_number {
            return Err(Dropped::Replayed);
        }
        let packet = postcard::from_bytes(opened.body).map_err(|_| Dropped::Foreign)?;
        self.expected_number = opened.head.number.saturating_add(1);
        Ok(packet)
    }

    /// Takes a packet that was opened; a whole message, if it completes one.
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

    /// How long nothing was heard.
    pub(crate) fn silence(&self) -> Duration {
        (Monotonic.now() - self.last_heard).into()
    }

    /// Nothing was heard for too long.
    pub(crate) fn is_silent(&self) -> bool {
        self.silence() > LEASE
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
        let number = self.next_number;
        self.next_number += 1;
        self.ends.send(client, number, self.incoming.ack(), body).await;
    }
}
