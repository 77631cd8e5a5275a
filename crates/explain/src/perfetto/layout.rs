//! Where slices lie. A track is a stack of slices: one that is not wholly inside another, or wholly
//! outside of it, would be drawn as something that never happened.
//!
//! Calls are where they were. Many short calls in a row are known by their first beginning, their
//! last end and the sum of their times, and other calls may lie among them; they become one slice
//! as long as the sum, in the first free stretch of where they were, or else a mark without length.

use tapstone_measure::units::Nanos;

/// What was called inside one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child<T> {
    pub(super) what: T,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// Of calls in a row, the sum of their times.
    pub(super) sum: Option<Nanos>,
}

/// Where it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlicePlace {
    Slice { start: Nanos, end: Nanos },
    Mark { at: Nanos },
}

/// Places for what happened in a stretch of time, one after the other, in the order of time.
/// `children` are in the order of their beginnings.
pub(super) fn places<T: Copy>(
    (from, to): (Nanos, Nanos),
    children: &[Child<T>],
) -> Vec<(T, SlicePlace)> {
    let mut placed = Vec::with_capacity(children.len());
    let mut fixed = children.iter().filter(|child| child.sum.is_none());
    let mut loose = children.iter().filter(|child| child.sum.is_some()).peekable();
    let mut waiting: Vec<&Child<T>> = Vec::new();
    let mut free_from = from;
    loop {
        let next = fixed.next();
        // Moments are rounded: neighbours may seem to overlap, and a child to outlast its parent.
        let within = |at: Nanos| at.max(free_from).min(to);
        let free_to = next.map_or(to, |next| within(next.start));
        while let Some(child) = loose.next_if(|child| next.is_none() || child.start < free_to) {
            waiting.push(child);
        }
        waiting.retain(|child| {
            let start = child.start.max(free_from);
            let end = start + child.sum.unwrap_or_default();
            if end <= free_to && end <= child.end.max(child.start) {
                placed.push((child.what, SlicePlace::Slice { start, end }));
                free_from = end;
                return false;
            }
            let may_fit_later = next.is_some() && child.end > free_to;
            if !may_fit_later {
                placed.push((
                    child.what,
                    SlicePlace::Mark { at: free_from.max(child.start).min(free_to) },
                ));
            }
            may_fit_later
        });
        let Some(next) = next else { return placed };
        let end = next.end.max(free_to).min(to);
        placed.push((next.what, SlicePlace::Slice { start: free_to, end }));
        free_from = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn child(what: char, start: u64, end: u64, sum: Option<u64>) -> Child<char> {
        Child { what, start: Nanos(start), end: Nanos(end), sum: sum.map(Nanos) }
    }

    fn drawn(to: u64, children: &[Child<char>]) -> String {
        let text = |(what, place): &(char, SlicePlace)| match place {
            SlicePlace::Slice { start, end } => format!("{what} {}-{}", start.0, end.0),
            SlicePlace::Mark { at } => format!("{what} {}", at.0),
        };
        places((Nanos(0), Nanos(to)), children).iter().map(text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn rows_of_calls_go_where_there_is_room() {
        // Alone, they are where they began.
        assert_eq!(drawn(100, &[child('p', 10, 90, Some(30))]), "p 10-40");
        // Polls and clock readings by turns lie one after the other.
        let turns = [child('p', 10, 90, Some(30)), child('c', 11, 91, Some(20))];
        assert_eq!(drawn(100, &turns), "p 10-40, c 40-60");
        // A call among them is where it was.
        let among = [child('p', 10, 90, Some(30)), child('X', 20, 50, None)];
        assert_eq!(drawn(100, &among), "X 20-50, p 50-80");
        let no_room = [child('p', 10, 60, Some(30)), child('X', 20, 50, None)];
        assert_eq!(drawn(100, &no_room), "X 20-50, p 50");
    }

    #[test]
    fn what_sticks_out_is_cut() {
        assert_eq!(drawn(100, &[child('X', 20, 150, None)]), "X 20-100");
        let overlap = [child('X', 20, 51, None), child('Y', 50, 70, None)];
        assert_eq!(drawn(100, &overlap), "X 20-51, Y 51-70");
        assert_eq!(
            drawn(100, &[child('X', 150, 170, None), child('Y', 10, 5, None)]),
            "X 100-100, Y 100-100"
        );
    }

    proptest! {
        #[test]
        fn slices_lie_side_by_side_inside(
            to in 1u64..200,
            mut children in prop::collection::vec((0u64..250, 0u64..80, prop::option::of(0u64..60)), 0..30),
        ) {
            children.sort_by_key(|child| child.0);
            let children: Vec<_> = children
                .iter()
                .enumerate()
                .map(|(at, (start, length, sum))| Child {
                    what: at,
                    start: Nanos(*start),
                    end: Nanos(start + length),
                    sum: sum.map(Nanos),
                })
                .collect();
            let placed = places((Nanos(0), Nanos(to)), &children);
            let mut last = Nanos(0);
            let mut seen = vec![0; children.len()];
            for (what, place) in placed {
                seen[what] += 1;
                let (start, end) = match place {
                    SlicePlace::Slice { start, end } => (start, end),
                    SlicePlace::Mark { at } => (at, at),
                };
                prop_assert!(last <= start && start <= end && end <= Nanos(to));
                last = end;
                if let (SlicePlace::Slice { .. }, Some(sum)) = (place, children[what].sum) {
                    prop_assert_eq!(end - start, sum);
                    prop_assert!(start >= children[what].start && end <= children[what].end.max(start));
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
        }
    }
}
