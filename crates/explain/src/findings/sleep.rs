//! `sleep`: a library call sleeps.
//!
//! Whoever calls a library waits for a card, a token or a result; time that passes in usleep(3)
//! serves none of these, or only by chance. What the program sleeps outside of any call is its own
//! affair, and so is a call that was asked to wait.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Kind, Span};

/// Sleeps in one function, real ones or those that a fix put there.
struct Slept<'a> {
    layer: Owner,
    count: u64,
    removed: Vec<Removed>,
    shortest: Nanos,
    longest: Nanos,
    /// Functions of libc that slept.
    by: BTreeSet<&'a str>,
    callers: BTreeSet<&'a str>,
}

impl Slept<'_> {
    fn new(layer: Owner) -> Self {
        Self {
            layer,
            count: 0,
            removed: Vec::new(),
            shortest: Nanos::NEVER,
            longest: Nanos::ZERO,
            by: BTreeSet::new(),
            callers: BTreeSet::new(),
        }
    }

    fn add(&mut self, sleep: Removed) {
        let time = sleep.end - sleep.start;
        self.count += 1;
        self.removed.push(sleep);
        self.shortest = self.shortest.min(time);
        self.longest = self.longest.max(time);
    }
}

type Sleeps<'a> = BTreeMap<FindingPlace<'a>, Slept<'a>>;

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let own = sleeps(scene).into_iter().filter_map(|(place, slept)| {
        let by: Vec<_> = slept.by.iter().copied().collect();
        let evidence = format!(
            "{} slept {} ({}): {} in all, {} at a time",
            words::function_of(place.function, place.module),
            words::times(slept.count),
            by.join(", "),
            total(&slept),
            words::between(slept.shortest, slept.longest),
        );
        let fix = format!("no-sleep:{}", place.function);
        let remedy = Remedy::fix_or(&fix, "wait for the event itself instead of for time to pass");
        report(scene, place, slept, evidence, remedy)
    });
    let injected = injected(scene).into_iter().filter_map(|(place, slept)| {
        let evidence = format!(
            "injected: a fix made {} of {} return later: {} in all, {} at a time",
            words::counted(slept.count, "call"),
            words::function_of(place.function, place.module),
            total(&slept),
            words::between(slept.shortest, slept.longest),
        );
        let remedy = Remedy::Change("nothing: without the fix it is not there".to_owned());
        report(scene, place, slept, evidence, remedy)
    });
    own.chain(injected).collect()
}

fn total(slept: &Slept<'_>) -> Nanos {
    slept.removed.iter().map(|sleep| sleep.end - sleep.start).sum()
}

fn report(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    slept: Slept<'_>,
    evidence: String,
    remedy: Remedy,
) -> Option<Finding> {
    scene.report(Waste {
        kind: FindingKind::Sleep,
        place,
        layer: slept.layer,
        count: slept.count,
        removed: slept.removed,
        evidence: vec![evidence, words::called(place.module, slept.callers)],
        remedy,
    })
}

fn sleeps<'a>(scene: &Scene<'a>) -> Sleeps<'a> {
    let mut sleeps = Sleeps::new();
    for (number, thread) in scene.threads() {
        for leaf in &thread.leaves {
            if scene.kind(leaf) != Some(Kind::Sleep) || !scene.counts(number, leaf.start) {
                continue;
            }
            let Some((around, span)) = scene.around(thread, leaf) else { continue };
            if scene.waits_on_request(thread, around) {
                continue;
            }
            let slept = entry(scene, &mut sleeps, span);
            slept.add(Removed { thread: number, start: leaf.start, end: leaf.end });
            slept.by.insert(scene.timeline.call(leaf.call).function);
        }
    }
    sleeps
}

fn entry<'s, 'a>(scene: &Scene<'a>, into: &'s mut Sleeps<'a>, span: &Span) -> &'s mut Slept<'a> {
    let call = scene.timeline.call(span.call);
    let slept =
        into.entry(scene.place(call)).or_insert_with(|| Slept::new(scene.layer(Some(span))));
    slept.callers.insert(&call.caller);
    slept
}

/// What `delay` put into calls: it waits when they are about to return.
fn injected<'a>(scene: &Scene<'a>) -> Sleeps<'a> {
    let mut sleeps = Sleeps::new();
    for (number, thread) in scene.threads() {
        for (place, time) in &thread.injected {
            let span = &thread.spans[place.index()];
            if !scene.counts(number, span.start) {
                continue;
            }
            // Moments are rounded.
            let start = (span.end - *time).max(span.start);
            let sleep = Removed { thread: number, start, end: span.end };
            entry(scene, &mut sleeps, span).add(sleep);
        }
    }
    sleeps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{each, figures, only, trial, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    fn ends_a_transaction(told: &mut ThreadStory<'_>, asleep: Nanos) {
        told.enter("SCardEndTransaction").advance(micros(100)).leaf("usleep", asleep);
        told.advance(micros(100)).exit();
    }

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    #[test]
    fn a_sleep_inside_a_call_is_found() {
        let timeline = one(|told| {
            ends_a_transaction(told, millis(2));
            told.advance(millis(13));
            ends_a_transaction(told, millis(5));
            told.advance(micros(4_600));
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (2.0, 2, millis(7), 280));
        assert_eq!(
            (finding.place.as_str(), finding.layer.as_str()),
            ("SCardEndTransaction", "pcsc")
        );
        assert_eq!(trial(&finding).as_deref(), Some("no-sleep:SCardEndTransaction"));
        assert_eq!(
            finding.evidence,
            [
                "SCardEndTransaction of libpcsclite.so.1 slept twice (usleep): 7.00 ms in all, \
                 2.00 ms to 5.00 ms at a time",
                "called by the program",
            ]
        );
        let removed = Removed { thread: 0, start: micros(100), end: micros(2_100) };
        assert_eq!(finding.removed[0], removed);
    }

    #[test]
    fn the_innermost_call_is_the_place() {
        let timeline = one(|told| {
            told.enter("C_Sign");
            ends_a_transaction(told, millis(2));
            told.exit();
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(finding.place, "SCardEndTransaction");
        assert_eq!(finding.evidence[1], "called by module.so");
    }

    #[test]
    fn shares_are_those_of_the_operations() {
        let timeline = one(|told| {
            told.enter("C_Initialize").leaf("usleep", millis(90)).exit();
            for _ in 0..4 {
                told.enter("C_Sign").leaf("nanosleep", millis(1)).advance(millis(3)).exit();
                told.advance(millis(6));
            }
        });
        let finding = only(each("C_Sign", &timeline, find));
        assert_eq!(figures(&finding), (1.0, 4, millis(4), 250));
        let findings = whole(&timeline, find);
        assert_eq!(
            findings.iter().map(figures).collect::<Vec<_>>(),
            [(1.0, 1, millis(90), 692), (4.0, 4, millis(4), 31)]
        );
    }

    #[test]
    fn injected_time_is_said_to_be() {
        let timeline = one(|told| {
            for _ in 0..2 {
                told.enter("C_Sign").advance(millis(4)).injects(millis(3)).exit();
            }
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (2.0, 2, millis(6), 750));
        assert_eq!(finding.trial, None);
        let says = "injected: a fix made 2 calls of C_Sign of module.so return later: 6.00 ms in \
                    all, 3.00 ms at a time";
        assert_eq!(finding.evidence[0], says);
        assert_eq!(finding.removed[1], Removed { thread: 0, start: millis(5), end: millis(8) });
    }

    #[test]
    fn these_are_none() {
        let of_the_program = one(|told| {
            told.call("C_Sign", 1, millis(1)).leaf("usleep", millis(50));
        });
        let short = one(|told| {
            told.enter("C_Sign").leaf("usleep", micros(90)).advance(millis(10)).exit();
        });
        let asked_for = one(|told| {
            told.enter("SCardGetStatusChange").given(1, 1_000).leaf("usleep", millis(50)).exit();
            told.enter("C_WaitForSlotEvent").given(0, 0);
            told.enter("SCardStatus").leaf("usleep", millis(50)).exit().exit();
        });
        let taken_away = one(|told| {
            told.enter("C_Sign").leaf("usleep", millis(5)).with(|leaf| leaf.replaced = true);
            told.exit();
        });
        for timeline in [of_the_program, short, asked_for, taken_away] {
            assert_eq!(whole(&timeline, find), []);
        }
    }

    #[test]
    fn a_call_that_was_asked_not_to_wait_and_sleeps_is_one() {
        let timeline = one(|told| {
            told.enter("SCardGetStatusChange").given(1, 0).leaf("usleep", millis(5)).exit();
        });
        assert_eq!(only(whole(&timeline, find)).count, 1);
    }
}
