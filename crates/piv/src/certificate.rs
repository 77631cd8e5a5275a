//! X.509 certificates (RFC 5280) with what a door looks at.

use der::asn1::{ObjectIdentifier, OctetStringRef};
use der::{Decode, Encode, Reader, SliceReader};
use sha2::{Digest, Sha256};
use thiserror::Error;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies, ExtendedKeyUsage, KeyUsage,
    PolicyMappings, SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::name::Name;

use crate::key::{BadSignature, PublicKey};
use crate::time::Time;

/// FIPS 201-3, appendix B.
const FASC_N: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.6");

/// These bytes are no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no X.509 certificate: {0}\nhint: DER or PEM is read")]
pub struct NotACertificate(String);

/// A parsed certificate. Nothing about it has been checked.
#[derive(Clone, Debug)]
pub struct Certificate {
    der: Vec<u8>,
    parsed: x509_cert::Certificate,
    /// Where in `der` the signed part ends; it starts at `signed_start`.
    signed: std::ops::Range<usize>,
    pub(crate) not_before: Time,
    pub(crate) not_after: Time,
    pub(crate) key: Result<PublicKey, String>,
    pub(crate) key_sha256: [u8; 32],
    pub(crate) subject_key_id: Option<Vec<u8>>,
    pub(crate) authority_key_id: Option<Vec<u8>>,
    pub(crate) basic_constraints: Option<BasicConstraints>,
    pub(crate) key_usage: Option<KeyUsage>,
    pub(crate) extended_key_usage: Vec<ObjectIdentifier>,
    pub(crate) policies: Vec<ObjectIdentifier>,
    pub(crate) mappings: Vec<(ObjectIdentifier, ObjectIdentifier)>,
    /// A critical extension that nothing here understands.
    pub(crate) critical: Option<ObjectIdentifier>,
    pub(crate) fasc_n: Option<Vec<u8>>,
    pub(crate) uuid: Option<[u8; 16]>,
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
        let parsed = x509_cert::Certificate::from_der(&der)?;
        let signed = signed_part(&der)?;
        let body = &parsed.tbs_certificate;
        let info = &body.subject_public_key_info;
        let mut certificate = Self {
            signed,
            not_before: body.validity.not_before.into(),
            not_after: body.validity.not_after.into(),
            key: PublicKey::from_spki(info),
            key_sha256: Sha256::digest(info.to_der()?).into(),
            subject_key_id: None,
            authority_key_id: None,
            basic_constraints: None,
            key_usage: None,
            extended_key_usage: Vec::new(),
            policies: Vec::new(),
            mappings: Vec::new(),
            critical: None,
            fasc_n: None,
            uuid: None,
            parsed,
            der,
        };
        certificate.read_extensions()?;
        Ok(certificate)
    }

    fn read_extensions(&mut self) -> der::Result<()> {
        let extensions = self.parsed.tbs_certificate.extensions.take().unwrap_or_default();
        for extension in &extensions {
            let value = extension.extn_value.as_bytes();
            match extension.extn_id {
                <SubjectKeyIdentifier as der::oid::AssociatedOid>::OID => {
                    let id = SubjectKeyIdentifier::from_der(value)?;
                    self.subject_key_id = Some(id.0.as_bytes().to_vec());
                }
                <AuthorityKeyIdentifier as der::oid::AssociatedOid>::OID => {
                    let id = AuthorityKeyIdentifier::from_der(value)?;
                    self.authority_key_id = id.key_identifier.map(|id| id.as_bytes().to_vec());
                }
                <BasicConstraints as der::oid::AssociatedOid>::OID => {
                    self.basic_constraints = Some(BasicConstraints::from_der(value)?);
                }
                <KeyUsage as der::oid::AssociatedOid>::OID => {
                    self.key_usage = Some(KeyUsage::from_der(value)?);
                }
                <ExtendedKeyUsage as der::oid::AssociatedOid>::OID => {
                    self.extended_key_usage = ExtendedKeyUsage::from_der(value)?.0;
                }
                <CertificatePolicies as der::oid::AssociatedOid>::OID => {
                    let policies = CertificatePolicies::from_der(value)?.0;
                    self.policies =
                        policies.into_iter().map(|policy| policy.policy_identifier).collect();
                }
                <PolicyMappings as der::oid::AssociatedOid>::OID => {
                    let mappings = PolicyMappings::from_der(value)?.0;
                    let pair = |mapping: x509_cert::ext::pkix::PolicyMapping| {
                        (mapping.issuer_domain_policy, mapping.subject_domain_policy)
                    };
                    self.mappings = mappings.into_iter().map(pair).collect();
                }
                <SubjectAltName as der::oid::AssociatedOid>::OID => {
                    self.read_names(&SubjectAltName::from_der(value)?);
                }
                other if extension.critical => self.critical = Some(other),
                _ => {}
            }
        }
        self.parsed.tbs_certificate.extensions = Some(extensions);
        Ok(())
    }

    /// FASC-N and UUID (FIPS 201-3, 4.2.2).
    fn read_names(&mut self, names: &SubjectAltName) {
        for name in &names.0 {
            match name {
                GeneralName::OtherName(other) if other.type_id == FASC_N => {
                    let octets = other.value.decode_as::<OctetStringRef<'_>>();
                    self.fasc_n = octets.ok().map(|octets| octets.as_bytes().to_vec());
                }
                GeneralName::UniformResourceIdentifier(uri) => {
                    let text = uri.as_str().to_ascii_lowercase();
                    let digits = text.strip_prefix("urn:uuid:").map(|text| text.replace('-', ""));
                    let bytes = digits.and_then(|digits| hex::decode(digits).ok());
                    self.uuid = self.uuid.or(bytes.and_then(|bytes| bytes.try_into().ok()));
                }
                _ => {}
            }
        }
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
        self.subject_name().to_string()
    }

    pub(crate) const fn subject_name(&self) -> &Name {
        &self.parsed.tbs_certificate.subject
    }

    pub(crate) const fn issuer_name(&self) -> &Name {
        &self.parsed.tbs_certificate.issuer
    }

    pub(crate) fn serial(&self) -> &[u8] {
        self.parsed.tbs_certificate.serial_number.as_bytes()
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

    pub(crate) fn is_self_signed(&self) -> bool {
        let own = self.subject_name() == self.issuer_name();
        own && self.key().is_some_and(|key| self.is_signed_by(key).is_ok())
    }
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
