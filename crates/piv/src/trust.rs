//! Whom a door believes: trust anchors, other CAs, and what says who was revoked.
//!
//! Paths are searched from the leaf upwards, through cross-certificates and rolled-over keys, until
//! one of them holds: its signatures, section 6 of RFC 5280 ([`crate::path`]), and revocation.

mod crl_signers;
mod fetched;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use self::crl_signers::SignersOfPath;
use self::fetched::Fetching;
pub use self::fetched::IssuerSource;
use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::key::BadSignature;
use crate::path::{PolicyInputs, in_time, is_issuing_ca, understood, validate_path};
use crate::profile::{CertificatePurpose, check_strength};
use crate::revocation::{
    DelegateStatus, GoodStatus, NotACrl, OcspAnswers, OcspRules, OcspSource, RevocationList,
    RevocationLists, RevocationRule, StatusQuestion,
};
use crate::time::Time;

/// The federal PKI has paths of 5 or 6 certificates; cross-certificates may make rings.
const LONGEST_PATH: usize = 10;

/// So many issuers are tried for one leaf, and for all signers of CRLs on its ways together. A
/// hostile web of cross-certificates has more ways than anybody can walk.
const MOST_ISSUERS: usize = 400;

/// Trust anchors, other CAs, and revocation.
#[derive(Debug)]
pub struct Trust {
    /// The anchors first.
    certificates: Vec<Arc<Certificate>>,
    anchors: usize,
    rule: RevocationRule,
    lists: RevocationLists,
    ocsp: OcspAnswers,
    fetching: Option<Fetching>,
}

/// Nothing can be decided with these files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrustError {
    /// There is no anchor.
    #[error(
        "no trust anchor among {found} certificates\nhint: put the root CA's certificate (DER or \
         PEM) into the folder"
    )]
    NoAnchor {
        /// How many certificates there are.
        found: usize,
    },
}

/// What is asked of a path beside its validity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathDemands {
    /// What the certificate is to be used for; `None`: anything, as section 6 alone has it.
    pub purpose: Option<CertificatePurpose>,
    /// The policies that are asked for.
    pub policies: PolicyInputs,
}

/// A path that was found to be good: the certificate and its issuers up to the anchor.
#[derive(Clone, Debug)]
pub struct CertificationPath {
    leaf: Arc<Certificate>,
    issuers: Vec<usize>,
    /// Its keys had to be of the strength that PIV wants.
    needs_strength: bool,
    /// The first end of what says that none of it was revoked; `None` where nothing does.
    status_until: Option<Time>,
    /// What nothing fresh says anything about, in sentences.
    unchecked: Vec<String>,
}

impl CertificationPath {
    /// The certificate that it leads to.
    #[must_use]
    pub fn certificate(&self) -> &Arc<Certificate> {
        &self.leaf
    }

    /// Whether what said that none of it was revoked still says so.
    pub(crate) fn has_fresh_status(&self, at: Time) -> bool {
        self.status_until.is_none_or(|until| at <= until)
    }

    /// Why the status of some of its certificates is not known.
    #[must_use]
    pub fn unchecked(&self) -> &[String] {
        &self.unchecked
    }
}

impl Trust {
    /// Every anchor is believed as it is; intermediates are believed when a path leads to them.
    /// Revocation is not checked until [`Trust::checking_revocation`] says so.
    ///
    /// # Errors
    /// When there is no anchor.
    pub fn new(
        anchors: Vec<Certificate>,
        intermediates: Vec<Certificate>,
    ) -> Result<Self, TrustError> {
        if anchors.is_empty() {
            return Err(TrustError::NoAnchor { found: intermediates.len() });
        }
        let count = anchors.len();
        let mut certificates: Vec<Arc<Certificate>> = Vec::new();
        for certificate in anchors.into_iter().chain(intermediates).map(Arc::new) {
            let is_anchor = certificates.len() < count;
            if is_anchor || certificates.iter().all(|one| one.sha256 != certificate.sha256) {
                certificates.push(certificate);
            }
        }
        Ok(Self {
            certificates,
            anchors: count,
            rule: RevocationRule::Off,
            lists: RevocationLists::default(),
            ocsp: OcspAnswers::default(),
            fetching: None,
        })
    }

    /// With CRLs, DER or PEM, and what is done where they say nothing. One that cannot be used is
    /// left out ([`Trust::left_out`]).
    #[must_use]
    pub fn checking_revocation(mut self, rule: RevocationRule, crls: &[Vec<u8>]) -> Self {
        self.rule = rule;
        crls.iter().fold(self, |trust, bytes| trust.with_crl(bytes))
    }

    /// With one CRL more. If nobody who is known has signed it, it waits for whoever is fetched.
    #[must_use]
    pub fn with_crl(mut self, bytes: &[u8]) -> Self {
        self.lists.add(bytes, &self.certificates);
        self
    }

    /// Parses a list that is kept as an index.
    ///
    /// # Errors
    /// When it is none that can be used.
    pub fn parse_list(&self, bytes: &[u8]) -> Result<RevocationList, NotACrl> {
        RevocationList::parse(bytes, &self.certificates)
    }

    /// Whether one of the certificates here has the key that signed a list, and may sign CRLs.
    #[must_use]
    pub fn knows_signer(&self, list: &RevocationList) -> bool {
        self.certificates.iter().any(|certificate| list.is_signed_by(certificate))
    }

    /// With a list that is parsed already, or was read from its index. Its signer must be among the
    /// certificates here.
    #[must_use]
    pub fn with_list(mut self, list: RevocationList) -> Self {
        self.lists.add_list(list, &self.certificates);
        self
    }

    /// With OCSP answers that were fetched beforehand, DER. What is none is left out.
    #[must_use]
    pub fn with_ocsp_answers(mut self, answers: &[Vec<u8>]) -> Self {
        for bytes in answers {
            if let Err(why) = self.ocsp.add_prefetched(bytes) {
                self.lists.left_out.push(format!("an OCSP answer that cannot be used: {why}"));
            }
        }
        self
    }

    /// How OCSP answers are judged, and who is asked about a card's certificate when none is fresh.
    #[must_use]
    pub fn with_ocsp(mut self, rules: OcspRules, source: Option<Box<dyn OcspSource>>) -> Self {
        self.ocsp.set(rules, source);
        self
    }

    /// A sentence for each CRL and OCSP answer that cannot be used.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.lists.left_out
    }

    /// What is done where nothing says whether a certificate was revoked.
    #[must_use]
    pub const fn revocation_rule(&self) -> RevocationRule {
        self.rule
    }

    /// Finds a good path at this moment.
    ///
    /// # Errors
    /// Why there is none; of several paths the reason that came last in the order of the checks.
    pub fn validate(
        &self,
        leaf: &Arc<Certificate>,
        demands: &PathDemands,
        at: Time,
    ) -> Result<CertificationPath, Denial> {
        in_time(leaf, at)?;
        understood(leaf)?;
        if let Some(purpose) = demands.purpose {
            purpose.check(leaf)?;
            check_strength(leaf, at)?;
        }
        let effort = RefCell::default();
        let mut search = PathSearch::new(self, leaf, demands, at, &effort);
        search.climb(leaf, 0)?;
        let PathSearch { issuers, unchecked, status_until, .. } = search;
        let leaf = Arc::clone(leaf);
        let needs_strength = demands.purpose.is_some();
        Ok(CertificationPath { leaf, issuers, needs_strength, status_until, unchecked })
    }

    /// Whether all of a path is still valid at this moment, and its keys still strong enough.
    pub(crate) fn still_holds(&self, path: &CertificationPath, at: Time) -> Result<(), Denial> {
        let issuers = path.issuers.iter().map(|issuer| &self.certificates[*issuer]);
        for certificate in std::iter::once(&path.leaf).chain(issuers) {
            in_time(certificate, at)?;
            if path.needs_strength {
                check_strength(certificate, at)?;
            }
        }
        Ok(())
    }

    /// Checks again what time changes: validity, the strength of keys, and revocation. Signatures and
    /// constraints stay as they are. Returns what nothing fresh says anything about.
    ///
    /// # Errors
    /// Why it is good no longer.
    pub fn recheck(&self, path: &CertificationPath, at: Time) -> Result<Vec<String>, Denial> {
        self.still_holds(path, at)?;
        let demands = PathDemands::default();
        let effort = RefCell::default();
        let mut search = PathSearch::new(self, &path.leaf, &demands, at, &effort);
        search.issuers.clone_from(&path.issuers);
        search.check_revocation()?;
        Ok(search.unchecked)
    }
}

/// The search for a path, from the leaf upwards.
struct PathSearch<'a> {
    trust: &'a Trust,
    leaf: &'a Arc<Certificate>,
    demands: &'a PathDemands,
    at: Time,
    /// Of the path that is being tried, from the leaf's issuer upwards.
    issuers: Vec<usize>,
    effort: &'a RefCell<Effort>,
    /// The only anchor that will do: of a CRL's signer, the one of the certificate asked about.
    anchor: Option<usize>,
    /// Signers of CRLs whose paths are being looked at.
    crl_signers: Vec<[u8; 32]>,
    status_until: Option<Time>,
    unchecked: Vec<String>,
}

/// What a search and those within it, for signers of CRLs, have done already.
#[derive(Debug, Default)]
struct Effort {
    /// Whether a certificate's signature is of an issuer's key.
    signatures: HashMap<([u8; 32], usize), Result<(), Denial>>,
    /// Issuers that were tried.
    tried: usize,
    /// Why no responder said anything about the leaf, by the key of its issuer: on another path to
    /// the same issuer they are not waited for again.
    asked_in_vain: HashMap<[u8; 32], Denial>,
}

/// How far a path came; of several the one that came farthest says why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Issuer,
    Anchor,
}

struct Failure {
    progress: Progress,
    why: Denial,
}

impl<'a> PathSearch<'a> {
    fn new(
        trust: &'a Trust,
        leaf: &'a Arc<Certificate>,
        demands: &'a PathDemands,
        at: Time,
        effort: &'a RefCell<Effort>,
    ) -> Self {
        Self {
            trust,
            leaf,
            demands,
            at,
            effort,
            issuers: Vec::new(),
            anchor: None,
            crl_signers: Vec::new(),
            status_until: None,
            unchecked: Vec::new(),
        }
    }

    fn climb(&mut self, below: &Certificate, depth: usize) -> Result<(), Denial> {
        self.climb_from(below, depth).map_err(|failure| failure.why)
    }

    fn climb_from(&mut self, below: &Certificate, depth: usize) -> Result<(), Failure> {
        let trust = self.trust;
        let mut worst = Failure {
            progress: Progress::Issuer,
            why: Denial::Untrusted { subject: below.subject(), issuer: below.issuer() },
        };
        if depth == LONGEST_PATH {
            return Err(worst);
        }
        for (issuer, certificate) in trust.certificates.iter().enumerate() {
            let again = self.issuers.contains(&issuer) || certificate.sha256 == self.leaf.sha256;
            if again || !is_named(below, certificate) {
                continue;
            }
            self.effort.borrow_mut().tried += 1;
            if self.effort.borrow().tried > MOST_ISSUERS {
                let subject = self.leaf.subject();
                return Err(Failure {
                    progress: Progress::Anchor,
                    why: Denial::TooManyPaths { subject },
                });
            }
            self.issuers.push(issuer);
            match self.step(below, issuer, depth) {
                Ok(()) => return Ok(()),
                Err(failure) => {
                    self.issuers.truncate(depth);
                    if matches!(failure.why, Denial::TooManyPaths { .. }) {
                        return Err(failure);
                    }
                    if failure.progress >= worst.progress {
                        worst = failure;
                    }
                }
            }
        }
        Err(worst)
    }

    /// One issuer more: its signature, what can be said of it alone, and all of the path when it is
    /// an anchor.
    fn step(&mut self, below: &Certificate, issuer: usize, depth: usize) -> Result<(), Failure> {
        let trust = self.trust;
        let certificate = &trust.certificates[issuer];
        let at_issuer = |why| Failure { progress: Progress::Issuer, why };
        self.signed(below, issuer)
            .and_then(|()| in_time(certificate, self.at))
            .and_then(|()| understood(certificate))
            .and_then(|()| is_issuing_ca(certificate))
            .map_err(at_issuer)?;
        if issuer >= trust.anchors {
            return self.climb_from(certificate, depth + 1);
        }
        if self.anchor.is_some_and(|only| only != issuer) {
            let why = Denial::Untrusted { subject: below.subject(), issuer: below.issuer() };
            return Err(at_issuer(why));
        }
        self.whole_path().map_err(|why| Failure { progress: Progress::Anchor, why })
    }

    fn signed(&self, below: &Certificate, issuer: usize) -> Result<(), Denial> {
        let certificate = &self.trust.certificates[issuer];
        let verify = || {
            let key = certificate.key.as_ref().map_err(|algorithm| unsupported(algorithm))?;
            below.is_signed_by(key).map_err(|bad| match bad {
                BadSignature::Wrong => Denial::Tampered { subject: below.subject() },
                BadSignature::Algorithm(algorithm) => unsupported(&algorithm),
            })
        };
        let mut effort = self.effort.borrow_mut();
        effort.signatures.entry((below.sha256, issuer)).or_insert_with(verify).clone()
    }

    fn whole_path(&mut self) -> Result<(), Denial> {
        let trust = self.trust;
        let path: Vec<&Certificate> =
            self.issuers.iter().rev().map(|issuer| &*trust.certificates[*issuer]).collect();
        let [anchor, cas @ ..] = &path[..] else { unreachable!("a path has an anchor") };
        let chain: Vec<&Certificate> = cas.iter().copied().chain([&**self.leaf]).collect();
        if self.demands.purpose.is_some() {
            path.iter().try_for_each(|ca| check_strength(ca, self.at))?;
        }
        validate_path(anchor, &chain, &self.demands.policies, self.at)?;
        self.check_revocation()
    }

    /// From the anchor downwards: whoever says something about a certificate was looked at before.
    fn check_revocation(&mut self) -> Result<(), Denial> {
        self.unchecked.clear();
        self.status_until = None;
        let trust = self.trust;
        if trust.rule == RevocationRule::Off {
            return Ok(());
        }
        for place in (0..self.issuers.len()).rev() {
            let issuer = &trust.certificates[self.issuers[place]];
            let certificate: &Certificate = match place.checked_sub(1) {
                Some(below) => &trust.certificates[self.issuers[below]],
                None => self.leaf,
            };
            let question = StatusQuestion { certificate, issuer, at: self.at };
            match self.status(question, place == 0) {
                Err(why) if is_refused(&why, trust.rule) => return Err(why),
                Err(why) => self.unchecked.push(why.to_string()),
                Ok(GoodStatus { until, unchecked }) => {
                    self.status_until = Some(self.status_until.map_or(until, |end| end.min(until)));
                    self.unchecked.extend(unchecked);
                }
            }
        }
        Ok(())
    }

    /// Who says that it was revoked is believed; otherwise OCSP before CRLs. A responder is asked
    /// only about the leaf, and not for the path of a CRL's signer.
    fn status(&self, question: StatusQuestion<'_>, is_leaf: bool) -> Result<GoodStatus, Denial> {
        let trust = self.trust;
        let by_list = self.by_list(question);
        if matches!(by_list, Err(Denial::Revoked { .. })) {
            return by_list;
        }
        let mut unchecked = Vec::new();
        let mut delegate = |certificate: &Certificate| {
            let own = StatusQuestion { certificate, issuer: question.issuer, at: question.at };
            self.by_list(own).map(|status| unchecked.extend(status.unchecked))
        };
        let known = trust.ocsp.known(question, &mut delegate);
        let may_ask = is_leaf && self.crl_signers.is_empty() && trust.ocsp.is_live();
        let status = match known {
            Some(status) => status,
            None if !may_ask => return by_list,
            None => match self.ask_once(question, &mut delegate) {
                // Nothing fresh from there; a CRL may do, and if not, both are told.
                Err(Denial::Ocsp { .. }) if by_list.is_ok() => return by_list,
                status => status,
            },
        };
        status.map(|until| GoodStatus { until, unchecked })
    }

    /// Asks the responders about the leaf, unless they said nothing before.
    fn ask_once(
        &self,
        question: StatusQuestion<'_>,
        delegate: DelegateStatus<'_>,
    ) -> Result<Time, Denial> {
        let issuer = question.issuer.key_sha256;
        if let Some(why) = self.effort.borrow().asked_in_vain.get(&issuer) {
            return Err(why.clone());
        }
        let status = self.trust.ocsp.ask(question, delegate);
        if let Err(why @ Denial::Ocsp { .. }) = &status {
            self.effort.borrow_mut().asked_in_vain.insert(issuer, why.clone());
        }
        status
    }
}

impl PathSearch<'_> {
    fn by_list(&self, question: StatusQuestion<'_>) -> Result<GoodStatus, Denial> {
        self.trust.lists.check(question, &mut SignersOfPath { search: self, question })
    }
}

/// Whether a certificate is refused for what is known, or not known, of its status.
fn is_refused(why: &Denial, rule: RevocationRule) -> bool {
    let is_said = matches!(
        why,
        Denial::Revoked { .. } | Denial::OcspUnknown { .. } | Denial::OcspNonce { .. }
    );
    is_said || rule == RevocationRule::Require
}

/// Whether a certificate names this one as its issuer: by name, and by key identifier where both
/// have one.
fn is_named(below: &Certificate, ca: &Certificate) -> bool {
    let same_key = match (&below.extensions.authority_key_id, &ca.extensions.subject_key_id) {
        (Some(wanted), Some(own)) => wanted == own,
        _ => true,
    };
    same_key && !below.issuer_name.is_empty() && below.issuer_name == ca.subject_name
}

fn unsupported(algorithm: &str) -> Denial {
    Denial::Algorithm { algorithm: algorithm.to_owned() }
}
