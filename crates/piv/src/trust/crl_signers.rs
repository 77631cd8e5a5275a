//! Who signed a CRL: the issuer in the path, or somebody with a path of his own.

use std::sync::Arc;

use super::{PathDemands, PathSearch};
use crate::certificate::Certificate;
use crate::path::{in_time, understood};
use crate::revocation::{CrlSigner, CrlSigners, StatusQuestion};

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
    fn is_good_signer(&mut self, signer: &CrlSigner<'_>) -> bool {
        let trust = self.search.trust;
        if signer.is(self.question.issuer) {
            return true;
        }
        let Some(anchor) = self.search.issuers.last().copied() else { return false };
        trust.certificates.iter().enumerate().filter(|(_, one)| signer.is(one)).any(
            |(place, one)| match place < trust.anchors {
                true => place == anchor,
                false => self.has_path(one, anchor, signer),
            },
        )
    }
}

impl SignersOfPath<'_, '_> {
    fn has_path(&self, signer: &Arc<Certificate>, anchor: usize, of: &CrlSigner<'_>) -> bool {
        let search = self.search;
        if search.crl_signers.contains(&signer.sha256) {
            // Its list is about itself: only where its issuer wrote into it that it is to be asked.
            return of.is_named && signer.sha256 == self.question.certificate.sha256;
        }
        if search.crl_signers.len() == MOST_CRL_SIGNERS {
            return false;
        }
        let demands = PathDemands::default();
        let usable = in_time(signer, search.at).and_then(|()| understood(signer));
        let mut own = PathSearch::new(search.trust, signer, &demands, search.at);
        own.anchor = Some(anchor);
        own.crl_signers.clone_from(&search.crl_signers);
        own.crl_signers.push(signer.sha256);
        usable.and_then(|()| own.climb(signer, 0)).is_ok()
    }
}
