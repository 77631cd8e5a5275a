//! The CA of a generated card and the certificates it issues: RFC 5280, and the profiles that
//! FIPS 201-3, 4.2.2 asks for.

use std::cmp::Ordering;
use std::str::FromStr;
use std::time::Duration;

use der::asn1::{Ia5String, OctetString};
use der::referenced::OwnedToRef;
use der::{Any, DateTime, Encode, Length, Tag, Writer};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::EncodePrivateKey;
use pkcs8::AssociatedOid;
use pkcs8::ObjectIdentifier;
use pkcs8::spki::SubjectPublicKeyInfoOwned;
use rsa::rand_core::{OsRng, RngCore};
use x509_cert::Certificate;
use x509_cert::builder::{Builder, CertificateBuilder, Error, Profile};
use x509_cert::ext::AsExtension;
use x509_cert::ext::pkix::certpolicy::PolicyInformation;
use x509_cert::ext::pkix::name::{GeneralName, OtherName};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, CertificatePolicies, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::Validity;
use zeroize::Zeroizing;

use super::CardDataError;
use super::identifiers::Identifiers;
use crate::piv::key::PrivateKey;

/// Six years, the longest life of a PIV card (FIPS 201-3, 2.8).
const LIFE: Duration = Duration::from_secs(6 * 365 * 24 * 60 * 60);

/// From FIPS 201-3, appendix B, and the registers of NIST, Microsoft and the IETF.
const FASC_N: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.6");
const CONTENT_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.7");
const CARD_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.8");
const CLIENT_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
const SMART_CARD_LOGON: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.20.2.2");
const EMAIL_PROTECTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4");

/// Under what a certificate is issued: a policy of NIST's for tests (CSOR, 2.16.840.1.101.3.2.1.48),
/// by which anybody can tell such a card, and the one of the Common Policy that a door asks for.
/// Only a door that was told to believe the card's own CA believes the latter.
type IssuedUnder = [ObjectIdentifier; 2];

const HARDWARE: IssuedUnder = [
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.48.9"),
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.3.7"),
];
const AUTHENTICATION_POLICIES: IssuedUnder = [
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.48.11"),
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.3.13"),
];
const CARD_POLICIES: IssuedUnder = [
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.48.13"),
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.3.17"),
];
const CONTENT_POLICIES: IssuedUnder = [
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.48.86"),
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.3.39"),
];

/// A key that signs, with its certificate: the CA, or the signer of the card's content.
pub(super) struct Issuer {
    pub(super) key: SigningKey,
    pub(super) certificate: Certificate,
}

impl Issuer {
    /// A CA of its own.
    pub(super) fn new_ca(card: &str) -> Result<Self, CardDataError> {
        make("the CA's certificate", || {
            let key = SigningKey::random(&mut OsRng);
            let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key())?;
            let validity = Validity::from_now(LIFE)?;
            let name = name(&format!("Virtual card CA {card}"))?;
            let builder =
                CertificateBuilder::new(Profile::Root, serial()?, validity, name, public, &key)?;
            let certificate = builder.build::<DerSignature>()?;
            Ok(Self { key, certificate })
        })
    }

    /// Whoever signs CHUID and security object.
    pub(super) fn new_content_signer(&self, card: &str) -> Result<Self, CardDataError> {
        make("the content signer's certificate", || {
            let key = SigningKey::random(&mut OsRng);
            let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key())?;
            let name = name(&format!("Virtual card content signer {card}"))?;
            let mut builder = self.certificate_for(name, public)?;
            builder.add_extension(&KeyUsage(KeyUsages::DigitalSignature.into()))?;
            builder.add_extension(&Critical(ExtendedKeyUsage(vec![CONTENT_SIGNING])))?;
            builder.add_extension(&issued_under(CONTENT_POLICIES))?;
            let certificate = builder.build::<DerSignature>()?;
            Ok(Self { key, certificate })
        })
    }

    /// The certificate of one of the card's keys, of `wanted` bytes if that is said: a comment, which
    /// no path validation looks at, makes up for what is missing.
    pub(super) fn card_certificate(
        &self,
        reference: u8,
        key: &PrivateKey,
        subject: &str,
        card: &Identifiers,
        wanted: Option<usize>,
    ) -> Result<Vec<u8>, CardDataError> {
        let bare = self.commented_certificate(reference, key, subject, card, None)?;
        let Some(wanted) = wanted else { return Ok(bare) };
        // An ECDSA signature varies by a byte or two, and the comment has headers of its own.
        let mut comment = wanted.saturating_sub(bare.len() + COMMENT_HEADERS);
        for _ in 0..MOST_TRIES {
            let made = self.commented_certificate(reference, key, subject, card, Some(comment))?;
            match made.len().cmp(&wanted) {
                Ordering::Equal => return Ok(made),
                Ordering::Less => comment += 1,
                Ordering::Greater => comment = comment.saturating_sub(1),
            }
        }
        let least = bare.len() + COMMENT_HEADERS;
        let why = format!("it cannot have {wanted} bytes: a generated one has {least} or more");
        Err(CardDataError::Make { what: "a certificate of the card", why })
    }

    fn commented_certificate(
        &self,
        reference: u8,
        key: &PrivateKey,
        subject: &str,
        card: &Identifiers,
        comment: Option<usize>,
    ) -> Result<Vec<u8>, CardDataError> {
        make("a certificate of the card", || {
            let mut builder = self.certificate_for(name(subject)?, key.public_key_info()?)?;
            builder.add_extension(&KeyUsage(key_usage(reference, key)))?;
            match reference {
                0x9A => {
                    let uses = vec![CLIENT_AUTHENTICATION, SMART_CARD_LOGON];
                    builder.add_extension(&ExtendedKeyUsage(uses))?;
                    builder.add_extension(&issued_under(AUTHENTICATION_POLICIES))?;
                    builder.add_extension(&card_names(card)?)?;
                }
                0x9E => {
                    builder
                        .add_extension(&Critical(ExtendedKeyUsage(vec![CARD_AUTHENTICATION])))?;
                    builder.add_extension(&issued_under(CARD_POLICIES))?;
                    builder.add_extension(&card_names(card)?)?;
                }
                _ => {
                    builder.add_extension(&ExtendedKeyUsage(vec![EMAIL_PROTECTION]))?;
                    builder.add_extension(&issued_under(HARDWARE))?;
                }
            }
            if let Some(bytes) = comment {
                builder.add_extension(&Comment::with_bytes(bytes)?)?;
            }
            Ok(builder.build::<DerSignature>()?.to_der()?)
        })
    }

    /// The certificate itself, DER.
    pub(super) fn certificate_der(&self) -> Result<Vec<u8>, CardDataError> {
        make("the CA's certificate", || Ok(self.certificate.to_der()?))
    }

    /// The private key, PKCS #8 DER.
    pub(super) fn key_der(&self) -> Result<Zeroizing<Vec<u8>>, CardDataError> {
        let document = self.key.to_pkcs8_der();
        let why = |error: pkcs8::Error| CardDataError::Make {
            what: "the CA's key",
            why: error.to_string(),
        };
        Ok(document.map_err(why)?.to_bytes())
    }

    /// The last moment at which it and what it issues is valid.
    pub(super) fn not_after(&self) -> DateTime {
        self.certificate.tbs_certificate.validity.not_after.to_date_time()
    }

    fn certificate_for(
        &self,
        subject: Name,
        public: SubjectPublicKeyInfoOwned,
    ) -> Result<CertificateBuilder<'_, SigningKey>, Error> {
        let own = &self.certificate.tbs_certificate;
        let profile = Profile::Manual { issuer: Some(own.subject.clone()) };
        let subject_key = SubjectKeyIdentifier::try_from(public.owned_to_ref())?;
        let authority = own.subject_public_key_info.owned_to_ref();
        let mut builder =
            CertificateBuilder::new(profile, serial()?, own.validity, subject, public, &self.key)?;
        builder.add_extension(&subject_key)?;
        builder.add_extension(&AuthorityKeyIdentifier::try_from(authority)?)?;
        Ok(builder)
    }
}

fn key_usage(reference: u8, key: &PrivateKey) -> der::flagset::FlagSet<KeyUsages> {
    match reference {
        0x9C => KeyUsages::DigitalSignature | KeyUsages::NonRepudiation,
        0x9D if key.algorithm().is_rsa() => KeyUsages::KeyEncipherment.into(),
        0x9D => KeyUsages::KeyAgreement.into(),
        _ => KeyUsages::DigitalSignature.into(),
    }
}

/// FASC-N and UUID of the card, by which a door knows that certificate and CHUID are of one card.
fn card_names(card: &Identifiers) -> Result<SubjectAltName, Error> {
    let value = Any::new(Tag::OctetString, card.fasc_n)?;
    let uuid = format!("urn:uuid:{}", uuid(&card.guid));
    Ok(SubjectAltName(vec![
        GeneralName::OtherName(OtherName { type_id: FASC_N, value }),
        GeneralName::UniformResourceIdentifier(Ia5String::new(&uuid)?),
    ]))
}

/// netscape-comment: text that clients ignore, here as the addresses that other issuers put in.
struct Comment(Ia5String);

/// Tag, identifier and lengths of an extension of more than 255 bytes.
const COMMENT_HEADERS: usize = 26;

/// Each try meets the length about one time in two.
const MOST_TRIES: usize = 64;

impl Comment {
    fn with_bytes(bytes: usize) -> Result<Self, Error> {
        let mut digits = vec![0; bytes.div_ceil(2)];
        OsRng.fill_bytes(&mut digits);
        let mut text = hex::encode(digits);
        text.truncate(bytes);
        Ok(Self(Ia5String::new(&text)?))
    }
}

impl AssociatedOid for Comment {
    const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.113730.1.13");
}

impl Encode for Comment {
    fn encoded_len(&self) -> der::Result<Length> {
        self.0.encoded_len()
    }

    fn encode(&self, writer: &mut impl Writer) -> der::Result<()> {
        self.0.encode(writer)
    }
}

impl AsExtension for Comment {
    fn critical(&self, _: &Name, _: &[x509_cert::ext::Extension]) -> bool {
        false
    }
}

/// As RFC 9562 writes it.
pub(super) fn uuid(guid: &[u8; 16]) -> String {
    let digits = hex::encode(guid);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

fn issued_under(policies: IssuedUnder) -> CertificatePolicies {
    let one = |policy_identifier| PolicyInformation { policy_identifier, policy_qualifiers: None };
    CertificatePolicies(policies.map(one).into())
}

fn name(common_name: &str) -> der::Result<Name> {
    Name::from_str(&format!("CN={common_name},OU=Virtual cards,O=Tapstone"))
}

/// 15 random bytes: no two alike, and positive without a zero in front (RFC 5280, 4.1.2.2).
fn serial() -> der::Result<SerialNumber> {
    let mut bytes = [0x01; 16];
    OsRng.fill_bytes(&mut bytes[1..]);
    SerialNumber::new(&bytes)
}

fn make<T>(what: &'static str, how: impl FnOnce() -> Result<T, Error>) -> Result<T, CardDataError> {
    how().map_err(|error| CardDataError::Make { what, why: error.to_string() })
}

/// An extension that must be understood by whoever accepts the certificate.
struct Critical<T>(T);

impl<T: AssociatedOid> AssociatedOid for Critical<T> {
    const OID: ObjectIdentifier = T::OID;
}

impl<T: Encode> Encode for Critical<T> {
    fn encoded_len(&self) -> der::Result<Length> {
        self.0.encoded_len()
    }

    fn encode(&self, encoder: &mut impl Writer) -> der::Result<()> {
        self.0.encode(encoder)
    }
}

impl<T: AssociatedOid + Encode> AsExtension for Critical<T> {
    fn critical(&self, _: &Name, _: &[x509_cert::ext::Extension]) -> bool {
        true
    }
}

/// Octets for a signature's attribute or content.
pub(super) fn octets(bytes: &[u8]) -> der::Result<Any> {
    Any::encode_from(&OctetString::new(bytes)?)
}
