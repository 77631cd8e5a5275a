//! Collects the stacks that calls were made from, each once, and gives them names at the end.

use std::collections::HashMap;
use std::sync::Arc;

use tapstone_events::system_calls::{StackFrame, StackId, StackNode, Stacks};

use crate::code::CodeImage;

/// Nodes beyond these are not kept: 100 MB with their index.
const MOST_NODES: usize = 2_000_000;

/// A place in a file of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeAddress {
    /// Which file, in the order in which they were seen.
    pub(super) image: u32,
    /// The address that it is linked for.
    pub(super) address: u64,
    /// Whether it is a return address: the call is in front of it, perhaps at a function's end.
    pub(super) returned_to: bool,
}

/// Stacks as they are collected.
pub(super) struct Collector {
    places: Vec<CodeAddress>,
    place_ids: HashMap<CodeAddress, u32>,
    nodes: Vec<StackNode>,
    node_ids: HashMap<StackNode, u32>,
    /// Stacks that were cut because there were too many.
    pub(super) cut: u64,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            place_ids: HashMap::new(),
            nodes: vec![StackNode { caller: 0, frame: 0 }],
            node_ids: HashMap::new(),
            cut: 0,
        }
    }

    /// The number of a place.
    pub(super) fn place(&mut self, place: CodeAddress) -> u32 {
        *self.place_ids.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        })
    }

    /// The stack of these places, the innermost first.
    pub(super) fn stack(&mut self, places: &[u32]) -> StackId {
        let mut at = 0;
        for &frame in places.iter().rev() {
            let node = StackNode { caller: at, frame };
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
    pub(super) fn named(self, images: &[CodeImage]) -> Stacks {
        let mut frames: Vec<Option<StackFrame>> = vec![None; self.places.len()];
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
                frames[*id] = Some(StackFrame {
                    module: Arc::clone(&module),
                    function: function.map(|function| function.name),
                    offset: self.places[*id].address - start,
                    source: None,
                });
            }
        }
        let frames = frames.into_iter().map(|frame| frame.expect("each place is in an image"));
        Stacks::new(frames.collect(), self.nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_share_their_callers() {
        let images = [CodeImage::of_name("program"), CodeImage::of_name("libc.so.6")];
        let mut collector = Collector::new();
        let mut place = |image, address| {
            collector.place(CodeAddress { image, address, returned_to: address != 0x10 })
        };
        let open = place(1, 0x10);
        let lookup = place(1, 0x20);
        let other = place(0, 0x18);
        let main = place(0, 0x30);
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
