//! What a door asks for.

use std::time::Duration;

use der::asn1::ObjectIdentifier;
use tapstone_measure::units::Nanos;

use crate::channel::TimeLimit;
use crate::path::PolicyInputs;
use crate::profile::CertificatePurpose;

/// What the door asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The policies that certificates must have been issued under.
    pub policies: PolicyRule,
    /// How old a check made beforehand may be.
    pub age_limit: Duration,
    /// How long the door's module takes for a path; the rest is waited.
    pub module_time: Nanos,
    /// How long a whole authentication may take: no command is sent after that.
    pub time_limit: TimeLimit,
}

/// The policies that a door asks for, RFC 5280's user-initial-policy-set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyRule {
    /// Those of the Common Policy and of PIV-I, by what a certificate is used for.
    #[default]
    Usual,
    /// Any, and none at all.
    Any,
    /// This one, of the card's certificates; that of a CHUID's signer may be any.
    One(ObjectIdentifier),
}

impl PolicyRule {
    pub(super) fn inputs(&self, purpose: CertificatePurpose) -> PolicyInputs {
        match self {
            Self::Usual => purpose.usual_policies(),
            Self::One(policy) if purpose != CertificatePurpose::ContentSigning => {
                PolicyInputs::one_of([*policy])
            }
            Self::Any | Self::One(_) => PolicyInputs::default(),
        }
    }
}
