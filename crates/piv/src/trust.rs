//! Path validation (RFC 5280, section 6) to given trust anchors, and revocation by given CRLs.
//!
//! An issuer is found by key identifier: CAs keep their name when they get a new key. Names are
//! compared byte by byte. Policies are followed through mappings; name constraints and other
//! critical extensions that are not understood lead to a refusal.

use std::sync::Arc;

use der::asn1::ObjectIdentifier;
use thiserror::Error;

use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::key::BadSignature;
use crate::revocation::{Crl, NotACrl};
use crate::time::Time;

/// Extended key usages of FIPS 201-3, appendix B.
const CARD_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.8");
const CONTENT_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.7");
/// anyPolicy (RFC 5280, 4.2.1.4).
const ANY_POLICY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.32.0");

/// The federal PKI has paths of 5 certificates; cross-certificates may make rings.
const LONGEST_PATH: usize = 8;

/// What a certificate is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificatePurpose {
    /// Key 9E: digitalSignature and id-PIV-cardAuth.
    CardAuthentication,
    /// PIV authentication, key 9A: digitalSignature.
    PivAuthentication,
    /// The CHUID's signer: digitalSignature and id-PIV-content-signing.
    ContentSigning,
}

/// Trust anchors, other CAs, and CRLs.
#[derive(Debug)]
pub struct Trust {
    certificates: Vec<Arc<Certificate>>,
    anchors: Vec<bool>,
    /// `None`: revocation is not checked.
    crls: Option<Vec<(usize, Crl)>>,
    unused: Vec<String>,
}

/// Nothing can be decided with these files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrustError {
    /// There is no self-signed certificate among them.
    #[error(
        "no trust anchor: {found} certificates, none of them self-signed\nhint: put the root CA's \
         certificate (DER or PEM) into the folder"
    )]
    NoAnchor {
        /// How many certificates there are.
        found: usize,
    },
    /// A CRL that cannot be used.
    #[error("{0}")]
    Crl(#[from] NotACrl),
}

/// A path that was found to be good: the certificate and its issuers up to the anchor.
#[derive(Clone, Debug)]
pub struct CertificationPath {
    leaf: Arc<Certificate>,
    issuers: Vec<usize>,
}

impl CertificationPath {
    /// The certificate that it leads to.
    #[must_use]
    pub fn certificate(&self) -> &Arc<Certificate> {
        &self.leaf
    }
}

impl Trust {
    /// Self-signed certificates are anchors, the others are CAs on the way. With CRLs, even an
    /// empty list of them, every certificate below an anchor must be on none of its issuer's.
    ///
    /// # Errors
    /// When there is no anchor, or a CRL cannot be read.
    pub fn new(
        certificates: Vec<Certificate>,
        crls: Option<&[Vec<u8>]>,
    ) -> Result<Self, TrustError> {
        let anchors: Vec<bool> = certificates.iter().map(Certificate::is_self_signed).collect();
        if !anchors.contains(&true) {
            return Err(TrustError::NoAnchor { found: certificates.len() });
        }
        let mut unused = Vec::new();
        let mut used = Vec::new();
        for bytes in crls.unwrap_or_default() {
            let crl = Crl::parse(bytes)?;
            match certificates.iter().position(|ca| crl.is_of(ca)) {
                Some(issuer) => used.push((issuer, crl)),
                None => unused.push(crl.issuer().to_string()),
            }
        }
        let certificates = certificates.into_iter().map(Arc::new).collect();
        Ok(Self { certificates, anchors, crls: crls.map(|_| used), unused })
    }

    /// Issuers of CRLs that no certificate here signed: they say nothing.
    #[must_use]
    pub fn unused_crls(&self) -> &[String] {
        &self.unused
    }

    /// Whether revocation is checked.
    #[must_use]
    pub const fn checks_revocation(&self) -> bool {
        self.crls.is_some()
    }

    /// Finds a good path at this moment.
    ///
    /// # Errors
    /// Why there is none.
    pub fn validate(
        &self,
        leaf: &Arc<Certificate>,
        purpose: CertificatePurpose,
        policy: Option<&ObjectIdentifier>,
        at: Time,
    ) -> Result<CertificationPath, Denial> {
        in_time(leaf, at)?;
        understood(leaf)?;
        usable(leaf, purpose)?;
        let mut issuers = Vec::new();
        self.climb(leaf, at, &mut issuers)?;
        let path = CertificationPath { leaf: Arc::clone(leaf), issuers };
        if let Some(policy) = policy {
            self.under_policy(&path, policy)?;
        }
        Ok(path)
    }

    /// Whether all of a path is still valid at this moment.
    pub(crate) fn in_time(&self, path: &CertificationPath, at: Time) -> Result<(), Denial> {
        in_time(&path.leaf, at)?;
        path.issuers.iter().try_for_each(|issuer| in_time(&self.certificates[*issuer], at))
    }

    /// Checks again what time changes: validity and revocation. Signatures stay good.
    ///
    /// # Errors
    /// Why it is good no longer.
    pub fn recheck(&self, path: &CertificationPath, at: Time) -> Result<(), Denial> {
        self.in_time(path, at)?;
        let mut below = &path.leaf;
        for issuer in &path.issuers {
            self.not_revoked(below, *issuer, at)?;
            below = &self.certificates[*issuer];
        }
        Ok(())
    }

    fn climb(&self, below: &Certificate, at: Time, issuers: &mut Vec<usize>) -> Result<(), Denial> {
        let mut why =
            Denial::Untrusted { subject: below.subject(), issuer: below.issuer_name().to_string() };
        for issuer in 0..self.certificates.len() {
            if !is_named(below, &self.certificates[issuer])
                || issuers.contains(&issuer)
                || issuers.len() == LONGEST_PATH
            {
                continue;
            }
            let depth = issuers.len();
            let checked = self.issued(below, issuer, depth, at);
            issuers.push(issuer);
            let done = checked.and_then(|()| match self.anchors[issuer] {
                true => Ok(()),
                false => self.climb(&self.certificates[issuer], at, issuers),
            });
            match done {
                Ok(()) => return Ok(()),
                Err(found) => {
                    issuers.truncate(depth);
                    why = found;
                }
            }
        }
        Err(why)
    }

    /// `depth`: how many CAs are below this one.
    fn issued(
        &self,
        below: &Certificate,
        issuer: usize,
        depth: usize,
        at: Time,
    ) -> Result<(), Denial> {
        let ca = &self.certificates[issuer];
        let key = ca.key.as_ref().map_err(|algorithm| unsupported(algorithm))?;
        below.is_signed_by(key).map_err(|bad| match bad {
            BadSignature::Wrong => Denial::Tampered { subject: below.subject() },
            BadSignature::Algorithm(algorithm) => unsupported(&algorithm),
        })?;
        in_time(ca, at)?;
        understood(ca)?;
        let constraints = ca.basic_constraints.as_ref().filter(|constraints| constraints.ca);
        let signs = ca.key_usage.is_none_or(|usage| usage.key_cert_sign());
        let Some(constraints) = constraints.filter(|_| signs) else {
            return Err(Denial::NotACa { subject: ca.subject() });
        };
        if constraints.path_len_constraint.is_some_and(|most| usize::from(most) < depth) {
            return Err(Denial::PathTooLong { subject: ca.subject() });
        }
        self.not_revoked(below, issuer, at)
    }

    fn not_revoked(&self, below: &Certificate, issuer: usize, at: Time) -> Result<(), Denial> {
        let Some(crls) = &self.crls else { return Ok(()) };
        // A CA's certificate may be there twice; its key is what counts.
        let key = &self.certificates[issuer].key_sha256;
        let of_issuer = crls.iter().filter(|(of, _)| self.certificates[*of].key_sha256 == *key);
        let newest = of_issuer.map(|(_, crl)| crl).max_by_key(|crl| crl.this_update);
        let Some(crl) = newest else {
            return Err(Denial::NoCrl { subject: below.subject() });
        };
        if let Some(on) = crl.revoked(below) {
            return Err(Denial::Revoked { subject: below.subject(), on });
        }
        let name = || crl.issuer().to_string();
        if at < crl.this_update {
            return Err(Denial::CrlNotYetValid { issuer: name(), from: crl.this_update, at });
        }
        if at > crl.next_update {
            return Err(Denial::CrlExpired { issuer: name(), until: crl.next_update, at });
        }
        Ok(())
    }

    /// RFC 5280, 6.1.3 (d) and 6.1.4 (a), for one wanted policy, from the anchor downwards.
    fn under_policy(
        &self,
        path: &CertificationPath,
        wanted: &ObjectIdentifier,
    ) -> Result<(), Denial> {
        let cas = path.issuers.iter().rev().skip(1).map(|issuer| &*self.certificates[*issuer]);
        let mut accepted = vec![*wanted];
        for certificate in cas.chain([&*path.leaf]) {
            if !certificate.policies.contains(&ANY_POLICY) {
                accepted.retain(|policy| certificate.policies.contains(policy));
            }
            if accepted.is_empty() {
                let subject = certificate.subject();
                return Err(Denial::Policy { subject, policy: wanted.to_string() });
            }
            accepted = mapped(&accepted, &certificate.mappings);
        }
        Ok(())
    }
}

/// Policies by the names that the certificates below have for them.
fn mapped(
    accepted: &[ObjectIdentifier],
    mappings: &[(ObjectIdentifier, ObjectIdentifier)],
) -> Vec<ObjectIdentifier> {
    let names = |policy: &ObjectIdentifier| {
        let of_policy = mappings.iter().filter(|(issuer, _)| issuer == policy);
        let names: Vec<_> = of_policy.map(|(_, subject)| *subject).collect();
        if names.is_empty() { vec![*policy] } else { names }
    };
    accepted.iter().flat_map(names).collect()
}

/// Whether a certificate names this one as its issuer: by name, and by key identifier where both
/// have one.
fn is_named(below: &Certificate, ca: &Certificate) -> bool {
    let same_key = match (&below.authority_key_id, &ca.subject_key_id) {
        (Some(wanted), Some(own)) => wanted == own,
        _ => true,
    };
    same_key && below.issuer_name() == ca.subject_name()
}

fn in_time(certificate: &Certificate, at: Time) -> Result<(), Denial> {
    let from = certificate.not_before;
    let until = certificate.not_after;
    if at < from {
        return Err(Denial::NotYetValid { subject: certificate.subject(), from, at });
    }
    if at > until {
        return Err(Denial::Expired { subject: certificate.subject(), until, at });
    }
    Ok(())
}

fn understood(certificate: &Certificate) -> Result<(), Denial> {
    certificate.critical.map_or(Ok(()), |oid| {
        let subject = certificate.subject();
        Err(Denial::CriticalExtension { subject, oid: oid.to_string() })
    })
}

fn usable(certificate: &Certificate, purpose: CertificatePurpose) -> Result<(), Denial> {
    let lacks = |what: &str| {
        let subject = certificate.subject();
        Err(Denial::Usage { subject, what: what.to_owned() })
    };
    // FIPS 201-3 asks for the extension in all three.
    if !certificate.key_usage.is_some_and(|usage| usage.digital_signature()) {
        return lacks("the key usage digitalSignature");
    }
    let (wanted, name) = match purpose {
        CertificatePurpose::PivAuthentication => return Ok(()),
        CertificatePurpose::CardAuthentication => (CARD_AUTHENTICATION, "id-PIV-cardAuth"),
        CertificatePurpose::ContentSigning => (CONTENT_SIGNING, "id-PIV-content-signing"),
    };
    match certificate.extended_key_usage.contains(&wanted) {
        true => Ok(()),
        false => lacks(&format!("the extended key usage {name}")),
    }
}

fn unsupported(algorithm: &str) -> Denial {
    Denial::Algorithm { algorithm: algorithm.to_owned() }
}
