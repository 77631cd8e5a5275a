//! Waste that a trace shows, and the fixes that were tried.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::comparison::Change;
use crate::figures::{Estimate, Fraction, Range};

/// A waste of time, with its evidence and what its removal would save. Findings overlap and are
/// never added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which kind of waste.
    pub kind: FindingKind,
    /// The call that wastes the time, for example `SCardEndTransaction`; `and 2 others` where
    /// others go with it.
    #[serde(rename = "where")]
    pub place: String,
    /// The layer that owns the time.
    pub layer: String,
    /// How often it happens per operation.
    pub per_operation: f64,
    /// How often it happened in all.
    pub count: u64,
    /// How long in all, in nanoseconds.
    #[schemars(with = "u64")]
    pub time_ns: Nanos,
    /// Its part of the wall time of the thread that it happened on.
    pub share: Fraction,
    /// What was seen, as sentences.
    pub evidence: Vec<String>,
    /// What its removal would save, in nanoseconds per operation. Low: only the time in which no
    /// other thread worked; high: all of it. Null when it cannot be said.
    pub saving: Option<Range>,
    /// The fix to try, as `tapstone trial` takes it; null when there is none.
    #[serde(rename = "try")]
    pub trial: Option<String>,
    /// What to change, where that is more than to do as the fix does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Where its calls came from, as far as stacks were kept: those of the first calls of each place.
    /// The ways that were seen most often come first, three at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<CallPath>,
}

/// A way on which calls came: the functions on the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPath {
    /// How many of the calls whose stacks were kept came this way; not how many did in all.
    pub calls: u64,
    /// The functions, the innermost first: the one that made the call. Six at most.
    pub sites: Vec<CallSite>,
}

/// A place in a function from which another was called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CallSite {
    /// The file name of the program or library.
    pub module: String,
    /// The function; absent where the file has no name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The line of the call, `src/signer.c:42`, where the file has debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How far behind the function's start the call returns to; without a function the address
    /// that this place is linked for.
    pub offset: u64,
}

impl fmt::Display for CallSite {
    /// `sign_all (src/signer.c:42)`, `main [signer]`, `signer+0x1139`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, function, source, offset } = self;
        match (function, source) {
            (Some(function), Some(source)) => write!(f, "{function} ({source})"),
            (Some(function), None) => write!(f, "{function} [{module}]"),
            (None, Some(source)) => write!(f, "{module} ({source})"),
            (None, None) => write!(f, "{module}+{offset:#x}"),
        }
    }
}

/// A kind of waste. Readers must expect kinds that are not in this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A library call sleeps.
    Sleep,
    /// A library call asks again and again whether something is ready.
    BusyWait,
    /// The same search for objects of a token, with the same answer, again.
    RepeatedSearch,
    /// The same attributes of an object, or the same facts about a token, a slot or a mechanism, are
    /// read again, with the same answer.
    RepeatedRead,
    /// A call only asks how long its answer is, before the one that wants it.
    LengthProbe,
    /// A message in one piece is passed in parts.
    MultiPart,
    /// Keys are made for one operation and destroyed again.
    KeyChurn,
    /// Waits last a multiple of a fixed interval.
    PollQuantum,
    /// The same file is read, or the same lookup made, again.
    RepeatedLookup,
    /// The same command goes to the card again though nothing could have changed the answer.
    RepeatedCommand,
    /// A small write waits for the acknowledgement of the last one.
    DelayedAck,
    /// Threads wait for one another.
    Serialised,
    /// Sessions, logins or connections are opened for every operation.
    SessionChurn,
    /// A kind that a later version of the tool found.
    #[serde(untagged)]
    Other(String),
}

/// A fix, applied to the unmodified program and measured against it in interleaved rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The fix, as `tapstone trial` takes it, for example `no-sleep:SCardEndTransaction`.
    pub fix: String,
    /// One operation of the program under observation without the fix, in nanoseconds.
    pub before_ns: Estimate,
    /// One operation with the fix, in nanoseconds.
    pub after_ns: Estimate,
    /// User and system time together, without the fix and with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ns: Option<BeforeAfter>,
    /// User time; absent where runs are too short for the kernel to tell it from system time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<BeforeAfter>,
    /// System time; absent where user time is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<BeforeAfter>,
    /// Before over after: 3.26 is 3.26 times as fast.
    pub speedup: Estimate,
    /// What the finding promised, in nanoseconds saved per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Range>,
    /// How many rounds the figures rest on.
    pub rounds: u32,
    /// The seed that decided the order within each round and the pauses between rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the interval of the speed-up says; nothing where the fix changed nothing.
    pub verdict: Change,
    /// Calls that the fix changed, in all rounds together. 0: what it would bring is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<u64>,
    /// One operation of the program without observation, in nanoseconds; absent when it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unobserved_ns: Option<Estimate>,
    /// Whether the program still did the same. A fix that changes what it does is no fix.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// Places that already differ between two untouched runs, and were therefore not compared.
    #[serde(default)]
    pub unstable_places: u64,
    /// Where the program with the fix did something else, as sentences.
    #[serde(default)]
    pub differences: Vec<String>,
    /// What to know before believing the trial, as sentences: a fix that never applied, time
    /// limits that were shortened.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The same figure without a fix and with it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BeforeAfter {
    /// Without the fix, in nanoseconds.
    pub before: Estimate,
    /// With the fix, in nanoseconds.
    pub after: Estimate,
}

/// Whether a program did the same with a fix and without: exit code, output, and the sequence of
/// calls with their return codes and status words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// With the fix the program did the same as without it.
    Same,
    /// It did something else.
    Differs,
    /// Nobody can say: untouched runs differ too much, or nothing was compared.
    #[default]
    NotComparable,
}
