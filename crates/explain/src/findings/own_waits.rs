//! Waits of the program itself, outside of any call of a library: sleeps between operations on a
//! token or a card, and questions again and again whether something is ready.
//!
//! What a program sleeps is its own affair as long as nothing waits for it to go on. Between two
//! operations something may: a pause that nobody needs, or a wait for an event by the clock. Whether
//! it can go only its author knows, so nothing is predicted of a loop that asks, and of a pause only
//! that its time would go.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_events::{Fix, WaitsIn};
use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Family, Kind, Leaf, Thread};

/// Once or twice, a pause is part of a start or an end.
const FEWEST_PAUSES: u64 = 3;
/// Questions in a row of which one does not come from a loop with something else to do.
const FEWEST_POLLS: u64 = 1000;
/// Nothing sleeps and wakes up in less, so whoever asks more often does not sleep in between.
const DENSE: Nanos = Nanos(20_000);

/// Waits of one sort, by the function of libc that made them.
#[derive(Default)]
struct OwnWaits<'a> {
    count: u64,
    removed: Vec<Removed>,
    callers: BTreeSet<&'a str>,
}

type Places<'a> = BTreeMap<FindingPlace<'a>, OwnWaits<'a>>;

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let scene = scene.with_gaps();
    let mut pauses = Places::new();
    let mut questions = Places::new();
    for (number, thread) in scene.threads() {
        for leaf in thread.leaves.iter().filter(|leaf| leaf.parent.is_none()) {
            let is_pause =
                scene.kind(leaf) == Some(Kind::Sleep) && is_between_calls(&scene, thread, leaf);
            let places = match is_pause {
                true => &mut pauses,
                false if is_dense_poll(&scene, leaf) => &mut questions,
                false => continue,
            };
            if !scene.counts(number, leaf.start) {
                continue;
            }
            let call = scene.timeline.call(leaf.call);
            let waits = places.entry(scene.place(call)).or_default();
            waits.count += u64::from(leaf.count);
            waits.removed.push(Removed { thread: number, start: leaf.start, end: leaf.end });
            waits.callers.insert(&call.caller);
        }
    }
    pauses.retain(|_, waits| waits.count >= FEWEST_PAUSES);
    questions.retain(|_, waits| waits.count >= FEWEST_POLLS);
    let pauses = pauses.into_iter().filter_map(|(place, waits)| pause(&scene, place, waits));
    let questions =
        questions.into_iter().filter_map(|(place, waits)| question(&scene, place, waits));
    pauses.chain(questions).collect()
}

/// Whether the thread was in a call of PKCS#11 or PC/SC before, and will be in one again.
fn is_between_calls(scene: &Scene<'_>, thread: &Thread, leaf: &Leaf) -> bool {
    let next = thread.spans.partition_point(|span| span.start < leaf.start);
    let is_client = |at: Option<usize>| {
        let call = at.and_then(|at| thread.spans.get(at)).map(|it| scene.timeline.call(it.call));
        call.is_some_and(|call| matches!(call.family, Family::Pkcs11 | Family::Pcsc))
    };
    is_client(next.checked_sub(1)) && is_client(Some(next))
}

/// Whether many questions that waited for nothing follow one another closely.
fn is_dense_poll(scene: &Scene<'_>, leaf: &Leaf) -> bool {
    let is_empty = scene.kind(leaf) == Some(Kind::Poll) && leaf.b == 0 && leaf.result == 0;
    is_empty && leaf.count > 1 && (leaf.end - leaf.start).0 <= DENSE.0 * u64::from(leaf.count)
}

fn time(waits: &OwnWaits<'_>) -> Nanos {
    waits.removed.iter().map(|wait| wait.end - wait.start).sum()
}

fn pause(scene: &Scene<'_>, place: FindingPlace<'_>, waits: OwnWaits<'_>) -> Option<Finding> {
    let seen = format!(
        "the program itself slept {} between calls of PKCS#11 or PC/SC: {} in all",
        words::times(waits.count),
        time(&waits),
    );
    let change = "go on at once where nothing needs the pause; where it stands for an event, wait \
                  for the event";
    let remedy = Remedy::TryFirst(Fix::NoSleep(WaitsIn::Program), change.to_owned());
    report(scene, FindingKind::Sleep, place, waits, seen, remedy)
}

fn question(scene: &Scene<'_>, place: FindingPlace<'_>, waits: OwnWaits<'_>) -> Option<Finding> {
    let seen = format!(
        "the program itself asked {} whether something was ready, without waiting and in vain, \
         for {}: it kept a processor busy with nothing else",
        words::times(waits.count),
        time(&waits),
    );
    let change = "wait for the event with a time limit instead of asking for it";
    let remedy = match place.function {
        "poll" | "__poll_chk" | "epoll_wait" => {
            Remedy::TryFirst(Fix::NoBusyWait(WaitsIn::Program), change.to_owned())
        }
        _ => Remedy::Change(change.to_owned()),
    };
    let mut finding = report(scene, FindingKind::BusyWait, place, waits, seen, remedy)?;
    // It ends when something happens, however it is waited for.
    finding.removed.clear();
    Some(finding)
}

fn report(
    scene: &Scene<'_>,
    kind: FindingKind,
    place: FindingPlace<'_>,
    waits: OwnWaits<'_>,
    seen: String,
    remedy: Remedy,
) -> Option<Finding> {
    scene.report(Waste {
        kind,
        place,
        layer: Owner::Program,
        count: waits.count,
        evidence: vec![seen, words::called(place.module, waits.callers)],
        removed: waits.removed,
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{figures, only, whole};
    use crate::synthetic::{Story, micros, millis};

    #[test]
    fn a_pause_between_operations_is_found_and_one_at_the_end_is_not() {
        let timeline = Story::new()
            .thread(|told| {
                told.leaf("nanosleep", millis(50));
                for _ in 0..5 {
                    told.call("C_Sign", 1, millis(5)).leaf("nanosleep", millis(5));
                }
                told.leaf("nanosleep", millis(50));
            })
            .timeline();
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (4.0, 4, millis(20), 133));
        let fix = Some(Fix::NoSleep(WaitsIn::Program));
        assert_eq!((finding.layer.as_str(), &finding.trial), ("program", &fix));
        assert!(finding.evidence[0].starts_with("the program itself slept 4 times"));
    }

    #[test]
    fn a_loop_of_questions_is_found_and_predicts_nothing() {
        let story = |count, over| {
            let mut story = Story::new();
            story.thread(|told| {
                told.counted("poll", count, micros(1), over).advance(over + millis(10));
            });
            whole(&story.timeline(), find)
        };
        let finding = only(story(100_000, millis(300)));
        assert_eq!((finding.kind, finding.removed), (FindingKind::BusyWait, vec![]));
        // Something else is done in between; a few.
        assert_eq!(story(1_000, millis(300)), []);
        assert_eq!(story(900, millis(1)), []);
    }

    #[test]
    fn a_program_without_a_token_sleeps_as_it_likes() {
        let timeline = Story::new()
            .thread(|told| {
                for _ in 0..5 {
                    told.leaf("nanosleep", millis(5)).advance(millis(5));
                }
            })
            .timeline();
        assert_eq!(whole(&timeline, find), []);
    }
}
