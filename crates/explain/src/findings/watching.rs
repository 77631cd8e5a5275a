//! What watching cost the program within what a fix would remove: nobody saves that.

use tapstone_measure::units::Nanos;

use super::stretches::Stretches;
use crate::timeline::{FunctionId, Thread, Timeline, WatchCost};

/// When the probe worked on a thread's calls, and for how long, as if each time were a moment.
#[derive(Debug, Default)]
pub(super) struct ProbeWork {
    moments: Vec<Nanos>,
    /// For how long up to each of these moments, it included.
    up_to: Vec<Nanos>,
}

impl ProbeWork {
    pub(super) fn on(timeline: &Timeline, thread: &Thread) -> Self {
        let cost = |id: FunctionId| timeline.watch_costs.get(&id).copied();
        let spans = thread.spans.iter().filter_map(|span| {
            let WatchCost { before, inside, after } = cost(span.call)?;
            let before = (Nanos(span.start.0.saturating_sub(1)), before);
            Some([before, (span.start, inside), (span.end, after)])
        });
        let leaves = thread.leaves.iter().filter_map(|leaf| {
            let WatchCost { before, inside, after } = cost(leaf.call)?;
            let each = u64::from(leaf.count);
            let before = (Nanos(leaf.start.0.saturating_sub(1)), before);
            // Of several that were counted the others lie between the first and the last.
            let others = Nanos((before.1 + inside + after).0 * each.saturating_sub(1));
            Some([before, (leaf.start, inside + others), (leaf.end, after)])
        });
        let mut all: Vec<(Nanos, Nanos)> = spans.chain(leaves).flatten().collect();
        all.sort_unstable_by_key(|(moment, _)| *moment);
        let up_to = all.iter().scan(Nanos::ZERO, |sum, (_, time)| {
            *sum += *time;
            Some(*sum)
        });
        Self {
            up_to: up_to.collect(),
            moments: all.into_iter().map(|(moment, _)| moment).collect(),
        }
    }

    /// For how long it worked in those stretches between two moments.
    pub(super) fn within(&self, set: &Stretches, from: Nanos, to: Nanos) -> Nanos {
        set.between(from, to).map(|(start, end)| self.before(end) - self.before(start)).sum()
    }

    fn before(&self, moment: Nanos) -> Nanos {
        let count = self.moments.partition_point(|it| *it < moment);
        count.checked_sub(1).map_or(Nanos::ZERO, |last| self.up_to[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, micros, millis};

    const COST: WatchCost =
        WatchCost { before: Nanos(1_000), inside: Nanos(100), after: Nanos(10) };

    fn work(timeline: &mut Timeline) -> ProbeWork {
        let ids = (0..timeline.calls.len() as u32).map(FunctionId);
        timeline.watch_costs = ids.map(|id| (id, COST)).collect();
        ProbeWork::on(timeline, &timeline.threads[0])
    }

    fn within(work: &ProbeWork, start: u64, end: u64) -> u64 {
        let set = Stretches::from_iter([(micros(start), micros(end))]);
        work.within(&set, Nanos::ZERO, millis(10)).0
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
        assert_eq!(work.within(&set, micros(22), micros(41)).0, 1_100, "between two moments");
    }

    #[test]
    fn many_calls_that_were_counted_cost_as_often() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(micros(1));
                told.leaf("read", micros(9)).with(|leaf| leaf.count = 5).exit();
            })
            .timeline();
        let work = work(&mut timeline);
        assert_eq!(within(&work, 1, 10), 100 + 4 * 1_110, "the first is before, the last behind");
    }
}
