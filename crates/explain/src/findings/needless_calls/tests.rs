use super::*;
use crate::findings::prediction;
use crate::findings::tests::{only, whole};
use crate::operation::Operations;
use crate::synthetic::{Story, ThreadStory, micros, millis};
use crate::timeline::Timeline;
use tapstone_events::SHAPE_BITS;

fn ten(mut tell: impl FnMut(&mut ThreadStory<'_>, u64)) -> Timeline {
    Story::new()
        .thread(|told| {
            for number in 0..10 {
                tell(told, number);
            }
        })
        .timeline()
}

fn sign(told: &mut ThreadStory<'_>, detail: u64, time: Nanos) {
    told.enter("C_Sign").given(1, detail).advance(time).exit();
}

#[test]
fn a_call_that_only_asks_for_a_length_is_found() {
    let timeline = ten(|told, _| {
        told.call("C_SignInit", 1, micros(20));
        sign(told, ASKS_FOR_LENGTH, micros(100));
        sign(told, 0, millis(1));
    });
    let finding = only(whole(&timeline, find));
    assert_eq!((finding.kind, finding.count), (FindingKind::LengthProbe, 10));
    assert_eq!(finding.time, millis(1));
    let of = |tell: fn(&mut ThreadStory<'_>, u64)| whole(&ten(tell), find).len();
    assert_eq!(of(|told, _| sign(told, 0, millis(1))), 0);
    // Asked, and never fetched.
    assert_eq!(of(|told, _| sign(told, ASKS_FOR_LENGTH, millis(1))), 0);
}

#[test]
fn lengths_of_attributes_before_their_values_are_found() {
    let timeline = ten(|told, number| {
        for values in [0, 1] {
            told.enter("C_GetAttributeValue").given(1, 10 + number).advance(micros(100));
            told.finds(values, 7);
            told.exit();
        }
    });
    assert_eq!(only(whole(&timeline, find)).kind, FindingKind::LengthProbe);
}

#[test]
fn a_message_in_one_piece_needs_no_parts() {
    let of = |updates: u64| {
        ten(move |told, _| {
            told.call("C_SignInit", 1, micros(20));
            for _ in 0..updates {
                told.call("C_SignUpdate", 1, micros(50));
            }
            told.call("C_SignFinal", 1, micros(500));
        })
    };
    let finding = only(whole(&of(1), find));
    assert_eq!((finding.kind, finding.time), (FindingKind::MultiPart, micros(500)));
    assert_eq!(whole(&of(2), find), [], "several pieces");
}

#[test]
fn a_message_in_pieces_of_a_few_bytes_is_found() {
    let of = |parts: u64, bytes: u64| {
        ten(move |told, _| {
            told.call("C_DigestInit", 1, micros(20));
            for part in 0..parts {
                told.enter("C_DigestUpdate").given(1, 0).last_span().operand = bytes;
                told.advance(micros(50 + part)).exit();
            }
            told.call("C_DigestFinal", 1, micros(500));
        })
    };
    let finding = only(whole(&of(8, 2), find));
    assert_eq!((finding.kind, finding.count), (FindingKind::MultiPart, 10));
    // All but the longest, the last.
    assert_eq!(finding.time, micros(10 * (7 * 50 + 21)));
    let says = "a message was passed with C_DigestUpdate in parts of 2.0 bytes on average 10 \
                times: all but one call of each took 3.71 ms";
    assert_eq!(finding.evidence[0], says);
    assert_eq!(whole(&of(8, 1024), find), [], "a long message");
    assert_eq!(whole(&of(3, 2), find), [], "a header and two fields");
}

#[test]
fn keys_that_are_made_for_one_operation_are_found() {
    let of = |uses: u64, on_token: bool| {
        ten(move |told, number| {
            told.makes("C_GenerateKey", 1, 100 + number, millis(1));
            told.last_span().on_token = on_token;
            for _ in 0..uses {
                told.call("C_EncryptInit", 1, micros(5)).call("C_Encrypt", 1, micros(50));
            }
            told.enter("C_DestroyObject").given(1, 100 + number).advance(micros(100)).exit();
        })
    };
    let finding = only(whole(&of(1, false), find));
    assert_eq!((finding.kind, finding.count), (FindingKind::KeyChurn, 10));
    assert_eq!(finding.time, micros(11_000));
    assert_eq!(whole(&of(20, false), find), [], "they are used");
    assert_eq!(whole(&of(1, true), find), [], "they stay on the token");
}

#[test]
fn keys_that_are_used_once_and_left_are_found() {
    let of = |uses: u64| {
        ten(move |told, number| {
            told.makes("C_CreateObject", 1, 100 + number, millis(1));
            for _ in 0..uses {
                told.enter("C_SignInit").given(1, 0).last_span().operand = 100 + number;
                told.advance(micros(5)).exit().call("C_Sign", 1, micros(50));
            }
        })
    };
    let finding = only(whole(&of(1), find));
    assert_eq!((finding.kind, finding.count), (FindingKind::KeyChurn, 10));
    assert_eq!(finding.time, millis(10));
    // What it takes to make one ready: up to all since the call before.
    let timeline = ten(|told, number| {
        told.advance(millis(3)).makes("C_CreateObject", 1, 100 + number, millis(1));
        told.advance(micros(100)).enter("C_SignInit").given(1, 0);
        told.last_span().operand = 100 + number;
        told.advance(micros(5)).exit();
    });
    let operations = Operations::whole(&timeline);
    let finding = only(whole(&timeline, find));
    let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
    assert_eq!((saving.low, saving.high), (10e6, 10.0 * (3e6 + 1e6 + 0.1e6)));
    assert_eq!(whole(&of(3), find), [], "they are used");
    assert_eq!(whole(&of(0), find), [], "what they are for is not seen");
}

/// SunPKCS11 reads of each key that it imports what became of it.
#[test]
fn what_is_read_of_a_key_right_after_its_making_goes_with_it() {
    let of = |read: u64, sleeps: bool| {
        let timeline = ten(move |told, number| {
            told.advance(millis(3)).makes("C_CreateObject", 1, 100 + number, millis(1));
            for _ in 0..2 {
                told.advance(micros(200));
                if sleeps {
                    told.leaf("usleep", micros(70));
                }
                told.enter("C_GetAttributeValue").given(1, 0);
                told.last_span().operand = (read + number) << SHAPE_BITS | 7;
                told.advance(micros(100)).exit();
            }
            told.advance(micros(300)).enter("C_SignInit").given(1, 0);
            told.last_span().operand = 100 + number;
            told.advance(micros(5)).exit().call("C_Sign", 1, millis(1));
            // Later it is asked for what is needed then.
            told.enter("C_GetAttributeValue").given(1, 0);
            told.last_span().operand = (100 + number) << SHAPE_BITS | 7;
            told.advance(micros(100)).exit();
        });
        let finding = only(whole(&timeline, find));
        let union = prediction::union([&finding]);
        let saving = prediction::saving(&timeline, &Operations::whole(&timeline), &union);
        (finding.count, finding.time, [saving.low, saving.high].map(|ns| ns / 1e4))
    };
    // 1 ms and twice 200 and 100 us; then what comes before, and before the signature.
    let making = micros(10 * 1_600);
    assert_eq!(of(100, false), (10, making, [1_600.0, 1_600.0 + 3_000.0 + 300.0]));
    assert_eq!(of(100, true), (10, making, [1_600.0, 1_600.0 + 3_000.0 + 300.0]), "no wait");
    // Of another object.
    assert_eq!(of(500, false), (10, millis(10), [1_000.0, 1_000.0 + 3_000.0 + 200.0]));
}
