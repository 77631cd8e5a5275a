//! `poll-quantum`: waits that last a multiple of a fixed interval.
//!
//! Something is asked every so often whether it is done, so what it takes is rounded up: on
//! average, half of the interval is lost each time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::{Finding, FindingKind, Removed, words};
use crate::timeline::{End, Kind, Leaf, Place};

/// So many waits that could have had any length lie at multiples by chance once in 10^8 times: each
/// does in one of ten ([`TOLERANCE`] to both sides).
const FEWEST_WAITS: usize = 8;
/// The part of the waits that must lie at multiples.
const EXPLAINED: f64 = 0.9;
/// How far from a multiple, in intervals.
const TOLERANCE: f64 = 0.05;
/// The tolerance of a shorter interval is less than what a sleeping thread is woken up late by
/// (50 µs, Linux's timer slack).
const SHORTEST_QUANTUM: f64 = 1e6;
/// A shorter wait is no multiple of any interval, also of one that lies closer to others.
const SHORTEST_WAIT: f64 = 0.9 * SHORTEST_QUANTUM;
/// Of so many intervals, half an interval is 2.5 %: nothing that is worth a change.
const MOST_QUANTA: u32 = 20;
/// Any two lengths have something like a common measure; a third one seldom fits.
const FEWEST_MULTIPLES: usize = 3;
/// The part of the waits that must lie at other multiples than the most frequent one, ...
const VARIED: f64 = 0.25;
/// ... and how many: the interval can be chosen for the most frequent one, so only the others tell
/// something, and these do once in 10^5 times by chance.
const FEWEST_OTHERS: usize = 5;
/// As many lengths are enough to look for an interval that then has to hold for all of them.
const LOOKED_AT: usize = 512;

/// A wait: which call, and how much of it.
#[derive(Clone, Copy)]
struct Wait {
    thread: u32,
    span: u32,
    length: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuantumSource {
    /// What a call slept, or waited in vain.
    Waited,
    /// How long it took.
    Took,
}

/// Waits in calls of one function.
#[derive(Default)]
struct WaitsInPlace {
    /// Those that may be a multiple of an interval.
    waits: Vec<Wait>,
    /// How many are shorter than the shortest interval: there may be millions, of which nothing else
    /// matters.
    shorter: usize,
}

type Waits<'a> = BTreeMap<FindingPlace<'a>, WaitsInPlace>;

pub(super) fn find(scene: &Scene<'_>) -> Vec<Finding> {
    let mut found = BTreeSet::new();
    let mut findings = Vec::new();
    for (source, waits) in
        [(QuantumSource::Waited, waited(scene)), (QuantumSource::Took, took(scene))]
    {
        for (place, waits) in waits {
            if found.contains(&place) {
                continue;
            }
            let lengths: Vec<_> = waits.waits.iter().map(|wait| wait.length.0 as f64).collect();
            if let Some(grid) = Grid::through(&lengths, waits.shorter) {
                found.insert(place);
                findings.extend(report(scene, place, source, &waits, &grid));
            }
        }
    }
    findings
}

/// Time in calls of libc that sleep, and in those that wait with a time limit and in vain.
fn waited<'a>(scene: &Scene<'a>) -> Waits<'a> {
    let mut waits = Waits::new();
    for (number, thread) in scene.threads() {
        let mut sums: HashMap<u32, Nanos> = HashMap::new();
        for leaf in &thread.leaves {
            let around = leaf.parent.map(Place::get);
            let (Some(kind), Some(around)) = (scene.kind(leaf), around) else { continue };
            let is_wait =
                kind == Kind::Sleep || (kind == Kind::Poll && leaf.b > 0 && leaf.result == 0);
            if is_wait && scene.counts(number, leaf.start) {
                *sums.entry(around).or_default() += asked(leaf);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable();
        for (span, length) in sums {
            add(scene, &mut waits, Wait { thread: number as u32, span, length });
        }
    }
    waits
}

/// How long a call was asked to wait, where that is known: it takes a little longer, and on a busy
/// machine much.
fn asked(leaf: &Leaf) -> Nanos {
    match leaf.b {
        0 | u64::MAX => leaf.time,
        each => Nanos(each.saturating_mul(leaf.count.into())),
    }
}

/// Calls that hold no other. Short ones count too: of a call that is quick, those last multiples of
/// the scheduler's interval that were put off the processor.
fn took<'a>(scene: &Scene<'a>) -> Waits<'a> {
    let mut waits = Waits::new();
    for (number, thread) in scene.threads() {
        let mut holds_others = vec![false; thread.spans.len()];
        for parent in thread.spans.iter().filter_map(|span| span.parent) {
            holds_others[parent.index()] = true;
        }
        for (span, at) in thread.spans.iter().zip(0..) {
            let is_whole = span.end_kind == End::Returned && scene.counts(number, span.start);
            if is_whole && !holds_others[at as usize] {
                add(
                    scene,
                    &mut waits,
                    Wait { thread: number as u32, span: at, length: span.time() },
                );
            }
        }
    }
    waits
}

fn add<'a>(scene: &Scene<'a>, waits: &mut Waits<'a>, wait: Wait) {
    let thread = &scene.timeline.threads[wait.thread as usize];
    if !scene.waits_on_request(thread, wait.span) {
        let call = scene.timeline.call(thread.spans[wait.span as usize].call);
        let in_place = waits.entry(scene.place(call)).or_default();
        match (wait.length.0 as f64) < SHORTEST_WAIT {
            true => in_place.shorter += 1,
            false => in_place.waits.push(wait),
        }
    }
}

/// An interval of which waits are multiples.
struct Grid {
    /// The distance of two steps of the grid, in nanoseconds.
    quantum: f64,
    explained: usize,
    /// Multiples that were seen.
    multiples: BTreeSet<u32>,
}

impl Grid {
    /// The longest interval that explains lengths in nanoseconds, beside so many shorter ones.
    fn through(lengths: &[f64], shorter: usize) -> Option<Self> {
        let part = lengths.len() as f64 / (lengths.len() + shorter).max(1) as f64;
        if lengths.len() < FEWEST_WAITS || part < EXPLAINED {
            return None;
        }
        let step = lengths.len().div_ceil(LOOKED_AT);
        let mut sample: Vec<_> = lengths.iter().step_by(step).copied().collect();
        sample.sort_by(f64::total_cmp);
        // One that is a multiple of it: most are, so one of eight throughout is.
        let picks = (0..8).map(|pick| sample[(sample.len() - 1) * (2 * pick + 1) / 16]);
        let candidates =
            picks.flat_map(|length| (1..=MOST_QUANTA).map(move |count| length / f64::from(count)));
        let mut candidates: Vec<_> =
            candidates.filter(|quantum| *quantum >= SHORTEST_QUANTUM).collect();
        candidates.sort_by(|one, other| other.total_cmp(one));
        let holds = |quantum: f64| {
            let of_sample = sample.len() as f64 / part;
            let quantum = Self::with(refined(quantum, &sample), &sample, of_sample)?.quantum;
            let all = (lengths.len() + shorter) as f64;
            Self::with(refined(quantum, lengths), lengths, all)
        };
        candidates.into_iter().find_map(holds)
    }

    /// These lengths, of so many in `all`, if they are multiples of the interval, and not all the
    /// same.
    fn with(quantum: f64, lengths: &[f64], all: f64) -> Option<Self> {
        let mut multiples: BTreeMap<u32, usize> = BTreeMap::new();
        for length in lengths {
            if let Some(count) = quanta(*length, quantum) {
                *multiples.entry(count).or_default() += 1;
            }
        }
        let explained: usize = multiples.values().sum();
        let most = multiples.values().max().copied().unwrap_or_default();
        let fits = explained as f64 >= EXPLAINED * all
            && multiples.len() >= FEWEST_MULTIPLES
            && explained - most >= FEWEST_OTHERS
            && (explained - most) as f64 >= VARIED * all;
        fits.then(|| Self { quantum, explained, multiples: multiples.into_keys().collect() })
    }
}

/// How many intervals a length is, if it is a multiple.
fn quanta(length: f64, quantum: f64) -> Option<u32> {
    let count = (length / quantum).round();
    let fits = (length / quantum - count).abs() <= TOLERANCE;
    (fits && count >= 1.0 && count <= f64::from(MOST_QUANTA)).then_some(count as u32)
}

/// The interval that lies closest to the lengths which it explains (least squares).
fn refined(quantum: f64, lengths: &[f64]) -> f64 {
    let mut products = 0.0;
    let mut squares = 0.0;
    for length in lengths {
        if let Some(count) = quanta(*length, quantum) {
            products += f64::from(count) * length;
            squares += f64::from(count).powi(2);
        }
    }
    if squares == 0.0 { quantum } else { products / squares }
}

fn report(
    scene: &Scene<'_>,
    place: FindingPlace<'_>,
    source: QuantumSource,
    waits: &WaitsInPlace,
    grid: &Grid,
) -> Option<Finding> {
    let quantum = Nanos(grid.quantum.round() as u64);
    let half = Nanos(quantum.0 / 2);
    let fits = |wait: &&Wait| quanta(wait.length.0 as f64, grid.quantum).is_some();
    let last_half = |wait: &Wait| {
        let span = &scene.timeline.threads[wait.thread as usize].spans[wait.span as usize];
        let start = (span.end - half).max(span.start);
        Removed { thread: wait.thread as usize, start, end: span.end }
    };
    let first = waits.waits.first()?;
    let first = &scene.timeline.threads[first.thread as usize].spans[first.span as usize];
    let least = grid.multiples.first()?;
    let most = grid.multiples.last()?;
    let seen = format!(
        "{} of the {} calls of {} {} a multiple of {quantum}: {least} to {most} times that",
        grid.explained,
        waits.waits.len() + waits.shorter,
        words::function_of(place.function, place.module),
        match source {
            QuantumSource::Waited => "that slept or waited in vain did so for",
            QuantumSource::Took => "lasted",
        },
    );
    scene.report(Waste {
        kind: FindingKind::PollQuantum,
        place,
        layer: scene.layer(Some(first)),
        count: grid.explained as u64,
        removed: waits.waits.iter().filter(fits).map(last_half).collect(),
        evidence: vec![seen, format!("so half of that, {half}, is lost each time, on average")],
        remedy: Remedy::Change(format!(
            "wait for the event itself (poll(2), a condition variable, an interrupt) instead of \
             looking every {quantum}; a shorter interval saves half of the difference each time"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{figures, only, whole};
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;
    use proptest::prelude::*;

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    /// Calls of those lengths in microseconds.
    fn lasting(lengths: &[u64]) -> Timeline {
        one(|told| {
            for length in lengths {
                told.call("C_Sign", 1, micros(*length));
            }
        })
    }

    #[test]
    fn calls_that_last_multiples_are_found() {
        let lengths =
            [10_000, 20_100, 9_900, 30_000, 10_000, 40_000, 20_000, 10_100, 35_000, 20_000];
        let timeline = lasting(&lengths);
        let finding = only(whole(&timeline, find));
        assert_eq!((finding.count, finding.place.as_str(), &finding.trial), (9, "C_Sign", &None));
        // Half of 10 ms each.
        assert!(finding.time.0.abs_diff(45_000_000) < 450_000, "{}", finding.time);
        let says = "9 of the 10 calls of C_Sign of module.so lasted a multiple of 10.0 ms: 1 to 4 \
                    times that";
        assert_eq!(finding.evidence[0], says);
        assert!(finding.advice.unwrap().contains("looking every 10.0 ms"));
    }

    #[test]
    fn calls_that_sleep_again_and_again_are_found() {
        let timeline = one(|told| {
            for count in [1, 2, 3, 1, 2, 5, 1, 2] {
                told.enter("SCardTransmit").advance(micros(1_700));
                for _ in 0..count {
                    told.leaf("usleep", micros(5_060));
                }
                told.exit();
            }
        });
        let finding = only(whole(&timeline, find));
        let says = "8 of the 8 calls of SCardTransmit of libpcsclite.so.1 that slept or waited in \
                    vain did so for a multiple of 5.06 ms: 1 to 5 times that";
        assert_eq!(finding.evidence[0], says);
        assert_eq!(figures(&finding).2, micros(8 * 2_530));
    }

    #[test]
    fn what_was_asked_for_counts_and_not_when_the_thread_woke_up() {
        let timeline = one(|told| {
            for (count, late) in [(1, 3_000), (2, 40), (3, 900), (1, 70), (2, 4_000), (3, 60)] {
                told.enter("SCardStatus").advance(micros(late * 3));
                for _ in 0..count {
                    told.leaf("nanosleep", micros(10_000 + late)).with(|leaf| leaf.b = 10_000_000);
                }
                told.leaf("poll", micros(10_000 + late)).with(|leaf| leaf.b = 10_000_000).exit();
            }
            told.enter("SCardStatus").leaf("usleep", millis(10)).exit();
            told.enter("SCardStatus").leaf("usleep", millis(10)).exit();
        });
        let finding = only(whole(&timeline, find));
        assert!(finding.evidence[0].ends_with("a multiple of 10.0 ms: 1 to 4 times that"));
    }

    #[test]
    fn these_are_none() {
        for lengths in [
            // Too few.
            &[10_000, 20_000, 30_000, 10_000, 20_000, 40_000, 10_000][..],
            // Always the same.
            &[10_000; 20],
            // Two lengths have a common measure.
            &[10_000, 30_000, 10_000, 30_000, 10_000, 30_000, 10_000, 30_000],
            // All but one are the same.
            &[10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 20_000, 30_000],
            // One length, and three that happen to fit.
            &[1_100, 1_130, 1_120, 1_110, 1_130, 1_120, 1_100, 1_110, 3_360, 6_720, 10_080],
            // No common measure.
            &[11_300, 17_900, 23_100, 31_700, 14_300, 27_700, 19_100, 12_700, 37_300, 24_900],
            // Quick, but for those that were put off the processor.
            &[60, 70, 60, 8_000, 60, 50, 4_000, 60, 12_000, 4_000, 70, 8_000, 12_000, 4_000, 60],
            // Shorter than what a thread is woken up late by.
            &[600, 900, 1_200, 600, 900, 1_500, 1_200, 600, 900],
        ] {
            assert_eq!(whole(&lasting(lengths), find), [], "{lengths:?}");
        }
    }

    #[test]
    fn who_was_asked_to_wait_waits_as_long_as_that() {
        let timeline = one(|told| {
            for seconds in [1, 2, 3, 1, 2, 3, 1, 2, 3] {
                told.enter("SCardGetStatusChange").given(1, seconds * 1_000);
                told.leaf("poll", millis(seconds * 1_000)).exit();
            }
        });
        assert_eq!(whole(&timeline, find), []);
    }

    #[test]
    fn a_call_around_others_takes_what_they_take() {
        let timeline = one(|told| {
            for count in [1, 2, 3, 1, 2, 3, 1, 2, 3] {
                told.enter("C_Sign").call("SCardTransmit", 1, millis(10 * count)).exit();
            }
        });
        assert_eq!(only(whole(&timeline, find)).place, "SCardTransmit");
    }

    proptest! {
        #[test]
        fn an_interval_is_found_again(
            quantum in 1_000u64..50_000,
            counts in prop::collection::vec(1u64..9, 12..60),
            late in prop::collection::vec(0u64..20, 60),
        ) {
            let multiples: BTreeSet<_> = counts.iter().collect();
            let once = |count| counts.iter().filter(|other| **other == count).count();
            let most = counts.iter().map(|count| once(*count)).max().unwrap();
            prop_assume!(multiples.len() >= 4 && most * 2 <= counts.len());
            // Nothing above one in common, of enough of them that the others cannot be outliers.
            prop_assume!(counts.contains(&1));
            let most_in_common = [2, 3].map(|by| counts.iter().filter(|it| **it % by == 0).count());
            let fewest = EXPLAINED * counts.len() as f64;
            prop_assume!(most_in_common.iter().all(|count| (*count as f64) < fewest));
            let lengths: Vec<_> = counts.iter().zip(&late)
                .map(|(count, late)| (count * quantum * 1_000 + late * 1_000) as f64).collect();
            let grid = Grid::through(&lengths, 0).unwrap();
            let off = grid.quantum / (quantum as f64 * 1e3) - 1.0;
            prop_assert!(off.abs() < 0.02, "{} for {}", grid.quantum, quantum);
        }

        #[test]
        fn lengths_without_one_have_none(lengths in prop::collection::vec(1e6..2e7, 16..60)) {
            // By chance once in many millions.
            prop_assert!(Grid::through(&lengths, 0).is_none());
        }
    }
}
