//! What watching cost the program within what a fix would remove: nobody saves that.

use tapstone_measure::units::Nanos;

use super::stretches::Stretches;
use crate::timeline::{FunctionId, Thread, Timeline, WatchCost};

/// The calls of a thread in the order of their beginnings, with what watching them cost.
#[derive(Debug, Default)]
pub(super) struct WatchedCalls(Vec<WatchedCall>);

#[derive(Clone, Copy, Debug)]
struct WatchedCall {
    start: Nanos,
    inside: Nanos,
    /// What it and all those before it cost.
    up_to_here: Nanos,
}

impl WatchedCalls {
    /// Those of a thread.
    pub(super) fn of(timeline: &Timeline, thread: &Thread) -> Self {
        let cost = |id: FunctionId| timeline.watch_costs.get(&id).copied().unwrap_or_default();
        let spans = thread.spans.iter().map(|span| (span.start, cost(span.call), 1));
        let leaves = thread.leaves.iter().map(|leaf| (leaf.start, cost(leaf.call), leaf.count));
        let mut all: Vec<_> = spans.chain(leaves).collect();
        all.sort_by_key(|(start, ..)| *start);
        let mut up_to_here = Nanos::ZERO;
        let call = |(start, WatchCost { inside, outside }, count)| {
            let of_all = |each: Nanos| Nanos(each.0 * u64::from(count));
            let inside = of_all(inside);
            up_to_here += inside + of_all(outside);
            WatchedCall { start, inside, up_to_here }
        };
        Self(all.into_iter().map(call).collect())
    }

    /// What watching cost in those stretches between two moments. Of a call with which a stretch
    /// begins only what lies in the call's own time: the rest was before.
    pub(super) fn within(&self, set: &Stretches, from: Nanos, to: Nanos) -> Nanos {
        set.between(from, to).map(|(start, end)| self.between(start, end)).sum()
    }

    fn between(&self, start: Nanos, end: Nanos) -> Nanos {
        let first = self.0.partition_point(|call| call.start < start);
        let inner = self.0.partition_point(|call| call.start <= start);
        let last = self.0.partition_point(|call| call.start < end);
        let up_to =
            |count: usize| count.checked_sub(1).map_or(Nanos::ZERO, |at| self.0[at].up_to_here);
        let with_it: Nanos = self.0[first..inner].iter().map(|call| call.inside).sum();
        with_it + up_to(last.max(inner)) - up_to(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, micros, millis};

    fn watched(timeline: &mut Timeline) -> WatchedCalls {
        let cost = WatchCost { inside: Nanos(100), outside: Nanos(1_000) };
        timeline.watch_costs =
            (0..timeline.calls.len() as u32).map(|id| (FunctionId(id), cost)).collect();
        WatchedCalls::of(timeline, &timeline.threads[0])
    }

    #[test]
    fn a_stretch_holds_what_watching_its_calls_cost() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_FindObjectsInit").advance(micros(10));
                told.leaf("open", micros(10)).advance(micros(10)).leaf("open", micros(10)).exit();
                told.advance(micros(10)).call("C_Sign", 2, millis(1));
            })
            .timeline();
        let calls = watched(&mut timeline);
        let cost = |start: u64, end: u64| {
            let set = Stretches::from_iter([(micros(start), micros(end))]);
            calls.within(&set, Nanos::ZERO, millis(10)).0
        };
        // Of the search what is in its own time; of what is inside all.
        assert_eq!(cost(0, 40), 100 + 2 * 1_100);
        assert_eq!(cost(5, 15), 1_100);
        assert_eq!(cost(10, 20), 100);
        assert_eq!(cost(12, 20), 0);
        assert_eq!(cost(0, 2_000), 100 + 3 * 1_100);
        let set = Stretches::from_iter([(micros(0), micros(40))]);
        assert_eq!(calls.within(&set, micros(20), micros(40)).0, 1_100, "between two moments");
    }

    #[test]
    fn many_calls_that_were_counted_cost_as_often() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").leaf("read", micros(9)).with(|leaf| leaf.count = 5).exit();
            })
            .timeline();
        let calls = watched(&mut timeline);
        let all = Stretches::from_iter([(Nanos::ZERO, millis(1))]);
        assert_eq!(calls.within(&all, Nanos::ZERO, millis(1)).0, 100 + 5 * 100);
    }
}
