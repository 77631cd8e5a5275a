//! What a change would save, predicted from the time that it would remove.
//!
//! Removed time shortens a program by all of itself at most. By how much at least, depends on what
//! else went on: while another thread of the same program works, it may be that one that the rest
//! waits for. So a prediction is an interval. Stretches that several fixes would remove count
//! once.

use std::collections::{BTreeMap, BTreeSet};

use tapstone_measure::interval::Estimate;
use tapstone_measure::units::Nanos;

use super::remaining_work::remaining_work;
use super::scene::{life, waits};
use super::stretches::Stretches;
use super::watching::{ProbeWork, Watching};
use super::{Finding, Removed};
use crate::operation::{Cut, Operations};
use crate::timeline::{Thread, Timeline};

/// Untouched rounds that a prediction should rest on. With so many the interval of a mean is 15 %
/// wider than of any number more (Student's t: 2.26 standard errors instead of 1.96).
pub const ROUNDS: usize = 10;

/// What would be saved in each operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Saving {
    /// At least: what is removed while no other thread of its program works.
    pub low: f64,
    /// At most: all that is removed, and what may go beside it.
    pub high: f64,
}

/// What fixes would take away: by thread, in order, without overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removable {
    /// What goes in any case.
    pub surely: Vec<Removed>,
    /// That, and what may go beside it.
    pub at_most: Vec<Removed>,
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
pub fn union<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Removable {
    let mut surely = Vec::new();
    let mut perhaps = Vec::new();
    for finding in findings {
        surely.extend(&finding.removed);
        perhaps.extend(&finding.perhaps);
    }
    perhaps.extend(&surely);
    Removable { surely: merged(surely), at_most: merged(perhaps) }
}

fn merged(all: Vec<Removed>) -> Vec<Removed> {
    let mut threads: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for removed in all {
        threads.entry(removed.thread).or_default().push((removed.start, removed.end));
    }
    let flat = |(thread, all): (usize, Vec<_>)| {
        let merged: Stretches = all.into_iter().collect();
        merged.iter().map(|(start, end)| Removed { thread, start, end }).collect::<Vec<_>>()
    };
    threads.into_iter().flat_map(flat).collect()
}

/// What one round says of what an operation would save: without what watching it cost.
#[must_use]
pub fn saving(timeline: &Timeline, operations: &Operations, removable: &Removable) -> Saving {
    let on = |thread| ProbeWork::on(timeline, thread);
    let watched: Vec<ProbeWork> = timeline.threads.iter().map(on).collect();
    let surely = by_thread(timeline, &removable.surely);
    let at_most = by_thread(timeline, &removable.at_most);
    let all = |sets| OfOperations { operations, watched: &watched, sets };
    // Threads may wait for one another, and so for the probe's work in any of them, or not at all.
    let alone = alone(timeline, &surely);
    let longest = |costs: &mut dyn Iterator<Item = Watching>| costs.map(|it| it.at_most).sum();
    let shortest = |costs: &mut dyn Iterator<Item = Watching>| {
        costs.map(|it| it.known).max().unwrap_or_default()
    };
    let of_alone = all(&alone).each(longest);
    let of_surely = all(&surely).each(longest);
    let remaining = remaining_work(timeline, &surely).unwrap_or(Nanos::NEVER);
    let low = of_alone.zip(of_surely).map(|(alone, surely)| alone.max(surely - remaining)).sum();
    let high = all(&at_most).each(shortest).sum();
    let an_operation = |sum: Nanos| sum.0 as f64 / operations.count().max(1) as f64;
    let (low, high) = (an_operation(low), an_operation(high));
    // What lies around what is removed may be shorter than what watching is said to cost there: then
    // neither of the two is known better than by the other.
    Saving { low: low.min(high), high: low.max(high) }
}

/// What lies in operations, of sets of moments, one for each thread.
struct OfOperations<'a> {
    operations: &'a Operations,
    watched: &'a [ProbeWork],
    sets: &'a [Stretches],
}

impl OfOperations<'_> {
    /// How much of the sets lies in the operations of each thread that makes some, without what
    /// watching the calls in them cost the threads together. Threads that make none (a daemon's, a
    /// library's) work for all.
    fn each(
        self,
        together: fn(&mut dyn Iterator<Item = Watching>) -> Nanos,
    ) -> impl Iterator<Item = Nanos> {
        let Self { operations, watched, sets } = self;
        let own: BTreeSet<usize> = operations.cuts.iter().map(|cut| cut.thread).collect();
        let others: Vec<usize> = (0..sets.len()).filter(|thread| !own.contains(thread)).collect();
        own.into_iter().filter(|thread| *thread < sets.len()).map(move |thread| {
            let threads: Vec<usize> = [thread].into_iter().chain(others.iter().copied()).collect();
            let set = Stretches::any_of(threads.iter().map(|thread| &sets[*thread]));
            let of_cut = |cut: &Cut| {
                let cost =
                    |thread: &usize| watched[*thread].within(&sets[*thread], cut.start, cut.end);
                let watching = together(&mut threads.iter().map(cost));
                set.within(cut.start, cut.end) - watching
            };
            operations.of_thread(thread).iter().map(of_cut).sum()
        })
    }
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
    life(thread).without(&waits(timeline, thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OperationRule;
    use crate::synthetic::{Story, millis};
    use crate::timeline::{FunctionId, RunningTime, WatchCost};

    const MILLI: f64 = 1e6;

    fn removed(thread: usize, start: u64, end: u64) -> Removed {
        Removed { thread, start: millis(start), end: millis(end) }
    }

    fn only(removed: &[Removed]) -> Removable {
        Removable { surely: removed.to_vec(), at_most: removed.to_vec() }
    }

    fn of_whole(timeline: &Timeline, removed: &[Removed]) -> (f64, f64) {
        let Saving { low, high } = saving(timeline, &Operations::whole(timeline), &only(removed));
        (low / MILLI, high / MILLI)
    }

    #[test]
    fn a_single_thread_saves_all_that_is_removed() {
        let timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").leaf("usleep", millis(4)).advance(millis(6)).exit();
            })
            .timeline();
        assert_eq!(of_whole(&timeline, &[removed(0, 0, 4)]), (4.0, 4.0));
        assert_eq!(of_whole(&timeline, &[]), (0.0, 0.0));
    }

    #[test]
    fn while_another_thread_works_nothing_may_be_saved() {
        let timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").leaf("usleep", millis(10)).exit();
            })
            .thread(|told| {
                told.leaf("recv", millis(3)).call("C_Sign", 2, millis(2));
                told.leaf("poll", millis(5)).with(|leaf| leaf.b = u64::MAX);
            })
            .timeline();
        assert_eq!(of_whole(&timeline, &[removed(0, 0, 10)]), (8.0, 10.0));
        // Of the other program nothing waits for it.
        let other = Story::new()
            .thread(|told| {
                told.enter("C_Sign").leaf("usleep", millis(10)).exit();
            })
            .process("other")
            .thread(|told| {
                told.call("C_Sign", 2, millis(10));
            })
            .timeline();
        assert_eq!(of_whole(&other, &[removed(0, 0, 10)]), (10.0, 10.0));
    }

    #[test]
    fn threads_that_sleep_at_once_save_that_time_once() {
        let mut story = Story::new();
        for _ in 0..3 {
            story.thread(|told| {
                told.enter("C_Sign").leaf("usleep", millis(10)).exit();
            });
        }
        let all: Vec<_> = (0..3).map(|thread| removed(thread, 0, 10)).collect();
        assert_eq!(of_whole(&story.timeline(), &all), (10.0, 10.0));
    }

    #[test]
    fn a_poll_without_a_time_limit_is_work() {
        let timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").leaf("usleep", millis(10)).exit();
            })
            .thread(|told| {
                told.enter("SCardStatus").leaf("poll", millis(10)).exit();
            })
            .timeline();
        assert_eq!(of_whole(&timeline, &[removed(0, 0, 10)]), (0.0, 10.0));
    }

    #[test]
    fn operations_save_what_lies_in_them() {
        let timeline = Story::new()
            .thread(|told| {
                told.leaf("usleep", millis(5));
                for _ in 0..2 {
                    told.enter("C_Sign").leaf("recv", millis(4)).advance(millis(1)).exit();
                }
            })
            .process("daemon")
            .thread(|told| {
                told.advance(millis(15));
            })
            .timeline();
        let operations = Operations::cut(&OperationRule::Call("C_Sign"), &timeline, &[]);
        // Before them, in the first, and in both by the daemon.
        let all = [removed(0, 0, 5), removed(0, 6, 8), removed(1, 7, 11)];
        let saving = saving(&timeline, &operations, &only(&all));
        assert_eq!((saving.low / MILLI, saving.high / MILLI), (2.5, 2.5));
    }

    #[test]
    fn threads_that_nothing_is_seen_of_worked_no_longer_than_their_process() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.call("C_FindObjectsInit", 2, millis(10)).call("C_Sign", 2, millis(2));
            })
            .thread(|told| {
                told.call("C_GetTokenInfo", 2, millis(1)).advance(millis(11));
            })
            .timeline();
        let search = [removed(0, 0, 10)];
        assert_eq!(of_whole(&timeline, &search), (0.0, 10.0), "it may have worked all the time");
        timeline.processor = Some(millis(12));
        assert_eq!(of_whole(&timeline, &search), (0.0, 10.0), "and the search have waited");
        let running = RunningTime { time: millis(1), ran: millis(1) };
        timeline.running.insert(FunctionId(0), running);
        assert_eq!(of_whole(&timeline, &search), (8.0, 10.0), "2 of 12 ms were worked elsewhere");
    }

    #[test]
    fn what_watching_costs_is_not_saved() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_FindObjectsInit").leaf("open", millis(10)).exit();
            })
            .thread(|told| {
                told.enter("C_FindObjectsInit").leaf("open", millis(4)).exit();
            })
            .timeline();
        let both = [removed(0, 0, 10), removed(1, 0, 4)];
        assert_eq!(of_whole(&timeline, &both), (10.0, 10.0));
        let cost = WatchCost { inside: millis(1), ..WatchCost::default() };
        timeline.watch_costs = (0..2).map(|id| (FunctionId(id), cost)).collect();
        // Each thread's search and its open begin at once: 2 ms of each lie inside.
        assert_eq!(of_whole(&timeline, &both), (6.0, 8.0), "one after the other, or at once");
        let cost = WatchCost { displaced: Nanos(250_000), ..cost };
        timeline.watch_costs = (0..2).map(|id| (FunctionId(id), cost)).collect();
        assert_eq!(
            of_whole(&timeline, &both),
            (5.0, 8.0),
            "what may be displaced is at the low end"
        );
        timeline.threads[0].room_made = vec![(millis(1), millis(2))];
        assert_eq!(of_whole(&timeline, &both), (3.0, 6.0), "room for events is known");
    }

    /// What follows each call is shorter than what watching it is said to take there.
    #[test]
    fn a_cost_that_cannot_be_makes_the_interval_wider_and_not_a_point() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.call("C_FindObjectsInit", 2, millis(10)).advance(millis(1));
                told.call("C_Sign", 2, millis(2));
            })
            .timeline();
        let cost = WatchCost { inside: millis(1), after: millis(3), ..WatchCost::default() };
        timeline.watch_costs = (0..2).map(|id| (FunctionId(id), cost)).collect();
        let removable =
            Removable { surely: vec![removed(0, 0, 10)], at_most: vec![removed(0, 0, 11)] };
        let Saving { low, high } = saving(&timeline, &Operations::whole(&timeline), &removable);
        assert_eq!((low / MILLI, high / MILLI), (7.0, 9.0));
    }

    #[test]
    fn rounds_make_an_interval() {
        assert_eq!(Prediction::over(&[]), None);
        let round = |low, high| Saving { low, high };
        let single = Prediction::over(&[round(3.0, 4.0)]).unwrap();
        assert_eq!((single.saving, single.rounds), (round(3.0, 4.0), 1));
        // 3 - 2.7764 x sqrt(2.5 / 5) and 30 + as much.
        let rounds: Vec<_> = (1..=5).map(|n| round(f64::from(n), f64::from(n) + 27.0)).collect();
        let Prediction { saving, rounds } = Prediction::over(&rounds).unwrap();
        assert!((saving.low - 1.0368).abs() < 1e-4 && (saving.high - 31.9632).abs() < 1e-4);
        assert_eq!(rounds, 5);
        let scattered = Prediction::over(&[round(0.0, 1.0), round(1.0, 2.0)]).unwrap();
        assert_eq!(scattered.saving.low, 0.0, "no time is negative");
    }
}
