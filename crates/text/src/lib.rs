//! Text for people: what others say made harmless, and numbers as people read them.
//!
//! Whatever a token, a card, a reader, a host, a file name, a log or another machine says is
//! foreign. An escape sequence in a label can rewrite the screen above it, and an override of
//! direction can make one name look like another. [`Foreign`] carries such text, and its
//! [`Display`](std::fmt::Display) is the one way to show it:
//!
//! ```
//! use tapstone_text::Foreign;
//!
//! let label = "A\u{202E}DEKCOL";
//! assert_eq!(Foreign::new(label).to_string(), "A\u{FFFD}DEKCOL");
//! assert_eq!(Foreign::from_bytes(b"YubiKey\x1B[2J").to_string(), "YubiKey\u{FFFD}[2J");
//! ```
//!
//! A cell of a CSV file is foreign in another way: a spreadsheet calculates what begins with `=`.
//!
//! ```
//! use tapstone_text::csv_cell;
//!
//! assert_eq!(csv_cell("=1+1"), "'=1+1");
//! assert_eq!(csv_cell("rsa2048.sign"), "rsa2048.sign");
//! ```
//!
//! Numbers have a comma between groups of three digits, and nouns that agree:
//!
//! ```
//! use tapstone_text::{counted, thousands};
//!
//! assert_eq!(thousands(1_234_567), "1,234,567");
//! assert_eq!(counted(1, "process", "processes"), "1 process");
//! assert_eq!(counted(1_200, "process", "processes"), "1,200 processes");
//! ```
#![forbid(unsafe_code)]

mod csv;
mod foreign;
mod numbers;

pub use self::csv::csv_cell;
pub use self::foreign::{Foreign, LONGEST_FOREIGN};
pub use self::numbers::{counted, thousands, three_digits};
