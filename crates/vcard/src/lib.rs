//! A virtual smart card for a real PC/SC service.
//!
//! It answers as a card would, byte by byte, and as late as a timing profile says; the reader
//! driver vpcd and pcscd do not know the difference.
#![forbid(unsafe_code)]

mod applet;
mod bench;
mod card;
mod fault;
mod identity;
pub mod piv;
mod profile;
pub mod vpcd;

pub use applet::{Applet, Reply, Work};
pub use bench::{BENCH_AID, Bench};
pub use card::{Answer, Card, Transmission};
pub use fault::{Fault, FaultKind, Gone};
pub use identity::{IDENTITY_AID, Identity};
pub use profile::{Origin, Profile, Shipped, shipped};
