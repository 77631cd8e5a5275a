//! `busy-wait`: a library call asks again and again whether something is ready, without waiting.
//!
//! A few such questions are cheap. A run of them that is dense and lasts is a wait that costs a
//! processor, and ends when a clock says so and not when something happens.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste, waited};
use super::{Finding, FindingKind, Removed, words};
use crate::codes;
use crate::owners::Owner;
use crate::timeline::{Kind, Leaf, Place};

/// The trial lets three empty polls pass; of ten, most of the time goes with the others.
const FEWEST_POLLS: u64 = 10;
/// Spinning for less than that is right: a thread that sleeps is woken up so late, Linux's timer
/// slack (prctl(2), PR_SET_TIMERSLACK).
const SHORTEST: Nanos = Nanos(50_000);
/// Nothing sleeps and wakes up in less, so whoever asks more often does not sleep in between.
const DENSE: Nanos = Nanos(20_000);
/// A clock is read in 0.02 to 0.1 µs, under observation in twice that. Whoever does anything else
/// in between (a line of a log takes more than a microsecond) does not spin on the clock.
const DENSE_CLOCK: Nanos = Nanos(1_000);
/// A run that waits for more than a tenth of its time is a loop around a wait.
const MOST_RESTING: f64 = 0.1;

/// Calls of one sort that follow one another, in one call.
#[derive(Clone, Copy)]
struct Row {
    count: u64,
    start: Nanos,
    end: Nanos,
    /// Time in calls that waited, among them.
    resting: Nanos,
}

impl Row {
    const EMPTY: Self =
        Self { count: 0, start: Nanos::NEVER, end: Nanos::ZERO, resting: Nanos::ZERO };

    fn add(&mut self, leaf: &Leaf) {
        self.count += u64::from(leaf.count);
        self.start = self.start.min(leaf.start);
        self.end = self.end.max(leaf.end);
    }

    fn rest(&mut self, leaf: &Leaf) {
        if leaf.start < self.end {
            self.resting += leaf.time;
        }
    }

    /// Nothing else was done between the first and the last.
    fn is_dense(&self, most: Nanos) -> bool {
        let length = self.end - self.start;
        length >= SHORTEST
            && length.0 <= most.0 * self.count
            && self.resting.0 as f64 <= MOST_RESTING * length.0 as f64
    }
}

/// Polls and clock readings in one call that follow one another. A wait before the first poll, for
/// an answer that is then polled for, is among the clock readings and not among the polls.
#[derive(Clone, Copy)]
struct PollRun {
    polls: Row,
    clocks: Row,
}

impl PollRun {
    const EMPTY: Self = Self { polls: Row::EMPTY, clocks: Row::EMPTY };

    fn end(&self) -> Nanos {
        self.polls.end.max(self.clocks.end)
    }

    fn add(&mut self, leaf: &Leaf, kind: Kind) {
        match kind {
            Kind::Clock => self.clocks.add(leaf),
            _ => self.polls.add(leaf),
        }
    }

    fn rest(&mut self, leaf: &Leaf) {
        self.polls.rest(leaf);
        self.clocks.rest(leaf);
    }

    /// When it spun, if it did.
    fn spin(&self) -> Option<(Nanos, Nanos)> {
        let spun = match self.polls.count {
            0 => self.clocks.is_dense(DENSE_CLOCK).then_some(self.clocks),
            FEWEST_POLLS.. => self.polls.is_dense(DENSE).then_some(self.polls),
            _ => None,
        };
        spun.map(|row| (row.start, row.end))
    }
}

/// All spinning in one function that one remedy is for.
struct Spun<'a> {
    layer: Owner,
    calls: BTreeSet<(usize, u32)>,
    runs: Vec<PollRun>,
    removed: Vec<Removed>,
    failures: BTreeSet<Option<String>>,
    callers: BTreeSet<&'a str>,
}

/// What can be done about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// It polls: the clock can be made to hurry.
    Hurry,
    /// It only reads the clock, or was asked to wait for so long: the fix does not reach it.
    Change,
}

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut places: BTreeMap<(FindingPlace<'_>, Way), Spun<'_>> = BTreeMap::new();
    for (number, thread) in scene.threads() {
        for (around, run) in runs(scene, number) {
            let Some((start, end)) = run.spin() else { continue };
            let span = &thread.spans[around as usize];
            let call = scene.timeline.call(span.call);
            let way = match run.polls.count > 0 && !scene.waits_on_request(thread, around) {
                true => Way::Hurry,
                false => Way::Change,
            };
            let spun = places.entry((scene.place(call), way)).or_insert_with(|| Spun {
                layer: scene.layer(Some(span)),
                calls: BTreeSet::new(),
                runs: Vec::new(),
                removed: Vec::new(),
                failures: BTreeSet::new(),
                callers: BTreeSet::new(),
            });
            spun.calls.insert((number, around));
            spun.runs.push(run);
            spun.removed.push(Removed { thread: number, start, end });
            spun.failures.insert(codes::failure(scene.timeline, span));
            spun.callers.insert(&call.caller);
        }
    }
    places.into_iter().filter_map(|((place, way), spun)| report(scene, place, way, spun)).collect()
}

/// Runs of empty polls and clock readings, with the call that each is in.
fn runs(scene: &Scene<'_>, number: usize) -> Vec<(u32, PollRun)> {
    let thread = &scene.timeline.threads[number];
    let mut open: HashMap<u32, PollRun> = HashMap::new();
    let mut done = Vec::new();
    for leaf in &thread.leaves {
        let around = leaf.parent.map(Place::get);
        let (Some(kind), Some(around)) = (scene.kind(leaf), around) else { continue };
        if !scene.counts(number, leaf.start) {
            continue;
        }
        let is_empty_poll = kind == Kind::Poll && leaf.b == 0 && leaf.result == 0;
        if is_empty_poll || kind == Kind::Clock {
            let run = open.entry(around).or_insert(PollRun::EMPTY);
            if run.end() != Nanos::ZERO && leaf.start > run.end() + DENSE {
                done.push((around, std::mem::replace(run, PollRun::EMPTY)));
            }
            run.add(leaf, kind);
        } else if waited(scene.timeline, leaf)
            && let Some(run) = open.get_mut(&around)
        {
            run.rest(leaf);
        }
    }
    done.extend(open);
    done
}

fn report(scene: &Scene<'_>, place: FindingPlace<'_>, way: Way, spun: Spun<'_>) -> Option<Finding> {
    let sum = |of: fn(&PollRun) -> u64| spun.runs.iter().map(of).sum::<u64>();
    let lengths = || spun.removed.iter().map(|run| run.end - run.start);
    let shortest = lengths().min()?;
    let longest = lengths().max()?;
    let calls = spun.calls.len() as u64;
    let asked = match sum(|run| run.polls.count) {
        0 => String::new(),
        polls => format!(
            "asked {} whether something was ready, without waiting and in vain, and ",
            words::times(polls)
        ),
    };
    let seen = format!(
        "{} {asked}read the clock {}: it spun for {} in {} ({} at a time)",
        words::function_of(place.function, place.module),
        words::times(sum(|run| run.clocks.count)),
        lengths().sum::<Nanos>(),
        words::counted(calls, "call"),
        words::between(shortest, longest),
    );
    let called = words::called(place.module, spun.callers);
    let from = format!("{called}; it {}", words::ended(&spun.failures));
    let fix = format!("no-busy-wait:{}", place.function);
    let change = "wait with a time limit (poll(2), a condition variable) until something is ready";
    scene.report(Waste {
        kind: FindingKind::BusyWait,
        place,
        layer: spun.layer,
        count: calls,
        removed: spun.removed,
        evidence: vec![seen, from],
        remedy: match way {
            Way::Hurry => Remedy::fix_or(&fix, change),
            Way::Change => Remedy::Change(change.to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{figures, only, trial, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    const TIMEOUT: u64 = 0x8010_000A;

    /// What pcsc-lite 1.9.9 does: in a millisecond it asks 454 times.
    fn spins(told: &mut ThreadStory<'_>) {
        told.enter("SCardGetStatusChange").given(1, 0).advance(micros(50));
        told.counted("gettimeofday", 456, Nanos(60), micros(1_052));
        told.counted("poll", 454, Nanos(900), micros(1_040));
        told.counted("stat", 454, Nanos(700), micros(1_049));
        told.advance(micros(1_060)).exit_with(TIMEOUT);
    }

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    #[test]
    fn a_call_that_spins_is_found() {
        let timeline = one(|told| {
            for _ in 0..13 {
                spins(told);
                told.advance(micros(890));
            }
        });
        let finding = only(whole(&timeline, find));
        assert_eq!(figures(&finding), (13.0, 13, micros(13 * 1_040), 520));
        assert_eq!(finding.layer, "pcsc");
        assert_eq!(trial(&finding).as_deref(), Some("no-busy-wait:SCardGetStatusChange"));
        assert_eq!(
            finding.evidence,
            [
                "SCardGetStatusChange of libpcsclite.so.1 asked 5,902 times whether something was \
                 ready, without waiting and in vain, and read the clock 5,928 times: it spun for \
                 13.5 ms in 13 calls (1.04 ms at a time)",
                "called by the program; it always ended with SCARD_E_TIMEOUT",
            ]
        );
        let removed = Removed { thread: 0, start: micros(50), end: micros(1_090) };
        assert_eq!(finding.removed[0], removed);
    }

    #[test]
    fn a_spin_on_the_clock_alone_has_no_trial() {
        let timeline = one(|told| {
            told.enter("C_Sign").counted("clock_gettime", 20_000, Nanos(40), millis(2));
            told.advance(millis(3)).exit();
        });
        let finding = only(whole(&timeline, find));
        assert_eq!((finding.time, finding.trial), (millis(2), None));
        let says = "C_Sign of module.so read the clock 20,000 times: it spun for 2.00 ms in 1 call \
                    (2.00 ms at a time)";
        assert_eq!(finding.evidence[0], says);
        assert!(finding.advice.is_some());
    }

    #[test]
    fn polls_that_are_listed_one_by_one_make_a_run() {
        let timeline = one(|told| {
            told.enter("SCardStatus");
            for _ in 0..12 {
                told.leaf("poll", micros(21)).advance(micros(2));
            }
            told.leaf("poll", micros(19)).exit();
        });
        // 12 of 23 µs and one of 19 µs: a period of 22.7 µs is not dense.
        assert_eq!(whole(&timeline, find), []);
        let timeline = one(|told| {
            told.enter("SCardStatus");
            for _ in 0..13 {
                told.leaf("poll", micros(8)).advance(micros(2));
            }
            told.exit();
        });
        assert_eq!(only(whole(&timeline, find)).time, micros(128));
    }

    #[test]
    fn these_are_none() {
        let few = one(|told| {
            told.enter("SCardStatus").counted("poll", 3, micros(1), micros(60));
            told.advance(micros(70)).exit();
        });
        let brief = one(|told| {
            told.enter("SCardStatus").counted("poll", 20, micros(1), micros(40));
            told.advance(micros(70)).exit();
        });
        let with_data = one(|told| {
            told.enter("SCardStatus").counted("poll", 454, micros(1), millis(1));
            told.with(|leaf| leaf.result = 1).advance(millis(1)).exit();
        });
        let with_a_limit = one(|told| {
            told.enter("SCardStatus").counted("poll", 454, micros(1), millis(1));
            told.with(|leaf| leaf.b = 1_000_000).advance(millis(1)).exit();
        });
        let around_waits = one(|told| {
            told.enter("SCardStatus").counted("poll", 50, micros(1), millis(10));
            for _ in 0..50 {
                told.leaf("recv", micros(198)).advance(micros(2));
            }
            told.exit();
        });
        // Put off the processor, and not waiting.
        let interrupted = one(|told| {
            told.enter("SCardStatus").counted("poll", 454, micros(1), millis(5));
            told.leaf("stat", millis(4)).advance(millis(1)).exit();
        });
        assert_eq!(only(whole(&interrupted, find)).time, millis(5));
        // An answer is waited for, and then the next one polled for.
        let answered = one(|told| {
            told.enter("SCardStatus").counted("clock_gettime", 456, Nanos(60), micros(1_190));
            told.leaf("recv", micros(180))
                .counted("poll", 454, micros(1), millis(1))
                .advance(micros(1_020))
                .exit();
        });
        assert_eq!(only(whole(&answered, find)).time, millis(1));
        let a_log = one(|told| {
            told.enter("C_Sign").counted("clock_gettime", 100, Nanos(40), millis(1));
            told.advance(millis(1)).exit();
        });
        let of_the_program = one(|told| {
            told.counted("poll", 454, micros(1), millis(1)).advance(millis(2));
        });
        for timeline in [few, brief, with_data, with_a_limit, around_waits, a_log, of_the_program] {
            assert_eq!(whole(&timeline, find), []);
        }
    }

    #[test]
    fn a_call_that_was_asked_to_wait_cannot_be_hurried() {
        let timeline = one(|told| {
            told.enter("SCardGetStatusChange").given(1, 500);
            told.counted("poll", 9_000, micros(1), millis(20)).advance(millis(20)).exit();
        });
        let finding = only(whole(&timeline, find));
        assert_eq!((finding.time, finding.trial), (millis(20), None));
    }
}
