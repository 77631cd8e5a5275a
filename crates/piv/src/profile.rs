//! What PIV asks of a certificate beside a valid path: FIPS 201-3, 4.2.2, the worksheets of the
//! Common Policy's certificate profiles, and the algorithms of SP 800-78-5.

use der::asn1::ObjectIdentifier;
use der::flagset::FlagSet;
use x509_cert::ext::pkix::{KeyUsage, KeyUsages};

use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::key::KeyStrength;
use crate::path::PolicyInputs;
use crate::time::Time;

/// FIPS 201-3, appendix B, and the register of the federal PKI.
const CARD_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.8");
const CONTENT_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.7");
const PIV_I_CONTENT_SIGNING: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.8.7");
/// Usages that none of a card's keys has (RFC 5280, 4.2.1.12).
const OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");
const ANY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
/// What 9A is for, where it says so.
const LOGON: [ObjectIdentifier; 4] = [
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2"),
    ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.20.2.2"),
    ObjectIdentifier::new_unwrap("1.3.6.1.5.2.3.4"),
    ANY_USAGE,
];

/// The policies of the Common Policy (PIV) and of the Federal Bridge (PIV-I): for 9A, 9E, 9C and
/// 9D, and whoever signs the card's content.
const AUTHENTICATION_POLICIES: [&str; 2] =
    ["2.16.840.1.101.3.2.1.3.13", "2.16.840.1.101.3.2.1.3.18"];
const CARD_POLICIES: [&str; 2] = ["2.16.840.1.101.3.2.1.3.17", "2.16.840.1.101.3.2.1.3.19"];
const HARDWARE_POLICIES: [&str; 3] =
    ["2.16.840.1.101.3.2.1.3.7", "2.16.840.1.101.3.2.1.3.16", "2.16.840.1.101.3.2.1.3.18"];
const CONTENT_POLICIES: [&str; 2] = ["2.16.840.1.101.3.2.1.3.39", "2.16.840.1.101.3.2.1.3.20"];

/// 112 bits of strength end with 2030 (SP 800-57 part 1, table 4): 2031-01-01.
const END_OF_112_BITS: Time = Time(1_924_992_000);

/// What a certificate is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificatePurpose {
    /// Key 9A.
    PivAuthentication,
    /// Key 9C.
    DigitalSignature,
    /// Key 9D.
    KeyManagement,
    /// Key 9E.
    CardAuthentication,
    /// Whoever signs the CHUID of a PIV or PIV-I card.
    ContentSigning,
}

impl CertificatePurpose {
    /// One of the policies under which such certificates are issued, PIV or PIV-I.
    #[must_use]
    pub fn usual_policies(self) -> PolicyInputs {
        let policies: &[&str] = match self {
            Self::PivAuthentication => &AUTHENTICATION_POLICIES,
            Self::CardAuthentication => &CARD_POLICIES,
            Self::DigitalSignature | Self::KeyManagement => &HARDWARE_POLICIES,
            Self::ContentSigning => &CONTENT_POLICIES,
        };
        PolicyInputs::one_of(policies.iter().map(|oid| ObjectIdentifier::new_unwrap(oid)))
    }

    /// Whether a certificate is what FIPS 201-3 and the Common Policy want for this.
    pub(crate) fn check(self, certificate: &Certificate) -> Result<(), Denial> {
        if certificate.extensions.is_ca() {
            return Err(other_usage(certificate, "a CA"));
        }
        if let Some(what) = certificate.extensions.bad_identifier {
            let what = what.to_owned();
            return Err(Denial::BadIdentifier { subject: certificate.subject(), what });
        }
        self.check_key_usage(certificate)?;
        self.check_extended(certificate)
    }

    fn check_key_usage(self, certificate: &Certificate) -> Result<(), Denial> {
        let Some(KeyUsage(usage)) = certificate.extensions.key_usage else {
            return Err(lacks(certificate, "key usages"));
        };
        let is_rsa = certificate.key().is_some_and(|key| key.strength().is_rsa());
        let needed: FlagSet<KeyUsages> = match self {
            Self::PivAuthentication | Self::CardAuthentication | Self::ContentSigning => {
                KeyUsages::DigitalSignature.into()
            }
            Self::DigitalSignature => KeyUsages::DigitalSignature | KeyUsages::NonRepudiation,
            Self::KeyManagement if is_rsa => KeyUsages::KeyEncipherment.into(),
            Self::KeyManagement => KeyUsages::KeyAgreement.into(),
        };
        // A content signer's commitment does no harm; a card's authentication key that signs
        // documents does.
        let allowed = match self {
            Self::ContentSigning => needed | KeyUsages::NonRepudiation,
            _ => needed,
        };
        if !usage.contains(needed) {
            let name = match self {
                Self::KeyManagement => "the key usage keyEncipherment or keyAgreement",
                _ => "the key usage digitalSignature",
            };
            return Err(lacks(certificate, name));
        }
        match allowed.contains(usage) {
            true => Ok(()),
            false => Err(other_usage(certificate, "other key usages")),
        }
    }

    fn check_extended(self, certificate: &Certificate) -> Result<(), Denial> {
        let usages = certificate.extensions.extended_key_usage.as_deref();
        let has = |usage: &ObjectIdentifier| usages.is_some_and(|usages| usages.contains(usage));
        let only = |wanted: &[ObjectIdentifier], name: &str| match usages {
            Some(usages) if usages.iter().any(|usage| wanted.contains(usage)) => {
                match usages.iter().find(|usage| !wanted.contains(usage)) {
                    None => Ok(()),
                    Some(other) => Err(other_usage(certificate, &usage_name(other))),
                }
            }
            _ => Err(lacks(certificate, &format!("the extended key usage {name}"))),
        };
        match self {
            Self::CardAuthentication => only(&[CARD_AUTHENTICATION], "id-PIV-cardAuth"),
            Self::ContentSigning => {
                let name = "id-PIV-content-signing or id-fpki-pivi-content-signing";
                only(&[CONTENT_SIGNING, PIV_I_CONTENT_SIGNING], name)
            }
            Self::PivAuthentication | Self::DigitalSignature | Self::KeyManagement => {
                let others =
                    [CARD_AUTHENTICATION, CONTENT_SIGNING, PIV_I_CONTENT_SIGNING, OCSP_SIGNING];
                if let Some(other) = others.iter().find(|usage| has(usage)) {
                    return Err(other_usage(certificate, &usage_name(other)));
                }
                let logs_on = usages.is_none() || LOGON.iter().any(has);
                match self != Self::PivAuthentication || logs_on {
                    true => Ok(()),
                    false => Err(lacks(certificate, "the extended key usage id-kp-clientAuth")),
                }
            }
        }
    }
}

/// Keys that SP 800-78-5 has, at a moment at which they are strong enough.
pub(crate) fn check_strength(certificate: &Certificate, at: Time) -> Result<(), Denial> {
    let denial = |what: String, when: &str| Denial::Strength {
        subject: certificate.subject(),
        what,
        when: when.to_owned(),
    };
    let key = match &certificate.key {
        Ok(key) => key,
        Err(algorithm) => return Err(Denial::Algorithm { algorithm: algorithm.clone() }),
    };
    match key.strength() {
        KeyStrength::Rsa { bits } if bits < 2048 => Err(denial(key.name(), "any more")),
        KeyStrength::Rsa { bits } if bits < 3072 && at >= END_OF_112_BITS => {
            Err(denial(key.name(), "after 2030"))
        }
        KeyStrength::Rsa { .. } | KeyStrength::Curve => Ok(()),
    }
}

fn lacks(certificate: &Certificate, what: &str) -> Denial {
    Denial::Usage { subject: certificate.subject(), what: what.to_owned() }
}

fn other_usage(certificate: &Certificate, purpose: &str) -> Denial {
    Denial::OtherUsage { subject: certificate.subject(), purpose: purpose.to_owned() }
}

fn usage_name(usage: &ObjectIdentifier) -> String {
    match *usage {
        CARD_AUTHENTICATION => "card authentication (id-PIV-cardAuth)".to_owned(),
        CONTENT_SIGNING => "content signing (id-PIV-content-signing)".to_owned(),
        PIV_I_CONTENT_SIGNING => "content signing (id-fpki-pivi-content-signing)".to_owned(),
        OCSP_SIGNING => "signing OCSP answers".to_owned(),
        other => format!("the extended key usage {other}"),
    }
}
