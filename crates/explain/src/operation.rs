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
use tapstone_events::{FUNCTIONS, Family};

/// What counts as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OperationRule {
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
     (SCard…) or a reader driver (IFDH…), or syscall:NAME", did_you_mean(.near.as_deref())
)]
pub struct OperationError {
    name: String,
    near: Option<String>,
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

const WHOLE: &str = "whole";
const SYSTEM_CALL: &str = "syscall:";

/// A name that resembles another so much is a slip of the keyboard.
const ALIKE: f64 = 0.85;

impl FromStr for OperationRule {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        if text == WHOLE {
            return Ok(Self::Whole);
        }
        let error = |near| OperationError { name: text.to_owned(), near };
        if let Some(call) = text.strip_prefix(SYSTEM_CALL) {
            return match unknown_system_call(call) {
                None => Ok(Self::SystemCall(call.to_owned())),
                Some(near) => Err(error(near.map(|near| format!("{SYSTEM_CALL}{near}")))),
            };
        }
        match cuttable().find(|name| *name == text) {
            Some(name) => Ok(Self::Call(name)),
            None => Err(error(nearest(text).map(str::to_owned))),
        }
    }
}

impl fmt::Display for OperationRule {
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
    let text = text.to_lowercase();
    let likeness = |name: &'static str| (strsim::jaro_winkler(&name.to_lowercase(), &text), name);
    let best = cuttable().map(likeness).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness > ALIKE).map(|(_, name)| name)
}

/// Of a name that no system call has, what may have been meant.
fn unknown_system_call(name: &str) -> Option<Option<&'static str>> {
    use tapstone_events::system_calls::{SystemCallSet, SystemCallSetError};
    match name.parse::<SystemCallSet>() {
        // Not a list, nor a change of one.
        Ok(set) if set.names().eq([name]) => None,
        Err(SystemCallSetError::Unknown { alike, .. }) => Some(alike.first().copied()),
        Ok(_) | Err(SystemCallSetError::Empty) => Some(None),
    }
}

/// One operation: a stretch of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// An index into [`Timeline::threads`].
    pub thread: usize,
    /// When the operation begins, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When the operation ends, on CLOCK_MONOTONIC.
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
    pub fn cut(operation: &OperationRule, timeline: &Timeline, returns: &[(usize, Nanos)]) -> Self {
        let mut cuts = match operation {
            OperationRule::Whole => return Self::whole(timeline),
            OperationRule::Call(name) => calls(timeline, name),
            OperationRule::SystemCall(_) => between(returns),
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
        let start = timeline.started;
        let end = timeline.ended;
        Self { cuts: vec![Cut { thread, start, end }], is_whole: true }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cuts.len() as u64
    }

    /// Those of a thread, by its number.
    #[must_use]
    pub fn of_thread(&self, thread: usize) -> &[Cut] {
        let first = self.cuts.partition_point(|cut| cut.thread < thread);
        let end = self.cuts.partition_point(|cut| cut.thread <= thread);
        &self.cuts[first..end]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Story, ThreadStory, millis};

    fn cuts(operation: &str, timeline: &Timeline) -> Vec<(usize, u64, u64)> {
        let operations = Operations::cut(&operation.parse().unwrap(), timeline, &[]);
        let millis = |time: Nanos| time.0 / 1_000_000;
        let cut = |cut: &Cut| (cut.thread, millis(cut.start), millis(cut.end));
        operations.cuts.iter().map(cut).collect()
    }

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    #[test]
    fn names_are_read_and_shown() {
        for (text, operation) in [
            ("whole", OperationRule::Whole),
            ("C_Sign", OperationRule::Call("C_Sign")),
            ("SCardTransmit", OperationRule::Call("SCardTransmit")),
            ("IFDHTransmitToICC", OperationRule::Call("IFDHTransmitToICC")),
            ("syscall:pread64", OperationRule::SystemCall("pread64".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(operation.clone()));
            assert_eq!(operation.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_operation_is_said_with_what_may_be_meant() {
        for (text, says) in [
            ("C_Sing", "\"C_Sing\" is no operation (did you mean C_Sign?)"),
            ("c_sign", "did you mean C_Sign?"),
            ("usleep", "\"usleep\" is no operation\n"),
            ("syscall:raed", "\"syscall:raed\" is no operation (did you mean syscall:read?)"),
            ("syscall:", "is no operation\n"),
            ("syscall:default", "is no operation\n"),
            ("syscall:read,write", "is no operation\n"),
            ("syscall:+read", "is no operation\n"),
            ("", "\"\" is no operation\n"),
        ] {
            let error = text.parse::<OperationRule>().unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\nhint: "), "{text}: {error}");
        }
    }

    #[test]
    fn the_whole_command_is_one_operation_of_its_first_thread() {
        let timeline = Story::new()
            .process("helper")
            .thread(|told| {
                told.call("C_Sign", 1, millis(3));
            })
            .timeline();
        let operations = Operations::whole(&timeline);
        assert_eq!((operations.count(), operations.is_whole), (1, true));
        assert_eq!(cuts("whole", &timeline), [(0, 0, 3)]);
        assert_eq!(Operations::whole(&Timeline::default()).count(), 1);
    }

    #[test]
    fn a_signature_begins_with_its_preparation() {
        let timeline = one(|told| {
            told.call("C_SignInit", 1, millis(1)).call("C_SignInit", 2, millis(1));
            told.call("C_Sign", 2, millis(1)).advance(millis(5)).call("C_Sign", 1, millis(1));
            told.advance(millis(3)).call("C_Sign", 9, millis(2));
        });
        assert_eq!(cuts("C_Sign", &timeline), [(0, 0, 9), (0, 1, 3), (0, 12, 14)]);
        assert_eq!(cuts("C_SignInit", &timeline), [(0, 0, 1), (0, 1, 2)]);
        assert_eq!(cuts("C_Verify", &timeline), []);
    }

    #[test]
    fn asking_for_a_length_is_part_of_the_operation() {
        let timeline = one(|told| {
            for _ in 0..2 {
                told.call("C_EncryptInit", 1, millis(1));
                told.call("C_Encrypt", 1, millis(1)).call("C_Encrypt", 1, millis(3));
                told.advance(millis(5));
            }
        });
        assert_eq!(cuts("C_Encrypt", &timeline), [(0, 0, 5), (0, 10, 15)]);
    }

    #[test]
    fn a_call_without_preparation_is_an_operation_of_its_own() {
        let timeline = one(|told| {
            told.call("C_SignInit", 1, millis(1)).call("C_Sign", 1, millis(1)).advance(millis(7));
            told.enter("C_Sign").given(1, 0).advance(millis(1)).exit_with(NOT_INITIALIZED);
            told.enter("C_SignInit").given(1, 0).advance(millis(1)).exit_with(0x60);
            told.call("C_Sign", 1, millis(1));
        });
        // The last one is a second call for the only preparation that went well.
        assert_eq!(cuts("C_Sign", &timeline), [(0, 0, 12), (0, 9, 10)]);
    }

    #[test]
    fn threads_and_libraries_have_preparations_of_their_own() {
        let timeline = Story::new()
            .thread(|told| {
                told.call("C_SignInit", 1, millis(2));
                told.enter_in("C_SignInit", "other.so").given(1, 0).advance(millis(2)).exit();
                told.call("C_Sign", 1, millis(2));
            })
            .thread(|told| {
                told.advance(millis(8)).call("C_Sign", 1, millis(2));
            })
            .timeline();
        assert_eq!(cuts("C_Sign", &timeline), [(0, 0, 6), (1, 8, 10)]);
    }

    #[test]
    fn a_proxy_and_the_module_behind_it_are_one() {
        let timeline = one(|told| {
            for function in ["C_SignInit", "C_Sign"] {
                told.enter_in(function, "proxy.so").given(7, 0).advance(millis(1));
                told.call(function, 3, millis(2)).advance(millis(1)).exit();
            }
        });
        assert_eq!(cuts("C_Sign", &timeline), [(0, 0, 8)]);
    }

    #[test]
    fn what_never_returned_is_no_operation() {
        let timeline = one(|told| {
            told.call("C_Login", 1, millis(1)).enter("C_Login").advance(millis(1));
        });
        assert_eq!(cuts("C_Login", &timeline), [(0, 0, 1)]);
    }

    #[test]
    fn system_calls_cut_where_they_return() {
        let returns = [(1, 4), (0, 2), (0, 9), (0, 5), (1, 6), (2, 7)];
        let returns = returns.map(|(thread, at)| (thread, millis(at)));
        let read = "syscall:read".parse().unwrap();
        let operations = Operations::cut(&read, &Timeline::default(), &returns);
        let cut = |thread, start, end| Cut { thread, start: millis(start), end: millis(end) };
        assert_eq!(operations.cuts, [cut(0, 2, 5), cut(0, 5, 9), cut(1, 4, 6)]);
        assert_eq!(operations.of_thread(0).len(), 2);
        assert_eq!(operations.of_thread(1), [cut(1, 4, 6)]);
        assert_eq!(operations.of_thread(2), []);
    }
}
