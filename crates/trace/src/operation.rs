//! What a user counts: the whole command, a signature, or what lies between two system calls.
//!
//! A timeline is cut into operations, so that a figure can be given per operation, and as a share
//! of one. A system call is known here only by the moments at which it returned.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::timeline::{End, Span, Thread, Timeline};
use crate::wire::{FUNCTIONS, Family};

/// What counts as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// `whole`: the command, from its start to its end.
    #[default]
    Whole,
    /// `C_Sign`: the outermost call of a function, with the call that prepared it.
    Call(&'static str),
    /// `syscall:read`: from one return of a system call to the next, on one thread.
    SystemCall(String),
}

/// A text that names no operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{name}\" is no operation{}\nhint: an operation is whole, a function of PKCS#11 (C_…), PC/SC \
     (SCard…) or a reader driver (IFDH…), or syscall:NAME", did_you_mean(*.near)
)]
pub struct OperationError {
    name: String,
    near: Option<&'static str>,
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

const WHOLE: &str = "whole";
const SYSTEM_CALL: &str = "syscall:";

/// A name that resembles another so much is a slip of the keyboard.
const ALIKE: f64 = 0.85;

impl FromStr for Operation {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        if text == WHOLE {
            return Ok(Self::Whole);
        }
        if let Some(call) = text.strip_prefix(SYSTEM_CALL).filter(|call| is_name(call)) {
            return Ok(Self::SystemCall(call.to_owned()));
        }
        match cuttable().find(|name| *name == text) {
            Some(name) => Ok(Self::Call(name)),
            None => Err(OperationError { name: text.to_owned(), near: nearest(text) }),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str(WHOLE),
            Self::Call(name) => f.write_str(name),
            Self::SystemCall(name) => write!(f, "{SYSTEM_CALL}{name}"),
        }
    }
}

/// Functions that are seen from their beginning to their end.
fn cuttable() -> impl Iterator<Item = &'static str> {
    let spans = FUNCTIONS.iter().filter(|function| !matches!(function.family, Family::Libc(_)));
    spans.map(|function| function.name)
}

fn nearest(text: &str) -> Option<&'static str> {
    let likeness = |name| (strsim::jaro_winkler(name, text), name);
    let best = cuttable().map(likeness).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness > ALIKE).map(|(_, name)| name)
}

/// Whether a system call could have that name.
fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.bytes().all(fits)
}

/// One operation: a stretch of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// An index into [`Timeline::threads`].
    pub thread: usize,
    /// Its beginning.
    pub start: Nanos,
    /// Its end.
    pub end: Nanos,
}

/// A timeline, cut into operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// By thread, and in the order of their beginnings.
    pub cuts: Vec<Cut>,
    /// The only one is the whole command, with all its threads.
    pub is_whole: bool,
}

impl Operations {
    /// Cuts a timeline. For a system call `returns` holds when it returned, and on which thread (an
    /// index into [`Timeline::threads`]); it is not looked at otherwise.
    #[must_use]
    pub fn of(operation: &Operation, timeline: &Timeline, returns: &[(usize, Nanos)]) -> Self {
        let mut cuts = match operation {
            Operation::Whole => return Self::whole(timeline),
            Operation::Call(name) => calls(timeline, name),
            Operation::SystemCall(_) => between(returns),
        };
        cuts.sort_by_key(|cut| (cut.thread, cut.start));
        Self { cuts, is_whole: false }
    }

    /// The whole command as one operation, on the thread that it began with.
    #[must_use]
    pub fn whole(timeline: &Timeline) -> Self {
        let root = timeline.root;
        let is_first = |thread: &Thread| thread.process == root && thread.id == root;
        let thread = timeline.threads.iter().position(is_first).unwrap_or(0);
        let (start, end) = (timeline.started, timeline.ended);
        Self { cuts: vec![Cut { thread, start, end }], is_whole: true }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cuts.len() as u64
    }
}

/// Functions that another one prepares (PKCS#11, 5.8 to 5.14): `C_Sign` by `C_SignInit`.
fn preparation(function: &str) -> Option<String> {
    const PREPARED: [&str; 5] = ["C_Sign", "C_Verify", "C_Digest", "C_Encrypt", "C_Decrypt"];
    PREPARED.contains(&function).then(|| format!("{function}Init"))
}

/// CKR_OPERATION_NOT_INITIALIZED (PKCS#11): the call belongs to no preparation.
const NOT_INITIALIZED: u64 = 0x91;

/// Outermost calls, each with its preparation on the same session. A second call without another
/// preparation goes on with the operation of the first, which only asked for a length (PKCS#11,
/// 5.2).
fn calls(timeline: &Timeline, name: &str) -> Vec<Cut> {
    let preparation = preparation(name);
    let mut cuts: Vec<Cut> = Vec::new();
    for (number, thread) in timeline.threads.iter().enumerate() {
        let mut prepared: HashMap<(&str, u64), Prepared> = HashMap::new();
        for span in &thread.spans {
            let call = timeline.call(span.call);
            let session = (call.module.as_str(), span.handle);
            if preparation.as_deref() == Some(call.function) {
                if is_outermost(timeline, thread, span) && span.result == 0 {
                    prepared.insert(session, Prepared { start: span.start, cut: None });
                }
                continue;
            }
            let is_one = call.function == name && span.end_kind != End::Open;
            if !is_one || !is_outermost(timeline, thread, span) {
                continue;
            }
            let own = Cut { thread: number, start: span.start, end: span.end };
            match prepared.get_mut(&session).filter(|_| span.result != NOT_INITIALIZED) {
                Some(Prepared { cut: Some(cut), .. }) => cuts[*cut].end = span.end,
                Some(prepared) => {
                    prepared.cut = Some(cuts.len());
                    cuts.push(Cut { start: prepared.start, ..own });
                }
                None => cuts.push(own),
            }
        }
    }
    cuts
}

/// A session on which an operation was prepared.
struct Prepared {
    start: Nanos,
    /// Where the operation is, once it has been made.
    cut: Option<usize>,
}

/// Not inside a call of the same function: a proxy and the module behind it are one.
fn is_outermost(timeline: &Timeline, thread: &Thread, span: &Span) -> bool {
    let function = timeline.call(span.call).function;
    thread.path(span.parent).all(|around| timeline.call(around.call).function != function)
}

fn between(returns: &[(usize, Nanos)]) -> Vec<Cut> {
    let mut returns = returns.to_vec();
    returns.sort_unstable();
    let pairs = returns.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs.map(|pair| Cut { thread: pair[0].0, start: pair[0].1, end: pair[1].1 }).collect()
}
