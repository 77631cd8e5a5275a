//! CAs' certificates that nobody gave: fetched from where certificates say that those of their
//! issuers are (RFC 5280, 4.2.2.1). Nothing that was fetched is believed by itself; it helps a path
//! to an anchor, or it is dropped.
//!
//! Whoever shows a card chooses what it says. So there are limits on how much is fetched, no address
//! is asked twice, and nothing is kept that does not lead to an anchor.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use cms::cert::CertificateChoices;
use der::Encode;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use super::{Trust, is_named};
use crate::certificate::Certificate;
use crate::chuid::signed_data;

/// So many addresses are asked for one card's certificate.
const MOST_FETCHES: usize = 8;
/// So many of one certificate.
const MOST_ADDRESSES: usize = 2;
/// So many in the life of a door: each of them once, whether it answered or not.
const MOST_ADDRESSES_IN_ALL: usize = 1000;
/// So many certificates of one file are looked at: those of a bridge have some dozens.
const MOST_IN_A_FILE: usize = 100;

/// A way to certificates that others publish.
pub trait IssuerSource: fmt::Debug + Send + Sync {
    /// What is at this address.
    ///
    /// # Errors
    /// Why there is nothing, in words.
    fn fetch(&self, address: &str) -> Result<Vec<u8>, String>;
}

/// Where missing issuers come from.
#[derive(Debug)]
pub(super) struct Fetching {
    source: Box<dyn IssuerSource>,
    /// After so long no other address is asked for the same card.
    time_limit: Nanos,
    asked: HashSet<String>,
}

/// What is left to do for one card.
struct Errand {
    until: Nanos,
    fetches: usize,
    notes: Vec<String>,
}

impl Trust {
    /// Issuers that are missing are fetched, for a card's certificate at most as long as this.
    #[must_use]
    pub fn fetching_issuers(mut self, source: Box<dyn IssuerSource>, time_limit: Nanos) -> Self {
        self.fetching = Some(Fetching { source, time_limit, asked: HashSet::new() });
        self
    }

    pub(crate) const fn may_fetch(&self) -> bool {
        self.fetching.is_some()
    }

    /// Fetches what is missing between this certificate and an anchor. Returns what there is to tell.
    pub fn fetch_issuers(&mut self, leaf: &Arc<Certificate>) -> Vec<String> {
        let Some(mut fetching) = self.fetching.take() else { return Vec::new() };
        let until = Monotonic.now() + fetching.time_limit;
        let mut errand = Errand { until, fetches: 0, notes: Vec::new() };
        let mut fetched: Vec<Arc<Certificate>> = Vec::new();
        while let Some(ends) = self.ends_above(leaf, &fetched) {
            let mut news = Vec::new();
            for end in ends {
                news.extend(fetching.issuers_of(&end, &mut errand));
            }
            news.retain(|one| fetched.iter().all(|other| other.sha256 != one.sha256));
            if news.is_empty() {
                break;
            }
            fetched.extend(news);
        }
        self.fetching = Some(fetching);
        if !fetched.is_empty() && self.ends_above(leaf, &fetched).is_none() {
            self.certificates.extend(fetched);
            self.lists.add_waiting(&self.certificates);
        }
        errand.notes
    }

    /// The upper ends of all ways from this certificate, by names alone; `None` when one of the ways
    /// comes to an anchor.
    fn ends_above(
        &self,
        leaf: &Arc<Certificate>,
        fetched: &[Arc<Certificate>],
    ) -> Option<Vec<Arc<Certificate>>> {
        let mut ends = Vec::new();
        let mut seen = HashSet::from([leaf.sha256]);
        let mut left = vec![Arc::clone(leaf)];
        while let Some(below) = left.pop() {
            let all = self.certificates.iter().chain(fetched).enumerate();
            let mut issuers = all.filter(|(_, one)| is_named(&below, one)).peekable();
            if issuers.peek().is_none() {
                ends.push(Arc::clone(&below));
            }
            for (place, issuer) in issuers {
                if place < self.anchors {
                    return None;
                }
                if seen.insert(issuer.sha256) {
                    left.push(Arc::clone(issuer));
                }
            }
        }
        Some(ends)
    }
}

impl Fetching {
    /// Certificates whose keys signed this one, from the addresses that it names.
    fn issuers_of(&mut self, below: &Certificate, errand: &mut Errand) -> Vec<Arc<Certificate>> {
        let mut issuers = Vec::new();
        for address in below.issuer_addresses().iter().take(MOST_ADDRESSES) {
            let is_too_much = errand.fetches == MOST_FETCHES
                || self.asked.len() == MOST_ADDRESSES_IN_ALL
                || Monotonic.now() > errand.until;
            if is_too_much {
                let subject = below.subject();
                errand.notes.push(format!(
                    "the issuer of \"{subject}\" was not fetched from {address}: it was enough"
                ));
                return issuers;
            }
            if !self.asked.insert(address.clone()) {
                continue;
            }
            errand.fetches += 1;
            let subject = below.subject();
            let note = match self.source.fetch(address) {
                Err(why) => format!("the issuer of \"{subject}\" was not fetched: {why}"),
                Ok(bytes) => {
                    let all = certificates(&bytes).into_iter();
                    let found: Vec<_> = all.filter(|one| is_issuer(below, one)).collect();
                    issuers.extend(found.iter().cloned());
                    match found.is_empty() {
                        true => format!("{address} has no issuer of \"{subject}\""),
                        false => format!("the issuer of \"{subject}\" came from {address}"),
                    }
                }
            };
            errand.notes.push(note);
        }
        issuers
    }
}

fn is_issuer(below: &Certificate, issuer: &Certificate) -> bool {
    is_named(below, issuer) && issuer.key().is_some_and(|key| below.is_signed_by(key).is_ok())
}

/// A certificate, or CMS with nothing but certificates (RFC 5280, 4.2.2.1).
fn certificates(bytes: &[u8]) -> Vec<Arc<Certificate>> {
    if let Ok(one) = Certificate::parse(bytes) {
        return vec![Arc::new(one)];
    }
    let inside = signed_data(bytes).and_then(|data| data.certificates);
    let inside = inside.iter().flat_map(|set| set.0.iter()).take(MOST_IN_A_FILE);
    let parsed = inside.filter_map(|choice| match choice {
        CertificateChoices::Certificate(one) => Certificate::from_der(one.to_der().ok()?).ok(),
        CertificateChoices::Other(_) => None,
    });
    parsed.map(Arc::new).collect()
}
