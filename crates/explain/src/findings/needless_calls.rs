//! `length-probe`, `multi-part` and `key-churn`: calls of PKCS#11 that one call less would do
//! without.
//!
//! - A call that only asks how long its answer is, before the call that wants it.
//! - A message in one piece that is passed with C_…Update and C_…Final, where C_… takes it at once.
//! - A key that is made, used once or twice, and destroyed again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::token_calls::{outermost_calls, stretch_of};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::Span;

/// Once is needed, twice can be two parts of a program, and from then on it is a habit.
const FEWEST: u64 = 3;
/// Calls between the making of a key and its end: one or two operations take as many.
const LITTLE_USE: u64 = 10;
/// The detail of a call that only asks how long its answer is.
const ASKS_FOR_LENGTH: u64 = 1;

const KEEP_ROOM: &str = "pass a buffer that is large enough (an RSA modulus, a message and a \
                         block): one call gives length and answer";
const ONE_CALL: &str = "pass a message that is there as a whole to the function without Update \
                        and Final";
const KEEP_KEY: &str = "make the key once, and keep its handle; where each operation needs a key \
                        of its own, as ECDHE does, that is its price";

/// Waste of one kind in calls of one function.
struct Wasted<'a> {
    layer: Owner,
    count: u64,
    removed: Vec<Removed>,
    callers: BTreeSet<&'a str>,
}

type Places<'a> = BTreeMap<(WastedCall, FindingPlace<'a>), Wasted<'a>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WastedCall {
    Probe,
    Part,
    Key,
}

/// A session or an object by its process, its module and its number there.
type HandleKey<'a> = (u32, &'a str, u64);

/// The call before in a session, on that thread.
struct Before<'a> {
    thread: usize,
    span: &'a Span,
    /// The one before that, when it began an operation.
    begins: bool,
}

/// A key that is there: when it was made, and how many calls there were until then.
struct MadeKey<'a> {
    thread: usize,
    span: &'a Span,
    calls: u64,
}

struct Calls<'s, 'a> {
    scene: &'s Scene<'a>,
    before: HashMap<HandleKey<'a>, Before<'a>>,
    keys: HashMap<HandleKey<'a>, MadeKey<'a>>,
    seen: HashMap<usize, u64>,
    places: Places<'a>,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut calls = Calls {
        scene,
        before: HashMap::new(),
        keys: HashMap::new(),
        seen: HashMap::new(),
        places: BTreeMap::new(),
    };
    for (thread, span) in outermost_calls(scene) {
        calls.see(thread, span);
    }
    let places = calls.places.into_iter();
    places.filter_map(|((kind, place), wasted)| report(scene, kind, place, wasted)).collect()
}

impl<'a> Calls<'_, 'a> {
    fn see(&mut self, thread: usize, span: &'a Span) {
        let call = self.scene.timeline.call(span.call);
        let process = self.scene.timeline.threads[thread].process;
        let module = call.module.as_str();
        let session = (process, module, span.handle);
        let calls = self.seen.entry(thread).or_default();
        *calls += 1;
        let calls = *calls;
        if span.result == 0 {
            self.see_keys(thread, span, call.function, calls, (process, module));
        }
        let before = self.before.remove(&session).filter(|before| before.thread == thread);
        let function_before =
            before.as_ref().map(|it| self.scene.timeline.call(it.span.call).function);
        if let Some(before) = &before {
            let is_same = function_before == Some(call.function);
            if is_same
                && asks_for_length(call.function, before.span)
                && !asks_for_length(call.function, span)
            {
                self.add(WastedCall::Probe, thread, before.span, [stretch_of(thread, before.span)]);
            }
            if before.begins && is_single_part(function_before, call.function) && span.result == 0 {
                // At best the shorter of the two calls goes.
                let shorter = if before.span.time() < span.time() { before.span } else { span };
                self.add(WastedCall::Part, thread, before.span, [stretch_of(thread, shorter)]);
            }
        }
        let begins = function_before.is_some_and(|before| before.ends_with("Init"));
        if span.result == 0 {
            self.before.insert(session, Before { thread, span, begins });
        }
    }

    fn see_keys(
        &mut self,
        thread: usize,
        span: &'a Span,
        function: &str,
        calls: u64,
        (process, module): (u32, &'a str),
    ) {
        match function {
            "C_GenerateKey" | "C_GenerateKeyPair" | "C_UnwrapKey" | "C_CreateObject"
                if span.made != 0 && !span.on_token =>
            {
                self.keys.insert((process, module, span.made), MadeKey { thread, span, calls });
            }
            "C_DestroyObject" => {
                let made = self.keys.remove(&(process, module, span.detail));
                let Some(made) = made.filter(|made| made.thread == thread) else { return };
                if calls - made.calls <= LITTLE_USE {
                    let removed = [made.span, span].map(|span| stretch_of(thread, span));
                    self.add(WastedCall::Key, thread, made.span, removed);
                }
            }
            _ => {}
        }
    }

    fn add(
        &mut self,
        kind: WastedCall,
        thread: usize,
        at: &'a Span,
        removed: impl IntoIterator<Item = Removed>,
    ) {
        if !self.scene.counts(thread, at.start) {
            return;
        }
        let call = self.scene.timeline.call(at.call);
        let key = (kind, self.scene.place(call));
        let wasted = self.places.entry(key).or_insert_with(|| Wasted {
            layer: self.scene.layer(Some(at)),
            count: 0,
            removed: Vec::new(),
            callers: BTreeSet::new(),
        });
        wasted.count += 1;
        wasted.removed.extend(removed);
        wasted.callers.insert(&call.caller);
    }
}

/// Whether a call only asks how long its answer is: a read of attributes that gave no value, or a
/// null pointer where the answer goes.
fn asks_for_length(function: &str, span: &Span) -> bool {
    match function {
        "C_GetAttributeValue" => span.answer != 0 && span.made == 0,
        "C_Encrypt"
        | "C_Decrypt"
        | "C_Sign"
        | "C_SignRecover"
        | "C_VerifyRecover"
        | "C_Digest"
        | "C_EncryptUpdate"
        | "C_DecryptUpdate"
        | "C_EncryptFinal"
        | "C_DecryptFinal"
        | "C_SignFinal"
        | "C_DigestFinal"
        | "C_GetOperationState"
        | "C_GetSlotList"
        | "C_GetMechanismList"
        | "C_WrapKey" => span.detail == ASKS_FOR_LENGTH,
        _ => false,
    }
}

/// Whether a message came in one piece: an update, and the end.
fn is_single_part(before: Option<&str>, now: &str) -> bool {
    matches!(
        (before, now),
        (Some("C_SignUpdate"), "C_SignFinal")
            | (Some("C_VerifyUpdate"), "C_VerifyFinal")
            | (Some("C_DigestUpdate"), "C_DigestFinal")
            | (Some("C_EncryptUpdate"), "C_EncryptFinal")
            | (Some("C_DecryptUpdate"), "C_DecryptFinal")
    )
}

fn report(
    scene: &Scene<'_>,
    kind: WastedCall,
    place: FindingPlace<'_>,
    wasted: Wasted<'_>,
) -> Option<Finding> {
    if wasted.count < FEWEST {
        return None;
    }
    let time: Nanos = wasted.removed.iter().map(|it| it.end - it.start).sum();
    let times = words::times(wasted.count);
    let function = place.function;
    let (kind, change, sentence) = match kind {
        WastedCall::Probe => (
            FindingKind::LengthProbe,
            KEEP_ROOM,
            format!("{function} was called {times} only to ask how long its answer is: {time}"),
        ),
        WastedCall::Part => (
            FindingKind::MultiPart,
            ONE_CALL,
            format!(
                "a message in one piece was passed with {function} and a second call {times}: the \
                 shorter of each two took {time} in all"
            ),
        ),
        WastedCall::Key => (
            FindingKind::KeyChurn,
            KEEP_KEY,
            format!(
                "an object was made with {function} and destroyed again after little use {times}: \
                 both took {time}"
            ),
        ),
    };
    scene.report(Waste {
        kind,
        place,
        layer: wasted.layer,
        count: wasted.count,
        removed: wasted.removed,
        evidence: vec![sentence, words::called(place.module, wasted.callers)],
        remedy: Remedy::Change(change.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{only, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

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
                let span = told.last_span();
                span.answer = 7;
                span.made = values;
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
}
