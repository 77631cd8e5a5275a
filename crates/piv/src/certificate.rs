//! X.509 certificates (RFC 5280) with what a door looks at.

mod extensions;

use der::{Decode, Encode, Reader, SliceReader};
use sha2::{Digest, Sha256};
use thiserror::Error;
use x509_cert::name::Name;

pub(crate) use self::extensions::Extensions;
use crate::key::{BadSignature, PublicKey};
use crate::name::CanonicalName;
use crate::time::Time;

/// These bytes are no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no X.509 certificate: {0}\nhint: DER or PEM is read")]
pub struct NotACertificate(String);

/// A parsed certificate. Nothing about it has been checked.
#[derive(Clone, Debug)]
pub struct Certificate {
    der: Vec<u8>,
    parsed: x509_cert::Certificate,
    /// Where in `der` the signed part lies.
    signed: std::ops::Range<usize>,
    serial: Vec<u8>,
    pub(crate) sha256: [u8; 32],
    pub(crate) subject_name: CanonicalName,
    pub(crate) issuer_name: CanonicalName,
    pub(crate) not_before: Time,
    pub(crate) not_after: Time,
    pub(crate) key: Result<PublicKey, String>,
    pub(crate) key_sha256: [u8; 32],
    pub(crate) extensions: Extensions,
}

impl Certificate {
    /// From DER or PEM.
    ///
    /// # Errors
    /// When it is neither, or an extension that a door needs is not as RFC 5280 has it.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotACertificate> {
        let der = binary(bytes).map_err(NotACertificate)?;
        Self::from_der(der).map_err(|error| NotACertificate(error.to_string()))
    }

    pub(crate) fn from_der(der: Vec<u8>) -> der::Result<Self> {
        let mut parsed = x509_cert::Certificate::from_der(&der)?;
        let signed = signed_part(&der)?;
        let extensions = parsed.tbs_certificate.extensions.take().unwrap_or_default();
        let body = &parsed.tbs_certificate;
        let info = &body.subject_public_key_info;
        Ok(Self {
            signed,
            serial: integer_content(&body.serial_number)?,
            sha256: Sha256::digest(&der).into(),
            subject_name: CanonicalName::from_name(&body.subject),
            issuer_name: CanonicalName::from_name(&body.issuer),
            not_before: body.validity.not_before.into(),
            not_after: body.validity.not_after.into(),
            key: PublicKey::from_spki(info),
            key_sha256: Sha256::digest(info.to_der()?).into(),
            extensions: Extensions::read(&extensions)?,
            parsed,
            der,
        })
    }

    /// As it was read.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its public key; `None` of a kind that PIV does not have.
    #[must_use]
    pub const fn key(&self) -> Option<&PublicKey> {
        match &self.key {
            Ok(key) => Some(key),
            Err(_) => None,
        }
    }

    /// Its subject as RFC 4514 writes it.
    #[must_use]
    pub fn subject(&self) -> String {
        self.subject_dn().to_string()
    }

    /// Its issuer as RFC 4514 writes it.
    #[must_use]
    pub fn issuer(&self) -> String {
        self.parsed.tbs_certificate.issuer.to_string()
    }

    /// Whether it names itself as its issuer and its own key signed it.
    #[must_use]
    pub fn is_self_signed(&self) -> bool {
        self.is_self_issued() && self.key().is_some_and(|key| self.is_signed_by(key).is_ok())
    }

    /// Addresses from which certificates of its issuer can be fetched.
    #[must_use]
    pub fn issuer_addresses(&self) -> &[String] {
        &self.extensions.ca_issuers
    }

    /// Addresses of the OCSP responders that it names.
    #[must_use]
    pub fn ocsp_addresses(&self) -> &[String] {
        &self.extensions.ocsp
    }

    pub(crate) const fn subject_dn(&self) -> &Name {
        &self.parsed.tbs_certificate.subject
    }

    pub(crate) const fn issuer_dn(&self) -> &Name {
        &self.parsed.tbs_certificate.issuer
    }

    pub(crate) const fn public_key_info(&self) -> &x509_cert::spki::SubjectPublicKeyInfoOwned {
        &self.parsed.tbs_certificate.subject_public_key_info
    }

    /// Subject and issuer are the same entity (RFC 5280, 6.1).
    pub(crate) fn is_self_issued(&self) -> bool {
        self.subject_name == self.issuer_name
    }

    /// The content octets of the INTEGER, sign and all.
    pub(crate) fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The serial number as the libraries of other formats want it.
    pub(crate) const fn serial_number(&self) -> &x509_cert::serial_number::SerialNumber {
        &self.parsed.tbs_certificate.serial_number
    }

    /// Whether this key signed it, by the algorithm that is named inside the signed part too
    /// (RFC 5280, 4.1.1.2).
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> Result<(), BadSignature> {
        if self.parsed.signature_algorithm != self.parsed.tbs_certificate.signature {
            return Err(BadSignature::Wrong);
        }
        let signature = self.parsed.signature.as_bytes().ok_or(BadSignature::Wrong)?;
        let message = &self.der[self.signed.clone()];
        key.verify(&self.parsed.signature_algorithm, None, message, signature)
    }
}

/// What is inside an INTEGER: at most 127 bytes here, so that its header has two.
pub(crate) fn integer_content(integer: &impl Encode) -> der::Result<Vec<u8>> {
    let der = integer.to_der()?;
    Ok(der.get(2..).unwrap_or_default().to_vec())
}

/// Where the first element inside the outer SEQUENCE lies: what is signed, byte for byte.
pub(crate) fn signed_part(der: &[u8]) -> der::Result<std::ops::Range<usize>> {
    let mut reader = SliceReader::new(der)?;
    der::Header::decode(&mut reader)?;
    let start = usize::try_from(reader.position())?;
    let length = reader.tlv_bytes()?.len();
    Ok(start..start + length)
}

/// DER as it is; PEM decoded.
pub(crate) fn binary(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if !bytes.trim_ascii_start().starts_with(b"-----") {
        return Ok(bytes.to_vec());
    }
    let decoded = der::pem::decode_vec(bytes.trim_ascii_start());
    decoded.map(|(_, der)| der).map_err(|error| error.to_string())
}
