//! All that comes from the network, read in one place as agents and coordinators read it. Nothing
//! is connected, started or called here: it is for whoever wants to know what any bytes do.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tapstone_measure::units::Nanos;

use crate::envelope::{self, Direction};
use crate::identity::Identity;
use crate::moments;
use crate::stream::{Incoming, Outgoing};
use crate::wire::{Answer, Body, Facts, FromAgent, Packet, Question, ToAgent, printable};

/// Both ends of a run's stream, which have heard these packets.
#[derive(Debug)]
pub struct ForeignPackets {
    incoming: Incoming,
    outgoing: Outgoing,
    now: Nanos,
}

impl Default for ForeignPackets {
    fn default() -> Self {
        let mut outgoing = Outgoing::new(7);
        outgoing.push(b"a message in some chunks");
        Self { incoming: Incoming::default(), outgoing, now: Nanos::ZERO }
    }
}

impl ForeignPackets {
    /// Hears a packet, as both sides do.
    ///
    /// # Panics
    /// When what was read is not written and read again as the same.
    pub fn hear(&mut self, bytes: &[u8], offset_ns: i64) {
        let Some(packet) = read_again::<Packet>(bytes) else { return };
        self.now += Nanos(1);
        let backlog = self.outgoing.backlog_bytes();
        self.outgoing.acknowledge(packet.ack, self.now);
        assert!(self.outgoing.backlog_bytes() <= backlog, "what has arrived stays there");
        let _ = self.outgoing.due(self.now, Nanos(3));
        match packet.body {
            Body::Chunk(chunk) => {
                let expected = self.incoming.ack();
                let number = chunk.number;
                let message = self.incoming.take(chunk);
                assert!(message.is_none() || number == expected, "chunks are taken in order");
                if let Some(message) = message {
                    message_of_run(&message, offset_ns);
                }
            }
            Body::Bye(why) => {
                let acts = |sign: char| sign.is_control() && sign != '\n';
                assert!(!printable(&why).contains(acts), "it acts on a terminal");
            }
            Body::Beat => {}
        }
    }
}

/// A message of a run, to an agent or from one.
///
/// # Panics
/// When what was read is not written and read again as the same.
pub fn message_of_run(bytes: &[u8], offset_ns: i64) {
    if let Some(ToAgent::Task { task, .. }) = read_again(bytes) {
        let _ = moments::to_agent(task, offset_ns);
    }
    if let Some(FromAgent::Report { report, .. }) = read_again(bytes) {
        let _ = moments::from_agent(*report, offset_ns);
    }
}

/// Envelopes, and the questions and answers in them, which are JSON.
pub fn outside_of_runs(bytes: &[u8]) {
    let receiver = Identity([0; 32]);
    for direction in [Direction::Question, Direction::ToAgent] {
        let _ = envelope::open(bytes, receiver, direction, |_| true);
    }
    let _ = serde_json::from_slice::<Question>(bytes);
    if let Ok(Answer::Facts { facts, .. }) = serde_json::from_slice(bytes) {
        let _ = serde_json::from_value::<Facts>(facts);
    }
}

/// Reads a message, writes it, reads that, and writes it once more: both are the same bytes.
fn read_again<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let read: T = postcard::from_bytes(bytes).ok()?;
    let written = postcard::to_stdvec(&read).expect("what was read can be written");
    let again: T = postcard::from_bytes(&written).expect("what was written can be read");
    assert_eq!(postcard::to_stdvec(&again).ok(), Some(written));
    Some(read)
}
