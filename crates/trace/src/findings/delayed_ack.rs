//! `delayed-ack`: a small write waits until the one before it is acknowledged.
//!
//! A sender holds a second small segment back while the first is not acknowledged (Nagle, RFC
//! 896), and a receiver that has nothing to send acknowledges late (RFC 1122, 4.2.3.2). So
//! write-write-read on a stream socket stalls for as long as the receiver's timer runs.

use std::collections::{BTreeMap, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{Place, Remedy, Scene, Waste};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::probe::Fix;
use crate::timeline::{Kind, Leaf, On};

/// How late Linux acknowledges at least (TCP_DELACK_MIN): what a stall loses.
const DELAY: Nanos = Nanos::from_millis(40);
/// The timer counts jiffies of up to 4 ms, and begins before the second write.
const SHORTEST: Nanos = Nanos::from_millis(35);
/// With up to 10 ms in which the other side works. In longer waits it cannot be told apart.
const LONGEST: Nanos = Nanos::from_millis(50);
/// Once or twice, the other side may just have taken so long.
const FEWEST: u64 = 3;
/// What fits into a segment (Ethernet, with time stamps) is small: larger ones go at once.
const SEGMENT_BYTES: u64 = 1_448;

/// What was written to a descriptor since it was last read from.
#[derive(Default)]
struct Sent {
    writes: u64,
    until: Nanos,
    /// How many went before which read is not known: they were counted together.
    unclear: bool,
}

/// Waits after two small writes.
struct Waits<'a> {
    layer: Owner,
    caller: &'a str,
    stalls: Vec<Removed>,
    shortest: Nanos,
    longest: Nanos,
    /// Those that were shorter.
    quick: u64,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut places: BTreeMap<Place<'_>, Waits<'_>> = BTreeMap::new();
    for (number, thread) in scene.threads() {
        let mut sent: HashMap<(u32, u64), Sent> = HashMap::new();
        for leaf in &thread.leaves {
            let (Some(kind), Some((around, span))) = (scene.kind(leaf), scene.around(thread, leaf))
            else {
                continue;
            };
            if leaf.on != On::Something || !scene.counts(number, leaf.start) {
                continue;
            }
            let descriptor = (around, leaf.a);
            if kind == Kind::Write {
                sent.entry(descriptor).or_default().write(leaf);
                continue;
            }
            let reads = kind == Kind::Read;
            if !reads && (kind != Kind::Poll || leaf.b == 0) {
                continue;
            }
            let Some(before) = sent.get_mut(&descriptor) else { continue };
            let wait = before.wait(leaf, reads);
            let call = scene.timeline.call(span.call);
            if let Some(wait) = wait {
                let waits = places.entry(scene.place(call)).or_insert_with(|| Waits {
                    layer: scene.layer(Some(span)),
                    caller: &call.caller,
                    stalls: Vec::new(),
                    shortest: Nanos::NEVER,
                    longest: Nanos::ZERO,
                    quick: 0,
                });
                waits.add(number, leaf.start, wait);
            }
        }
    }
    places.into_iter().filter_map(|(place, waits)| report(scene, place, waits)).collect()
}

impl Sent {
    fn write(&mut self, leaf: &Leaf) {
        let is_small = leaf.b < SEGMENT_BYTES && leaf.result < SEGMENT_BYTES as i64;
        if is_small {
            self.writes += u64::from(leaf.count);
            self.until = leaf.end;
        } else {
            *self = Self { until: leaf.end, ..Self::default() };
        }
    }

    /// How long a wait took, if it was the first after two writes.
    fn wait(&mut self, leaf: &Leaf, reads: bool) -> Option<Nanos> {
        if leaf.start < self.until {
            self.unclear = true;
            return None;
        }
        let time = leaf.end - leaf.start;
        let follows = self.writes >= 2 && !self.unclear;
        // What is ready is read next; that wait is over.
        if reads || time >= SHORTEST {
            *self = Self::default();
            return follows.then_some(time);
        }
        None
    }
}

impl Waits<'_> {
    fn add(&mut self, thread: usize, start: Nanos, time: Nanos) {
        if time < SHORTEST {
            self.quick += 1;
        } else if time <= LONGEST {
            self.stalls.push(Removed { thread, start, end: start + time.min(DELAY) });
            self.shortest = self.shortest.min(time);
            self.longest = self.longest.max(time);
        }
    }
}

fn report(scene: &Scene<'_>, place: Place<'_>, waits: Waits<'_>) -> Option<Finding> {
    let count = waits.stalls.len() as u64;
    // Each such wait stalls, but for a few at a connection's beginning.
    if count < FEWEST || count < waits.quick {
        return None;
    }
    let seen = format!(
        "{} stalled {} for {}, in the wait after two small writes in a row to one descriptor; {} \
         did not",
        words::of(place.function, place.module),
        words::times(count),
        words::between(waits.shortest, waits.longest),
        words::counted(waits.quick, "such wait"),
    );
    let why = format!(
        "the second write waits until the first is acknowledged, which takes {DELAY} when the \
         other side has nothing to send; called by {}",
        words::caller(waits.caller),
    );
    scene.report(Waste {
        kind: FindingKind::DelayedAck,
        place,
        layer: waits.layer,
        count,
        removed: waits.stalls,
        evidence: vec![seen, why],
        remedy: Remedy::Try(Fix::TcpNodelay),
    })
}
