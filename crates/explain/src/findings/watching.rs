//! What watching cost the program within what a fix would remove: nobody saves that.

use std::iter::Sum;
use std::ops::{Add, Sub};

use tapstone_measure::units::Nanos;

use super::stretches::Stretches;
use crate::timeline::{FunctionId, Thread, Timeline, WatchCost};

/// How long watching took, as far as that is known, and how much longer it may have made the program
/// take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watching {
    pub(super) known: Nanos,
    pub(super) at_most: Nanos,
}

impl Add for Watching {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { known: self.known + other.known, at_most: self.at_most + other.at_most }
    }
}

impl Sub for Watching {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { known: self.known - other.known, at_most: self.at_most - other.at_most }
    }
}

impl Sum for Watching {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl Watching {
    fn known(time: Nanos) -> Self {
        Self { known: time, at_most: time }
    }
}

/// When the probe worked on a thread's calls, and for how long, as if each time were a moment.
#[derive(Debug, Default)]
pub(super) struct ProbeWork {
    moments: Vec<Nanos>,
    /// For how long up to each of these moments, it included.
    up_to: Vec<Watching>,
}

impl ProbeWork {
    pub(super) fn on(timeline: &Timeline, thread: &Thread) -> Self {
        let spans = thread.spans.iter().map(|span| (span.call, span.start, span.end, 1));
        let leaves =
            thread.leaves.iter().map(|leaf| (leaf.call, leaf.start, leaf.end, leaf.count.into()));
        let of_call = |(call, start, end, count): (FunctionId, Nanos, Nanos, u64)| {
            let WatchCost { before, inside, after, displaced } =
                *timeline.watch_costs.get(&call)?;
            // Of several that were counted the others lie between the first and the last.
            let each = (before + inside + after).0;
            let others = Nanos(each.saturating_mul(count.saturating_sub(1)));
            let inside = inside + others;
            let at_most = inside + Nanos(displaced.0.saturating_mul(count));
            let before_it = Nanos(start.0.saturating_sub(1));
            Some([
                (before_it, Watching::known(before)),
                (start, Watching { known: inside, at_most }),
                (end, Watching::known(after)),
            ])
        };
        let room = thread.room_made.iter().map(|(at, took)| (*at, Watching::known(*took)));
        let calls = spans.chain(leaves).filter_map(of_call).flatten();
        let mut all: Vec<(Nanos, Watching)> = calls.chain(room).collect();
        all.sort_unstable_by_key(|(moment, _)| *moment);
        let up_to = all.iter().scan(Watching::default(), |sum, (_, time)| {
            *sum = *sum + *time;
            Some(*sum)
        });
        Self {
            up_to: up_to.collect(),
            moments: all.into_iter().map(|(moment, _)| moment).collect(),
        }
    }

    /// For how long it worked in those stretches between two moments.
    pub(super) fn within(&self, set: &Stretches, from: Nanos, to: Nanos) -> Watching {
        set.between(from, to).map(|(start, end)| self.before(end) - self.before(start)).sum()
    }

    fn before(&self, moment: Nanos) -> Watching {
        let count = self.moments.partition_point(|it| *it < moment);
        count.checked_sub(1).map_or(Watching::default(), |last| self.up_to[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, micros, millis};

    const COST: WatchCost = WatchCost {
        before: Nanos(1_000),
        inside: Nanos(100),
        after: Nanos(10),
        displaced: Nanos(300),
    };

    fn work(timeline: &mut Timeline) -> ProbeWork {
        let ids = (0..timeline.calls.len() as u32).map(FunctionId);
        timeline.watch_costs = ids.map(|id| (id, COST)).collect();
        ProbeWork::on(timeline, &timeline.threads[0])
    }

    fn within(work: &ProbeWork, start: u64, end: u64) -> u64 {
        both_within(work, start, end).known.0
    }

    fn both_within(work: &ProbeWork, start: u64, end: u64) -> Watching {
        let set = Stretches::from_iter([(micros(start), micros(end))]);
        work.within(&set, Nanos::ZERO, millis(10))
    }

    #[test]
    fn a_stretch_holds_what_watching_its_calls_cost() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.advance(micros(1)).enter("C_FindObjectsInit").advance(micros(10));
                told.leaf("open", micros(10)).advance(micros(10)).leaf("open", micros(10)).exit();
                told.advance(micros(10)).call("C_Sign", 2, millis(1));
            })
            .timeline();
        let work = work(&mut timeline);
        // Of the search what is in its own time; of what is inside all, the last end's apart, which
        // is when the search's is.
        assert_eq!(within(&work, 1, 41), 100 + 2 * 1_110 - 10);
        assert_eq!(within(&work, 5, 16), 1_100, "from before the open into it");
        assert_eq!(within(&work, 11, 21), 100, "of the open what is in its own time");
        assert_eq!(within(&work, 12, 21), 0);
        assert_eq!(within(&work, 41, 51), 2 * 10 + 1_000, "between two calls");
        assert_eq!(within(&work, 0, 9_000), 4 * 1_110);
        let set = Stretches::from_iter([(micros(0), micros(41))]);
        assert_eq!(work.within(&set, micros(22), micros(41)).known.0, 1_100, "between two moments");
    }

    /// The work on a call in which five reads were counted together.
    fn of_five_reads() -> ProbeWork {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(micros(1));
                told.leaf("read", micros(9)).with(|leaf| leaf.count = 5).exit();
            })
            .timeline();
        work(&mut timeline)
    }

    #[test]
    fn many_calls_that_were_counted_cost_as_often() {
        let work = of_five_reads();
        assert_eq!(within(&work, 1, 10), 100 + 4 * 1_110, "the first is before, the last behind");
    }

    #[test]
    fn what_the_program_may_have_waited_for_besides_is_kept_apart() {
        let work = of_five_reads();
        let Watching { known, at_most } = both_within(&work, 0, 9_000);
        assert_eq!((known.0, (at_most - known).0), (6 * 1_110, 6 * 300));
    }

    #[test]
    fn room_for_events_is_made_at_a_moment() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.call("C_Sign", 2, micros(20));
            })
            .timeline();
        timeline.threads[0].room_made = vec![(micros(5), micros(7)), (micros(30), micros(1))];
        let work = ProbeWork::on(&timeline, &timeline.threads[0]);
        assert_eq!(within(&work, 0, 5), 0);
        assert_eq!(within(&work, 5, 20), 7_000);
        assert_eq!(both_within(&work, 0, 9_000), Watching::known(micros(8)));
    }
}
