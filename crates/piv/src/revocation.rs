//! Certificate revocation lists (RFC 5280, section 5), complete ones of their own issuer.

use std::collections::HashMap;

use der::asn1::ObjectIdentifier;
use der::{Decode, Encode};
use thiserror::Error;
use x509_cert::crl::CertificateList;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;
use x509_cert::name::Name;

use crate::certificate::{Certificate, binary, signed_part};
use crate::time::Time;

const AUTHORITY_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");

/// These bytes are no CRL that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no CRL that can be used: {0}\nhint: complete CRLs in DER or PEM are read")]
pub struct NotACrl(String);

/// A parsed list; nothing about it has been checked.
#[derive(Debug)]
pub(crate) struct Crl {
    der: Vec<u8>,
    signed: std::ops::Range<usize>,
    list: CertificateList,
    authority_key_id: Option<Vec<u8>>,
    pub(crate) this_update: Time,
    pub(crate) next_update: Time,
    revoked: HashMap<Vec<u8>, Time>,
}

impl Crl {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NotACrl> {
        let der = binary(bytes).map_err(NotACrl)?;
        let mut list = CertificateList::from_der(&der).map_err(|e| NotACrl(e.to_string()))?;
        let signed = signed_part(&der).map_err(|e| NotACrl(e.to_string()))?;
        let body = &mut list.tbs_cert_list;
        let next = body.next_update.ok_or_else(|| NotACrl("it has no nextUpdate".into()))?;
        let this_update = body.this_update.into();
        let next_update = next.into();
        let mut authority_key_id = None;
        for extension in body.crl_extensions.iter().flatten() {
            if extension.extn_id == AUTHORITY_KEY_IDENTIFIER {
                let id = AuthorityKeyIdentifier::from_der(extension.extn_value.as_bytes());
                let id = id.map_err(|e| NotACrl(e.to_string()))?;
                authority_key_id = id.key_identifier.map(|id| id.as_bytes().to_vec());
            } else if extension.critical {
                // It lists only some certificates, or changes of another list.
                return Err(NotACrl(format!("critical extension {}", extension.extn_id)));
            }
        }
        let mut revoked = HashMap::new();
        for entry in body.revoked_certificates.take().into_iter().flatten() {
            let mut extensions = entry.crl_entry_extensions.iter().flatten();
            if let Some(extension) = extensions.find(|extension| extension.critical) {
                return Err(NotACrl(format!("critical extension {}", extension.extn_id)));
            }
            revoked.insert(entry.serial_number.as_bytes().to_vec(), entry.revocation_date.into());
        }
        Ok(Self { der, signed, list, authority_key_id, this_update, next_update, revoked })
    }

    pub(crate) const fn issuer(&self) -> &Name {
        &self.list.tbs_cert_list.issuer
    }

    /// When a certificate of its issuer was revoked.
    pub(crate) fn revoked(&self, certificate: &Certificate) -> Option<Time> {
        self.revoked.get(certificate.serial()).copied()
    }

    /// Whether this CA issued it: by name, key identifier and signature.
    pub(crate) fn is_of(&self, ca: &Certificate) -> bool {
        let named = self.issuer() == ca.subject_name();
        let same_key = match (&self.authority_key_id, &ca.subject_key_id) {
            (Some(wanted), Some(own)) => wanted == own,
            _ => true,
        };
        let may = ca.key_usage.is_none_or(|usage| usage.crl_sign());
        named && same_key && may && self.is_signed_by(ca)
    }

    fn is_signed_by(&self, ca: &Certificate) -> bool {
        let algorithm = &self.list.signature_algorithm;
        let inside = self.list.tbs_cert_list.signature.to_der();
        if inside.is_err() || inside != algorithm.to_der() {
            return false;
        }
        let signature = self.list.signature.as_bytes();
        let message = &self.der[self.signed.clone()];
        ca.key()
            .zip(signature)
            .is_some_and(|(key, signature)| key.verify(algorithm, None, message, signature).is_ok())
    }
}
