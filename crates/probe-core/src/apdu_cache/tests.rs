//! A card whose answers are kept: what the program gets, and when the card is asked.

use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::wire::{FIX_CACHE_APDU, FIX_WHOLE_READ};

const ROOM: usize = 258;
const READ: [u8; 5] = [0x00, 0xB0, 0, 0, 0];
const GET: [u8; 5] = [0x00, 0xC0, 0, 0, 0x10];

/// A fix that is on, and its counters.
fn fix(kind: u32) -> Fix {
    Fix {
        kind,
        reserved: 0,
        function: [0; crate::wire::NAME_BYTES],
        low_ns: 0,
        high_ns: 0,
        applied: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    }
}

/// A program, its card, and the fixes between them.
struct Bench {
    cache: Box<CardCache>,
    cache_fix: Fix,
    whole_fix: Fix,
    kinds: Vec<u32>,
}

impl Bench {
    fn new(kinds: &[u32]) -> Self {
        Self {
            cache: Box::default(),
            cache_fix: fix(FIX_CACHE_APDU),
            whole_fix: fix(FIX_WHOLE_READ),
            kinds: kinds.to_vec(),
        }
    }

    /// What the program gets; `card` says what the card would answer to what it is sent.
    fn exchange_in(
        &mut self,
        room: usize,
        command: &[u8],
        card: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Vec<u8> {
        let on = |kind, fix| self.kinds.contains(&kind).then_some(fix);
        let fixes = ApduFixes {
            cache: on(FIX_CACHE_APDU, &self.cache_fix),
            whole: on(FIX_WHOLE_READ, &self.whole_fix),
        };
        let sent = match self.cache.before_exchange(fixes, command, room) {
            Instead::Answer(response) => return response.to_vec(),
            Instead::Widen(widened) => widened.to_vec(),
            Instead::Exchange => command.to_vec(),
        };
        let mut response = card(&sent);
        if fixes.whole.is_some() && self.cache.awaits_probe() {
            let length = self.cache.shorten_probe(&mut response);
            response.truncate(length);
        } else if let Some(fix) = fixes.cache {
            self.cache.after_exchange(fix, &sent, &response);
        }
        response
    }

    fn exchange(&mut self, command: &[u8], response: &[u8]) -> Vec<u8> {
        self.exchange_in(ROOM, command, |_| response.to_vec())
    }

    /// What the program gets where the card must not be asked.
    fn answered_from_memory(&mut self, command: &[u8]) -> Vec<u8> {
        self.exchange_in(ROOM, command, |sent| panic!("the card was asked: {sent:02X?}"))
    }

    fn applied(&self) -> [u64; 2] {
        [&self.cache_fix, &self.whole_fix].map(|fix| fix.applied.load(Ordering::Relaxed))
    }
}

#[test]
fn calls_that_change_the_card_are_known() {
    for function in [
        known::SCARD_RECONNECT,
        known::SCARD_DISCONNECT,
        known::SCARD_CONTROL,
        known::SCARD_SET_ATTRIB,
    ] {
        assert_eq!(card_call(function, 0), CardCall::Forget);
    }
    assert_eq!(card_call(known::SCARD_TRANSMIT, 0), CardCall::Exchange);
    assert_eq!(card_call(known::SCARD_END_TRANSACTION, SCARD_LEAVE_CARD), CardCall::Other);
    for disposition in 1..4 {
        assert_eq!(card_call(known::SCARD_END_TRANSACTION, disposition), CardCall::Forget);
    }
    assert_eq!(card_call(known::SCARD_CONNECT, 1), CardCall::Other);
}

#[test]
fn a_read_is_answered_from_memory_the_second_time() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    assert_eq!(bench.exchange(&READ, &[1, 2, 0x90, 0]), [1, 2, 0x90, 0]);
    assert_eq!(bench.applied(), [0, 0]);
    assert_eq!(bench.answered_from_memory(&READ), [1, 2, 0x90, 0]);
    assert_eq!(bench.answered_from_memory(&READ), [1, 2, 0x90, 0]);
    assert_eq!(bench.applied(), [2, 0]);
}

#[test]
fn another_read_goes_to_the_card() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 0x90, 0]);
    let other = [0x00, 0xB0, 0, 1, 0];
    assert_eq!(bench.exchange(&other, &[2, 0x90, 0]), [2, 0x90, 0]);
    assert_eq!(bench.answered_from_memory(&READ), [1, 0x90, 0]);
    assert_eq!(bench.answered_from_memory(&other), [2, 0x90, 0]);
}

#[test]
fn nothing_is_kept_without_the_fix() {
    let mut bench = Bench::new(&[]);
    bench.exchange(&READ, &[1, 0x90, 0]);
    bench.kinds.push(FIX_CACHE_APDU);
    assert_eq!(bench.exchange(&READ, &[2, 0x90, 0]), [2, 0x90, 0]);
}

#[test]
fn what_does_more_than_read_forgets_all() {
    for command in [[0x00, 0x20, 0, 0x80, 0], [0x00, 0xDB, 0, 0, 0], [0x0C, 0xB0, 0, 0, 0]] {
        let mut bench = Bench::new(&[FIX_CACHE_APDU]);
        bench.exchange(&READ, &[1, 0x90, 0]);
        bench.exchange(&command, &[0x90, 0]);
        assert_eq!(bench.exchange(&READ, &[2, 0x90, 0]), [2, 0x90, 0], "{command:02X?}");
        // Nor is its own answer kept.
        assert_eq!(bench.exchange(&command, &[3, 0x90, 0]), [3, 0x90, 0]);
    }
}

#[test]
fn a_select_always_goes_to_the_card_and_forgets() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    let select = [0x00, 0xA4, 4, 0, 0];
    bench.exchange(&READ, &[1, 0x90, 0]);
    bench.exchange(&select, &[5, 0x90, 0]);
    assert_eq!(bench.exchange(&select, &[6, 0x90, 0]), [6, 0x90, 0]);
    assert_eq!(bench.exchange(&READ, &[2, 0x90, 0]), [2, 0x90, 0]);
}

#[test]
fn an_answer_that_is_no_success_is_not_kept() {
    for status in [[0x6A, 0x82], [0x62, 0x82], [0x90, 0x01], [0x63, 0xC2]] {
        let mut bench = Bench::new(&[FIX_CACHE_APDU]);
        bench.exchange(&READ, &status);
        assert_eq!(bench.cache.count, 0, "{status:02X?}");
        assert_eq!(bench.exchange(&READ, &[2, 0x90, 0]), [2, 0x90, 0], "{status:02X?}");
    }
}

#[test]
fn a_unit_is_answered_part_by_part() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 0x61, 0x10]);
    bench.exchange(&GET, &[2, 0x61, 0x10]);
    bench.exchange(&GET, &[3, 0x90, 0]);
    for _ in 0..2 {
        assert_eq!(bench.answered_from_memory(&READ), [1, 0x61, 0x10]);
        assert_eq!(bench.answered_from_memory(&GET), [2, 0x61, 0x10]);
        assert_eq!(bench.answered_from_memory(&GET), [3, 0x90, 0]);
    }
    // Behind the end of the unit nothing is known.
    assert_eq!(bench.exchange(&GET, &[4, 0x90, 0]), [4, 0x90, 0]);
}

#[test]
fn half_a_unit_is_not_answered() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 0x61, 0x10]);
    bench.exchange(&GET, &[2, 0x61, 0x10]);
    // The program went elsewhere before the end.
    bench.exchange(&[0x00, 0xB0, 0, 9, 0], &[7, 0x90, 0]);
    assert_eq!(bench.exchange(&READ, &[9, 0x90, 0]), [9, 0x90, 0]);
}

#[test]
fn get_response_by_itself_is_not_kept() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&GET, &[1, 0x90, 0]);
    assert_eq!(bench.exchange(&GET, &[2, 0x90, 0]), [2, 0x90, 0]);
    assert_eq!(bench.cache.count, 0);
    // Behind an answer from memory the card has nothing to go on with either.
    bench.exchange(&READ, &[3, 0x90, 0]);
    bench.answered_from_memory(&READ);
    bench.exchange(&GET, &[4, 0x90, 0]);
    assert_eq!(bench.exchange(&GET, &[5, 0x90, 0]), [5, 0x90, 0]);
    assert_eq!(bench.answered_from_memory(&READ), [3, 0x90, 0]);
    assert_eq!(bench.exchange(&GET, &[6, 0x90, 0]), [6, 0x90, 0]);
    assert_eq!(bench.cache.count, 1);
}

#[test]
fn what_was_forgotten_continues_nothing() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 0x61, 0x10]);
    bench.exchange(&GET, &[2, 0x90, 0]);
    bench.cache.forget();
    bench.exchange(&READ, &[3, 0x90, 0]);
    assert_eq!(bench.answered_from_memory(&READ), [3, 0x90, 0]);
    assert_eq!(bench.exchange(&GET, &[4, 0x90, 0]), [4, 0x90, 0]);
}

#[test]
fn a_command_that_does_more_than_read_is_not_kept_whatever_was_before() {
    let mut cache = CardCache::new();
    let fix = fix(FIX_CACHE_APDU);
    cache.after_exchange(&fix, &[0x00, 0xDB, 0, 0, 0], &[0x90, 0]);
    assert_eq!(cache.count, 0);
    cache.after_exchange(&fix, &READ, &[0x90, 0]);
    assert_eq!(cache.count, 1);
}

#[test]
fn a_get_response_behind_an_unrelated_command_is_another_unit() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 0x61, 0x10]);
    bench.exchange(&GET, &[2, 0x90, 0]);
    // After a miss, GET RESPONSE is the card's again.
    bench.answered_from_memory(&READ);
    bench.exchange(&[0x00, 0xB0, 0, 9, 0], &[0x6A, 0x82]);
    assert_eq!(bench.exchange(&GET, &[8, 0x90, 0]), [8, 0x90, 0]);
}

#[test]
fn an_answer_that_does_not_fit_is_left_to_the_card() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[1, 2, 3, 0x90, 0]);
    assert_eq!(bench.exchange_in(4, &READ, |_| [0x67, 0].to_vec()), [0x67, 0]);
    assert_eq!(bench.exchange_in(5, &READ, |_| panic!()), [1, 2, 3, 0x90, 0]);
}

#[test]
fn what_is_too_long_is_refused_and_counted() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    let mut long = [0; COMMAND + 1];
    long[..2].copy_from_slice(&[0x00, 0xCB]);
    bench.exchange(&long[..COMMAND], &[1, 0x90, 0]);
    assert_eq!(bench.cache_fix.refused.load(Ordering::Relaxed), 0);
    assert_eq!(bench.answered_from_memory(&long[..COMMAND]), [1, 0x90, 0]);
    bench.exchange(&long, &[1, 0x90, 0]);
    assert_eq!(bench.cache_fix.refused.load(Ordering::Relaxed), 1);
    let mut response = [7; RESPONSE + 1];
    response[RESPONSE - 1..].copy_from_slice(&[0x90, 0]);
    bench.exchange(&READ, &response);
    assert_eq!(bench.cache_fix.refused.load(Ordering::Relaxed), 2);
    response[RESPONSE - 2..RESPONSE].copy_from_slice(&[0x90, 0]);
    bench.exchange(&READ, &response[..RESPONSE]);
    assert_eq!(bench.cache_fix.refused.load(Ordering::Relaxed), 2);
}

#[test]
fn as_many_exchanges_are_kept_as_there_is_room_for() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    let read = |at: usize| [0x00, 0xB0, 0, at as u8, 0];
    for at in 0..=KEPT {
        bench.exchange(&read(at), &[at as u8, 0x90, 0]);
    }
    assert_eq!(bench.cache_fix.refused.load(Ordering::Relaxed), 1);
    assert_eq!(bench.answered_from_memory(&read(KEPT - 1)), [KEPT as u8 - 1, 0x90, 0]);
    assert_eq!(bench.exchange(&read(KEPT), &[1, 0x90, 0]), [1, 0x90, 0]);
}

/// A card that holds an object, and answers as many of its bytes as Le says (0: 256).
fn object_card(object: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> + '_ {
    |command| {
        let le = match command[command.len() - 1] {
            0 => 256,
            le => usize::from(le),
        };
        let data = &object[..object.len().min(le)];
        let status = match object.len() - data.len() {
            0 => [0x90, 0x00],
            left @ 1..256 => [0x61, left as u8],
            _ => [0x61, 0x00],
        };
        [data, &status].concat()
    }
}

#[test]
fn a_probe_reads_all_and_the_read_behind_it_asks_no_card() {
    let object: Vec<u8> = (0..100).collect();
    let card = object_card(&object);
    let probe = [0x00, 0xCB, 0x3F, 0xFF, 3, 0x5C, 1, 0x7E, 8];
    let mut whole = probe;
    whole[8] = 0;
    let mut bench = Bench::new(&[FIX_WHOLE_READ]);
    let mut seen = Vec::new();
    let answer = bench.exchange_in(ROOM, &probe, |sent| {
        seen = sent.to_vec();
        card(sent)
    });
    assert_eq!(seen, whole, "the card is asked for all there is");
    assert_eq!(answer, card(&probe), "the program gets what it would have got");
    assert_eq!(bench.answered_from_memory(&whole), card(&whole));
    assert_eq!(bench.applied(), [0, 2]);
    // Once: the next read is the card's.
    assert_eq!(bench.exchange(&whole, &[1, 0x90, 0]), [1, 0x90, 0]);
}

#[test]
fn only_a_small_le_of_a_command_that_reads_data_is_a_probe() {
    let is_widened = |command: &[u8], room| {
        let mut bench = Bench::new(&[FIX_WHOLE_READ]);
        let mut seen = Vec::new();
        bench.exchange_in(room, command, |sent| {
            seen = sent.to_vec();
            [0x90, 0].to_vec()
        });
        seen != command
    };
    for instruction in [0xB0, 0xCA, 0xCB] {
        assert!(is_widened(&[0, instruction, 0, 0, 1], ROOM), "{instruction:02X}");
        assert!(is_widened(&[0, instruction, 0, 0, PROBE], ROOM));
        assert!(!is_widened(&[0, instruction, 0, 0, PROBE + 1], ROOM));
        assert!(!is_widened(&[0, instruction, 0, 0, 0], ROOM));
        assert!(!is_widened(&[0, instruction, 0, 0, 1], ROOM - 1));
    }
    for instruction in [0xA4, 0xB2, 0xC0, 0x20] {
        assert!(!is_widened(&[0, instruction, 0, 0, 1], ROOM), "{instruction:02X}");
    }
    // Without Le, or with data that are not as long as they say.
    assert!(!is_widened(&[0, 0xCB, 0, 0], ROOM));
    assert!(!is_widened(&[0, 0xCB, 0, 0, 2, 9, 9], ROOM));
    assert!(!is_widened(&[0, 0xCB, 0, 0, 0, 1], ROOM));
    assert!(is_widened(&[0, 0xCB, 0, 0, 2, 9, 9, 1], ROOM));
}

#[test]
fn a_command_as_long_as_can_be_kept_is_widened_and_no_longer_one() {
    for (data, expected) in [(COMMAND - 6, 1), (COMMAND - 5, 0)] {
        let mut command = std::vec![0, 0xCB, 0, 0, data as u8];
        command.resize(5 + data, 7);
        command.push(4);
        let mut bench = Bench::new(&[FIX_WHOLE_READ]);
        bench.exchange(&command, &[0x90, 0]);
        assert_eq!(bench.applied(), [0, expected], "{data}");
    }
}

#[test]
fn another_read_forgets_the_probe() {
    let mut bench = Bench::new(&[FIX_WHOLE_READ]);
    let probe = [0x00, 0xB0, 0, 0, 4];
    bench.exchange(&probe, &[1, 2, 3, 4, 5, 0x90, 0]);
    bench.exchange(&[0x00, 0xB0, 0, 1, 0], &[9, 0x90, 0]);
    assert_eq!(bench.exchange(&READ, &[8, 0x90, 0]), [8, 0x90, 0]);
    // So does one of another length, and one that there is no room for.
    bench.exchange(&probe, &[1, 2, 3, 4, 5, 0x90, 0]);
    bench.exchange(&[0x00, 0xB0, 0, 0, 1, 7, 0], &[9, 0x90, 0]);
    assert_eq!(bench.exchange(&READ, &[8, 0x90, 0]), [8, 0x90, 0]);
    bench.exchange(&probe, &[1, 2, 3, 4, 5, 0x90, 0]);
    assert_eq!(bench.exchange_in(6, &READ, |_| [0x67, 0].to_vec()), [0x67, 0]);
    bench.exchange(&probe, &[1, 2, 3, 4, 5, 0x90, 0]);
    assert_eq!(bench.exchange_in(7, &READ, |_| panic!()), [1, 2, 3, 4, 5, 0x90, 0]);
}

#[test]
fn a_probe_that_the_card_refuses_is_not_held() {
    let mut bench = Bench::new(&[FIX_WHOLE_READ]);
    let probe = [0x00, 0xB0, 0, 0, 4];
    assert_eq!(bench.exchange(&probe, &[0x6A, 0x82]), [0x6A, 0x82]);
    assert!(!bench.cache.awaits_probe());
    assert_eq!(bench.exchange(&READ, &[1, 0x90, 0]), [1, 0x90, 0]);
}

#[test]
fn what_is_left_is_said_as_the_card_would() {
    for (length, left) in [(5, 1), (20, 16), (259, 255), (260, 0), (300, 0), (600, 0)] {
        let object: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
        let card = object_card(&object);
        let probe = [0x00, 0xB0, 0, 0, 4];
        let mut bench = Bench::new(&[FIX_WHOLE_READ]);
        let answer = bench.exchange_in(ROOM, &probe, &card);
        assert_eq!(answer, card(&probe), "{length}");
        assert_eq!(answer[4..], [0x61, left], "{length}");
        assert_eq!(bench.answered_from_memory(&READ), card(&READ), "{length}");
    }
}

#[test]
fn both_fixes_go_together() {
    let object: Vec<u8> = (0..100).collect();
    let card = object_card(&object);
    let probe = [0x00, 0xB0, 0, 0, 4];
    let mut bench = Bench::new(&[FIX_CACHE_APDU, FIX_WHOLE_READ]);
    assert_eq!(bench.exchange_in(ROOM, &probe, &card), card(&probe));
    assert_eq!(bench.answered_from_memory(&READ), card(&READ));
    assert_eq!(bench.applied(), [0, 2]);
    // A whole read that the card answered is kept.
    bench.cache.forget();
    assert_eq!(bench.exchange_in(ROOM, &READ, &card), card(&READ));
    assert_eq!(bench.answered_from_memory(&READ), card(&READ));
    assert_eq!(bench.applied(), [1, 2]);
}

#[test]
fn each_card_has_a_place_of_its_own_until_there_is_none() {
    let handles = [const { AtomicU64::new(0) }; CARDS];
    for handle in 1..=CARDS as u64 {
        assert_eq!(place_of_card(&handles, handle), Some(handle as usize - 1));
    }
    assert_eq!(place_of_card(&handles, 3), Some(2));
    assert_eq!(place_of_card(&handles, 99), None);
}

#[test]
fn debug_output_says_nothing_of_what_was_read() {
    let mut bench = Bench::new(&[FIX_CACHE_APDU]);
    bench.exchange(&READ, &[0xDE, 0xAD, 0x90, 0]);
    assert_eq!(std::format!("{:?}", bench.cache), "CardCache { count: 1, .. }");
}

#[test]
fn a_read_of_a_part_is_no_read_of_the_whole() {
    let object: Vec<u8> = (0..20).collect();
    let card = object_card(&object);
    let probe = [0x00, 0xB0, 0, 0, 4];
    for (le, asked_in_all) in [(4, 2), (19, 2), (20, 1), (21, 1), (0, 1)] {
        let mut bench = Bench::new(&[FIX_WHOLE_READ]);
        let mut asked = 0;
        for command in [probe, [0x00, 0xB0, 0, 0, le]] {
            let answer = bench.exchange_in(ROOM, &command, |sent| {
                asked += 1;
                card(sent)
            });
            assert_eq!(answer, card(&command), "{le}");
        }
        assert_eq!(asked, asked_in_all, "{le}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the program sends to a card that only holds objects, it gets what the card says.
    #[test]
    fn a_card_that_does_not_change_is_told_from_no_cache(
        length in 0_usize..400,
        commands in prop::collection::vec((0_u8..4, prop::sample::select(&[0_u8, 1, 8, 16, 17][..])), 0..20),
        kinds in prop::sample::subsequence(std::vec![FIX_CACHE_APDU, FIX_WHOLE_READ], 0..=2),
    ) {
        let object: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
        let mut bench = Bench::new(&kinds);
        for (offset, le) in commands {
            let command = [0x00, 0xB0, 0, offset, le];
            let part = &object[usize::from(offset).min(length)..];
            let card = object_card(part);
            prop_assert_eq!(bench.exchange_in(ROOM, &command, &card), card(&command));
        }
    }

    /// No sequence of commands and answers, however odd, makes it panic.
    #[test]
    fn odd_commands_and_answers_do_no_harm(
        exchanges in prop::collection::vec(
            (
                prop::collection::vec(prop_oneof![Just(0_u8), Just(0xB0), Just(0xC0), any::<u8>()], 0..20),
                prop::collection::vec(prop_oneof![Just(0x61_u8), Just(0x90), Just(0), any::<u8>()], 0..20),
                prop_oneof![0_usize..20, 250_usize..300],
            ),
            0..20,
        ),
    ) {
        let mut bench = Bench::new(&[FIX_CACHE_APDU, FIX_WHOLE_READ]);
        for (command, response, room) in exchanges {
            let answer = bench.exchange_in(room, &command, |_| response.clone());
            prop_assert!(answer.len() <= room.max(response.len()));
        }
    }
}
