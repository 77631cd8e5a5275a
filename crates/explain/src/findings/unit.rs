//! A command that reads from a card, and the GET RESPONSE commands that fetch the rest of its
//! response: one unit, which is repeated or kept as a whole.

use super::Removed;
use crate::timeline::{Exchange, ExchangeId, Span};

/// READ BINARY, READ RECORD(S), GET DATA (ISO 7816-4, 11.3 to 11.5).
const READS: [u8; 6] = [0xB0, 0xB1, 0xB2, 0xB3, 0xCA, 0xCB];
/// A Le of so many bytes is enough for a tag and a length, and for no object.
const LARGEST_PROBE: u32 = 16;

/// A command and its response, in one exchange or in several.
#[derive(Debug)]
pub(super) struct ApduUnit<'a> {
    pub(super) thread: usize,
    /// The call that began it.
    pub(super) first: &'a Span,
    pub(super) exchange: &'a Exchange,
    /// The exchange that ended it.
    pub(super) last: ExchangeId,
    /// A digest of what was sent.
    pub(super) question: u64,
    /// A digest of what came back.
    pub(super) answer: u64,
    /// By its status words: 9000, or 61xx while more is left.
    pub(super) went_well: bool,
    /// The calls that it consists of, each as a stretch that can go.
    pub(super) removed: Vec<Removed>,
}

impl<'a> ApduUnit<'a> {
    pub(super) fn new(
        thread: usize,
        span: &'a Span,
        id: ExchangeId,
        exchange: &'a Exchange,
    ) -> Self {
        let mut unit = Self {
            thread,
            first: span,
            exchange,
            last: id,
            question: 0,
            answer: 0,
            went_well: true,
            removed: Vec::with_capacity(1),
        };
        unit.add(thread, span, id, exchange);
        unit
    }

    /// Adds another exchange with the card to the unit.
    pub(super) fn add(&mut self, thread: usize, span: &Span, id: ExchangeId, exchange: &Exchange) {
        let Exchange { digest, answer, received, status, .. } = exchange;
        self.question = mixed(self.question, *digest);
        self.answer = mixed(self.answer, u64::from(*answer));
        self.answer = mixed(self.answer, u64::from(*received) << 16 | u64::from(*status));
        self.went_well &= *status == 0x9000 || status >> 8 == 0x61;
        self.last = id;
        self.removed.push(Removed { thread, start: span.start, end: span.end });
    }

    /// Whether it only asked for the beginning of what the other one read.
    pub(super) fn is_probe_of(&self, whole: &Self) -> bool {
        let (Some((few, before)), Some((many, other))) =
            (expected(self.exchange), expected(whole.exchange))
        else {
            return false;
        };
        few <= LARGEST_PROBE
            && few < many
            && before == other
            && self.went_well
            && self.removed.len() == 1
    }
}

/// How many bytes a reading command asks for, and what is in front of that: a short command
/// without data (ISO 7816-4, 5.1, case 2) or with them (case 4). `None` where the probe did not
/// keep all of it.
fn expected(exchange: &Exchange) -> Option<(u32, &[u8])> {
    let (le, before) = exchange.command.split_last()?;
    let is_short = match *before {
        [_, _, _, _] => true,
        [_, _, _, _, length, ..] => length > 0 && before.len() == 5 + usize::from(length),
        _ => false,
    };
    let is_whole = exchange.command.len() == exchange.sent as usize;
    let reads = READS.contains(before.get(1)?);
    (is_short && is_whole && reads).then(|| (if *le == 0 { 256 } else { u32::from(*le) }, before))
}

/// A step of FNV-1a, by words.
fn mixed(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: &[u8], sent: u32) -> Exchange {
        let command = command.into();
        Exchange { command, digest: 1, sent, received: 2, status: 0x9000, answer: 0 }
    }

    #[test]
    fn the_expected_length_stands_last() {
        let case_2 = read(&[0, 0xB0, 0, 0, 8], 5);
        assert_eq!(expected(&case_2), Some((8, &[0, 0xB0, 0, 0][..])));
        let case_4 = read(&[0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E, 0], 9);
        assert_eq!(expected(&case_4).map(|(le, _)| le), Some(256));
        for (command, sent) in [
            // A header; data without Le; an extended Le; cut off; no read.
            (&[0, 0xB0, 0, 0][..], 4),
            (&[0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E], 8),
            (&[0, 0xB0, 0, 0, 0, 0, 8], 7),
            (&[0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E, 8], 10),
            (&[0, 0x84, 0, 0, 8], 5),
            (&[], 0),
        ] {
            assert_eq!(expected(&read(command, sent)), None, "{command:?}");
        }
    }
}
