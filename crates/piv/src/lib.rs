//! PIV authentication as a door does it: FIPS 201-3, SP 800-73-5, SP 800-116.
//!
//! A [`RelyingSystem`] is the door's side. It reads data objects, sends a challenge, validates the
//! certification path and revocation ([`Trust`]), and says what it decided and where the time went
//! ([`Dialogue`]). It reaches the card through a [`CardConnection`], which only exchanges bytes. There is
//! no PC/SC in here, no file and no network.
//!
//! A [`Strategy`] makes PKI-CAK faster under a condition that it names:
//!
//! ```
//! use tapstone_piv::Strategy;
//!
//! for strategy in Strategy::ALL {
//!     println!("{strategy}: {}", strategy.condition());
//! }
//! assert_eq!(Strategy::KnownCard.name(), "known-card");
//! ```
//!
//! A card is granted access or denied it; a card that is gone is neither. Here a virtual card with a
//! CA of its own meets a door that trusts that CA:
//!
//! ```
//! use tapstone_piv::{
//!     AuthenticationMechanism, CardConnection, CardLost, Certificate, DialogueStep, RelyingSystem,
//!     Rules, Strategy, Time, Trust,
//! };
//! use tapstone_vcard::VirtualCard;
//! use tapstone_vcard::piv::{CardData, PivAlgorithm, PivApplet, Recipe};
//!
//! struct InProcess(VirtualCard);
//!
//! impl CardConnection for InProcess {
//!     fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost> {
//!         *response = self.0.transmit(command).expect("the card has no faults").response;
//!         Ok(())
//!     }
//! }
//!
//! let p256 = PivAlgorithm::P256;
//! let recipe = Recipe { authentication: p256, signature: p256, ..Recipe::default() };
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("card");
//! let card_data = CardData::open_or_generate(&path, &recipe)?;
//! let applet = PivApplet::new(card_data);
//! let mut card = InProcess(VirtualCard::new().with_default("piv", Box::new(applet)));
//!
//! let ca = Certificate::parse(&std::fs::read(path.join("ca.der"))?)?;
//! let mut door = RelyingSystem::new(Trust::new(vec![ca], Vec::new())?, Rules::default());
//! let mechanism = AuthenticationMechanism::PkiCak(Strategy::Plain);
//! let dialogue = door.authenticate(&mut card, mechanism, None, Time::now());
//! assert!(matches!(dialogue.outcome, Ok(Ok(_))), "granted");
//! assert!(dialogue.log.step(DialogueStep::Challenge).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod card;
mod certificate;
mod channel;
mod chuid;
mod denial;
mod key;
mod log;
mod name;
mod object;
mod path;
mod pin;
mod profile;
mod relying_system;
mod revocation;
mod strategy;
mod time;
mod trust;

pub use card::{CardConnection, CardLost};
pub use certificate::{Certificate, NotACertificate};
pub use channel::TimeLimit;
pub use chuid::{CardIdentity, Chuid};
pub use denial::Denial;
pub use key::{Challenge, PublicKey};
pub use log::{ApduExchange, DialogueLog, DialogueStep};
pub use object::CARD_AUTHENTICATION_POLICY;
pub use path::PolicyInputs;
pub use pin::PivPin;
pub use profile::CertificatePurpose;
pub use relying_system::{AuthenticationMechanism, Dialogue, PolicyRule, RelyingSystem, Rules};
pub use revocation::{
    BadIndex, IndexedList, KeptCrl, NotACrl, OcspRules, OcspSource, RevocationList, RevocationRule,
    crl_digest,
};
pub use strategy::{CommandLengths, Strategy};
pub use time::Time;
pub use trust::{CertificationPath, IssuerSource, PathDemands, Trust, TrustError};

/// An object identifier: a policy, for example.
pub type Oid = der::asn1::ObjectIdentifier;
