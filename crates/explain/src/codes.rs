//! What calls returned, by the names of the standards.

use tapstone_names::pcsc::PcscCode;
use tapstone_names::pkcs11::Rv;

use crate::timeline::{End, Family, Span, Timeline};

/// The failure of a call; `None` when it went well.
#[must_use]
pub fn failure(timeline: &Timeline, span: &Span) -> Option<String> {
    match span.end_kind {
        End::Abandoned => return Some("left by an exception".to_owned()),
        End::Open => return Some("never returned".to_owned()),
        End::Unseen => return None,
        End::Returned | End::Replaced if span.result == 0 => return None,
        End::Returned | End::Replaced => {}
    }
    Some(match timeline.call(span.call).family {
        Family::Pkcs11 => Rv(span.result).to_string(),
        Family::Pcsc => PcscCode(span.result as u32).to_string(),
        // Response codes of IFD handlers (MUSCLE PC/SC IFD Driver API 3.0, 3).
        Family::Driver | Family::Libc(_) => format!("{}", span.result as i32),
    })
}
