//! What each call of a thread called, in the order of time.

use crate::timeline::{Place, Thread};

/// The calls of a thread, by the call around them.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where the children of each span end in `children`; in front, those of no span.
    ends: Vec<u32>,
    children: Vec<Node>,
}

/// A call: an index into the thread's spans or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Span(u32),
    Leaf(u32),
}

impl Tree {
    pub(crate) fn of_thread(thread: &Thread) -> Self {
        let place = |parent: Option<Place>| parent.map_or(0, |span| span.index() + 1);
        let spans = thread.spans.iter().enumerate();
        let spans = spans.map(|(at, span)| (place(span.parent), Node::Span(at as u32)));
        let leaves = thread.leaves.iter().enumerate();
        let leaves = leaves.map(|(at, leaf)| (place(leaf.parent), Node::Leaf(at as u32)));
        let all = || spans.clone().chain(leaves.clone());
        // Counted, then put behind one another: no list of its own for each of millions of calls.
        let mut ends = vec![0u32; thread.spans.len() + 2];
        all().for_each(|(parent, _)| ends[parent + 1] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut children = vec![Node::Leaf(0); thread.spans.len() + thread.leaves.len()];
        for (parent, node) in all() {
            children[ends[parent] as usize] = node;
            ends[parent] += 1;
        }
        ends.pop();
        let mut tree = Self { ends, children };
        for parent in 0..tree.ends.len() {
            let range = tree.range(parent);
            tree.children[range].sort_by_key(|node| node.start(thread));
        }
        tree
    }

    /// What was called inside a span, or outside of all.
    pub(crate) fn inside(&self, span: Option<u32>) -> &[Node] {
        &self.children[self.range(span.map_or(0, |span| span as usize + 1))]
    }

    fn range(&self, parent: usize) -> std::ops::Range<usize> {
        let start = parent.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[parent] as usize
    }
}

impl Node {
    fn start(self, thread: &Thread) -> tapstone_measure::units::Nanos {
        match self {
            Self::Span(at) => thread.spans[at as usize].start,
            Self::Leaf(at) => thread.leaves[at as usize].start,
        }
    }
}
