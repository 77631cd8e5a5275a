//! Whether a certificate was revoked: CRLs (RFC 5280, section 5 and 6.3) and OCSP (RFC 6960).

mod crl;
mod entries;
mod index;
mod kept;
mod ocsp;
mod scope;

use std::io::{self, Read, Write};
use std::sync::Arc;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

pub use self::crl::NotACrl;
use self::crl::{ALL_REASONS, Crl};
use self::entries::Listed;
pub use self::index::BadIndex;
pub use self::kept::KeptCrl;
pub(crate) use self::ocsp::{DelegateStatus, OcspAnswers};
pub use self::ocsp::{OcspRules, OcspSource};
use self::scope::PointOfCertificate;
use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::time::Time;

/// What is done about a certificate of which nothing fresh says whether it is revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RevocationRule {
    /// The certificate is refused.
    Require,
    /// It is granted, and that is told.
    Prefer,
    /// No CRL and no responder is asked.
    #[default]
    Off,
}

/// All that is known about revocation.
#[derive(Debug, Default)]
pub(crate) struct RevocationLists {
    complete: Vec<Crl>,
    deltas: Vec<Crl>,
    /// Lists of nobody who is known yet.
    waiting: Vec<Vec<u8>>,
    /// A sentence for each list that cannot be used.
    pub(crate) left_out: Vec<String>,
}

/// A CRL, parsed, with the keys that signed it found out. For one that is too large to be parsed
/// each time, an index can be kept.
#[derive(Debug)]
pub struct RevocationList(Crl);

impl RevocationList {
    pub(crate) fn parse(bytes: &[u8], certificates: &[Arc<Certificate>]) -> Result<Self, NotACrl> {
        Crl::parse(bytes, certificates).map(Self)
    }

    /// How many certificates it lists.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether anybody's key here signed it.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        !self.0.facts.signers.is_empty()
    }

    pub(crate) fn is_signed_by(&self, certificate: &Certificate) -> bool {
        self.0.facts.is_signed_by(certificate)
    }

    /// Whose list it is, as RFC 4514 writes it.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.0.facts.issuer_text
    }

    /// Whether its number, or without one its date, is lower than that of another list of the same
    /// signers.
    #[must_use]
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.0.facts.is_of_series(&other.0.facts) && self.0.facts.age() < other.0.facts.age()
    }

    /// Writes an index of it. `crl_sha256`: of the file that it was read from.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write_index(&self, crl_sha256: [u8; 32], to: &mut dyn Write) -> io::Result<()> {
        self.0.write_index(crl_sha256, to)
    }

    /// Reads an index.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn read_index(from: &mut dyn Read) -> Result<IndexedList, BadIndex> {
        let (crl, crl_sha256) = Crl::read_index(from)?;
        Ok(IndexedList { list: Self(crl), crl_sha256 })
    }
}

/// SHA-256 of a CRL's bytes, by which an index knows whether it is of this CRL.
#[must_use]
pub fn crl_digest(bytes: &[u8]) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A list out of an index.
#[derive(Debug)]
pub struct IndexedList {
    /// What it lists, and for whom.
    pub list: RevocationList,
    /// SHA-256 of the CRL that the index was made of.
    pub crl_sha256: [u8; 32],
}

/// A certificate whose status is asked for.
#[derive(Clone, Copy)]
pub(crate) struct StatusQuestion<'a> {
    pub(crate) certificate: &'a Certificate,
    pub(crate) issuer: &'a Certificate,
    pub(crate) at: Time,
}

/// Until when a certificate is known not to be revoked, and what that rests on and nothing fresh
/// says anything about, in sentences.
#[derive(Debug)]
pub(crate) struct GoodStatus {
    pub(crate) until: Time,
    pub(crate) unchecked: Vec<String>,
}

impl GoodStatus {
    /// It rests on nothing else.
    pub(crate) const fn until(until: Time) -> Self {
        Self { until, unchecked: Vec::new() }
    }

    /// Both of them hold.
    pub(crate) fn join(&mut self, other: Self) {
        self.until = self.until.min(other.until);
        self.unchecked.extend(other.unchecked);
    }
}

/// Whoever can say whether a CRL may be signed by a certificate that is not the issuer's own: there
/// must be a path to it from the same anchor.
pub(crate) trait CrlSigners {
    /// What is known of this signer's own status, when it may sign CRLs about the certificate of the
    /// question; `None` when it may not.
    fn good_signer(&mut self, signer: &CrlSigner<'_>) -> Option<GoodStatus>;
}

/// The key that signed a CRL.
pub(crate) struct CrlSigner<'a> {
    crl: &'a crl::CrlFacts,
    /// The certificate names this CRL's issuer (RFC 5280, 4.2.1.13).
    pub(crate) is_named: bool,
}

impl CrlSigner<'_> {
    /// Whether this certificate's key signed the CRL.
    pub(crate) fn is(&self, certificate: &Certificate) -> bool {
        self.crl.is_signed_by(certificate)
    }
}

impl RevocationLists {
    /// Sorts in a list; one that cannot be used leaves a sentence and nothing else.
    pub(crate) fn add(&mut self, bytes: &[u8], certificates: &[Arc<Certificate>]) {
        match Crl::parse(bytes, certificates) {
            Err(error) => self.left_out.push(error.sentence()),
            Ok(crl) => {
                if crl.facts.signers.is_empty() {
                    self.waiting.push(bytes.to_vec());
                }
                self.add_list(RevocationList(crl), certificates);
            }
        }
    }

    /// Tries those lists again of which nobody was known to have signed them.
    pub(crate) fn add_waiting(&mut self, certificates: &[Arc<Certificate>]) {
        for bytes in std::mem::take(&mut self.waiting) {
            self.add(&bytes, certificates);
        }
    }

    /// The same, of a list that is parsed already.
    pub(crate) fn add_list(&mut self, list: RevocationList, certificates: &[Arc<Certificate>]) {
        let mut crl = list.0;
        // An index may have been made where more was known.
        let signers = std::mem::take(&mut crl.facts.signers);
        let is_here = |key: &[u8; 32]| {
            let mut of_key = certificates.iter().filter(|one| one.key_sha256 == *key);
            of_key.any(|one| crl.facts.may_be_signed_by(one))
        };
        crl.facts.signers = signers.into_iter().filter(is_here).collect();
        let facts = &crl.facts;
        if facts.signers.is_empty() {
            self.left_out.push(format!(
                "the CRL of \"{}\": no certificate here has the key that signed it, and may sign CRLs",
                facts.issuer_text
            ));
        } else if facts.base_number.is_some() {
            self.deltas.push(crl);
        } else {
            self.complete.push(crl);
        }
    }

    /// RFC 5280, 6.3.3: not revoked, and every reason was asked for.
    pub(crate) fn check(
        &self,
        question: StatusQuestion<'_>,
        signers: &mut dyn CrlSigners,
    ) -> Result<GoodStatus, Denial> {
        let subject = || question.certificate.subject();
        let mut covered = 0;
        let mut status = GoodStatus::until(Time(u64::MAX));
        let mut why = None;
        for point in PointOfCertificate::all(question.certificate) {
            for crl in self.newest_of_scope(&point, question) {
                let reasons = point.reasons & crl.facts.scope.reasons;
                let said = self.ask(crl, question);
                // Every list of a good signer may say that it was revoked; only for the rest is it
                // enough to have asked for each reason once.
                let is_news =
                    matches!(said, Err(Denial::Revoked { .. })) || reasons & !covered != 0;
                if reasons == 0 || !is_news {
                    continue;
                }
                let Some(signer) = signers.good_signer(&point.signer_of(crl)) else { continue };
                match said {
                    Ok(end) => {
                        covered |= reasons;
                        status.until = status.until.min(end);
                        status.join(signer);
                    }
                    Err(revoked @ Denial::Revoked { .. }) => return Err(revoked),
                    Err(error) => why = Some(error),
                }
            }
            for (delta, on) in self.revoked_by_lone_deltas(&point, question) {
                if signers.good_signer(&point.signer_of(delta)).is_some() {
                    return Err(Denial::Revoked { subject: subject(), on });
                }
            }
        }
        match covered {
            ALL_REASONS => Ok(status),
            0 => Err(why.unwrap_or_else(|| Denial::NoCrl { subject: subject() })),
            _ => Err(why.unwrap_or_else(|| Denial::NotAllReasons { subject: subject() })),
        }
    }

    /// The lists that they change are not here, so that they say nothing of certificates that they
    /// leave out; of those that they list they do.
    fn revoked_by_lone_deltas(
        &self,
        point: &PointOfCertificate,
        question: StatusQuestion<'_>,
    ) -> Vec<(&Crl, Time)> {
        let StatusQuestion { certificate, at, .. } = question;
        let is_there = |crl: &Crl| crl.facts.this_update <= at;
        let has_list = |delta: &Crl| {
            let of_series = |crl: &&Crl| crl.facts.is_of_series(&delta.facts);
            self.complete.iter().filter(of_series).any(is_there)
        };
        let serves = |delta: &&Crl| {
            is_there(delta) && point.is_served_by(&delta.facts, certificate) && !has_list(delta)
        };
        let mut deltas: Vec<&Crl> = self.deltas.iter().filter(serves).collect();
        deltas.sort_by(|one, other| other.facts.age().cmp(&one.facts.age()));
        // Of each series the newest one that lists it.
        let mut told: Vec<(&Crl, Listed)> = Vec::new();
        for delta in deltas {
            let is_told = told.iter().any(|(newer, _)| newer.facts.is_of_series(&delta.facts));
            if let Some(listed) = delta.find(certificate, true).filter(|_| !is_told) {
                told.push((delta, listed));
            }
        }
        let revoked = |(delta, listed)| match listed {
            Listed::Revoked(on) => Some((delta, on)),
            Listed::Removed => None,
        };
        told.into_iter().filter_map(revoked).collect()
    }

    /// Of each series of lists in scope the newest that there was at the moment. Two of one number
    /// and one date should be the same (5.2.3); where they are not, each is asked.
    fn newest_of_scope(
        &self,
        point: &PointOfCertificate,
        question: StatusQuestion<'_>,
    ) -> Vec<&Crl> {
        let serves = |crl: &&Crl| point.is_served_by(&crl.facts, question.certificate);
        let in_scope: Vec<&Crl> = self.complete.iter().filter(serves).collect();
        // A list of a time to come is newer, and says nothing yet.
        let rank = |crl: &Crl| crl.facts.this_update <= question.at;
        let is_outdone = |crl: &Crl| {
            let mut of_series = in_scope.iter().filter(|one| one.facts.is_of_series(&crl.facts));
            of_series.any(|one| (rank(one), one.facts.age()) > (rank(crl), crl.facts.age()))
        };
        in_scope.iter().copied().filter(|crl| !is_outdone(crl)).collect()
    }

    /// What a list says, with the changes of its deltas, and until when.
    fn ask(&self, crl: &Crl, question: StatusQuestion<'_>) -> Result<Time, Denial> {
        let StatusQuestion { certificate, at, .. } = question;
        let listed = self.changed(crl, question).or_else(|| crl.find(certificate, false));
        if let Some(Listed::Revoked(on)) = listed {
            return Err(Denial::Revoked { subject: certificate.subject(), on });
        }
        let facts = &crl.facts;
        let issuer = || facts.issuer_text.clone();
        if at < facts.this_update {
            return Err(Denial::CrlNotYetValid { issuer: issuer(), from: facts.this_update, at });
        }
        if at > facts.next_update {
            return Err(Denial::CrlExpired { issuer: issuer(), until: facts.next_update, at });
        }
        let ends = self.deltas_of(crl, at).into_iter().map(|delta| delta.facts.next_update);
        Ok(ends.filter(|end| at <= *end).fold(facts.next_update, Time::min))
    }

    /// What the deltas of this list's series say, the newest first. One that revokes is believed
    /// even when it has expired or changes another list; to take a certificate from the list, it
    /// must be valid now and be about this list. One that does not list a certificate changes
    /// nothing (RFC 5280, 5.2.4).
    fn changed(&self, crl: &Crl, question: StatusQuestion<'_>) -> Option<Listed> {
        let StatusQuestion { certificate, at, .. } = question;
        let deltas = self.deltas_of(crl, at);
        deltas.into_iter().find_map(|delta| match delta.find(certificate, true)? {
            Listed::Removed if !delta.facts.may_remove_from(&crl.facts, at) => None,
            listed => Some(listed),
        })
    }

    /// Those that are newer than a list of the same series, and not of a time to come: the newest
    /// first.
    fn deltas_of(&self, crl: &Crl, at: Time) -> Vec<&Crl> {
        let is_newer = |delta: &&Crl| {
            let facts = &delta.facts;
            let newer = match crl.facts.number {
                Some(_) => facts.age() > crl.facts.age(),
                None => facts.this_update > crl.facts.this_update,
            };
            facts.is_of_series(&crl.facts) && newer && facts.this_update <= at
        };
        let mut deltas: Vec<&Crl> = self.deltas.iter().filter(is_newer).collect();
        deltas.sort_by(|one, other| other.facts.age().cmp(&one.facts.age()));
        deltas
    }
}

impl PointOfCertificate {
    const fn signer_of<'a>(&self, crl: &'a Crl) -> CrlSigner<'a> {
        CrlSigner { crl: &crl.facts, is_named: self.names_crl_issuer() }
    }
}

impl Crl {
    fn find(&self, certificate: &Certificate, is_delta: bool) -> Option<Listed> {
        self.entries.find(&certificate.issuer_name, certificate.serial(), is_delta)
    }
}
