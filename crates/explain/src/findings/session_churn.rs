//! `session-churn`: sessions, logins, contexts or connections that are opened again and again for
//! little use.
//!
//! They are made to be kept. Whoever opens one for each operation pays for it each time; what is
//! opened beforehand, for a pool or for a token each, is not meant. What the program does with what
//! it has opened, up to its next call, may go with it.

mod beginnings;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_events::Fix;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{FirstArgument, first_argument};

use self::beginnings::{searches, selections};
use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::token_calls::around;
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Span, Thread};

/// Once is needed, twice may be two parts of a program, from then on it is a habit.
const FEWEST: u64 = 3;
/// Calls that use what was opened: one operation takes as many (a login, a search in three calls,
/// an attribute or two, the operation in two, its end).
const LITTLE_USE: u64 = 10;

/// Something that is opened and closed.
struct Thing {
    open: &'static str,
    close: &'static str,
    what: &'static str,
    change: &'static str,
    /// What keeps it, where that is tried.
    fix: Option<Fix>,
}

const THINGS: [Thing; 5] = [
    Thing {
        open: "C_Initialize",
        close: "C_Finalize",
        what: "the library was initialised",
        change: "call C_Initialize once, when the program starts",
        fix: None,
    },
    Thing {
        open: "C_OpenSession",
        close: "C_CloseSession",
        what: "a session was opened",
        change: "keep the session, one for each thread, and use it again",
        fix: Some(Fix::KeepSession),
    },
    Thing {
        open: "C_Login",
        close: "C_Logout",
        what: "somebody logged in",
        change: "log in once: the login holds for all sessions of the program with the token",
        fix: Some(Fix::KeepLogin),
    },
    Thing {
        open: "SCardEstablishContext",
        close: "SCardReleaseContext",
        what: "a context was established",
        change: "keep the context, one for each thread, and use it again",
        fix: None,
    },
    Thing {
        open: "SCardConnect",
        close: "SCardDisconnect",
        what: "a card was connected to",
        change: "keep the connection, and take turns with transactions",
        fix: None,
    },
];

/// Openings of one thing on one thread, in order.
struct Openings {
    layer: Owner,
    opened: Vec<Removed>,
    closed: Vec<Removed>,
    /// Sessions, contexts or connections that were made, or logged in.
    handles: BTreeSet<u64>,
    caller: String,
}

/// Where something was opened, on which thread, and what: a token, a reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenedAt<'a> {
    place: FindingPlace<'a>,
    thread: usize,
    object: u64,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    // What an operation needs is often opened before it.
    let scene = scene.with_gaps();
    THINGS.iter().flat_map(|thing| churn(&scene, thing)).collect()
}

fn churn(scene: &Scene<'_>, thing: &Thing) -> Vec<Finding> {
    if !scene.timeline.calls.iter().any(|call| call.function == thing.open) {
        return Vec::new();
    }
    let mut places: BTreeMap<FindingPlace<'_>, Vec<Openings>> = BTreeMap::new();
    for (key, openings) in openings(scene, thing) {
        if is_churn(scene, thing, &key, &openings) {
            places.entry(key.place).or_default().push(openings);
        }
    }
    places.into_iter().filter_map(|(place, all)| report(scene, thing, place, &all)).collect()
}

fn openings<'a>(scene: &Scene<'a>, thing: &Thing) -> BTreeMap<OpenedAt<'a>, Openings> {
    let mut all: BTreeMap<OpenedAt<'_>, Openings> = BTreeMap::new();
    for (number, thread) in scene.threads() {
        let mut objects: HashMap<u64, OpenedAt<'_>> = HashMap::new();
        for span in &thread.spans {
            let call = scene.timeline.call(span.call);
            let opens = call.function == thing.open && !is_needed_each_time(call.function, span);
            let is_one = (opens || call.function == thing.close) && span.result == 0;
            if !is_one || is_inside_its_like(scene, thread, span) {
                continue;
            }
            let stretch = Removed { thread: number, start: span.start, end: span.end };
            if opens {
                let handle = thing.handle(span);
                let object = thing.object(span);
                let key = OpenedAt { place: scene.place(call), thread: number, object };
                let openings = all.entry(key).or_insert_with(|| Openings {
                    layer: scene.layer(Some(span)),
                    opened: Vec::new(),
                    closed: Vec::new(),
                    handles: BTreeSet::new(),
                    caller: call.caller.clone(),
                });
                openings.opened.push(stretch);
                openings.handles.insert(handle);
                objects.insert(handle, key);
            } else {
                // What another thread opened is not looked for.
                let key = objects.remove(&thing.closed_handle(span));
                if let Some(openings) = key.and_then(|key| all.get_mut(&key)) {
                    openings.closed.push(stretch);
                }
            }
        }
    }
    all
}

impl Thing {
    /// What is used afterwards.
    fn handle(&self, span: &Span) -> u64 {
        match self.open {
            "C_Initialize" => 0,
            "C_Login" => span.handle,
            _ => span.made(),
        }
    }

    fn closed_handle(&self, span: &Span) -> u64 {
        if self.open == "C_Initialize" { 0 } else { span.handle }
    }

    /// Another one of these is another matter: a token, a reader.
    fn object(&self, span: &Span) -> u64 {
        match self.open {
            "C_OpenSession" => span.handle,
            "SCardConnect" => span.text().map_or(0, |reader| u64::from(reader.0.get())),
            _ => 0,
        }
    }
}

/// A proxy and the module behind it are opened together.
fn is_inside_its_like(scene: &Scene<'_>, thread: &Thread, span: &Span) -> bool {
    let function = scene.timeline.call(span.call).function;
    thread.path(span.parent).any(|around| scene.timeline.call(around.call).function == function)
}

/// A login for one operation, which a key with CKA_ALWAYS_AUTHENTICATE asks for (PKCS#11, 5.6).
fn is_needed_each_time(function: &str, span: &Span) -> bool {
    const CONTEXT_SPECIFIC: u64 = 2;
    function == "C_Login" && span.detail == CONTEXT_SPECIFIC
}

/// For each operation of a thread, or several times in a command for little use.
fn is_churn(scene: &Scene<'_>, thing: &Thing, key: &OpenedAt<'_>, openings: &Openings) -> bool {
    let opened = openings.opened.len() as u64;
    if opened < FEWEST {
        return false;
    }
    if scene.operations.is_whole {
        return uses(scene, thing, key, &openings.handles) <= LITTLE_USE * opened;
    }
    let cuts = scene.operations.of_thread(key.thread);
    let (Some(first), count) = (cuts.first(), cuts.len() as u64) else { return false };
    // What was opened before the first operation may be for all of them.
    let later = openings.opened.iter().filter(|open| open.start > first.start).count() as u64;
    count >= FEWEST && later >= count - 1
}

/// Calls of the program that used what was opened.
fn uses(scene: &Scene<'_>, thing: &Thing, key: &OpenedAt<'_>, handles: &BTreeSet<u64>) -> u64 {
    let process = scene.timeline.threads[key.thread].process;
    let threads = scene.timeline.threads.iter().filter(|thread| thread.process == process);
    let uses = threads.flat_map(|thread| &thread.spans).filter(|span| {
        let call = scene.timeline.call(span.call);
        let is_use = call.module == key.place.module
            && ![thing.open, thing.close].contains(&call.function)
            && first_argument(call.function) == FirstArgument::Session;
        is_use && (thing.open == "C_Initialize" || handles.contains(&span.handle))
    });
    uses.count() as u64
}

fn report(
    scene: &Scene<'_>,
    thing: &Thing,
    place: FindingPlace<'_>,
    all: &[Openings],
) -> Option<Finding> {
    let mut removed: Vec<Removed> = Vec::new();
    let mut count = 0;
    let ends = all.iter().any(|openings| !openings.closed.is_empty());
    for openings in all {
        count += openings.opened.len() as u64;
        // One is needed, from the beginning to the end.
        removed.extend(&openings.opened[1..]);
        let closed = openings.closed.len().min(openings.opened.len() - 1);
        removed.extend(&openings.closed[..closed]);
    }
    let time: Nanos = removed.iter().map(|stretch| stretch.end - stretch.start).sum();
    let operations = scene.operations.count();
    let seen = format!(
        "{} {} with {} in {}: all but the first took {time}, with their ends ({})",
        thing.what,
        words::times(count),
        words::function_of(place.function, place.module),
        if scene.operations.is_whole {
            words::one_command(scene.timeline)
        } else {
            words::counted(operations, "operation")
        },
        thing.close,
    );
    let by = words::called(place.module, all.iter().map(|openings| openings.caller.as_str()));
    let mut perhaps: Vec<_> = removed.iter().flat_map(|it| around(scene, it)).collect();
    let begins = |openings: &Openings| match thing.open {
        "SCardConnect" => selections(scene, &openings.opened),
        "C_OpenSession" | "C_Login" => searches(scene, place.module, &openings.opened),
        _ => Vec::new(),
    };
    let begins: Vec<Removed> = all.iter().flat_map(begins).collect();
    let what = if thing.open == "SCardConnect" { "the same SELECT" } else { "the same searches" };
    let with_these = (!begins.is_empty())
        .then(|| format!("{what} at the beginning of each may go too: at the high end"));
    perhaps.extend(begins);
    let finding = scene.report(Waste {
        kind: FindingKind::SessionChurn,
        place,
        layer: all.first()?.layer.clone(),
        count,
        removed,
        evidence: [seen].into_iter().chain(with_these).chain([by]).collect(),
        remedy: match thing.fix.clone().filter(|_| ends && can_be_kept(scene, thing, place)) {
            Some(fix) => Remedy::TryFirst(fix, thing.change.to_owned()),
            None => Remedy::Change(thing.change.to_owned()),
        },
    });
    finding.map(|finding| Finding { perhaps, ..finding })
}

/// Whether the fix could keep it. The end of a token's last session is a logout too, which it
/// cannot keep unless the program calls C_Logout.
fn can_be_kept(scene: &Scene<'_>, thing: &Thing, place: FindingPlace<'_>) -> bool {
    if thing.open != "C_OpenSession" {
        return true;
    }
    let (mut logins, mut logouts) = (0_u64, 0_u64);
    for span in scene.timeline.threads.iter().flat_map(|thread| &thread.spans) {
        let call = scene.timeline.call(span.call);
        if call.module == place.module && span.result == 0 {
            let is_login = call.function == "C_Login" && !is_needed_each_time("C_Login", span);
            logins += u64::from(is_login);
            logouts += u64::from(call.function == "C_Logout");
        }
    }
    logins <= logouts + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::prediction;
    use crate::findings::tests::{each, figures, only, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    const SLOT: u64 = 1;

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    fn signs(told: &mut ThreadStory<'_>, session: u64) {
        told.call("C_SignInit", session, millis(1)).call("C_Sign", session, millis(5));
    }

    fn opens(told: &mut ThreadStory<'_>, session: u64) {
        told.makes("C_OpenSession", SLOT, session, millis(3));
    }

    fn closes(told: &mut ThreadStory<'_>, session: u64) {
        told.call("C_CloseSession", session, millis(1));
    }

    #[test]
    fn a_session_for_each_operation_is_found() {
        let timeline = one(|told| {
            for session in 1..=5 {
                opens(told, session);
                signs(told, session);
                closes(told, session);
            }
        });
        let finding = only(each("C_Sign", &timeline, find));
        // All but the first opening and the last end, of 46 ms from the first operation to the
        // last.
        assert_eq!(figures(&finding), (1.0, 5, millis(16), 348));
        assert_eq!(
            (finding.place.as_str(), &finding.trial),
            ("C_OpenSession", &Some(Fix::KeepSession))
        );
        assert_eq!(finding.layer, "pkcs11 module.so");
        let says = "a session was opened 5 times with C_OpenSession of module.so in 5 operations: \
                    all but the first took 16.0 ms, with their ends (C_CloseSession)";
        assert_eq!(finding.evidence[0], says);
        assert!(finding.advice.unwrap().starts_with("keep the session"));
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (5.0, 5, millis(16), 320));
    }

    #[test]
    fn what_follows_an_opening_or_an_end_may_go_too() {
        let timeline = one(|told| {
            for session in 1..=3 {
                opens(told, session);
                told.advance(millis(1));
                signs(told, session);
                closes(told, session);
                told.advance(millis(2));
            }
        });
        let finding = only(whole(&timeline, find));
        // 1 ms after the second and the third opening, 2 ms after the first two ends: before an
        // opening only what follows such an end.
        let at_most = prediction::union([&finding]).at_most;
        let at_most: Nanos = at_most.iter().map(|it| it.end - it.start).sum();
        assert_eq!((finding.time, at_most), (millis(8), millis(8 + 6)));
    }

    #[test]
    fn connections_and_logins_are_found_too() {
        let timeline = one(|told| {
            for time in 0..3 {
                told.makes("SCardEstablishContext", 0, 10 + time, millis(2));
                told.connect(10 + time, "reader", 20 + time, millis(2));
                told.transmit(20 + time, &[0, 0xB0, 0, 0, 0], &[0x90, 0], millis(5));
                told.call("SCardDisconnect", 20 + time, millis(1));
                told.call("SCardReleaseContext", 10 + time, millis(1));
                told.enter("C_Login").given(7, 1).advance(millis(4)).exit();
            }
        });
        let found: Vec<_> = whole(&timeline, find)
            .into_iter()
            .map(|finding| (finding.place, finding.time))
            .collect();
        let named = |place: &str, time| (place.to_owned(), millis(time));
        let expected =
            [named("C_Login", 8), named("SCardEstablishContext", 6), named("SCardConnect", 6)];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_selected_after_each_connection_may_go_with_it() {
        let at_most = |applet: &dyn Fn(u8) -> u8| -> Nanos {
            let timeline = one(|told| {
                for card in 0..3_u8 {
                    let handle = 20 + u64::from(card);
                    told.connect(10, "reader", handle, millis(2));
                    let select = [0, 0xA4, 4, 0, 1, applet(card)];
                    told.transmit(handle, &select, &[0x61, 2], millis(3));
                    told.transmit(handle, &[0, 0xC0, 0, 0, 2], &[1, 2, 0x90, 0], millis(1));
                    told.transmit(handle, &[0, 0xB0, 0, 0, 0], &[0x90, 0], millis(5));
                    told.call("SCardDisconnect", handle, millis(1));
                }
            });
            let finding = only(whole(&timeline, find));
            assert_eq!(finding.time, millis(6));
            finding.perhaps.iter().map(|it| it.end - it.start).sum()
        };
        assert_eq!(at_most(&|_| 7), millis(2 * 4), "the first is needed");
        assert_eq!(at_most(&|card| card), millis(0), "others");
    }

    #[test]
    fn what_is_searched_in_each_session_may_go_with_it() {
        let at_most = |template: &dyn Fn(u64) -> u64, first: &str| -> Nanos {
            let timeline = one(|told| {
                for session in 1..=3 {
                    opens(told, session);
                    told.enter(first).given(session, 1).advance(millis(4)).exit();
                    told.enter("C_FindObjectsInit").given(session, template(session));
                    told.advance(millis(2)).exit();
                    told.call("C_FindObjects", session, millis(1));
                    told.call("C_FindObjectsFinal", session, millis(1));
                    signs(told, session);
                    closes(told, session);
                }
            });
            let finding = whole(&timeline, find).into_iter().find(|it| it.place == "C_OpenSession");
            let finding = finding.unwrap();
            let says = "the same searches at the beginning of each may go too: at the high end";
            let is_told = finding.evidence.iter().any(|it| it == says);
            assert_eq!(is_told, !finding.perhaps.is_empty(), "{:?}", finding.evidence);
            finding.perhaps.iter().map(|it| it.end - it.start).sum()
        };
        assert_eq!(at_most(&|_| 7, "C_Login"), millis(2 * 4), "the first is needed");
        assert_eq!(at_most(&|session| session, "C_Login"), millis(0), "others");
        assert_eq!(at_most(&|_| 0, "C_Login"), millis(0), "nobody knows for what");
        assert_eq!(at_most(&|_| 7, "C_GenerateRandom"), millis(0), "for something else");
        assert_eq!(at_most(&|_| 7, "C_DestroyObject"), millis(0), "among other objects");
        assert_eq!(at_most(&|_| 7, "C_OpenSession"), millis(2 * 4), "in the second session");
    }

    #[test]
    fn a_fix_is_named_where_it_can_keep_something() {
        let story = |logs_out: bool, closes_it: bool| {
            one(|told| {
                for session in 1..=5 {
                    opens(told, session);
                    told.enter("C_Login").given(session, 1).advance(millis(4)).exit();
                    signs(told, session);
                    if logs_out {
                        told.call("C_Logout", session, millis(1));
                    }
                    if closes_it {
                        closes(told, session);
                    }
                }
            })
        };
        let fixes = |timeline| {
            let found = whole(&timeline, find).into_iter();
            found.map(|finding| (finding.place, finding.trial)).collect::<Vec<_>>()
        };
        let named = |session, login| {
            vec![("C_OpenSession".to_owned(), session), ("C_Login".to_owned(), login)]
        };
        let both = named(Some(Fix::KeepSession), Some(Fix::KeepLogin));
        assert_eq!(fixes(story(true, true)), both);
        assert_eq!(fixes(story(true, false)), named(None, Some(Fix::KeepLogin)));
        assert_eq!(fixes(story(false, true)), named(None, None));
    }

    #[test]
    fn a_login_that_a_key_asks_for_is_neither_one_nor_its_end() {
        let timeline = one(|told| {
            for _ in 0..3 {
                told.enter("C_Login").given(1, 1).advance(millis(4)).exit();
                told.enter("C_Login").given(1, 2).advance(millis(4)).exit();
                signs(told, 1);
            }
        });
        assert_eq!(only(whole(&timeline, find)).time, millis(8));
    }

    #[test]
    fn flags_and_slots_are_no_use_of_the_session_of_their_number() {
        let timeline = one(|told| {
            for _ in 0..3 {
                opens(told, 1);
                (0..LITTLE_USE / 2).for_each(|_| signs(told, 1));
                told.call("C_GetSlotList", 1, micros(10)).call("C_GetTokenInfo", 1, micros(10));
                closes(told, 1);
            }
        });
        assert_eq!(only(whole(&timeline, find)).count, 3);
    }

    #[test]
    fn a_proxy_and_its_module_are_opened_once() {
        let timeline = one(|told| {
            for session in 1..=3 {
                told.enter_in("C_OpenSession", "proxy.so").given(SLOT, 0).advance(millis(1));
                told.gives(session);
                told.enter("C_OpenSession").given(SLOT, 0).advance(millis(3)).exit().exit();
            }
        });
        let finding = only(whole(&timeline, find));
        assert_eq!((finding.module.as_str(), finding.time), ("proxy.so", millis(8)));
    }

    #[test]
    fn these_are_none() {
        let once = one(|told| {
            opens(told, 1);
            (0..9).for_each(|_| signs(told, 1));
            closes(told, 1);
        });
        let much_used = one(|told| {
            for session in 1..=3 {
                opens(told, session);
                (0..6).for_each(|_| signs(told, session));
                closes(told, session);
            }
        });
        let a_token_each = one(|told| {
            for slot in 0..5 {
                told.makes("C_OpenSession", slot, slot + 10, millis(3));
            }
        });
        let failed = one(|told| {
            for _ in 0..5 {
                told.enter("C_OpenSession").given(SLOT, 0).advance(millis(3)).exit_with(0xE1);
            }
        });
        let needed_each_time = one(|told| {
            for _ in 0..5 {
                told.enter("C_Login").given(1, 2).advance(millis(4)).exit();
                signs(told, 1);
            }
        });
        let a_session_each = {
            let mut story = Story::new();
            for session in 1..=8 {
                story.thread(|told| {
                    opens(told, session);
                    signs(told, session);
                });
            }
            story.timeline()
        };
        for timeline in [once, much_used, a_token_each, failed, needed_each_time, a_session_each] {
            assert_eq!(whole(&timeline, find), []);
        }
        let a_pool = one(|told| {
            (1..=5).for_each(|session| opens(told, session));
            (1..=5).for_each(|session| signs(told, session));
        });
        assert_eq!(each("C_Sign", &a_pool, find), []);
    }

    #[test]
    fn few_operations_are_no_habit() {
        let timeline = one(|told| {
            for session in 1..=2 {
                opens(told, session);
                signs(told, session);
                closes(told, session);
            }
            told.advance(micros(1));
        });
        assert_eq!(each("C_Sign", &timeline, find), []);
    }
}
