//! The stacks that calls were made from, each kept once.
//!
//! Stacks form a tree with `main` near its root: each is one frame, called by another stack. A
//! program makes its calls from few places, so a million calls need a few hundred nodes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::image::Image;

/// A stack, as [`Stacks`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub(super) u32);

impl StackId {
    /// Nothing is known of where the call came from.
    pub const EMPTY: Self = Self(0);
}

/// One function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The file name of the program or library.
    pub module: Arc<str>,
    /// The function, as the file's symbols name it; none of static functions of a stripped file.
    pub function: Option<Arc<str>>,
    /// How far behind the function's start it will go on; without a function, the address that
    /// the place is linked for, as `addr2line` takes it.
    pub offset: u64,
}

impl fmt::Display for Frame {
    /// `getprotobynumber [libc.so.6]`; without symbols, where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{function} [{}]", self.module),
            None => write!(f, "{}+{:#x}", self.module, self.offset),
        }
    }
}

/// All stacks of a run.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Vec<Frame>,
    /// Node 0 is the empty stack.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    /// The stack of the caller, always an earlier node.
    caller: u32,
    frame: u32,
}

impl Stacks {
    /// The frames of a stack, the innermost (which made the system call) first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        let mut at = stack.0;
        std::iter::from_fn(move || {
            let node = *self.nodes.get(at as usize).filter(|_| at != 0)?;
            at = node.caller;
            Some(&self.frames[node.frame as usize])
        })
    }

    /// How many stacks there are, each with the stacks of all its callers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Nodes beyond these are not kept: 100 MB with their index.
const MOST_NODES: usize = 2_000_000;

/// A place in a file of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Which file, in the order in which they were seen.
    pub(super) image: u32,
    /// The address that it is linked for.
    pub(super) address: u64,
    /// Whether it is a return address: the call is in front of it, perhaps at a function's end.
    pub(super) returned_to: bool,
}

/// Stacks as they are collected.
pub(super) struct Collector {
    places: Vec<Place>,
    place_ids: HashMap<Place, u32>,
    nodes: Vec<Node>,
    node_ids: HashMap<Node, u32>,
    /// Stacks that were cut because there were too many.
    pub(super) cut: u64,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            place_ids: HashMap::new(),
            nodes: vec![Node { caller: 0, frame: 0 }],
            node_ids: HashMap::new(),
            cut: 0,
        }
    }

    /// The number of a place.
    pub(super) fn place(&mut self, place: Place) -> u32 {
        *self.place_ids.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        })
    }

    /// The stack of these places, the innermost first.
    pub(super) fn stack(&mut self, places: &[u32]) -> StackId {
        let mut at = 0;
        for &frame in places.iter().rev() {
            let node = Node { caller: at, frame };
            at = match self.node_ids.get(&node) {
                Some(id) => *id,
                None if self.nodes.len() >= MOST_NODES => {
                    self.cut += 1;
                    return StackId(at);
                }
                None => {
                    self.nodes.push(node);
                    let id = self.nodes.len() as u32 - 1;
                    self.node_ids.insert(node, id);
                    id
                }
            };
        }
        StackId(at)
    }

    /// Gives all places their names.
    pub(super) fn named(self, images: &[Image]) -> Stacks {
        let mut frames: Vec<Option<Frame>> = vec![None; self.places.len()];
        for (image, content) in images.iter().enumerate() {
            let mut here: Vec<(u64, usize)> = self
                .places
                .iter()
                .enumerate()
                .filter(|(_, place)| place.image as usize == image)
                .map(|(id, place)| (place.address - u64::from(place.returned_to), id))
                .collect();
            if here.is_empty() {
                continue;
            }
            here.sort_unstable();
            let module = content.name();
            let addresses: Vec<u64> = here.iter().map(|(address, _)| *address).collect();
            for ((_, id), function) in here.iter().zip(content.functions(&addresses)) {
                let start = function.as_ref().map_or(0, |function| function.start);
                frames[*id] = Some(Frame {
                    module: Arc::clone(&module),
                    function: function.map(|function| function.name),
                    offset: self.places[*id].address - start,
                });
            }
        }
        let frames = frames.into_iter().map(|frame| frame.expect("each place is in an image"));
        Stacks { frames: frames.collect(), nodes: self.nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_share_their_callers() {
        let images = [Image::of_name("program"), Image::of_name("libc.so.6")];
        let mut collector = Collector::new();
        let mut place = |image, address| {
            collector.place(Place { image, address, returned_to: address != 0x10 })
        };
        let (open, lookup, other, main) =
            (place(1, 0x10), place(1, 0x20), place(0, 0x18), place(0, 0x30));
        let one = collector.stack(&[open, lookup, main]);
        let two = collector.stack(&[open, other, main]);
        assert_eq!(collector.stack(&[open, lookup, main]), one);
        assert_ne!(one, two);
        assert_eq!(collector.stack(&[]), StackId::EMPTY);
        let stacks = collector.named(&images);
        assert_eq!(stacks.len(), 5, "main, and two of two frames each");
        let shown = |stack| -> Vec<_> {
            let frames = stacks.frames(stack);
            frames.map(|frame| format!("{} {:#x}", frame.module, frame.offset)).collect()
        };
        assert_eq!(shown(one), ["libc.so.6 0x10", "libc.so.6 0x20", "program 0x30"]);
        assert_eq!(shown(two), ["libc.so.6 0x10", "program 0x18", "program 0x30"]);
        assert!(shown(StackId::EMPTY).is_empty());
    }
}
