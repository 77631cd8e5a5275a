//! What a door remembers: registered keys, and certificates that were checked beforehand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

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

/// So many checks are kept, one for each card of a busy door; the oldest makes room.
const MOST_CHECKS: usize = 100_000;

/// Certificates that a good path led to, and when, by the hash of their bytes. What was refused is
/// not kept: the CRL that was missing may be there by now, and whoever shows one certificate after
/// the other would fill the memory.
#[derive(Debug, Default)]
pub(super) struct PriorChecks(HashMap<[u8; 32], PriorCheck>);

#[derive(Debug)]
struct PriorCheck {
    path: CertificationPath,
    at: Time,
}

impl PriorCheck {
    fn is_young(&self, at: Time, limit: Duration) -> bool {
        let age = at.since(self.at);
        self.path.has_fresh_status(at) && age.is_some_and(|age| age <= limit)
    }
}

impl PriorChecks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In place of what was found before.
    pub(super) fn remember(
        &mut self,
        certificate: &Certificate,
        found: &Result<CertificationPath, Denial>,
        at: Time,
    ) {
        let Ok(path) = found else {
            self.0.remove(&certificate.sha256);
            return;
        };
        if self.0.len() >= MOST_CHECKS {
            let oldest = self.0.iter().min_by_key(|(_, check)| check.at);
            if let Some(hash) = oldest.map(|(hash, _)| *hash) {
                self.0.remove(&hash);
            }
        }
        self.0.insert(certificate.sha256, PriorCheck { path: path.clone(), at });
    }

    /// What was found, at most so long ago. A check of a time to come says nothing, nor does one
    /// that rests on a CRL or OCSP answer which has ended since.
    pub(super) fn young(
        &self,
        certificate: &Certificate,
        at: Time,
        limit: Duration,
    ) -> Option<&CertificationPath> {
        let check = self.0.get(&certificate.sha256)?;
        check.is_young(at, limit).then_some(&check.path)
    }

    /// Certificates whose check says nothing any more.
    pub(super) fn ageing(&self, at: Time, limit: Duration) -> Vec<Arc<Certificate>> {
        let old = |check: &&PriorCheck| !check.is_young(at, limit);
        self.0.values().filter(old).map(|check| Arc::clone(check.path.certificate())).collect()
    }
}
