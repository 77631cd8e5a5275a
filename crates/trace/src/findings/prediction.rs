//! What a change would save, predicted from the time that it would remove.
//!
//! Removed time shortens a program by all of itself at most. By how much at least, depends on what
//! else went on: while another thread of the same program works, it may be that one that the rest
//! waits for. So a prediction is an interval. Stretches that several fixes would remove count
//! once.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::interval::Estimate;
use tapstone_measure::units::Nanos;

use super::scene::life;
use super::stretches::Stretches;
use super::{Finding, Removed};
use crate::operation::{Cut, Operations};
use crate::timeline::{Family, Kind, Leaf, Thread, Timeline};

/// Untouched rounds that a prediction should rest on. With so many the interval of a mean is 15 %
/// wider than of any number more (Student's t: 2.26 standard errors instead of 1.96).
pub const ROUNDS: usize = 10;

/// Nothing sleeps and wakes up in less: a shorter call did not wait.
const WAITED: Nanos = Nanos(20_000);

/// What would be saved in each operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Saving {
    /// At least: what is removed while no other thread of its program works.
    pub low: f64,
    /// At most: all that is removed.
    pub high: f64,
}

/// A saving that several rounds have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// From the lower end of the interval of the least to the upper end of that of the most (95 %
    /// each, Student's t over the rounds); of a single round, what it says.
    pub saving: Saving,
    /// How many rounds it rests on: see [`ROUNDS`].
    pub rounds: usize,
}

impl Prediction {
    /// From one saving for each round; `None` without any.
    #[must_use]
    pub fn over(rounds: &[Saving]) -> Option<Self> {
        let first = *rounds.first()?;
        let of = |value: fn(&Saving) -> f64| {
            Estimate::mean_of(&rounds.iter().map(value).collect::<Vec<_>>())
        };
        let saving = match (of(|round| round.low), of(|round| round.high)) {
            (Some(low), Some(high)) => Saving { low: low.low.max(0.0), high: high.high },
            _ => first,
        };
        Some(Self { saving, rounds: rounds.len() })
    }
}

/// What several fixes would remove together.
#[must_use]
pub fn union<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Removed> {
    let mut threads: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for removed in findings.into_iter().flat_map(|finding| &finding.removed) {
        threads.entry(removed.thread).or_default().push((removed.start, removed.end));
    }
    let flat = |(thread, all): (usize, Vec<_>)| {
        let merged: Stretches = all.into_iter().collect();
        merged.iter().map(|(start, end)| Removed { thread, start, end }).collect::<Vec<_>>()
    };
    threads.into_iter().flat_map(flat).collect()
}

/// What one round says of what an operation would save.
#[must_use]
pub fn saving(timeline: &Timeline, operations: &Operations, removed: &[Removed]) -> Saving {
    let removed = by_thread(timeline, removed);
    let alone = alone(timeline, &removed);
    let own: BTreeSet<usize> = operations.cuts.iter().map(|cut| cut.thread).collect();
    // Threads that make no operations of their own (a daemon's, a library's) work for all of them.
    let of_others = |sets: &[Stretches]| {
        let others = sets.iter().enumerate().filter(|(thread, _)| !own.contains(thread));
        Stretches::any_of(others.map(|(_, set)| set))
    };
    let (all_others, alone_others) = (of_others(&removed), of_others(&alone));
    let within = |cut: &Cut, sets: &[Stretches], others: &Stretches| {
        let (start, end) = (cut.start, cut.end);
        let own = sets.get(cut.thread);
        if others.within(start, end) == Nanos::ZERO {
            return own.map_or(Nanos::ZERO, |own| own.within(start, end));
        }
        let here = [(start, end)].into_iter().collect();
        Stretches::any_of(own.into_iter().chain([others])).and(&here).total()
    };
    let mut sums = (Nanos::ZERO, Nanos::ZERO);
    for cut in &operations.cuts {
        sums.0 += within(cut, &alone, &alone_others);
        sums.1 += within(cut, &removed, &all_others);
    }
    let each = |sum: Nanos| sum.0 as f64 / operations.count().max(1) as f64;
    Saving { low: each(sums.0), high: each(sums.1) }
}

fn by_thread(timeline: &Timeline, removed: &[Removed]) -> Vec<Stretches> {
    let mut threads = vec![Vec::new(); timeline.threads.len()];
    for stretch in removed {
        threads[stretch.thread].push((stretch.start, stretch.end));
    }
    threads.into_iter().map(Stretches::from_iter).collect()
}

/// What is removed while no other thread of the same program works, by thread.
fn alone(timeline: &Timeline, removed: &[Stretches]) -> Vec<Stretches> {
    let mut programs: BTreeMap<u32, Vec<Stretches>> = BTreeMap::new();
    for (thread, removed) in timeline.threads.iter().zip(removed) {
        let working = working(timeline, thread).without(removed);
        programs.entry(thread.process).or_default().push(working);
    }
    let programs: BTreeMap<u32, Stretches> = programs
        .into_iter()
        .map(|(process, threads)| (process, Stretches::any_of(&threads)))
        .collect();
    // A thread does not work itself in what is removed of it.
    let alone =
        |(thread, removed): (&Thread, &Stretches)| removed.without(&programs[&thread.process]);
    timeline.threads.iter().zip(removed).map(alone).collect()
}

/// When a thread may have worked: whenever it is not known to have waited.
fn working(timeline: &Timeline, thread: &Thread) -> Stretches {
    let waits = thread.leaves.iter().filter(|leaf| waited(timeline, leaf));
    life(thread).without(&waits.map(|leaf| (leaf.start, leaf.end)).collect())
}

fn waited(timeline: &Timeline, leaf: &Leaf) -> bool {
    let waits = match timeline.call(leaf.call).family {
        Family::Libc(Kind::Sleep | Kind::Lock | Kind::Read | Kind::Connect) => true,
        Family::Libc(Kind::Poll) => leaf.b > 0,
        _ => false,
    };
    // Those that were counted together were short.
    waits && leaf.count == 1 && leaf.end - leaf.start >= WAITED
}
