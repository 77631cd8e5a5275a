//! Waits of the program itself, outside of any call of a library: sleeps between operations on a
//! token or a card, also of a thread that gives others their work, and questions again and again
//! whether something is ready.
//!
//! What a program sleeps is its own affair as long as nothing waits for it to go on. Between two
//! operations something may: a pause that nobody needs, or a wait for an event by the clock. Whether
//! it can go only its author knows, so nothing is predicted of a loop that asks, and of a pause only
//! that its time would go.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_events::{Fix, WaitsIn};
use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::scene::{life, waits};
use super::stretches::Stretches;
use super::token_calls::works;
use super::watching::ProbeWork;
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Family, Kind, Leaf, Span, Thread};

/// Once or twice, a pause is part of a start or an end.
const FEWEST_PAUSES: u64 = 3;
/// Questions in a row of which one does not come from a loop with something else to do.
const FEWEST_POLLS: u64 = 1000;
/// What runs after a sleep is slower for so long at most: a processor fills a second-level cache of
/// 2 MiB in that time, at 10 GB/s, and has left its idle state and its lowest frequency before.
const COLD: Nanos = Nanos(200_000);
/// Calls that go on so soon after another thread woke up had waited for it, where that is within a
/// quarter of its sleep: of a thread that has nothing to do with them, one in four would be.
const AT_ONCE: Nanos = Nanos(200_000);
const PART_OF_SLEEP: u64 = 4;
/// A shorter gap between calls is the work of a lock or a queue.
const SHORTEST_GAP: Nanos = Nanos(20_000);
/// Of the gaps between calls so many end when that thread wakes up, or it is chance.
const MOST_GAPS: f64 = 0.8;
/// Nothing sleeps and wakes up in less, so whoever asks more often does not sleep in between.
const DENSE: Nanos = Nanos(20_000);

const GO_ON: &str = "go on at once where nothing needs the pause; where it stands for an event, wait \
                     for the event";
const WAIT_FOR_EVENT: &str = "wait for the event itself, with a condition variable or a queue, and \
                              not by the clock";

/// Waits of one sort, by the function of libc that made them.
#[derive(Default)]
struct OwnWaits<'a> {
    count: u64,
    removed: Vec<Removed>,
    /// Those of them that the program may not have waited for, had it not been watched.
    unsure: Vec<Removed>,
    callers: BTreeSet<&'a str>,
}

type Places<'a> = BTreeMap<FindingPlace<'a>, OwnWaits<'a>>;

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let scene = scene.with_gaps();
    let (held_up, holding_up) = hold_ups(&scene);
    let mut pauses = Places::new();
    let mut questions = Places::new();
    for (number, thread) in scene.threads() {
        for leaf in thread.leaves.iter().filter(|leaf| leaf.parent.is_none()) {
            let is_pause = scene.kind(leaf) == Some(Kind::Sleep)
                && !holding_up.contains(&number)
                && is_between_calls(&scene, thread, leaf);
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
    let held_up = held_up.into_iter().filter_map(|(place, waits)| {
        let seen = told_of_hold_up(&waits);
        pause(&scene, place, waits, seen, Remedy::Change(WAIT_FOR_EVENT.to_owned()))
    });
    let pauses = pauses.into_iter().filter_map(|(place, waits)| {
        let remedy = Remedy::TryFirst(Fix::NoSleep(WaitsIn::Program), GO_ON.to_owned());
        let seen = told_of_pauses(&waits);
        pause(&scene, place, waits, seen, remedy)
    });
    let questions =
        questions.into_iter().filter_map(|(place, waits)| question(&scene, place, waits));
    held_up.chain(pauses).chain(questions).collect()
}

/// Sleeps of threads for which others waited that make calls: these did nothing, and went on when
/// one woke up. Removed is what was slept while they had nothing to do. Also which threads they are.
fn hold_ups<'a>(scene: &Scene<'a>) -> (Places<'a>, BTreeSet<usize>) {
    let mut places = Places::new();
    let mut holding_up = BTreeSet::new();
    for (number, thread) in scene.threads() {
        let sleeps: Vec<&Leaf> =
            thread.leaves.iter().filter(|leaf| is_sleep(scene, leaf)).collect();
        // Who calls as often as it sleeps works itself.
        let calls = thread.spans.iter().filter(|span| is_client(scene, span)).count();
        if (sleeps.len() as u64) < FEWEST_PAUSES || calls >= sleeps.len() {
            continue;
        }
        let others = scene.threads().filter(|(other, it)| {
            *other != number && it.process == thread.process && makes_calls(scene, it)
        });
        let others: Vec<&Thread> = others.map(|(_, other)| other).collect();
        let gaps = idle_gaps(scene, &others);
        let held = held_up(&sleeps, &gaps);
        let is_habit = held.len() as u64 >= FEWEST_PAUSES;
        if !is_habit || (held.len() as f64) < MOST_GAPS * gaps.len() as f64 {
            continue;
        }
        holding_up.insert(number);
        let watched: Vec<ProbeWork> =
            others.iter().map(|other| ProbeWork::on(scene.timeline, other)).collect();
        let mut before = thread.start;
        for (leaf, start, end) in held {
            let work = Stretches::from_iter([(before, start)]);
            let watching: Nanos =
                watched.iter().map(|it| it.within(&work, before, start).known).sum();
            before = end;
            if !scene.counts(number, start) {
                continue;
            }
            let call = scene.timeline.call(leaf.call);
            let waits = places.entry(scene.place(call)).or_default();
            let wait = Removed { thread: number, start, end };
            waits.count += 1;
            waits.removed.push(wait);
            if was_entered_because_watched(leaf, start, watching) {
                waits.unsure.push(wait);
            }
            waits.callers.insert(&call.caller);
        }
    }
    (places, holding_up)
}

/// Whether a thread may not have begun this sleep unwatched: what it waited for was ready at `ready`,
/// and would have been earlier by what watching cost, before the sleep. Where it stands between two
/// sleeps is chance then, and how long it waits.
fn was_entered_because_watched(sleep: &Leaf, ready: Nanos, watching: Nanos) -> bool {
    watching > Nanos::ZERO && watching >= ready - sleep.start
}

/// When none of the threads that make calls worked, between their first call and their last.
fn idle_gaps(scene: &Scene<'_>, clients: &[&Thread]) -> Vec<(Nanos, Nanos)> {
    let calls = clients.iter().flat_map(|thread| &thread.spans);
    let calls: Stretches =
        calls.filter(|span| is_client(scene, span)).map(|span| (span.start, span.end)).collect();
    let works = clients.iter().map(|thread| life(thread).without(&waits(scene.timeline, thread)));
    let works: Vec<_> = works.collect();
    let gaps = calls.with_gaps().without(&calls).without(&Stretches::any_of(&works));
    gaps.iter().filter(|(start, end)| *end - *start >= SHORTEST_GAP).collect()
}

/// The gaps that end just after one of these sleeps, with what it took of them.
fn held_up<'t>(sleeps: &[&'t Leaf], gaps: &[(Nanos, Nanos)]) -> Vec<(&'t Leaf, Nanos, Nanos)> {
    let held = |(start, end): &(Nanos, Nanos)| {
        let last = sleeps.partition_point(|leaf| leaf.end <= *end).checked_sub(1)?;
        let leaf = sleeps[last];
        let most = AT_ONCE.min(Nanos((leaf.end - leaf.start).0 / PART_OF_SLEEP));
        let soon = leaf.end > *start && *end - leaf.end <= most;
        soon.then(|| (leaf, leaf.start.max(*start), leaf.end))
    };
    gaps.iter().filter_map(held).collect()
}

fn is_sleep(scene: &Scene<'_>, leaf: &Leaf) -> bool {
    leaf.parent.is_none() && scene.kind(leaf) == Some(Kind::Sleep)
}

fn makes_calls(scene: &Scene<'_>, thread: &Thread) -> bool {
    thread.spans.iter().any(|span| is_client(scene, span))
}

fn is_client(scene: &Scene<'_>, span: &Span) -> bool {
    matches!(scene.timeline.call(span.call).family, Family::Pkcs11 | Family::Pcsc)
}

/// Whether the thread was in a call of PKCS#11 or PC/SC before, and will be in one again.
fn is_between_calls(scene: &Scene<'_>, thread: &Thread, leaf: &Leaf) -> bool {
    let next = thread.spans.partition_point(|span| span.start < leaf.start);
    let is_client = |at: Option<usize>| {
        at.and_then(|at| thread.spans.get(at)).is_some_and(|span| is_client(scene, span))
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

fn told_of_pauses(waits: &OwnWaits<'_>) -> String {
    let times = words::times(waits.count);
    let time = time(waits);
    format!("the program itself slept {times} between calls of PKCS#11 or PC/SC: {time} in all")
}

fn told_of_hold_up(waits: &OwnWaits<'_>) -> String {
    let times = words::times(waits.count);
    let time = time(waits);
    format!(
        "a thread of the program slept {times} while those that call PKCS#11 or PC/SC had nothing \
         to do, and they went on when it woke up: {time} in all"
    )
}

fn pause(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    waits: OwnWaits<'_>,
    seen: String,
    remedy: Remedy,
) -> Option<Finding> {
    let mut perhaps: Vec<_> = waits.removed.iter().flat_map(|pause| cold(scene, pause)).collect();
    let unsure: BTreeSet<Removed> = waits.unsure.iter().copied().collect();
    let mut finding = report(scene, FindingKind::Sleep, place, waits, seen, remedy)?;
    finding.removed.retain(|wait| !unsure.contains(wait));
    perhaps.extend(unsure);
    finding.perhaps = perhaps;
    Some(finding)
}

/// What is slower because of a pause: how much faster it would be without is not known, at most all
/// of it.
fn cold(scene: &Scene<'_>, pause: &Removed) -> impl Iterator<Item = Removed> {
    let number = pause.thread;
    let thread = &scene.timeline.threads[number];
    let works = works(scene, thread, pause.end, pause.end + COLD);
    let all: Vec<_> = works.iter().collect();
    all.into_iter().map(move |(start, end)| Removed { thread: number, start, end })
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
    use crate::findings::prediction;
    use crate::findings::tests::{figures, only, whole};
    use crate::operation::Operations;
    use crate::synthetic::{Story, micros, millis};
    use crate::timeline::{FunctionId, Timeline, WatchCost};

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
        // A processor that slept is slow for a while: 0.2 ms of the call after each.
        let operations = Operations::whole(&timeline);
        let saving = prediction::saving(&timeline, &operations, &prediction::union([&finding]));
        assert_eq!((saving.low, saving.high), (20e6, 20.8e6));
    }

    /// A thread that signs for 2 ms whenever another one gives it work, which looks after each
    /// `pause` whether that is done.
    fn handed_over(pause: Nanos, then: Nanos) -> Vec<Finding> {
        whole(&handing_over(pause, then), find)
    }

    fn handing_over(pause: Nanos, then: Nanos) -> Timeline {
        let mut story = Story::new();
        story.thread(|told| {
            for number in 0..10 {
                told.until(Nanos(number * (3_000_000 + then.0)));
                told.call("C_Sign", 1, millis(2)).leaf("pthread_cond_wait", millis(1) + then);
            }
            told.call("C_Sign", 1, millis(2));
        });
        story.thread(|told| {
            for number in 0..10 {
                told.until(Nanos(number * (3_000_000 + then.0)));
                told.leaf("usleep", pause).leaf("usleep", pause);
            }
        });
        story.timeline()
    }

    /// What is ready 0.55 ms after the second sleep began would have been ready in the first one, had
    /// watching it not taken 0.6 ms: where the wait had ended then is not known.
    #[test]
    fn what_only_watching_made_wait_is_saved_perhaps() {
        let saved = |watching: Nanos| {
            let mut timeline = handing_over(micros(1450), Nanos::ZERO);
            let signs = timeline.calls.iter().position(|call| call.function == "C_Sign").unwrap();
            let cost = WatchCost { inside: watching, ..WatchCost::default() };
            timeline.watch_costs.insert(FunctionId(signs as u32), cost);
            let finding = only(whole(&timeline, find));
            assert_eq!(finding.time, micros(10 * 900), "what was slept is told all the same");
            let operations = Operations::whole(&timeline);
            prediction::saving(&timeline, &operations, &prediction::union([&finding]))
        };
        let [surely, perhaps] = [500, 600].map(|watching| saved(micros(watching)));
        assert_eq!((surely.low, perhaps.low), (9e6, 0.0));
        assert_eq!(surely.high, perhaps.high);
    }

    #[test]
    fn a_thread_that_looks_by_the_clock_whether_others_are_ready_is_found() {
        // Twice 1.45 ms: for 0.9 ms of the last one nothing was left to do.
        let finding = only(handed_over(micros(1450), Nanos::ZERO));
        assert_eq!((finding.kind, finding.count), (FindingKind::Sleep, 10));
        assert_eq!(finding.time, micros(10 * 900));
        assert_eq!(finding.trial, None);
        assert!(finding.evidence[0].starts_with("a thread of the program slept 10 times while"));
        // They go on without it: a clock of the program's own.
        assert_eq!(handed_over(micros(1450), millis(3)), []);
        assert_eq!(handed_over(micros(900), Nanos::ZERO), []);
        // Another that wakes up each 0.1 ms, and had to do with nothing.
        let mut story = Story::new();
        story.thread(|told| {
            for _ in 0..10 {
                told.call("C_Sign", 1, millis(2)).leaf("pthread_cond_wait", micros(1_030));
            }
            told.call("C_Sign", 1, millis(2));
        });
        story.thread(|told| {
            for _ in 0..320 {
                told.leaf("usleep", micros(97));
            }
        });
        assert_eq!(whole(&story.timeline(), find), []);
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
