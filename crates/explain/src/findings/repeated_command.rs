//! `repeated-command`: the same command goes to a card again, with the same response, though
//! nothing could have changed it; and a read that only asks how long the object is, before the
//! read of the whole.
//!
//! What could have changed an answer: a command that does not only read, SELECT of something else,
//! a reset, another connection, a call that failed, and control commands, which may verify a PIN.
//! Other programs may change a card too; whoever tries `cache-apdu` is told. SELECT itself is never
//! counted, since it changes what is selected, nor are commands that failed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;
use tapstone_text::thousands;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::token_calls::around;
use super::unit::ApduUnit;
use super::{Finding, FindingKind, Removed, words};
use crate::exchanges;
use crate::owners::Owner;
use crate::timeline::{End, ExchangeId, Family, Span, TextId};
use tapstone_events::Fix;

/// INS of ISO 7816-4.
const SELECT: u8 = 0xA4;
/// INS of ISO 7816-4: the rest of the response before.
const GET_RESPONSE: u8 = 0xC0;
/// SCARD_LEAVE_CARD (PC/SC, part 5): a transaction ends, and the card stays as it is.
const LEAVE_CARD: u64 = 0;
/// Commands that the evidence names, the most frequent first.
const NAMED: usize = 4;

/// What is known of a card, by its handle.
#[derive(Default)]
struct CardSeen<'a> {
    /// The name of its reader; none: it may be in any.
    reader: Option<TextId>,
    /// A digest of the last SELECT that went to the card.
    selected: u64,
    /// What was asked, and the answer.
    known: HashMap<u64, u64>,
    /// The unit that GET RESPONSE would go on with.
    open: Option<ApduUnit<'a>>,
    /// The command before this one, if it was seen.
    last: Option<ApduUnit<'a>>,
}

/// What was asked in vain through one function.
#[derive(Default)]
struct Repeats<'a> {
    count: u64,
    removed: Vec<Removed>,
    /// How often, by command, and its last exchange.
    commands: BTreeMap<&'a [u8], (u64, ExchangeId)>,
    callers: BTreeSet<&'a str>,
}

type Places<'a> = BTreeMap<FindingPlace<'a>, Repeats<'a>>;

/// A process, and the number by which it knows a card.
type Handle = (u32, u64);

/// All cards, and what was found.
struct CardsSeen<'s, 'a> {
    scene: &'s Scene<'a>,
    cards: HashMap<Handle, CardSeen<'a>>,
    /// How many commands were sent to all cards.
    sent: u64,
    again: Places<'a>,
    probes: Places<'a>,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let cards = HashMap::new();
    let again = Places::new();
    let probes = Places::new();
    let mut cards = CardsSeen { scene, cards, sent: 0, again, probes };
    for (thread, span) in calls(scene) {
        cards.see(thread, span);
    }
    let handles: Vec<_> = cards.cards.keys().copied().collect();
    handles.into_iter().for_each(|handle| cards.finish(handle));
    cards.reports()
}

/// Calls of PC/SC in the order in which they began, of all threads.
fn calls<'a>(scene: &Scene<'a>) -> Vec<(usize, &'a Span)> {
    let mut calls = Vec::new();
    for (number, thread) in scene.threads() {
        let of_pcsc = |span: &&Span| scene.timeline.call(span.call).family == Family::Pcsc;
        calls.extend(thread.spans.iter().filter(of_pcsc).map(|span| (number, span)));
    }
    calls.sort_by_key(|(_, span)| span.start);
    calls
}

/// Whether a call can leave the card different from what it was.
fn changes(function: &str, span: &Span) -> bool {
    match function {
        "SCardReconnect" | "SCardDisconnect" | "SCardControl" | "SCardSetAttrib" => true,
        "SCardEndTransaction" => span.detail != LEAVE_CARD || span.result != 0,
        "SCardTransmit" | "SCardBeginTransaction" | "SCardStatus" => span.result != 0,
        _ => false,
    }
}

impl<'a> CardsSeen<'_, 'a> {
    fn see(&mut self, thread: usize, span: &'a Span) {
        let process = self.scene.timeline.threads[thread].process;
        let handle = (process, span.handle);
        match self.scene.timeline.call(span.call).function {
            "SCardConnect" => {
                let card = CardSeen { reader: span.text(), ..CardSeen::default() };
                self.cards.insert((process, span.made()), card);
            }
            // It did not go to the card.
            "SCardTransmit" if span.end_kind == End::Replaced => {}
            function if changes(function, span) => {
                self.changed(handle);
                if function == "SCardDisconnect" {
                    self.cards.remove(&handle);
                }
            }
            "SCardTransmit" => self.transmit(thread, span, handle),
            _ => {}
        }
    }

    /// The card behind a handle is not what it was, nor is it for other handles of that reader.
    fn changed(&mut self, handle: Handle) {
        let reader = self.cards.get(&handle).and_then(|card| card.reader);
        let is_it = |card: &CardSeen<'_>| {
            reader.is_none() || card.reader.is_none() || card.reader == reader
        };
        let all = self.cards.iter().filter(|(_, card)| is_it(card));
        let handles: Vec<_> = all.map(|(handle, _)| *handle).collect();
        for handle in handles {
            self.finish(handle);
            let card = self.cards.entry(handle).or_default();
            *card = CardSeen { reader: card.reader, ..CardSeen::default() };
        }
    }

    /// A command and its response.
    fn transmit(&mut self, thread: usize, span: &'a Span, handle: Handle) {
        let Some(id) = span.exchange() else { return };
        let exchange = self.scene.timeline.exchange(id);
        self.sent += u64::from(self.scene.counts(thread, span.start));
        match exchange.command.get(1) {
            _ if exchange.digest == 0 => self.changed(handle),
            Some(&GET_RESPONSE) => {
                // Without a unit, it is the rest of a command that did more than read.
                let card = self.cards.entry(handle).or_default();
                if let Some(unit) = &mut card.open {
                    unit.add(thread, span, id, exchange);
                }
            }
            Some(&SELECT) => {
                self.finish(handle);
                let card = self.cards.entry(handle).or_default();
                // What is selected already may be selected once more.
                if card.selected != exchange.digest {
                    self.changed(handle);
                }
                let card = self.cards.entry(handle).or_default();
                card.selected = exchange.digest;
                card.last = None;
            }
            _ => {
                self.finish(handle);
                let unit = ApduUnit::new(thread, span, id, exchange);
                self.cards.entry(handle).or_default().open = Some(unit);
            }
        }
    }

    /// A unit is over: another command follows, or none.
    fn finish(&mut self, handle: Handle) {
        let Some(card) = self.cards.get_mut(&handle) else { return };
        let Some(unit) = card.open.take() else { return };
        if let Some(probe) = card.last.take().filter(|last| last.is_probe_of(&unit)) {
            note(self.scene, &mut self.probes, &probe);
        }
        let before = card.known.insert(unit.question, unit.answer);
        if before == Some(unit.answer) && unit.went_well {
            note(self.scene, &mut self.again, &unit);
        }
        card.last = Some(unit);
    }

    fn reports(self) -> Vec<Finding> {
        let Self { scene, sent, again, probes, .. } = self;
        let all = thousands(sent);
        let again = again.into_iter().map(|(place, repeats)| {
            let seen = format!(
                "{} of {all} commands went to the card again, with the same response, though \
                 nothing could have changed it since: {}",
                thousands(repeats.count),
                repeats.time()
            );
            (place, repeats, seen, Fix::CacheApdu)
        });
        let probes = probes.into_iter().map(|(place, repeats)| {
            let seen = format!(
                "{} of {all} commands only asked for the first bytes of what the next command \
                 read as a whole: {}",
                thousands(repeats.count),
                repeats.time()
            );
            (place, repeats, seen, Fix::WholeRead)
        });
        let found = again.chain(probes);
        found
            .filter_map(|(place, repeats, seen, fix)| report(scene, place, repeats, seen, fix))
            .collect()
    }
}

impl Repeats<'_> {
    fn time(&self) -> Nanos {
        self.removed.iter().map(|span| span.end - span.start).sum()
    }
}

fn note<'a>(scene: &Scene<'a>, into: &mut Places<'a>, unit: &ApduUnit<'a>) {
    if !scene.counts(unit.thread, unit.first.start) {
        return;
    }
    let call = scene.timeline.call(unit.first.call);
    let repeats = into.entry(scene.place(call)).or_default();
    repeats.count += 1;
    repeats.removed.extend(&unit.removed);
    repeats.callers.insert(&call.caller);
    let command = repeats.commands.entry(&unit.exchange.command).or_insert((0, unit.last));
    *command = (command.0 + 1, unit.last);
}

fn report(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    repeats: Repeats<'_>,
    seen: String,
    fix: Fix,
) -> Option<Finding> {
    let perhaps = repeats.removed.iter().flat_map(|it| around(scene, it)).collect();
    let mut finding = scene.report(Waste {
        kind: FindingKind::RepeatedCommand,
        place,
        layer: Owner::BelowPcsc,
        count: repeats.count,
        removed: repeats.removed,
        evidence: vec![seen, words::called(place.module, repeats.callers)],
        remedy: Remedy::Try(fix),
    })?;
    let mut commands: Vec<_> = repeats.commands.into_iter().collect();
    commands.sort_by_key(|(_, (count, _))| Reverse(*count));
    let names = exchanges::described(scene.timeline);
    let named = commands.iter().take(NAMED).map(|(command, (count, last))| {
        let name = &names[last.0.index()];
        let last = scene.timeline.exchange(*last);
        let object = name.object.as_deref().map_or_else(String::new, |of| format!(" of {of}"));
        format!(
            "{}{object} ({}), answered with {} and {:04X}: {}",
            name.name,
            words::hex(command),
            words::counted(u64::from(last.received.saturating_sub(2)), "byte"),
            last.status,
            words::times(*count),
        )
    });
    finding.evidence.extend(named);
    finding.perhaps = perhaps;
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{each, figures, only, trial, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    const CARD: u64 = 0x6A5B;
    const SELECT_PIV: &[u8] = &[0, 0xA4, 4, 0, 5, 0xA0, 0, 0, 3, 8, 0];
    const SELECT_CAC: &[u8] = &[0, 0xA4, 4, 0, 5, 0xA0, 0, 0, 0, 0x79, 0];
    const VERIFY: &[u8] = &[0, 0x20, 0, 0x80, 0];
    const READER: &str = "Virtual PCD 00 00";

    /// GET DATA of the discovery object with that Le.
    fn discovery(le: u8) -> [u8; 9] {
        [0, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E, le]
    }

    /// Its first so many bytes, and what is left.
    fn answer(bytes: usize, status: [u8; 2]) -> Vec<u8> {
        (0..20).take(bytes).chain(status).collect()
    }

    fn probes(told: &mut ThreadStory<'_>, card: u64) {
        told.transmit(card, &discovery(8), &answer(8, [0x61, 12]), millis(2));
    }

    fn reads(told: &mut ThreadStory<'_>, card: u64) {
        told.transmit(card, &discovery(20), &answer(20, [0x90, 0]), millis(3));
    }

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        let connected = |told: &mut ThreadStory<'_>| {
            told.connect(1, READER, CARD, millis(1));
            tell(told);
        };
        Story::new().thread(connected).timeline()
    }

    #[test]
    fn what_a_card_said_before_is_found() {
        let timeline = one(|told| {
            told.transmit(CARD, SELECT_PIV, &[0x90, 0], millis(2));
            for _ in 0..3 {
                reads(told, CARD);
                told.advance(millis(4)).call("SCardEndTransaction", CARD, micros(10));
            }
            told.transmit(CARD, SELECT_PIV, &[0x90, 0], millis(2));
            reads(told, CARD);
            told.advance(micros(970));
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (3.0, 3, millis(9), 300));
        assert_eq!(
            (finding.place.as_str(), finding.layer.as_str()),
            ("SCardTransmit", "below-pcsc")
        );
        assert_eq!(trial(&finding).as_deref(), Some("cache-apdu"));
        // With each repetition but the last the 4 ms until the next call.
        let perhaps: Nanos = finding.perhaps.iter().map(|it| it.end - it.start).sum();
        assert_eq!(perhaps, millis(8));
        assert_eq!(
            finding.evidence,
            [
                "3 of 6 commands went to the card again, with the same response, though nothing \
                 could have changed it since: 9.00 ms",
                "called by the program",
                "GET DATA of Discovery Object (00 CB 3F FF 03 5C 01 7E 14), answered with 20 bytes and \
                 9000: 3 times",
            ]
        );
    }

    #[test]
    fn a_length_probe_is_found() {
        let timeline = one(|told| {
            probes(told, CARD);
            reads(told, CARD);
            told.advance(millis(4));
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (1.0, 1, millis(2), 200));
        assert_eq!(trial(&finding).as_deref(), Some("whole-read"));
        let probe = Removed { thread: 0, start: millis(1), end: millis(3) };
        assert_eq!(finding.removed, [probe]);
        let says = "GET DATA of Discovery Object (00 CB 3F FF 03 5C 01 7E 08), answered with 8 bytes \
                    and 610C: once";
        assert_eq!(finding.evidence[2], says);
    }

    #[test]
    fn probe_and_read_again_are_two_findings_on_the_same_time() {
        let timeline = one(|told| {
            for _ in 0..2 {
                probes(told, CARD);
                reads(told, CARD);
            }
        });
        let findings = whole(&timeline, find);
        let all: Vec<_> = findings.iter().map(|finding| (finding.count, finding.time)).collect();
        assert_eq!(all, [(2, millis(5)), (2, millis(4))]);
        let union = crate::findings::prediction::union(&findings);
        let union: Nanos = union.surely.iter().map(|stretch| stretch.end - stretch.start).sum();
        assert_eq!(union, millis(7));
    }

    #[test]
    fn a_command_and_its_rest_are_one() {
        let long = |told: &mut ThreadStory<'_>, rest: u8| {
            told.transmit(CARD, &discovery(0), &answer(10, [0x61, 10]), millis(2));
            told.transmit(CARD, &[0, 0xC0, 0, 0, 10], &[rest, 0x90, 0], millis(1));
        };
        let same = one(|told| [1, 1].into_iter().for_each(|rest| long(told, rest)));
        assert_eq!(figures(&only(whole(&same, find))), (1.0, 1, millis(3), 429));
        let other = one(|told| [1, 2].into_iter().for_each(|rest| long(told, rest)));
        assert_eq!(whole(&other, find), []);
    }

    #[test]
    fn operations_have_what_was_asked_before_them() {
        let timeline = one(|told| {
            reads(told, CARD);
            told.advance(millis(80));
            for _ in 0..4 {
                told.enter("C_Sign");
                reads(told, CARD);
                told.advance(millis(3)).exit();
            }
        });
        let finding = only(each("C_Sign", &timeline, find));
        assert_eq!(figures(&finding), (1.0, 4, millis(12), 500));
        assert_eq!(finding.evidence[1], "called by module.so");
    }

    /// Whether a read before and after it is a repetition.
    fn is_repeated(between: impl FnOnce(&mut ThreadStory<'_>)) -> bool {
        let timeline = one(|told| {
            reads(told, CARD);
            between(told);
            reads(told, CARD);
        });
        !whole(&timeline, find).is_empty()
    }

    #[test]
    fn what_could_have_changed_an_answer() {
        assert!(is_repeated(|_| {}));
        assert!(is_repeated(|told| {
            told.call("SCardStatus", CARD, micros(9));
        }));
        assert!(!is_repeated(|told| {
            told.transmit(CARD, VERIFY, &[0x90, 0], millis(1));
        }));
        assert!(!is_repeated(|told| {
            told.transmit(CARD, SELECT_CAC, &[0x6A, 0x82], millis(1));
            told.transmit(CARD, SELECT_PIV, &[0x90, 0], millis(1));
        }));
        let calls = ["SCardReconnect", "SCardControl", "SCardDisconnect"];
        for function in calls {
            assert!(!is_repeated(|told| {
                told.call(function, CARD, micros(9));
            }));
        }
        let resets = 1;
        assert!(!is_repeated(|told| {
            told.enter("SCardEndTransaction").given(CARD, resets).exit();
        }));
        assert!(!is_repeated(|told| {
            const RESET: u64 = 0x8010_0068;
            told.enter("SCardBeginTransaction").given(CARD, 0).exit_with(RESET);
        }));
    }

    #[test]
    fn another_handle_of_the_reader_changes_the_card_too() {
        let writes_to = |reader: &str| {
            let reader = reader.to_owned();
            is_repeated(move |told| {
                told.connect(1, &reader, 99, micros(9));
                told.transmit(99, VERIFY, &[0x90, 0], millis(1));
            })
        };
        assert!(!writes_to(READER));
        assert!(writes_to("another reader"));
    }

    #[test]
    fn these_are_none() {
        let another_answer = one(|told| {
            reads(told, CARD);
            told.transmit(CARD, &discovery(20), &answer(19, [0x90, 0]), millis(3));
        });
        let another_status = one(|told| {
            reads(told, CARD);
            told.transmit(CARD, &discovery(20), &answer(20, [0x62, 0x82]), millis(3));
        });
        let fails_again = one(|told| {
            for _ in 0..3 {
                told.transmit(CARD, &discovery(20), &[0x6A, 0x82], millis(3));
            }
        });
        let another_card = one(|told| {
            told.connect(1, "another reader", 99, millis(1));
            reads(told, CARD);
            reads(told, 99);
        });
        let selects = one(|told| {
            for _ in 0..3 {
                told.transmit(CARD, SELECT_PIV, &[0x90, 0], millis(2));
            }
        });
        let from_memory = one(|told| {
            for _ in 0..3 {
                reads(told, CARD);
                told.last_span().end_kind = End::Replaced;
            }
        });
        let a_smaller_read = one(|told| {
            reads(told, CARD);
            probes(told, CARD);
        });
        let not_the_next = one(|told| {
            probes(told, CARD);
            told.transmit(CARD, SELECT_PIV, &[0x90, 0], millis(2));
            reads(told, CARD);
        });
        let failed = one(|told| {
            told.transmit(CARD, &discovery(8), &[0x6C, 20], millis(2));
            reads(told, CARD);
        });
        let large = one(|told| {
            told.transmit(CARD, &discovery(17), &answer(17, [0x61, 3]), millis(2));
            reads(told, CARD);
        });
        for timeline in [
            another_answer,
            another_status,
            fails_again,
            another_card,
            selects,
            from_memory,
            a_smaller_read,
            not_the_next,
            failed,
            large,
        ] {
            assert_eq!(whole(&timeline, find), []);
        }
    }
}
