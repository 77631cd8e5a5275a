//! Waste that a timeline shows: what it is, where, what was seen of it, and what to try.
//!
//! Each kind has a detector in a file of its own. A detector looks at the timeline alone and knows
//! no library: only what functions are for, by their standards (PKCS#11, PC/SC, ISO 7816-4) and by
//! what they do in libc. Findings overlap: two of them can name the same time, and are never
//! added. What several fixes would save together is predicted from the union of the time that they
//! remove ([`prediction`]).

mod busy_wait;
mod callers;
mod delayed_ack;
mod files;
mod needless_calls;
mod own_waits;
mod poll_quantum;
pub mod prediction;
mod remaining_work;
mod repeated_command;
mod repeated_lookup;
mod repeated_read;
mod repeated_search;
mod repetitions;
mod scene;
mod serialised;
mod session_churn;
mod sleep;
mod stops;
mod stretches;
#[cfg(test)]
mod tests;
mod token_calls;
mod unit;
mod watching;
pub(crate) mod words;

use std::cmp::Reverse;

use tapstone_measure::units::Nanos;
use tapstone_record as record;
pub use tapstone_record::FindingKind;

pub use self::files::{CallOrigin, FileCall};
use self::scene::Scene;
pub(crate) use self::scene::waited;
pub(crate) use self::stops::Stops;
use crate::operation::Operations;
use crate::timeline::Timeline;
use tapstone_events::Fix;

/// A waste of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which kind of waste it is.
    pub kind: FindingKind,
    /// The function that wastes the time.
    pub place: String,
    /// The file name of the library that it belongs to; empty for the program itself.
    pub module: String,
    /// The layer that owns the time, as a record has it.
    pub layer: String,
    /// How often it happens per operation.
    pub per_operation: f64,
    /// How often it happened.
    pub count: u64,
    /// How long, all threads together.
    pub time: Nanos,
    /// Its part of the operations' time on the threads that it happened on.
    pub share: f64,
    /// What was seen, as sentences.
    pub evidence: Vec<String>,
    /// The time that would go: by thread, in order, without overlap.
    pub removed: Vec<Removed>,
    /// What may go beside it: what the program does with the answer, and what others wait for.
    pub perhaps: Vec<Removed>,
    /// The fix to try.
    pub trial: Option<Fix>,
    /// What to change, where that is more than to do as the fix does.
    pub advice: Option<String>,
}

/// A stretch of a thread that a fix would take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removed {
    /// An index into [`Timeline::threads`].
    pub thread: usize,
    /// When the stretch begins, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When the stretch ends, on CLOCK_MONOTONIC.
    pub end: Nanos,
}

/// The kinds of waste that [`find`] looks for.
pub const LOOKED_FOR: [FindingKind; 13] = [
    FindingKind::Sleep,
    FindingKind::BusyWait,
    FindingKind::PollQuantum,
    FindingKind::RepeatedLookup,
    FindingKind::RepeatedSearch,
    FindingKind::RepeatedRead,
    FindingKind::LengthProbe,
    FindingKind::MultiPart,
    FindingKind::KeyChurn,
    FindingKind::RepeatedCommand,
    FindingKind::DelayedAck,
    FindingKind::Serialised,
    FindingKind::SessionChurn,
];

/// All waste of at least 1 % of an operation, the longest first. `files` are system calls on
/// files with the stacks that made them, when those were observed; or none.
#[must_use]
pub fn find<'a>(
    timeline: &'a Timeline,
    operations: &'a Operations,
    files: impl IntoIterator<Item = FileCall<'a>>,
) -> Vec<Finding> {
    let scene = Scene::new(timeline, operations);
    let mut findings = sleep::find(&scene);
    findings.extend(busy_wait::find(&scene));
    findings.extend(own_waits::find(&scene));
    findings.extend(poll_quantum::find(&scene));
    findings.extend(repeated_lookup::find(&scene, files));
    findings.extend(repeated_command::find(&scene));
    findings.extend(delayed_ack::find(&scene));
    findings.extend(serialised::find(&scene));
    findings.extend(repeated_read::find(&scene));
    findings.extend(needless_calls::find(&scene));
    findings = repeated_search::with_searches(&scene, findings);
    findings.extend(session_churn::find(&scene));
    findings.sort_by_key(|finding| Reverse(finding.time));
    findings
}

impl Finding {
    /// As it stands in a record, of the timeline that it was found in. `saving` is what its removal
    /// is predicted to save per operation.
    #[must_use]
    pub fn record(
        &self,
        timeline: &Timeline,
        saving: Option<prediction::Saving>,
    ) -> record::Finding {
        record::Finding {
            kind: self.kind.clone(),
            place: self.place.clone(),
            layer: self.layer.clone(),
            per_operation: self.per_operation,
            count: self.count,
            time_ns: self.time,
            share: record::Fraction(self.share),
            evidence: self.evidence.clone(),
            saving: saving.map(|saving| record::Range { low: saving.low, high: saving.high }),
            trial: self.trial.as_ref().map(Fix::to_string),
            advice: self.advice.clone(),
            callers: callers::paths_to(timeline, self),
        }
    }
}
