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

pub use applet::{Applet, CardWork, Reply};
pub use bench::{BENCH_AID, BenchApplet};
pub use card::{CardAnswer, Transmission, VirtualCard};
pub use fault::{FaultKind, Gone, InjectedFault};
pub use identity::{IDENTITY_AID, IdentityApplet};
pub use profile::{Profile, ProfileOrigin, Shipped, shipped};
