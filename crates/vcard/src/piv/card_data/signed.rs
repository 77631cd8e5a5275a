//! What the issuer signs: CMS SignedData (RFC 5652) as FIPS 201-3, 4.2.1 and SP 800-73-5 part 1,
//! 3.1.7 want it.

use cms::builder::{SignedDataBuilder, SignerInfoBuilder};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::signed_data::{EncapsulatedContentInfo, SignerIdentifier};
use der::asn1::{OctetString, SetOfVec};
use der::{Any, Encode, Sequence};
use p256::ecdsa::DerSignature;
use pkcs8::ObjectIdentifier;
use pkcs8::spki::AlgorithmIdentifierOwned;
use sha2::{Digest, Sha256};
use x509_cert::attr::Attribute;
use x509_cert::builder::Error;

use super::CardDataError;
use super::certificate::{Issuer, octets};
use super::containers::error_detection_code;
use crate::piv::tlv;

/// id-PIV-CHUIDSecurityObject.
pub(super) const CHUID_SECURITY_OBJECT: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.1");

/// mRTD-signatureData of ICAO: a security object of logical data structure version 0.
const LDS_SECURITY_OBJECT: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.27.1.1.1");

const SIGNER_DN: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.5");
const CONTENT_HINT: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.4");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");

/// The content that a CMS signature covers.
#[derive(Clone, Copy)]
pub(super) enum SignedContent<'a> {
    /// Only its SHA-256 is known to the signature; the signer's certificate comes with it.
    Detached(&'a [u8]),
    /// It is inside; the signer is the CHUID's.
    Inside(&'a [u8]),
}

/// ContentHints of RFC 2634, 2.9: a description for people.
#[derive(Sequence)]
struct ContentHints {
    description: String,
    content_type: ObjectIdentifier,
}

/// LDSSecurityObject of ICAO 9303-10.
#[derive(Sequence)]
struct LdsSecurityObject {
    version: u8,
    hash_algorithm: AlgorithmIdentifierOwned,
    hashes: Vec<DataGroupHash>,
}

#[derive(Sequence)]
struct DataGroupHash {
    number: u8,
    hash: OctetString,
}

/// A ContentInfo, DER. A description, if there is one, is signed too.
pub(super) fn sign(
    signer: &Issuer,
    content_type: ObjectIdentifier,
    content: SignedContent<'_>,
    description: Option<String>,
) -> Result<Vec<u8>, CardDataError> {
    let made = || -> Result<Vec<u8>, Error> {
        let (digest, inside) = match content {
            SignedContent::Detached(digest) => (Some(digest), None),
            SignedContent::Inside(bytes) => (None, Some(octets(bytes)?)),
        };
        let encapsulated =
            EncapsulatedContentInfo { econtent_type: content_type, econtent: inside };
        let certificate = &signer.certificate.tbs_certificate;
        let identifier = SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: certificate.issuer.clone(),
            serial_number: certificate.serial_number.clone(),
        });
        let mut info =
            SignerInfoBuilder::new(&signer.key, identifier, sha256(), &encapsulated, digest)
                .map_err(cms_error)?;
        let subject = Any::encode_from(&certificate.subject)?;
        info.add_signed_attribute(attribute(SIGNER_DN, subject)?).map_err(cms_error)?;
        if let Some(description) = description {
            let hints = ContentHints { description, content_type };
            let hints = Any::encode_from(&hints)?;
            info.add_signed_attribute(attribute(CONTENT_HINT, hints)?).map_err(cms_error)?;
        }
        let mut data = SignedDataBuilder::new(&encapsulated);
        data.add_digest_algorithm(sha256()).map_err(cms_error)?;
        if digest.is_some() {
            let choice = CertificateChoices::Certificate(signer.certificate.clone());
            data.add_certificate(choice).map_err(cms_error)?;
        }
        data.add_signer_info::<_, DerSignature>(info).map_err(cms_error)?;
        Ok(data.build().map_err(cms_error)?.to_der()?)
    };
    made().map_err(wrong)
}

/// The security object: hashes of the containers, by their identifiers (part 1, 3.1.7).
pub(super) fn security_object(
    signer: &Issuer,
    containers: &[(u16, &[u8])],
) -> Result<Vec<u8>, CardDataError> {
    let mut mapping = Vec::new();
    let mut hashes = Vec::new();
    for (number, (identifier, container)) in (1..).zip(containers) {
        mapping.push(number);
        mapping.extend(identifier.to_be_bytes());
        let hash = OctetString::new(&Sha256::digest(container)[..]).map_err(|e| wrong(e.into()))?;
        hashes.push(DataGroupHash { number, hash });
    }
    let object = LdsSecurityObject { version: 0, hash_algorithm: sha256(), hashes };
    let object = object.to_der().map_err(|error| wrong(error.into()))?;
    let signature = sign(signer, LDS_SECURITY_OBJECT, SignedContent::Inside(&object), None)?;
    let parts =
        [tlv::element(0xBA, &mapping), tlv::element(0xBB, &signature), error_detection_code()];
    Ok(parts.concat())
}

fn sha256() -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned { oid: SHA_256, parameters: None }
}

fn attribute(oid: ObjectIdentifier, value: Any) -> der::Result<Attribute> {
    Ok(Attribute { oid, values: SetOfVec::try_from(vec![value])? })
}

fn cms_error(error: cms::builder::Error) -> Error {
    match error {
        cms::builder::Error::Asn1(error) => Error::Asn1(error),
        cms::builder::Error::PublicKey(error) => Error::PublicKey(error),
        cms::builder::Error::Signature(error) => Error::Signature(error),
        _ => Error::Asn1(der::ErrorKind::Failed.into()),
    }
}

fn wrong(error: Error) -> CardDataError {
    CardDataError::Make { what: "a signature of the issuer", why: error.to_string() }
}
