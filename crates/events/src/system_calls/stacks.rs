//! The stacks that calls were made from, each kept once.
//!
//! Stacks form a tree with `main` near its root: each is one frame, called by another stack. A
//! program makes its calls from few places, so a million calls need a few hundred nodes.

use std::fmt;
use std::sync::Arc;

use crate::PROBE_FILE;

/// A stack, as [`Stacks`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Nothing is known of where the call came from.
    pub const EMPTY: Self = Self(0);
}

/// One function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The file name of the program or library.
    pub module: Arc<str>,
    /// The function, as the file's symbols name it; none of static functions of a stripped file.
    pub function: Option<Arc<str>>,
    /// How far behind the function's start it will go on; without a function, the address that
    /// the place is linked for, as `addr2line` takes it.
    pub offset: u64,
    /// Where that is in its source, `src/signer.c:42`, where debug information was read.
    pub source: Option<Arc<str>>,
}

impl fmt::Display for StackFrame {
    /// `getprotobynumber [libc.so.6]`, `sign_all (src/signer.c:42)`; without symbols, where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.source) {
            (Some(function), Some(source)) => write!(f, "{function} ({source})"),
            (Some(function), None) => write!(f, "{function} [{}]", self.module),
            (None, _) => write!(f, "{}+{:#x}", self.module, self.offset),
        }
    }
}

/// All stacks of a run.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Vec<StackFrame>,
    /// Node 0 is the empty stack.
    nodes: Vec<StackNode>,
}

/// A stack: one frame, and the stack of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The stack of the caller, always an earlier node.
    pub caller: u32,
    /// The innermost frame, by its number.
    pub frame: u32,
}

impl Stacks {
    /// Stacks of these frames. Node 0 stands for the empty stack.
    #[must_use]
    pub fn new(frames: Vec<StackFrame>, nodes: Vec<StackNode>) -> Self {
        Self { frames, nodes }
    }

    /// The frames of a stack, the innermost (which made the system call) first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &StackFrame> {
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

impl StackFrame {
    pub(super) fn is_of_probe(&self) -> bool {
        &*self.module == PROBE_FILE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: Option<&str>, offset: u64) -> StackFrame {
        StackFrame {
            module: Arc::from("libc.so.6"),
            function: function.map(Arc::from),
            offset,
            source: None,
        }
    }

    #[test]
    fn the_empty_stack_does_not_count() {
        let node = StackNode { caller: 0, frame: 0 };
        for nodes in 0..4_usize {
            let stacks = Stacks::new(vec![frame(None, 0)], vec![node; nodes]);
            assert_eq!(stacks.len(), nodes.saturating_sub(1));
            assert_eq!(stacks.is_empty(), nodes < 2);
            assert_eq!(stacks.frames(StackId::EMPTY).count(), 0);
        }
    }

    #[test]
    fn a_frame_without_a_symbol_is_shown_as_a_place() {
        assert_eq!(frame(Some("read"), 17).to_string(), "read [libc.so.6]");
        assert_eq!(frame(None, 0x1F40).to_string(), "libc.so.6+0x1f40");
    }
}
