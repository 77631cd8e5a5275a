//! What a door remembers: registered keys, and certificates that were checked beforehand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::certificate::Certificate;
use crate::chuid::{CardIdentity, Chuid};
use crate::denial::Denial;
use crate::time::Time;
use crate::trust::CertificationPath;

/// Registered keys, by what the card's certificate proves of it. An entry is a path that was good
/// when the card was read in full.
#[derive(Debug, Default)]
pub(super) struct RegisteredKeys(HashMap<CardIdentity, CertificationPath>);

impl RegisteredKeys {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A card has one key: another one takes the place of an older card's.
    pub(super) fn register(&mut self, identity: &CardIdentity, path: CertificationPath) {
        self.0.insert(identity.clone(), path);
    }

    /// The card that a CHUID claims to be of, as it was registered. Nothing of the CHUID is
    /// believed: it may say more than the certificate did, and must not say anything else.
    pub(super) fn registered(&self, claim: &Chuid) -> Option<(CardIdentity, CertificationPath)> {
        let CardIdentity { fasc_n, uuid } = claim.identity.identifying();
        let claims = [
            CardIdentity { fasc_n: fasc_n.clone(), uuid },
            CardIdentity { fasc_n, uuid: None },
            CardIdentity { fasc_n: None, uuid },
        ];
        claims.into_iter().find_map(|claimed| {
            let path = self.0.get(&claimed)?;
            let own = CardIdentity::from_certificate(path.certificate());
            own.is_of(claim).ok().map(|()| (claimed, path.clone()))
        })
    }

    pub(super) fn forget(&mut self, identity: &CardIdentity) {
        self.0.remove(identity);
    }
}

/// What was found for certificates, and when, by the hash of their bytes.
#[derive(Debug, Default)]
pub(super) struct PriorChecks(HashMap<[u8; 32], PriorCheck>);

#[derive(Debug)]
struct PriorCheck {
    certificate: Arc<Certificate>,
    found: Result<CertificationPath, Denial>,
    at: Time,
}

impl PriorCheck {
    fn is_young(&self, at: Time, limit: Duration) -> bool {
        let is_fresh = self.found.as_ref().map_or(true, |path| path.has_fresh_status(at));
        is_fresh && at.since(self.at).is_some_and(|age| age <= limit)
    }
}

impl PriorChecks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn remember(
        &mut self,
        certificate: &Arc<Certificate>,
        found: Result<CertificationPath, Denial>,
        at: Time,
    ) {
        let check = PriorCheck { certificate: Arc::clone(certificate), found, at };
        self.0.insert(Sha256::digest(certificate.der()).into(), check);
    }

    /// What was found, at most so long ago. A check of a time to come says nothing, nor does one
    /// that rests on a CRL or OCSP answer which has ended since.
    pub(super) fn young(
        &self,
        certificate: &Certificate,
        at: Time,
        limit: Duration,
    ) -> Option<&Result<CertificationPath, Denial>> {
        let hash: [u8; 32] = Sha256::digest(certificate.der()).into();
        let check = self.0.get(&hash)?;
        check.is_young(at, limit).then_some(&check.found)
    }

    /// Certificates whose check says nothing any more.
    pub(super) fn ageing(&self, at: Time, limit: Duration) -> Vec<Arc<Certificate>> {
        let old = |check: &&PriorCheck| !check.is_young(at, limit);
        self.0.values().filter(old).map(|check| Arc::clone(&check.certificate)).collect()
    }
}
