//! System calls as the tracer has them, in the words of a trace.

use std::collections::HashMap;
use std::sync::Arc;

use super::SystemCall;
use tapstone_events::system_calls::{Observed, StackId};

/// The system calls of a run but the probe's, in the order in which they ended.
pub fn system_calls(observed: &Observed) -> impl Iterator<Item = SystemCall<'_>> {
    let mut stacks: HashMap<StackId, Arc<[String]>> = HashMap::new();
    observed.program_calls().map(move |call| {
        let frames = || observed.program_frames(call.stack).map(ToString::to_string).collect();
        let used = call.arguments.iter().rposition(|argument| *argument != 0);
        SystemCall {
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
