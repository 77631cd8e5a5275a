//! What detectors look at: a timeline, the operations in it, and what belongs to those; and how
//! what they saw becomes a finding.

use std::collections::BTreeMap;

use tapstone_measure::units::Nanos;

use super::stretches::Stretches;
use super::{Finding, FindingKind, Removed};
use crate::operation::Operations;
use crate::owners::{self, Owner};
use crate::timeline::{CalledFunction, Family, Kind, Leaf, Place, Span, Thread, Timeline};
use tapstone_events::Fix;

/// Less than this part of an operation is not worth a change, nor told apart from noise in a trial
/// of a few dozen rounds.
const SMALLEST_SHARE: f64 = 0.01;

/// A timeline and when its threads worked at operations.
pub(super) struct Scene<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) operations: &'a Operations,
    /// When each thread worked at operations, by thread.
    times: Vec<Stretches>,
    /// What a share of a thread's time is compared with: by thread.
    walls: Vec<Nanos>,
}

/// A function of a library, or of the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FindingPlace<'a> {
    pub(super) function: &'a str,
    pub(super) module: &'a str,
}

/// What a detector saw.
pub(super) struct Waste<'a> {
    pub(super) kind: FindingKind,
    pub(super) place: FindingPlace<'a>,
    pub(super) layer: Owner,
    pub(super) count: u64,
    /// The stretches that the fix would remove, in any order.
    pub(super) removed: Vec<Removed>,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: Remedy,
}

/// What can be done about it.
pub(super) enum Remedy {
    /// A fix that a trial applies.
    Try(Fix),
    /// The same, and what somebody would have to change to have it for good.
    TryFirst(Fix, String),
    /// What somebody would have to change, as a sentence.
    Change(String),
}

impl Remedy {
    /// A fix as its user writes it; where it cannot be applied there, the sentence.
    pub(super) fn fix_or(fix: &str, change: &str) -> Self {
        fix.parse().map_or_else(|_| Self::Change(change.to_owned()), Self::Try)
    }
}

impl<'a> Scene<'a> {
    /// Of the operations alone. A thread that makes none itself (a daemon's, a library's) works at
    /// those of others, while they last.
    pub(super) fn new(timeline: &'a Timeline, operations: &'a Operations) -> Self {
        if operations.is_whole {
            let times = timeline.threads.iter().map(life).collect();
            let listed = timeline.listed_until() - timeline.started;
            let walls = vec![listed; timeline.threads.len()];
            return Self { timeline, operations, times, walls };
        }
        let mut own: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for cut in &operations.cuts {
            own.entry(cut.thread).or_default().push((cut.start, cut.end));
        }
        let all: Stretches = own.values().flatten().copied().collect();
        let time = |(number, thread): (usize, &Thread)| match own.remove(&number) {
            Some(cuts) => cuts.into_iter().collect(),
            None => all.and(&life(thread)),
        };
        let times: Vec<_> = timeline.threads.iter().enumerate().map(time).collect();
        let walls = times.iter().map(Stretches::total).collect();
        Self { timeline, operations, times, walls }
    }

    /// The same, with what lies between a thread's operations.
    pub(super) fn with_gaps(&self) -> Self {
        let timeline = self.timeline;
        let operations = self.operations;
        if operations.is_whole {
            return Self::new(timeline, operations);
        }
        let times: Vec<_> = self.times.iter().map(Stretches::with_gaps).collect();
        let walls = times.iter().map(Stretches::total).collect();
        Self { timeline, operations, times, walls }
    }

    /// All threads with their numbers.
    pub(super) fn threads(&self) -> impl Iterator<Item = (usize, &'a Thread)> {
        self.timeline.threads.iter().enumerate()
    }

    /// Whether what a thread does at a moment belongs to an operation.
    pub(super) fn counts(&self, thread: usize, moment: Nanos) -> bool {
        self.times[thread].holds(moment)
    }

    /// What a call of libc does; nothing where a fix answered instead.
    pub(super) fn kind(&self, leaf: &Leaf) -> Option<Kind> {
        match self.timeline.call(leaf.call).family {
            Family::Libc(kind) if !leaf.replaced => Some(kind),
            _ => None,
        }
    }

    /// The innermost call around a call of libc, and its number.
    pub(super) fn around(&self, thread: &'a Thread, leaf: &Leaf) -> Option<(u32, &'a Span)> {
        leaf.parent.map(|number| (number.get(), &thread.spans[number.index()]))
    }

    pub(super) fn place(&self, call: &'a CalledFunction) -> FindingPlace<'a> {
        FindingPlace { function: call.function, module: &call.module }
    }

    /// The layer of a call; outside of all it is the program's.
    pub(super) fn layer(&self, span: Option<&Span>) -> Owner {
        span.map_or(Owner::Program, |span| owners::owner_of(self.timeline, span))
    }

    /// Whether a call, or one around it, was asked to wait: for a card, or until a time is over.
    /// Such a wait wastes nothing of the program's time.
    pub(super) fn waits_on_request(&self, thread: &Thread, span: u32) -> bool {
        /// CKF_DONT_BLOCK of C_WaitForSlotEvent (PKCS#11, 5.5).
        const DONT_BLOCK: u64 = 1;
        thread.path(Some(Place::new(span))).any(|span| {
            match self.timeline.call(span.call).function {
                // Its time limit.
                "SCardGetStatusChange" => span.detail != 0,
                // Its flags.
                "C_WaitForSlotEvent" => span.handle & DONT_BLOCK == 0,
                _ => false,
            }
        })
    }

    /// A finding, if it is large enough to be one.
    pub(super) fn report(&self, waste: Waste<'_>) -> Option<Finding> {
        let removed = self.clipped(&waste.removed);
        let mut time = Nanos::ZERO;
        let mut wall = Nanos::ZERO;
        let mut largest = 0.0;
        for (thread, stretches) in &removed {
            let total = stretches.total();
            time += total;
            wall += self.times[*thread].total();
            largest = f64::max(largest, part(total, self.walls[*thread]));
        }
        let operations = self.operations.count();
        if largest < SMALLEST_SHARE || operations == 0 {
            return None;
        }
        let (trial, advice) = match waste.remedy {
            Remedy::Try(fix) => (Some(fix), None),
            Remedy::TryFirst(fix, change) => (Some(fix), Some(change)),
            Remedy::Change(change) => (None, Some(change)),
        };
        let flat = removed.iter().flat_map(|(thread, stretches)| {
            stretches.iter().map(|(start, end)| Removed { thread: *thread, start, end })
        });
        Some(Finding {
            kind: waste.kind,
            place: waste.place.function.to_owned(),
            module: waste.place.module.to_owned(),
            layer: waste.layer.name(),
            per_operation: waste.count as f64 / operations as f64,
            count: waste.count,
            time,
            share: part(time, wall),
            evidence: waste.evidence,
            removed: flat.collect(),
            perhaps: Vec::new(),
            trial,
            advice,
        })
    }

    /// By thread, what of it belongs to operations.
    fn clipped(&self, removed: &[Removed]) -> BTreeMap<usize, Stretches> {
        let mut threads: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for stretch in removed {
            threads.entry(stretch.thread).or_default().push((stretch.start, stretch.end));
        }
        let clip = |(thread, all): (usize, Vec<_>)| {
            (thread, all.into_iter().collect::<Stretches>().and(&self.times[thread]))
        };
        threads.into_iter().map(clip).filter(|(_, stretches)| !stretches.is_empty()).collect()
    }
}

/// When a thread was there.
pub(super) fn life(thread: &Thread) -> Stretches {
    [(thread.start, thread.end)].into_iter().collect()
}

/// Nothing sleeps and wakes up in less: a shorter call did not wait.
const WAITED: Nanos = Nanos(20_000);

/// Whether a call of libc is known to have waited.
pub(crate) fn waited(timeline: &Timeline, leaf: &Leaf) -> bool {
    let waits = match timeline.call(leaf.call).family {
        Family::Libc(Kind::Sleep | Kind::Lock | Kind::Children | Kind::Read | Kind::Connect) => {
            true
        }
        Family::Libc(Kind::Poll) => leaf.b > 0,
        _ => false,
    };
    // Those that were counted together were short.
    waits && leaf.count == 1 && leaf.end - leaf.start >= WAITED
}

/// When a thread is known to have waited.
pub(super) fn waits(timeline: &Timeline, thread: &Thread) -> Stretches {
    let waits = thread.leaves.iter().filter(|leaf| waited(timeline, leaf));
    waits.map(|leaf| (leaf.start, leaf.end)).collect()
}

fn part(time: Nanos, whole: Nanos) -> f64 {
    if whole == Nanos::ZERO { 0.0 } else { time.0 as f64 / whole.0 as f64 }
}
