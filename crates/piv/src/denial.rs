//! Why a door stays shut.

use serde::{Deserialize, Serialize};
use tapstone_apdu::StatusWord;
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::time::Time;

/// Why a card is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each text says what the variant and its fields are")]
pub enum Denial {
    #[error("{command}: the card answers {}, {}", word(.status), meaning(.status))]
    Status { command: String, status: u16 },
    #[error("the card has no {object}: {}, {}", word(.status), meaning(.status))]
    Missing { object: String, status: u16 },
    #[error("the {what} is cut short or not as SP 800-73-5 has it: {why}")]
    Malformed { what: String, why: String },
    #[error("the card was not done within {limit}: nothing more is asked of it")]
    TooSlow { limit: Nanos },
    #[error("the host has no thread to validate the path while the card signs: {why}")]
    NoThread { why: String },
    #[error("the certificate's compression (gzip) is not one that can be undone: {why}")]
    Compressed { why: String },
    #[error("the certificate does not parse: {why}")]
    NotACertificate { why: String },
    #[error("{algorithm} keys are not supported")]
    Algorithm { algorithm: String },
    #[error("the card did not sign the challenge with the key of its certificate")]
    WrongKey,
    #[error("no trusted certificate has the key that issued \"{subject}\" ({issuer})")]
    Untrusted { subject: String, issuer: String },
    #[error("the signature of \"{subject}\" is not its issuer's: it was changed, or is forged")]
    Tampered { subject: String },
    #[error("\"{subject}\" is not valid before {from}; the time is {at}: is the clock right?")]
    NotYetValid { subject: String, from: Time, at: Time },
    #[error("\"{subject}\" has expired on {until}; the time is {at}")]
    Expired { subject: String, until: Time, at: Time },
    #[error("\"{subject}\" is no CA, or must not sign certificates")]
    NotACa { subject: String },
    #[error("the path is longer than \"{subject}\" allows")]
    PathTooLong { subject: String },
    #[error("\"{subject}\" may not be used here: it lacks {what}")]
    Usage { subject: String, what: String },
    #[error("\"{subject}\" may not be used here: it is for {purpose} too")]
    OtherUsage { subject: String, purpose: String },
    #[error("\"{subject}\" has {what}, which SP 800-78-5 does not take {when}")]
    Strength { subject: String, what: String, when: String },
    #[error("\"{subject}\" was not issued under the policy {policy}")]
    Policy { subject: String, policy: String },
    #[error("the path demands a policy, and none is valid up to \"{subject}\"")]
    NoPolicy { subject: String },
    #[error("\"{subject}\" maps anyPolicy, which no CA may")]
    PolicyMapping { subject: String },
    #[error("\"{subject}\" has a name that a CA above it excludes: {name}")]
    NameConstraint { subject: String, name: String },
    #[error("there are more ways from \"{subject}\" upwards than are searched")]
    TooManyPaths { subject: String },
    #[error("\"{subject}\" has the critical extension {oid}, which is not understood")]
    CriticalExtension { subject: String, oid: String },
    #[error("\"{subject}\" was revoked on {on}")]
    Revoked { subject: String, on: Time },
    #[error("no CRL says whether \"{subject}\" is revoked")]
    NoCrl { subject: String },
    #[error("the CRLs leave out some reasons for which \"{subject}\" can be revoked")]
    NotAllReasons { subject: String },
    #[error("the OCSP responder does not know \"{subject}\"")]
    OcspUnknown { subject: String },
    #[error(
        "the OCSP answer about \"{subject}\" does not repeat the nonce of its request: it may be an old one"
    )]
    OcspNonce { subject: String },
    #[error("the OCSP answer about \"{subject}\" does not count: {why}")]
    Ocsp { subject: String, why: String },
    #[error("the CRL of \"{issuer}\" has expired on {until}; the time is {at}")]
    CrlExpired { issuer: String, until: Time, at: Time },
    #[error("the CRL of \"{issuer}\" is of {from}; the time is {at}: is the clock right?")]
    CrlNotYetValid { issuer: String, from: Time, at: Time },
    #[error("the CHUID has expired on {until}; the time is {at}")]
    ChuidExpired { until: Time, at: Time },
    #[error("the CHUID's signature is wrong: {why}")]
    ChuidSignature { why: String },
    #[error("the FASC-N of the certificate is not that of the CHUID")]
    FascNMismatch,
    #[error("the UUID of the certificate is not the GUID of the CHUID")]
    UuidMismatch,
    #[error("\"{subject}\" has {what}: it does not say whose card it is")]
    BadIdentifier { subject: String, what: String },
    #[error("the certificate has neither a FASC-N nor a UUID")]
    NoIdentifier,
    #[error("the card did not take the PIN: {}, {}; it is not tried again", word(.status), meaning(.status))]
    Pin { status: u16 },
    #[error("{why}: the PIN is not sent")]
    PinNotSent { why: String },
}

impl Denial {
    /// One word for a record: `revoked`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Missing { .. } => "missing",
            Self::Malformed { .. } => "malformed",
            Self::TooSlow { .. } => "too-slow",
            Self::NoThread { .. } => "no-thread",
            Self::Compressed { .. } => "compressed",
            Self::NotACertificate { .. } => "not-a-certificate",
            Self::Algorithm { .. } => "algorithm",
            Self::WrongKey => "wrong-key",
            Self::Untrusted { .. } => "untrusted",
            Self::Tampered { .. } => "tampered",
            Self::NotYetValid { .. } => "not-yet-valid",
            Self::Expired { .. } => "expired",
            Self::NotACa { .. } => "not-a-ca",
            Self::PathTooLong { .. } => "path-too-long",
            Self::Usage { .. } | Self::OtherUsage { .. } => "usage",
            Self::Strength { .. } => "strength",
            Self::Policy { .. } | Self::NoPolicy { .. } => "policy",
            Self::PolicyMapping { .. } => "policy-mapping",
            Self::NameConstraint { .. } => "name-constraint",
            Self::TooManyPaths { .. } => "too-many-paths",
            Self::CriticalExtension { .. } => "critical-extension",
            Self::Revoked { .. } => "revoked",
            Self::NoCrl { .. } | Self::NotAllReasons { .. } => "no-crl",
            Self::OcspUnknown { .. } => "ocsp-unknown",
            Self::OcspNonce { .. } => "ocsp-nonce",
            Self::Ocsp { .. } => "ocsp",
            Self::CrlExpired { .. } => "crl-expired",
            Self::CrlNotYetValid { .. } => "crl-not-yet-valid",
            Self::ChuidExpired { .. } => "chuid-expired",
            Self::ChuidSignature { .. } => "chuid-signature",
            Self::FascNMismatch => "fasc-n-mismatch",
            Self::UuidMismatch => "uuid-mismatch",
            Self::BadIdentifier { .. } => "bad-identifier",
            Self::NoIdentifier => "no-identifier",
            Self::Pin { .. } => "pin",
            Self::PinNotSent { .. } => "pin-not-sent",
        }
    }
}

fn word(status: &u16) -> StatusWord {
    StatusWord(*status)
}

fn meaning(status: &u16) -> &'static str {
    StatusWord(*status).meaning()
}
