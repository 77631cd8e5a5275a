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
pub use self::stacks::{Frame, StackId, StackNode, Stacks};

use self::own::Loading;
use crate::exit::Exit;

/// A process that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedProcess {
    /// Its number.
    pub process: u32,
    /// Who made it, if that was seen.
    pub parent: Option<u32>,
    /// What it ran last.
    pub program: PathBuf,
    /// When it was first seen, on CLOCK_MONOTONIC.
    pub started: Nanos,
    /// When it had ended.
    pub ended: Nanos,
    /// How.
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
    /// The chosen calls.
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
        let by_probe = move |call: &SystemCall| innermost(call).is_some_and(Frame::is_of_probe);
        let mut loading = Loading::default();
        self.calls.iter().filter(move |call| {
            let on = call.on.map(|name| &self.names.get(name)[..]);
            !loading.includes(call, on) && !by_probe(call)
        })
    }

    /// The frames of a stack, the innermost first, without the probe's: it stands between a caller
    /// and what it calls.
    pub fn program_frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.stacks.frames(stack).filter(|frame| !frame.is_of_probe())
    }
}
