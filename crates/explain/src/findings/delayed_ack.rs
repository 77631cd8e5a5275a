//! `delayed-ack`: a small write waits until the one before it is acknowledged.
//!
//! A sender holds a second small segment back while the first is not acknowledged (Nagle, RFC
//! 896), and a receiver that has nothing to send acknowledges late (RFC 1122, 4.2.3.2). So
//! write-write-read on a stream socket stalls for as long as the receiver's timer runs.

use std::collections::{BTreeMap, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Kind, Leaf, On};
use tapstone_events::Fix;

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
    let mut places: BTreeMap<FindingPlace<'_>, Waits<'_>> = BTreeMap::new();
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

fn report(scene: &Scene<'_>, place: FindingPlace<'_>, waits: Waits<'_>) -> Option<Finding> {
    let count = waits.stalls.len() as u64;
    // Each such wait stalls, but for a few at a connection's beginning.
    if count < FEWEST || count < waits.quick {
        return None;
    }
    let seen = format!(
        "{} stalled {} for {}, in the wait after two small writes in a row to one descriptor; {} \
         did not",
        words::function_of(place.function, place.module),
        words::times(count),
        words::between(waits.shortest, waits.longest),
        words::counted(waits.quick, "such wait"),
    );
    let why = format!(
        "the second write waits until the first is acknowledged, which takes {DELAY} when the \
         other side has nothing to send; {}",
        words::called(place.module, [waits.caller]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{figures, only, trial, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    fn sends(told: &mut ThreadStory<'_>, bytes: u64) {
        told.leaf("send", micros(10)).with(|leaf| {
            leaf.a = 7;
            leaf.b = bytes;
            leaf.result = bytes as i64;
        });
    }

    fn waits(told: &mut ThreadStory<'_>, time: Nanos) {
        told.leaf("recv", time).with(|leaf| (leaf.a, leaf.b) = (7, 2));
    }

    /// A length and a command, in so many writes of so many bytes, and the wait for the response.
    fn exchange(told: &mut ThreadStory<'_>, writes: usize, bytes: u64, wait: Nanos) {
        told.enter("IFDHTransmitToICC");
        (0..writes).for_each(|_| sends(told, bytes));
        waits(told, wait);
        told.leaf("recv", micros(5)).with(|leaf| leaf.a = 7).exit();
    }

    #[test]
    fn a_stall_after_two_writes_is_found() {
        let timeline = one(|told| {
            for _ in 0..4 {
                exchange(told, 2, 20, millis(43));
                told.advance(micros(6_975));
            }
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (4.0, 4, millis(160), 800));
        assert_eq!(
            (finding.place.as_str(), finding.layer.as_str()),
            ("IFDHTransmitToICC", "driver-and-card")
        );
        assert_eq!(trial(&finding).as_deref(), Some("tcp-nodelay"));
        let says = "IFDHTransmitToICC of driver.so stalled 4 times for 43.0 ms, in the wait after \
                    two small writes in a row to one descriptor; 0 such waits did not";
        assert_eq!(finding.evidence[0], says);
        let removed = Removed { thread: 0, start: micros(20), end: micros(40_020) };
        assert_eq!(finding.removed[0], removed);
    }

    #[test]
    fn writes_that_were_counted_and_a_wait_in_poll_are_the_same() {
        let timeline = one(|told| {
            for _ in 0..4 {
                told.enter("C_Sign").counted("write", 2, micros(3), micros(8));
                told.with(|leaf| (leaf.a, leaf.b, leaf.result) = (7, 20, 30)).advance(micros(8));
                told.leaf("poll", millis(38)).with(|leaf| {
                    leaf.a = 7;
                    leaf.b = u64::MAX;
                    leaf.result = 1;
                });
                waits(told, micros(5));
                told.exit();
            }
        });
        assert_eq!(only(whole(&timeline, find)).time, millis(4 * 38));
    }

    #[test]
    fn these_are_none() {
        let repeated = |writes: usize, bytes: u64, wait: Nanos| {
            one(|told| (0..9).for_each(|_| exchange(told, writes, bytes, wait)))
        };
        let one_write = repeated(1, 20, millis(43));
        let too_long = repeated(2, 20, millis(60));
        let too_short = repeated(2, 20, millis(30));
        let large = repeated(2, 1_448, millis(43));
        let twice = one(|told| (0..2).for_each(|_| exchange(told, 2, 20, millis(43))));
        let mostly_quick = one(|told| {
            for wait in [2, 2, 2, 43, 2, 43, 43] {
                exchange(told, 2, 20, millis(wait));
            }
        });
        let a_read_between = one(|told| {
            for _ in 0..9 {
                told.enter("C_Sign");
                sends(told, 20);
                waits(told, millis(1));
                exchange(told, 1, 20, millis(43));
                told.exit();
            }
        });
        let counted_around_a_read = one(|told| {
            for _ in 0..9 {
                told.enter("C_Sign").counted("send", 2, micros(5), millis(2));
                told.with(|leaf| (leaf.a, leaf.b) = (7, 20)).advance(micros(5));
                waits(told, millis(1));
                told.advance(millis(1));
                waits(told, millis(43));
                told.exit();
            }
        });
        let of_the_service = one(|told| {
            for _ in 0..9 {
                told.enter("SCardTransmit");
                for function in ["send", "send", "recv"] {
                    told.leaf(function, if function == "recv" { millis(43) } else { micros(5) });
                    told.with(|leaf| (leaf.a, leaf.on) = (7, On::Service));
                }
                told.exit();
            }
        });
        for timeline in [
            one_write,
            too_long,
            too_short,
            large,
            twice,
            mostly_quick,
            a_read_between,
            counted_around_a_read,
            of_the_service,
        ] {
            assert_eq!(whole(&timeline, find), []);
        }
    }
}
