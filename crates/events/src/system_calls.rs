//! The system calls of a run: which, when, on what, and from where.
//!
//! [`Observed::calls`] takes about 20 bytes a call; names and stacks are kept once each.

mod cost;
mod log;
mod names;
mod own;
mod set;
mod stacks;
pub mod table;

use std::path::PathBuf;

use tapstone_measure::units::Nanos;

pub use self::cost::StopCost;
pub use self::log::{Calls, SystemCall, SystemCallWriter};
pub use self::names::{NameId, Names};
pub use self::set::{SystemCallSet, SystemCallSetError};
pub use self::stacks::{StackFrame, StackId, StackNode, Stacks};

use self::own::Loading;
use crate::exit::Exit;

/// A process that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedProcess {
    /// The id of the process.
    pub process: u32,
    /// Who made it, if that was seen.
    pub parent: Option<u32>,
    /// What it ran last.
    pub program: PathBuf,
    /// When it was first seen, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it had ended.
    pub ended: Nanos,
    /// How the process ended.
    pub exit: Exit,
}

/// What was seen of a program.
#[derive(Debug)]
pub struct Observed {
    /// How the program itself ended.
    pub exit: Exit,
    /// Just before its process was made, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it had ended. Children may have gone on, and were waited for.
    pub ended: Nanos,
    /// Processor time of the program, and of the children that it waited for, in user space.
    pub user: Nanos,
    /// The same in the kernel; this includes the stops.
    pub system: Nanos,
    /// The system calls that were asked for, in order.
    pub calls: Calls,
    /// The stacks that they were made from.
    pub stacks: Stacks,
    /// What they worked on.
    pub names: Names,
    /// All processes, in the order in which they ended.
    pub processes: Vec<TracedProcess>,
    /// Calls that did not fit.
    pub dropped: u64,
    /// What a reader has to know, in sentences.
    pub warnings: Vec<String>,
    /// What the stops cost.
    pub stop_cost: StopCost,
    /// Ctrl-C, SIGTERM or SIGHUP came while the program ran.
    pub interrupted: bool,
}

impl Observed {
    /// Whether a call slept, so that its duration is more than that of the stops around it.
    #[must_use]
    pub fn slept(&self, call: &SystemCall) -> bool {
        let may_wait = table::by_number(call.number).is_some_and(|known| known.waits);
        may_wait && call.end - call.start >= self.stop_cost.shortest_sleep()
    }
}

impl Observed {
    /// All calls but those that the probe makes, and those that load it.
    pub fn program_calls(&self) -> impl Iterator<Item = SystemCall> {
        let innermost = |call: &SystemCall| self.stacks.frames(call.stack).next();
        let by_probe =
            move |call: &SystemCall| innermost(call).is_some_and(StackFrame::is_of_probe);
        let mut loading = Loading::default();
        self.calls.iter().filter(move |call| {
            let on = call.on.map(|name| &self.names.get(name)[..]);
            !loading.includes(call, on) && !by_probe(call)
        })
    }

    /// The frames of a stack, the innermost first, without the probe's: it stands between a caller
    /// and what it calls.
    pub fn program_frames(&self, stack: StackId) -> impl Iterator<Item = &StackFrame> {
        self.stacks.frames(stack).filter(|frame| !frame.is_of_probe())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::PROBE_FILE;

    /// Stacks: 1 is the program's `main`, 2 the probe called by it, 3 a library called by the probe.
    const STACKS: [(u32, &str); 3] = [(0, "program"), (1, PROBE_FILE), (2, "libc.so.6")];

    /// A call of `read`, which can wait, or another one, and what it worked on.
    fn call(name: &str, length: Nanos, stack: u32, on: Option<NameId>) -> SystemCall {
        SystemCall {
            process: 1,
            thread: 1,
            start: Nanos::from_millis(1),
            end: Nanos::from_millis(1) + length,
            number: table::by_name(name).unwrap().number,
            arguments: [0; 6],
            result: Some(0),
            on,
            stack: StackId(stack),
        }
    }

    fn observed(calls: &[SystemCall], names: Names) -> Observed {
        let frame = |module: &str| StackFrame {
            module: Arc::from(module),
            function: None,
            offset: 0,
            source: None,
        };
        let frames = STACKS.map(|(_, module)| frame(module)).to_vec();
        // Node 0 is the empty stack.
        let mut nodes = vec![StackNode { caller: 0, frame: 0 }];
        nodes.extend((0..).zip(STACKS).map(|(frame, (caller, _))| StackNode { caller, frame }));
        let mut writer = SystemCallWriter::new(usize::MAX);
        calls.iter().for_each(|call| writer.write(call));
        Observed {
            exit: Exit::Code(0),
            started: Nanos::ZERO,
            ended: Nanos::from_millis(9),
            user: Nanos::ZERO,
            system: Nanos::ZERO,
            calls: writer.into_calls(),
            stacks: Stacks::new(frames, nodes),
            names,
            processes: Vec::new(),
            dropped: 0,
            warnings: Vec::new(),
            stop_cost: StopCost { calls: 1, work: Nanos(500), round_trip: Nanos(6_000) },
            interrupted: false,
        }
    }

    #[test]
    fn a_call_slept_if_it_can_wait_and_took_long_enough() {
        let observed = observed(&[], Names::default());
        for (name, length, slept) in [
            ("read", 50_000, true),
            ("read", 49_999, false),
            ("clock_nanosleep", 1_000_000, true),
            // It never waits: it was the tracer, or the scheduler, that took its time.
            ("getpid", 1_000_000, false),
        ] {
            let call = call(name, Nanos(length), 0, None);
            assert_eq!(observed.slept(&call), slept, "{name} of {length} ns");
        }
    }

    #[test]
    fn calls_of_the_program_are_all_but_those_of_the_probe_and_its_loading() {
        let mut names = Names::default();
        let probe = names.add(Arc::from(format!("/tmp/{PROBE_FILE}").as_bytes()));
        let other = names.add(Arc::from(&b"/etc/hosts"[..]));
        let calls = [
            call("read", Nanos(1), 1, Some(other)),
            call("read", Nanos(2), 1, Some(probe)),
            call("read", Nanos(3), 2, Some(other)),
            // The innermost frame decides.
            call("read", Nanos(4), 3, Some(other)),
            call("read", Nanos(5), 0, None),
        ];
        let observed = observed(&calls, names);
        let kept: Vec<_> = observed.program_calls().map(|call| call.end - call.start).collect();
        assert_eq!(kept, [Nanos(1), Nanos(4), Nanos(5)]);
        let modules: Vec<_> = observed.program_frames(StackId(3)).map(|it| &*it.module).collect();
        assert_eq!(modules, ["libc.so.6", "program"]);
    }
}
