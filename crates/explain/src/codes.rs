//! What calls returned, by the names of the standards.

use tapstone_names::pcsc::PcscCode;
use tapstone_names::pkcs11::Rv;

use crate::timeline::{CalledFunction, End, Family, Span, Timeline};

/// What is said of a call that had not returned when its process ended.
pub const NEVER: &str = "never returned";

/// What is said of a call that an exception or longjmp(3) went past.
pub const LEFT: &str = "left by an exception";

/// The failure of a call; `None` when it went well.
#[must_use]
pub fn failure(timeline: &Timeline, span: &Span) -> Option<String> {
    match span.end_kind {
        End::Abandoned => return Some(LEFT.to_owned()),
        End::Open => return Some(NEVER.to_owned()),
        End::Unseen => return None,
        End::Returned | End::Replaced if span.result == 0 => return None,
        End::Returned | End::Replaced => {}
    }
    Some(name(timeline.call(span.call), span.result))
}

/// The name of a code that a function returned.
#[must_use]
pub fn name(call: &CalledFunction, code: u64) -> String {
    match call.family {
        Family::Pkcs11 => Rv(code).to_string(),
        Family::Pcsc => PcscCode(code as u32).to_string(),
        // Response codes of IFD handlers (MUSCLE PC/SC IFD Driver API 3.0, 3).
        Family::Driver | Family::Libc(_) => format!("{}", code as i32),
    }
}
