//! Whether a certificate was revoked: CRLs (RFC 5280, section 5 and 6.3) and OCSP (RFC 6960).

mod crl;
mod entries;
mod index;
mod ocsp;
mod scope;

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::crl::NotACrl;
use self::crl::{ALL_REASONS, Crl};
use self::entries::Listed;
pub use self::index::BadIndex;
pub(crate) use self::ocsp::OcspAnswers;
pub use self::ocsp::{OcspRules, OcspSource};
use self::scope::PointOfCertificate;
use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::time::Time;

/// What is done about a certificate of which nothing fresh says whether it is revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RevocationRule {
    /// It is refused.
    Require,
    /// It is granted, and that is told.
    Prefer,
    /// Nobody asks.
    #[default]
    Off,
}

/// All that is known about revocation.
#[derive(Debug, Default)]
pub(crate) struct RevocationLists {
    complete: Vec<Crl>,
    deltas: Vec<Crl>,
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
        self.0.entries.records.len()
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

    /// By what the index of a CRL is kept: issuer, key, and what it is about. A newer list of the
    /// same series has the same.
    pub(crate) fn series(bytes: &[u8]) -> Result<[u8; 32], NotACrl> {
        let facts = crl::CrlFacts::peek(bytes)?;
        let is_delta = facts.base_number.is_some();
        let parts = (&facts.issuer, &facts.authority_key_id, &facts.scope, is_delta);
        let bytes = postcard::to_stdvec(&parts).expect("these have an encoding");
        Ok(Sha256::digest(bytes).into())
    }
}

/// A list out of an index.
#[derive(Debug)]
pub struct IndexedList {
    /// The list.
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

/// Whoever can say whether a CRL may be signed by a certificate that is not the issuer's own: there
/// must be a path to it from the same anchor.
pub(crate) trait CrlSigners {
    /// Whether this certificate is good for signing CRLs about the certificate of the question.
    /// `names_signer`: that certificate names the signer itself as its CRL's issuer.
    fn is_good_signer(&mut self, key: &CrlSigner<'_>) -> bool;
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
            Ok(crl) => self.add_list(RevocationList(crl), certificates),
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

    /// RFC 5280, 6.3.3: not revoked, and every reason was asked for. Returns until when that holds.
    pub(crate) fn check(
        &self,
        question: StatusQuestion<'_>,
        signers: &mut dyn CrlSigners,
    ) -> Result<Time, Denial> {
        let subject = || question.certificate.subject();
        let mut covered = 0;
        let mut until = Time(u64::MAX);
        let mut why = None;
        for point in PointOfCertificate::all(question.certificate) {
            for crl in self.newest_of_scope(&point, question) {
                let reasons = point.reasons & crl.facts.scope.reasons;
                let said = self.ask(crl, question);
                // Every list of a good signer may say that it was revoked; only for the rest is it
                // enough to have asked for each reason once.
                let is_news =
                    matches!(said, Err(Denial::Revoked { .. })) || reasons & !covered != 0;
                let signer = CrlSigner { crl: &crl.facts, is_named: point.names_crl_issuer() };
                if reasons == 0 || !is_news || !signers.is_good_signer(&signer) {
                    continue;
                }
                match said {
                    Ok(end) => {
                        covered |= reasons;
                        until = until.min(end);
                    }
                    Err(revoked @ Denial::Revoked { .. }) => return Err(revoked),
                    Err(error) => why = Some(error),
                }
            }
        }
        match covered {
            ALL_REASONS => Ok(until),
            0 => Err(why.unwrap_or_else(|| Denial::NoCrl { subject: subject() })),
            _ => Err(why.unwrap_or_else(|| Denial::NotAllReasons { subject: subject() })),
        }
    }

    /// Of each series of lists in scope the newest that there was at the moment.
    fn newest_of_scope(
        &self,
        point: &PointOfCertificate,
        question: StatusQuestion<'_>,
    ) -> Vec<&Crl> {
        let mut newest: Vec<&Crl> = Vec::new();
        let serves = |crl: &&Crl| point.is_served_by(&crl.facts, question.certificate);
        // A list of a time to come is newer, and says nothing yet.
        let rank = |crl: &Crl| crl.facts.this_update <= question.at;
        for crl in self.complete.iter().filter(serves) {
            match newest.iter_mut().find(|other| other.facts.is_of_series(&crl.facts)) {
                Some(other) if (rank(crl), crl.facts.age()) > (rank(other), other.facts.age()) => {
                    *other = crl;
                }
                Some(_) => {}
                None => newest.push(crl),
            }
        }
        newest
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

impl Crl {
    fn find(&self, certificate: &Certificate, is_delta: bool) -> Option<Listed> {
        self.entries.find(&certificate.issuer_name, certificate.serial(), is_delta)
    }
}
