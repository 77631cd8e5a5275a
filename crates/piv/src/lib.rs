//! PIV authentication as a door does it (FIPS 201-3, SP 800-73-5, SP 800-116): data objects,
//! challenge and response, path validation, and the strategies that make it faster.
//!
//! A [`Desk`] is the door's side. It speaks to a [`Card`], which only exchanges bytes, and says
//! what the door decides and where the time went ([`Dialogue`]). [`Trust`] holds trust anchors and
//! CRLs. There is no PC/SC in here, no file and no network.
#![forbid(unsafe_code)]

mod card;
mod certificate;
mod chuid;
mod desk;
mod key;
mod log;
mod object;
mod pin;
mod refusal;
mod revocation;
mod strategy;
mod talk;
mod time;
mod trust;

pub use card::{Card, Lost};
pub use certificate::{Certificate, NotACertificate};
pub use chuid::{Chuid, Identity};
pub use desk::{Desk, Dialogue, Mechanism, Rules};
pub use key::{Challenge, PublicKey};
pub use log::{Exchange, Log, Step};
pub use object::CARD_AUTHENTICATION_POLICY;
pub use pin::Pin;
pub use refusal::Refusal;
pub use revocation::NotACrl;
pub use strategy::Strategy;
pub use time::Time;
pub use trust::{Path, Purpose, Trust, TrustError};

/// An object identifier: a policy, for example.
pub type Oid = der::asn1::ObjectIdentifier;
