//! `length-probe`, `multi-part` and `key-churn`: calls of PKCS#11 that one call less would do
//! without.
//!
//! - A call that only asks how long its answer is, before the call that wants it.
//! - A message in one piece that is passed with C_…Update and C_…Final, where C_… takes it at once;
//!   or one in pieces of a few bytes.
//! - A key that is made, used once or twice, and destroyed again, or never used any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::token_calls::{
    Preparation, around_with, object_of, outermost_calls, spans_from, stretch_of, works,
};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::Span;

/// Once is needed, twice can be two parts of a program, and from then on it is a habit.
const FEWEST: u64 = 3;
/// Calls between the making of a key and its end: one or two operations take as many.
const LITTLE_USE: u64 = 10;
/// A message in so many parts or more, of so many bytes on average or fewer, takes longer to pass
/// than to work on: a call takes some 0.2 µs, as long as SHA-256 takes for 50 bytes or more.
const FEWEST_PARTS: usize = 4;
const SMALL_PART: u64 = 16;
/// Operations of a key that is left to itself, and how many such keys are a habit: a short program
/// may need each of a few.
const FEW_USES: u64 = 2;
const FEWEST_LEFT: usize = 10;
/// The detail of a call that only asks how long its answer is.
const ASKS_FOR_LENGTH: u64 = 1;

const KEEP_ROOM: &str = "pass a buffer that is large enough (an RSA modulus, a message and a \
                         block): one call gives length and answer";
const ONE_CALL: &str = "pass a message that is there as a whole to the function without Update \
                        and Final";
const GATHER: &str = "gather the message in memory and pass it in one call, or a long one in parts \
                      of some kilobytes";
const KEEP_KEY: &str = "make the key once, and keep its handle; where each operation needs a key \
                        of its own, as ECDHE does, that is its price";

/// Waste of one kind in calls of one function.
struct Wasted<'a> {
    layer: Owner,
    count: u64,
    removed: Vec<Removed>,
    /// Calls and bytes of messages in small parts.
    parts: u64,
    bytes: u64,
    callers: BTreeSet<&'a str>,
}

type Places<'a> = BTreeMap<(WastedCall, FindingPlace<'a>), Wasted<'a>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WastedCall {
    Probe,
    Part,
    SmallParts,
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

/// The parts of a message that were passed in a session so far, with one function on one thread.
struct Parts<'a> {
    thread: usize,
    function: &'a str,
    calls: Vec<&'a Span>,
}

impl Parts<'_> {
    fn bytes(&self) -> u64 {
        self.calls.iter().map(|call| call.operand).sum()
    }

    fn are_small(&self) -> bool {
        let count = self.calls.len();
        count >= FEWEST_PARTS && self.bytes() <= SMALL_PART * count as u64
    }

    /// All but one call, which passes the message as a whole: the longest.
    fn removed(&self) -> impl Iterator<Item = Removed> {
        let kept = self.calls.iter().enumerate().max_by_key(|(_, call)| call.time());
        let kept = kept.map(|(at, _)| at);
        let others = self.calls.iter().enumerate().filter(move |(at, _)| Some(*at) != kept);
        others.map(|(_, call)| stretch_of(self.thread, call))
    }
}

/// A key that is there: when it was made, how many calls there were until then, what was read of it
/// right after that, and how many operations it was used for.
struct MadeKey<'a> {
    thread: usize,
    span: &'a Span,
    calls: u64,
    reads: Vec<&'a Span>,
    uses: u64,
}

impl MadeKey<'_> {
    /// Whether a thread's call of this number, a read of the key, goes on with making it: there was
    /// no other call between.
    fn is_next(&self, thread: usize, calls: u64) -> bool {
        self.thread == thread && calls == self.calls + 1 + self.reads.len() as u64
    }

    /// What goes where the key is not made: its making, the reads of what was made, and what the
    /// thread does between these calls, which are about that key and nothing else.
    fn making(&self, scene: &Scene<'_>) -> Vec<Removed> {
        let number = self.thread;
        let thread = &scene.timeline.threads[number];
        let mut making = vec![stretch_of(number, self.span)];
        let mut end = self.span.end;
        for read in &self.reads {
            let between = works(scene, thread, end, read.start);
            making.extend(between.iter().map(|(start, end)| Removed {
                thread: number,
                start,
                end,
            }));
            making.push(stretch_of(number, read));
            end = read.end;
        }
        making
    }
}

struct Calls<'s, 'a> {
    scene: &'s Scene<'a>,
    before: HashMap<HandleKey<'a>, Before<'a>>,
    parts: HashMap<HandleKey<'a>, Parts<'a>>,
    keys: HashMap<HandleKey<'a>, MadeKey<'a>>,
    seen: HashMap<usize, u64>,
    places: Places<'a>,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut calls = Calls {
        scene,
        before: HashMap::new(),
        parts: HashMap::new(),
        keys: HashMap::new(),
        seen: HashMap::new(),
        places: BTreeMap::new(),
    };
    for (thread, span) in outermost_calls(scene) {
        calls.see(thread, span);
    }
    calls.see_unused_keys();
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
        self.see_parts(thread, span, call.function, session);
        let before = self.before.remove(&session).filter(|before| before.thread == thread);
        let function_before =
            before.as_ref().map(|it| self.scene.timeline.call(it.span.call).function);
        if let Some(before) = &before {
            let is_same = function_before == Some(call.function);
            if is_same
                && asks_for_length(call.function, before.span)
                && !asks_for_length(call.function, span)
            {
                let asked = [stretch_of(thread, before.span)];
                self.add(WastedCall::Probe, thread, before.span, asked);
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

    fn see_parts(
        &mut self,
        thread: usize,
        span: &'a Span,
        function: &'a str,
        session: HandleKey<'a>,
    ) {
        let is_next = |parts: &Parts<'_>| {
            let goes_on = parts.function == function || is_last_of(parts.function, function);
            goes_on && parts.thread == thread && span.result == 0
        };
        let parts = self.parts.remove(&session).filter(is_next);
        if function.ends_with("Update") && span.result == 0 {
            let mut parts = parts.unwrap_or(Parts { thread, function, calls: Vec::new() });
            parts.calls.push(span);
            self.parts.insert(session, parts);
        } else if let Some(parts) = parts.filter(Parts::are_small) {
            let wasted = self.add(WastedCall::SmallParts, thread, parts.calls[0], parts.removed());
            if let Some(wasted) = wasted {
                wasted.parts += parts.calls.len() as u64;
                wasted.bytes += parts.bytes();
            }
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
                if span.made() != 0 && !span.on_token =>
            {
                let made = MadeKey { thread, span, calls, reads: Vec::new(), uses: 0 };
                self.keys.insert((process, module, span.made()), made);
            }
            begins if begins.ends_with("Init") => {
                if let Some(key) = self.keys.get_mut(&(process, module, span.operand)) {
                    key.uses += 1;
                }
            }
            "C_GetAttributeValue" => {
                let key = (process, module, object_of(span));
                let made = self.keys.get_mut(&key).filter(|made| made.is_next(thread, calls));
                if let Some(made) = made {
                    made.reads.push(span);
                }
            }
            "C_DestroyObject" => {
                let made = self.keys.remove(&(process, module, span.detail));
                let Some(made) = made.filter(|made| made.thread == thread) else { return };
                if calls - made.calls <= LITTLE_USE {
                    let making = made.making(self.scene);
                    let removed = making.into_iter().chain([stretch_of(thread, span)]);
                    self.add(WastedCall::Key, thread, made.span, removed);
                }
            }
            _ => {}
        }
    }

    /// Keys that are there at the end, and were used for next to nothing: Java destroys them when
    /// its collector finds them, if the program runs for so long.
    fn see_unused_keys(&mut self) {
        let mut left: Vec<_> = std::mem::take(&mut self.keys).into_values().collect();
        left.retain(|key| (1..=FEW_USES).contains(&key.uses));
        left.sort_by_key(|key| key.span.start);
        if left.len() < FEWEST_LEFT {
            return;
        }
        for key in left {
            self.add(WastedCall::Key, key.thread, key.span, key.making(self.scene));
        }
    }

    fn add(
        &mut self,
        kind: WastedCall,
        thread: usize,
        at: &'a Span,
        removed: impl IntoIterator<Item = Removed>,
    ) -> Option<&mut Wasted<'a>> {
        if !self.scene.counts(thread, at.start) {
            return None;
        }
        let call = self.scene.timeline.call(at.call);
        let key = (kind, self.scene.place(call));
        let wasted = self.places.entry(key).or_insert_with(|| Wasted {
            layer: self.scene.layer(Some(at)),
            count: 0,
            removed: Vec::new(),
            parts: 0,
            bytes: 0,
            callers: BTreeSet::new(),
        });
        wasted.count += 1;
        wasted.removed.extend(removed);
        wasted.callers.insert(&call.caller);
        Some(wasted)
    }
}

/// Whether a stretch is a call that destroys an object.
fn destroys(scene: &Scene<'_>, stretch: &Removed) -> bool {
    let call = spans_from(&scene.timeline.threads[stretch.thread], stretch.start).next();
    call.is_some_and(|span| scene.timeline.call(span.call).function == "C_DestroyObject")
}

/// Whether a call only asks how long its answer is: a read of attributes that gave no value, or a
/// null pointer where the answer goes.
fn asks_for_length(function: &str, span: &Span) -> bool {
    match function {
        "C_GetAttributeValue" => span.answer() != 0 && span.made() == 0,
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
    before.is_some_and(|before| is_last_of(before, now))
}

/// Whether a function ends what the other one passes parts of.
fn is_last_of(update: &str, function: &str) -> bool {
    matches!(
        (update, function),
        ("C_SignUpdate", "C_SignFinal")
            | ("C_VerifyUpdate", "C_VerifyFinal")
            | ("C_DigestUpdate", "C_DigestFinal")
            | ("C_EncryptUpdate", "C_EncryptFinal")
            | ("C_DecryptUpdate", "C_DecryptFinal")
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
        WastedCall::SmallParts => (
            FindingKind::MultiPart,
            GATHER,
            format!(
                "a message was passed with {function} in parts of {:.1} bytes on average {times}: \
                 all but one call of each took {time}",
                wasted.bytes as f64 / wasted.parts as f64
            ),
        ),
        WastedCall::Key => (
            FindingKind::KeyChurn,
            KEEP_KEY,
            format!(
                "an object was made with {function} for little use {times}: making it, reading right \
                 after that what it is, and the calls that destroyed it, if any, took {time}"
            ),
        ),
    };
    // Of what a program does before it makes a key, and would not without, nothing is seen.
    let around = |it: &Removed| {
        let makes_key = kind == FindingKind::KeyChurn && !destroys(scene, it);
        let preparation = match makes_key {
            true => Preparation::SinceTheCallBefore,
            false => Preparation::AsLongAsUse,
        };
        around_with(scene, it, preparation).collect::<Vec<_>>()
    };
    let perhaps = wasted.removed.iter().flat_map(around).collect();
    let finding = scene.report(Waste {
        kind,
        place,
        layer: wasted.layer,
        count: wasted.count,
        removed: wasted.removed,
        evidence: vec![sentence, words::called(place.module, wasted.callers)],
        remedy: Remedy::Change(change.to_owned()),
    });
    finding.map(|finding| Finding { perhaps, ..finding })
}

#[cfg(test)]
mod tests;
