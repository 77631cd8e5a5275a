//! Command APDUs, status words and TLV of ISO/IEC 7816-4.
//!
//! Bytes in, typed commands out, and back. Nothing here knows a reader or a card. What an APDU is
//! called (`SELECT PIV`, `GET DATA`) is the business of `tapstone-names`.
//!
//! A [`CommandApdu`] takes the shortest form that holds it, and reads both forms:
//!
//! ```
//! use tapstone_apdu::{CommandApdu, Expected, Form};
//!
//! let piv = [0xA0, 0x00, 0x00, 0x03, 0x08];
//! let select = CommandApdu::select(&piv);
//! assert_eq!(select.encode(), b"\x00\xA4\x04\x00\x05\xA0\x00\x00\x03\x08\x00");
//! assert_eq!(CommandApdu::parse(&select.encode()), Ok((select, Form::Short)));
//!
//! // More than 256 bytes of response need an extended Le field of two bytes, after a zero.
//! let read = CommandApdu::new(0x00, 0xB0, 0x00, 0x00).expecting(Expected::bytes(1000).unwrap());
//! assert_eq!(read.encode(), [0x00, 0xB0, 0x00, 0x00, 0x00, 0x03, 0xE8]);
//! ```
//!
//! A [`StatusWord`] says what it means (section 5.6), and how much GET RESPONSE brings:
//!
//! ```
//! use tapstone_apdu::StatusWord;
//!
//! assert_eq!(StatusWord::NOT_FOUND.meaning(), "file, object or application not found");
//! assert_eq!(StatusWord(0x6100).bytes_to_fetch(), Some(256));
//! assert_eq!(StatusWord(0x63C2).tries(), Some(2));
//! ```
//!
//! [`tlv`] writes and reads data objects:
//!
//! ```
//! use tapstone_apdu::tlv;
//!
//! let certificate = [tlv::element(0x70, b"DER"), tlv::element(0x71, &[0])].concat();
//! let object = tlv::element(0x53, &certificate);
//! let content = tlv::only(0x53, &object).unwrap();
//! assert_eq!(tlv::elements(content).unwrap(), [(0x70, &b"DER"[..]), (0x71, &[0])]);
//! ```
#![forbid(unsafe_code)]

mod class;
mod command;
mod status;
pub mod tlv;

pub use class::Class;
pub use command::{CommandApdu, Expected, Form, MalformedCommand};
pub use status::StatusWord;
