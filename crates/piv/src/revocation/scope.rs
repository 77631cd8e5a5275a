//! Which CRLs are about a certificate: its distribution points against the CRL's (RFC 5280, 6.3.3
//! (b)).

use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::GeneralName;

use super::crl::{ALL_REASONS, CrlFacts, directory_key, point_names};
use crate::certificate::Certificate;
use crate::name::CanonicalName;

/// A distribution point of a certificate.
pub(super) struct PointOfCertificate {
    /// `None`: the point has no name of its own.
    names: Option<Vec<Vec<u8>>>,
    pub(super) reasons: u16,
    /// `None`: the certificate's issuer.
    crl_issuers: Option<Vec<CanonicalName>>,
}

impl PointOfCertificate {
    /// The certificate's points, and last the one that every certificate has: the lists of its
    /// issuer.
    pub(super) fn all(certificate: &Certificate) -> Vec<Self> {
        let points = certificate.extensions.distribution_points.iter();
        let mut all: Vec<Self> = points.map(|point| Self::from_point(point, certificate)).collect();
        all.push(Self {
            names: Some(vec![directory_key(&certificate.issuer_name)]),
            reasons: ALL_REASONS,
            crl_issuers: None,
        });
        all
    }

    fn from_point(point: &DistributionPoint, certificate: &Certificate) -> Self {
        let directory = |name: &GeneralName| match name {
            GeneralName::DirectoryName(name) => Some(CanonicalName::from_name(name)),
            _ => None,
        };
        let crl_issuers: Option<Vec<CanonicalName>> =
            point.crl_issuer.as_ref().map(|names| names.iter().filter_map(directory).collect());
        let first = crl_issuers.as_ref().and_then(|issuers| issuers.first());
        let relative_to = first.unwrap_or(&certificate.issuer_name);
        let names = point.distribution_point.as_ref().map(|name| point_names(name, relative_to));
        let reasons = point.reasons.map_or(ALL_REASONS, |some| some.bits() & ALL_REASONS);
        Self { names, reasons, crl_issuers }
    }

    pub(super) const fn names_crl_issuer(&self) -> bool {
        self.crl_issuers.is_some()
    }

    /// 6.3.3 (b).
    pub(super) fn is_served_by(&self, crl: &CrlFacts, certificate: &Certificate) -> bool {
        let scope = &crl.scope;
        let issuer = match &self.crl_issuers {
            Some(issuers) => issuers.contains(&crl.issuer) && scope.is_indirect,
            None => crl.issuer == certificate.issuer_name,
        };
        let is_ca = certificate.extensions.is_ca();
        let kind = match is_ca {
            true => !scope.users_only,
            false => !scope.cas_only,
        };
        issuer && kind && !scope.attributes_only && self.is_named_in(scope.names.as_deref())
    }

    fn is_named_in(&self, of_crl: Option<&[Vec<u8>]>) -> bool {
        let Some(of_crl) = of_crl else { return true };
        match (&self.names, &self.crl_issuers) {
            (Some(names), _) => names.iter().any(|name| of_crl.contains(name)),
            (None, Some(issuers)) => {
                issuers.iter().any(|issuer| of_crl.contains(&directory_key(issuer)))
            }
            (None, None) => false,
        }
    }
}
