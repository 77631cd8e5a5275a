//! A timeline as folded stacks, the input of flamegraph.pl and inferno: a line for each stack, and
//! the nanoseconds that its innermost function had for itself.
//!
//! ```text
//! pkcs11-tool;main-4211;C_Sign [opensc-pkcs11.so];SCardTransmit;poll 1234000
//! ```
//!
//! The lines of a thread add up to its wall time, so a flame graph's width is time (`--countname
//! ns`), waiting included. Calls of a PKCS#11 module carry its name: a proxy and the module behind
//! it are two.

use std::collections::HashMap;
use std::io::{self, Write};

use tapstone_measure::units::Nanos;
use tapstone_text::Foreign;

use crate::perfetto::program;
use crate::timeline::{Family, FunctionId, Thread, Timeline};
use crate::tree::{Node, Tree};

/// Writes a line for each stack of each thread.
///
/// # Errors
/// What the system says when it cannot be written.
pub fn write_folded(timeline: &Timeline, mut to: impl Write) -> io::Result<()> {
    let frames = Frames::of_timeline(timeline);
    for thread in &timeline.threads {
        let stacks = ThreadStacks::of_thread(thread, &frames);
        let process = program(timeline, thread.process);
        let process = process.rsplit('/').next().unwrap_or(process);
        let name = if thread.process == thread.id { "main" } else { "thread" };
        let thread = format!("{};{name}-{}", printable(process), thread.id);
        for (at, stack) in stacks.list.iter().enumerate() {
            if stack.own > Nanos::ZERO {
                writeln!(to, "{thread}{} {}", stacks.path(at, &frames), stack.own.0)?;
            }
        }
    }
    to.flush()
}

/// What the functions of a timeline are called in a stack.
struct Frames {
    names: Vec<String>,
    /// By [`FunctionId`]: who called does not tell frames apart.
    of_calls: Vec<u32>,
}

impl Frames {
    fn of_timeline(timeline: &Timeline) -> Self {
        let mut frames = Self { names: Vec::new(), of_calls: Vec::new() };
        let mut known = HashMap::new();
        for call in &timeline.calls {
            let name = match call.family {
                Family::Pkcs11 => format!("{} [{}]", call.function, printable(&call.module)),
                Family::Pcsc | Family::Driver | Family::Libc(_) => call.function.to_owned(),
            };
            let frame = *known.entry(name).or_insert_with_key(|name| {
                frames.names.push(name.clone());
                frames.names.len() as u32 - 1
            });
            frames.of_calls.push(frame);
        }
        frames
    }

    fn at(&self, call: FunctionId) -> u32 {
        self.of_calls[call.0 as usize]
    }
}

/// The stacks of a thread, each once. The first is the empty one: the thread itself.
struct ThreadStacks {
    list: Vec<Stack>,
    known: HashMap<(usize, u32), usize>,
}

struct Stack {
    caller: usize,
    frame: u32,
    /// The time of its innermost function that no call inside it has.
    own: Nanos,
}

impl ThreadStacks {
    fn of_thread(thread: &Thread, frames: &Frames) -> Self {
        let outside = Stack { caller: 0, frame: 0, own: Nanos::ZERO };
        let mut stacks = Self { list: vec![outside], known: HashMap::new() };
        stacks.share(thread, frames, &Tree::of_thread(thread), None, 0, thread.wall());
        stacks
    }

    /// Shares out the time of a call, or of the whole thread, among what it called. Moments are
    /// rounded: nobody gives more than it has, so that everything adds up.
    fn share(
        &mut self,
        thread: &Thread,
        frames: &Frames,
        tree: &Tree,
        span: Option<u32>,
        stack: usize,
        time: Nanos,
    ) {
        let mut left = time;
        for node in tree.inside(span) {
            let (call, of_call) = match *node {
                Node::Span(at) => {
                    let span = &thread.spans[at as usize];
                    (span.call, span.time())
                }
                Node::Leaf(at) => {
                    let leaf = &thread.leaves[at as usize];
                    (leaf.call, leaf.time)
                }
            };
            let of_call = of_call.min(left);
            left = left - of_call;
            let inner = self.inside(stack, frames.at(call));
            match *node {
                Node::Span(at) => self.share(thread, frames, tree, Some(at), inner, of_call),
                Node::Leaf(_) => self.list[inner].own += of_call,
            }
        }
        self.list[stack].own += left;
    }

    fn inside(&mut self, caller: usize, frame: u32) -> usize {
        let next = self.list.len();
        let at = *self.known.entry((caller, frame)).or_insert(next);
        if at == next {
            self.list.push(Stack { caller, frame, own: Nanos::ZERO });
        }
        at
    }

    /// The frames of a stack, the outermost first, each behind a semicolon.
    fn path(&self, mut at: usize, frames: &Frames) -> String {
        let mut path = Vec::new();
        while at != 0 {
            path.push(frames.names[self.list[at].frame as usize].as_str());
            at = self.list[at].caller;
        }
        path.iter().rev().fold(String::new(), |all, frame| all + ";" + frame)
    }
}

/// A name without what has a meaning in this format. A number behind a blank at the end of a stack
/// is a second count to those who read it.
fn printable(name: &str) -> String {
    let apart = |c: char| c == ';' || c == char::REPLACEMENT_CHARACTER || c.is_whitespace();
    Foreign::new(name).to_string().chars().map(|c| if apart(c) { '_' } else { c }).collect()
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
