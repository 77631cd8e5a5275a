//! Who signed a CRL: the issuer in the path, or somebody with a path of his own.

use std::sync::Arc;

use super::{PathDemands, PathSearch};
use crate::certificate::Certificate;
use crate::path::{in_time, understood};
use crate::revocation::{CrlSigner, CrlSigners, GoodStatus, StatusQuestion};
use crate::time::Time;

/// CRLs whose signers' certificates are on CRLs of other signers, and so on.
const MOST_CRL_SIGNERS: usize = 4;

/// Who may sign CRLs about the certificates of a path.
pub(super) struct SignersOfPath<'a, 'b> {
    pub(super) search: &'b PathSearch<'a>,
    pub(super) question: StatusQuestion<'b>,
}

impl CrlSigners for SignersOfPath<'_, '_> {
    /// The issuer in the path itself, or a certificate with a path of its own from the same anchor
    /// (RFC 5280, 6.3.3 (f)).
    fn good_signer(&mut self, signer: &CrlSigner<'_>) -> Option<GoodStatus> {
        // The issuer's own status is a question of its own.
        let as_it_is = || GoodStatus::until(Time(u64::MAX));
        if signer.is(self.question.issuer) {
            return Some(as_it_is());
        }
        let trust = self.search.trust;
        let anchor = self.search.issuers.last().copied()?;
        let mut of_key = trust.certificates.iter().enumerate().filter(|(_, one)| signer.is(one));
        of_key.find_map(|(place, one)| match place < trust.anchors {
            true => (place == anchor).then(as_it_is),
            false => self.path(one, anchor, signer),
        })
    }
}

impl SignersOfPath<'_, '_> {
    fn path(
        &self,
        signer: &Arc<Certificate>,
        anchor: usize,
        of: &CrlSigner<'_>,
    ) -> Option<GoodStatus> {
        let search = self.search;
        if search.crl_signers.contains(&signer.sha256) {
            // Its list is about itself: only where its issuer wrote into it that it is to be asked.
            let is_asked = of.is_named && signer.sha256 == self.question.certificate.sha256;
            return is_asked.then(|| GoodStatus::until(Time(u64::MAX)));
        }
        if search.crl_signers.len() == MOST_CRL_SIGNERS {
            return None;
        }
        let demands = PathDemands::default();
        in_time(signer, search.at).and_then(|()| understood(signer)).ok()?;
        let mut own = PathSearch::new(search.trust, signer, &demands, search.at, search.effort);
        own.anchor = Some(anchor);
        own.crl_signers.clone_from(&search.crl_signers);
        own.crl_signers.push(signer.sha256);
        own.climb(signer, 0).ok()?;
        let until = own.status_until.unwrap_or(Time(u64::MAX));
        Some(GoodStatus { until, unchecked: own.unchecked })
    }
}
