//! Messages of any length, in order and each once, over packets that get lost, doubled and late.
//!
//! A message is cut into numbered chunks. The receiver takes them in order only and says how far it
//! has come; the sender repeats everything after that once nothing has moved for a while. This is
//! go-back-N: packets are lost only when a connection breaks, and then all that followed is too.

use std::collections::VecDeque;

use tapstone_measure::units::Nanos;

use crate::wire::MessageChunk;

/// Bytes under way at most: 20 MB a second at a round trip of 200 ms.
const WINDOW_BYTES: usize = 4 << 20;

/// The sender's end of a stream: chunks that are not acknowledged yet.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Not yet acknowledged, in order.
    chunks: VecDeque<MessageChunk>,
    next_number: u64,
    /// How many of `chunks` have been sent since the last repetition.
    sent: usize,
    chunk_bytes: usize,
    backlog_bytes: usize,
    /// When something was last acknowledged, or sent with nothing else under way.
    moved: Nanos,
}

impl Outgoing {
    /// A stream of chunks no longer than this.
    pub(crate) fn new(chunk_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            next_number: 0,
            sent: 0,
            chunk_bytes: chunk_bytes.max(1),
            backlog_bytes: 0,
            moved: Nanos::ZERO,
        }
    }

    /// Adds a message, cut into chunks.
    pub(crate) fn push(&mut self, message: &[u8]) {
        let mut rest = message;
        loop {
            let (bytes, after) = rest.split_at(rest.len().min(self.chunk_bytes));
            let chunk = MessageChunk {
                number: self.next_number,
                last: after.is_empty(),
                bytes: bytes.to_vec(),
            };
            self.next_number += 1;
            self.backlog_bytes += bytes.len();
            self.chunks.push_back(chunk);
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// The receiver has all chunks below this number.
    pub(crate) fn acknowledge(&mut self, ack: u64, now: Nanos) {
        while let Some(chunk) = self.chunks.front()
            && chunk.number < ack
        {
            self.backlog_bytes -= chunk.bytes.len();
            self.chunks.pop_front();
            self.sent = self.sent.saturating_sub(1);
            self.moved = now;
        }
    }

    /// What is to be sent now: what is new, and everything once more when nothing has moved for
    /// `patience`.
    pub(crate) fn due(&mut self, now: Nanos, patience: Nanos) -> Vec<MessageChunk> {
        if self.sent == 0 {
            self.moved = now;
        } else if now - self.moved >= patience {
            self.sent = 0;
            self.moved = now;
        }
        let under_way: usize = self.chunks.iter().take(self.sent).map(|c| c.bytes.len()).sum();
        let mut room = WINDOW_BYTES.saturating_sub(under_way);
        let mut due = Vec::new();
        while let Some(chunk) = self.chunks.get(self.sent)
            && (chunk.bytes.len() <= room || self.sent == 0)
        {
            room = room.saturating_sub(chunk.bytes.len());
            due.push(chunk.clone());
            self.sent += 1;
        }
        due
    }

    /// Bytes that the receiver does not have yet.
    pub(crate) const fn backlog_bytes(&self) -> usize {
        self.backlog_bytes
    }
}

/// The receiver's end of a stream: puts chunks in order and drops repeated ones.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    expected: u64,
    acknowledged: u64,
    message: Vec<u8>,
}

/// No message of a run is as long, in bytes. Of a longer one nothing more is taken, so that a peer
/// costs this machine no more memory than that.
const LONGEST_MESSAGE: usize = 64 << 20;

impl Incoming {
    /// Takes a chunk; a message, if it completes one. What came before, or too early, is dropped.
    pub(crate) fn take(&mut self, chunk: MessageChunk) -> Option<Vec<u8>> {
        let is_too_long = self.message.len() + chunk.bytes.len() > LONGEST_MESSAGE;
        if chunk.number != self.expected || is_too_long {
            // Say again how far this is, so that the other side goes on from there.
            self.acknowledged = self.acknowledged.min(self.expected.saturating_sub(1));
            return None;
        }
        self.expected += 1;
        self.message.extend(chunk.bytes);
        chunk.last.then(|| std::mem::take(&mut self.message))
    }

    /// All chunks below this number are here; said with every packet.
    pub(crate) fn ack(&mut self) -> u64 {
        self.acknowledged = self.expected;
        self.expected
    }

    /// There is something that was not yet acknowledged.
    pub(crate) const fn owes_ack(&self) -> bool {
        self.acknowledged != self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_without_an_end_takes_no_more_than_the_longest() {
        let mut into = Incoming::default();
        let chunk = |number| MessageChunk { number, last: false, bytes: vec![0; 1 << 20] };
        for number in 0..200 {
            assert_eq!(into.take(chunk(number)), None);
        }
        assert_eq!(into.message.len(), LONGEST_MESSAGE);
        assert_eq!(into.ack(), 64, "what is beyond is never acknowledged");
    }

    proptest! {
        /// Packets get lost, doubled and out of order; every message arrives once, in order.
        #[test]
        fn every_message_arrives_once_and_in_order(
            lengths in prop::collection::vec(0usize..40, 1..40),
            fates in prop::collection::vec(0u8..8, 1..400),
        ) {
            let messages: Vec<Vec<u8>> = lengths.iter().enumerate()
                .map(|(number, length)| vec![number as u8; *length]).collect();
            let mut out = Outgoing::new(7);
            let mut into = Incoming::default();
            messages.iter().for_each(|message| out.push(message));
            let mut fates = fates.into_iter().chain(std::iter::repeat(7));
            let mut now = Nanos::ZERO;
            let mut late = Vec::new();
            let mut arrived = Vec::new();
            while arrived.len() < messages.len() {
                now += Nanos(10);
                for chunk in out.due(now, Nanos(30)) {
                    match fates.next() {
                        Some(0) => {}
                        Some(1) => late.push(chunk),
                        Some(2) => {
                            arrived.extend(into.take(chunk.clone()));
                            arrived.extend(into.take(chunk));
                        }
                        _ => arrived.extend(into.take(chunk)),
                    }
                    if fates.next() == Some(3) {
                        late.drain(..).for_each(|chunk| arrived.extend(into.take(chunk)));
                    }
                }
                if fates.next() != Some(4) {
                    out.acknowledge(into.ack(), now);
                }
                prop_assert!(now < Nanos(1_000_000), "it does not hang");
            }
            out.acknowledge(into.ack(), now);
            prop_assert_eq!(&arrived, &messages);
            prop_assert_eq!(out.backlog_bytes(), 0);
            late.into_iter().for_each(|chunk| assert!(into.take(chunk).is_none()));
        }
    }

    #[test]
    fn no_more_is_under_way_than_the_window() {
        let mut out = Outgoing::new(1 << 18);
        out.push(&vec![0; 3 * WINDOW_BYTES]);
        let first = out.due(Nanos(1), Nanos(100));
        assert_eq!(first.iter().map(|chunk| chunk.bytes.len()).sum::<usize>(), WINDOW_BYTES);
        assert!(out.due(Nanos(2), Nanos(100)).is_empty());
        out.acknowledge(4, Nanos(3));
        assert_eq!(out.due(Nanos(4), Nanos(100)).len(), 4);
        assert_eq!(out.due(Nanos(200), Nanos(100))[0].number, 4, "again from the first that lacks");
    }
}
