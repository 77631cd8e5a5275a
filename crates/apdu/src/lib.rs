//! Commands to smart cards and their answers, as ISO 7816-4 encodes them.
//!
//! Bytes in, typed commands out, and back; nothing here knows a reader or a card. Whoever sends,
//! answers, times or shows an APDU uses these types.
#![forbid(unsafe_code)]

mod command;
mod status;
pub mod tlv;

pub use command::{CommandApdu, Expected, Form, MalformedCommand};
pub use status::StatusWord;
