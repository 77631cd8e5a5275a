//! PIV authentication as a door does it (FIPS 201-3, SP 800-73-5, SP 800-116): data objects,
//! challenge and response, path validation, and the strategies that make it faster.
//!
//! A [`RelyingSystem`] is the door's side. It speaks to a [`CardConnection`], which only exchanges bytes, and says
//! what the door decides and where the time went ([`Dialogue`]). [`Trust`] holds trust anchors and
//! CRLs. There is no PC/SC in here, no file and no network.
#![forbid(unsafe_code)]

mod card;
mod certificate;
mod channel;
mod chuid;
mod denial;
mod key;
mod log;
mod object;
mod pin;
mod relying_system;
mod revocation;
mod strategy;
mod time;
mod trust;

pub use card::{CardConnection, CardLost};
pub use certificate::{Certificate, NotACertificate};
pub use chuid::{CardIdentity, Chuid};
pub use denial::Denial;
pub use key::{Challenge, PublicKey};
pub use log::{ApduExchange, DialogueLog, DialogueStep};
pub use object::CARD_AUTHENTICATION_POLICY;
pub use pin::PivPin;
pub use relying_system::{AuthenticationMechanism, Dialogue, RelyingSystem, Rules};
pub use revocation::NotACrl;
pub use strategy::Strategy;
pub use time::Time;
pub use trust::{CertificatePurpose, CertificationPath, Trust, TrustError};

/// An object identifier: a policy, for example.
pub type Oid = der::asn1::ObjectIdentifier;
