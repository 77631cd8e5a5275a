//! A virtual smart card for a real PC/SC service.
//!
//! It answers as a card would, byte by byte, and as late as a timing profile says; the reader
//! driver vpcd and pcscd do not know the difference.
#![forbid(unsafe_code)]

mod applet;

pub use applet::{Applet, Reply, Work};
