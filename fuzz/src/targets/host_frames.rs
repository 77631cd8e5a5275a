//! What other machines send: packets of a run, discovery and claims.

use tapstone_hosts::foreign::{ForeignPackets, message_of_run, outside_of_runs};

use crate::FuzzTarget;
use crate::structure::{Structure, messages};

/// The first byte says what the messages are. What is read is written again as it was, chunks are
/// taken in order, and a peer's clock may be off by any time.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "host-frames",
    reads: "messages of hosts",
    structure: Structure::Messages,
    longest: 4096,
    check,
};

/// How far an agent's clock may be off: nothing, and as much as numbers go.
const OFFSETS: [i64; 3] = [0, i64::MAX, -i64::MAX];

fn check(input: &[u8]) {
    let mut messages = messages(input);
    let kind = messages.next().and_then(<[u8]>::first).copied().unwrap_or_default();
    let offset = OFFSETS[usize::from(kind >> 2) % OFFSETS.len()];
    let mut packets = ForeignPackets::default();
    for message in messages {
        match kind % 3 {
            0 => packets.hear(message, offset),
            1 => message_of_run(message, offset),
            _ => outside_of_runs(message),
        }
    }
}
