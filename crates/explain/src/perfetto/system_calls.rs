//! System calls as the tracer has them, in the words of a trace.

use std::collections::HashMap;
use std::sync::Arc;

use tapstone_events::system_calls::{Observed, StackId};
use tapstone_measure::units::Nanos;

/// A system call, with the stack that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCallSlice<'a> {
    /// The id of the process that made the call.
    pub process: u32,
    /// The id of the thread that made the call.
    pub thread: u32,
    /// When it began, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When it returned, on CLOCK_MONOTONIC.
    pub end: Nanos,
    /// Its name as in syscalls(2).
    pub name: &'a str,
    /// Its arguments, without zeros at the end.
    pub arguments: Vec<u64>,
    /// What it worked on: a path, a descriptor's file, a socket's address.
    pub object: Option<&'a [u8]>,
    /// What it returned, an error as `-errno`; none when it never did.
    pub result: Option<i64>,
    /// Where it came from, the innermost function first.
    pub stack: Arc<[String]>,
    /// It waited, so that its duration is more than the tracer's own.
    pub slept: bool,
}

/// The system calls of a run but the probe's, in the order in which they ended.
pub fn system_calls(observed: &Observed) -> impl Iterator<Item = SystemCallSlice<'_>> {
    let mut stacks: HashMap<StackId, Arc<[String]>> = HashMap::new();
    observed.program_calls().map(move |call| {
        let frames = || observed.program_frames(call.stack).map(ToString::to_string).collect();
        let used = call.arguments.iter().rposition(|argument| *argument != 0);
        SystemCallSlice {
            process: call.process,
            thread: call.thread,
            start: call.start,
            end: call.end,
            name: call.name(),
            arguments: call.arguments[..used.map_or(0, |last| last + 1)].to_vec(),
            object: call.on.map(|name| &**observed.names.get(name)),
            result: call.result,
            stack: Arc::clone(stacks.entry(call.stack).or_insert_with(frames)),
            slept: observed.slept(&call),
        }
    })
}
