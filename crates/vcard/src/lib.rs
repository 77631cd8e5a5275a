//! A virtual smart card for a real PC/SC service.
//!
//! It answers command APDUs byte by byte as a card would, and as late as a timing profile says. The
//! reader driver vpcd and pcscd do not know the difference ([`vpcd`] speaks to the driver).
//!
//! A [`VirtualCard`] holds [`Applet`]s and needs neither socket nor clock: bytes go in, bytes and the
//! time that they would take come out.
//!
//! ```
//! use tapstone_apdu::{CommandApdu, StatusWord};
//! use tapstone_vcard::{IDENTITY_AID, IdentityApplet, VirtualCard};
//!
//! let mut card = VirtualCard::new().with("identity", Box::new(IdentityApplet::plain()));
//! let answer = card.transmit(&CommandApdu::select(&IDENTITY_AID).encode()).unwrap();
//! assert!(answer.response.ends_with(&[0x90, 0x00]));
//!
//! let unknown = card.transmit(&CommandApdu::select(b"nobody").encode()).unwrap();
//! assert_eq!(unknown.response, StatusWord::NOT_FOUND.0.to_be_bytes());
//! ```
//!
//! A [`Profile`] adds the times of a real card. Each shipped profile names the source of every time:
//!
//! ```
//! use tapstone_apdu::CommandApdu;
//! use tapstone_vcard::{BENCH_AID, shipped};
//!
//! let jcop = shipped().iter().find(|profile| profile.name == "jcop41-v2.2").unwrap();
//! let mut card = jcop.profile().card(None)?;
//! let answer = card.transmit(&CommandApdu::select(&BENCH_AID).encode()).unwrap();
//! assert!(answer.modelled.0 > 0, "nanoseconds");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod applet;
mod bench;
mod card;
mod fault;
mod identity;
pub mod piv;
mod profile;
mod transmission;
pub mod vpcd;

pub use applet::{Applet, CardWork, Reply};
pub use bench::{BENCH_AID, BenchApplet};
pub use card::{CardAnswer, VirtualCard};
pub use fault::{FaultKind, Gone, InjectedFault};
pub use identity::{IDENTITY_AID, IdentityApplet};
pub use profile::{Profile, ProfileOrigin, Shipped, shipped};
pub use transmission::Transmission;
