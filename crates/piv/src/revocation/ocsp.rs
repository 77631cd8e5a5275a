//! OCSP (RFC 6960): answers that were fetched beforehand, that are remembered, and that are asked
//! for while a card waits.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use aws_lc_rs::rand;
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode, Encode};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use x509_cert::ext::{Extension, Extensions};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse,
    OcspResponseStatus, Request, ResponderId, SingleResponse, TbsRequest,
};

use super::StatusQuestion;
use crate::certificate::{Certificate, signed_part};
use crate::denial::Denial;
use crate::name::CanonicalName;
use crate::path::{in_time, understood};
use crate::time::Time;

const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
const NONCE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.2");
const OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");
/// Hash functions of a CertID: there a hash only names, and responders expect SHA-1.
const SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");

/// What two clocks of one organisation may differ.
const CLOCKS_DIFFER_SECONDS: u64 = 60;

/// So many answers are remembered, one for each card of a busy door.
const MOST_REMEMBERED: usize = 100_000;

/// How answers are asked for and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspRules {
    /// How old an answer without nextUpdate may be.
    pub max_age: Duration,
    /// An answer must repeat the nonce of its request; without this only a wrong one is refused.
    pub require_nonce: bool,
}

impl Default for OcspRules {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(86_400), require_nonce: false }
    }
}

/// A way to OCSP responders.
pub trait OcspSource: fmt::Debug + Send + Sync {
    /// Posts a request to one of these addresses, in their order, and returns the answer's bytes.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    fn ask(&self, addresses: &[String], request: &[u8]) -> Result<Vec<u8>, String>;
}

/// Answers, and a way to more of them.
#[derive(Debug, Default)]
pub(crate) struct OcspAnswers {
    rules: OcspRules,
    prefetched: Vec<OcspAnswer>,
    remembered: Mutex<Vec<OcspAnswer>>,
    source: Option<Box<dyn OcspSource>>,
}

/// An answer; nothing about it has been checked.
#[derive(Clone, Debug)]
struct OcspAnswer {
    basic: BasicOcspResponse,
    /// ResponseData, as it was signed.
    signed: Vec<u8>,
}

/// What is asked of a delegate that does not say id-pkix-ocsp-nocheck.
pub(crate) type DelegateStatus<'a> = &'a mut dyn FnMut(&Certificate) -> Result<(), Denial>;

impl OcspAnswers {
    pub(crate) fn set(&mut self, rules: OcspRules, source: Option<Box<dyn OcspSource>>) {
        self.rules = rules;
        self.source = source;
    }

    /// An answer that was fetched beforehand.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub(crate) fn add_prefetched(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.prefetched.push(OcspAnswer::parse(bytes)?);
        Ok(())
    }

    pub(crate) const fn is_live(&self) -> bool {
        self.source.is_some()
    }

    /// What the answers that are here say, and until when; `None` when none of them is fresh.
    pub(crate) fn known(
        &self,
        question: StatusQuestion<'_>,
        delegate: DelegateStatus<'_>,
    ) -> Option<Result<Time, Denial>> {
        let remembered = self.remembered_of(question);
        let mut good: Option<Time> = None;
        for answer in self.prefetched.iter().chain(&remembered) {
            match answer.status(question, self.rules, None, delegate) {
                Some(Ok(until)) => good = good.max(Some(until)),
                // An answer that does not count says nothing; a bad one among them does.
                Some(Err(Denial::Ocsp { .. })) | None => {}
                Some(Err(bad)) => return Some(Err(bad)),
            }
        }
        good.map(Ok)
    }

    /// Copies: whoever judges an answer may have to ask for the status of its signer, and so comes
    /// back here.
    fn remembered_of(&self, question: StatusQuestion<'_>) -> Vec<OcspAnswer> {
        let all = self.remembered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.iter().filter(|answer| answer.singles(question).next().is_some()).cloned().collect()
    }

    /// Asks a responder, and remembers its answer. Returns until when it holds.
    pub(crate) fn ask(
        &self,
        question: StatusQuestion<'_>,
        delegate: DelegateStatus<'_>,
    ) -> Result<Time, Denial> {
        let failed = |why: String| denial(question, why);
        let source = self.source.as_ref().ok_or_else(|| failed("nobody is asked".to_owned()))?;
        let mut nonce = [0; 32];
        rand::fill(&mut nonce).expect("the system has random numbers");
        let request = request(question, &nonce).map_err(|error| failed(error.to_string()))?;
        let addresses = &question.certificate.extensions.ocsp;
        let bytes = source.ask(addresses, &request).map_err(failed)?;
        let answer = OcspAnswer::parse(&bytes).map_err(failed)?;
        let status = answer.status(question, self.rules, Some(&nonce), delegate);
        let status = status.unwrap_or_else(|| Err(failed("it is about another one".to_owned())));
        if matches!(status, Ok(_) | Err(Denial::Revoked { .. })) {
            self.remember(answer, question);
        }
        status
    }

    /// In place of what was known of the same certificate.
    fn remember(&self, answer: OcspAnswer, question: StatusQuestion<'_>) {
        let mut all = self.remembered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.retain(|other| other.singles(question).next().is_none());
        if all.len() == MOST_REMEMBERED {
            all.remove(0);
        }
        all.push(answer);
    }
}

impl OcspAnswer {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let response = OcspResponse::from_der(bytes).map_err(|_| "it is no OCSP response")?;
        if response.response_status != OcspResponseStatus::Successful {
            return Err(format!("the responder says {:?}", response.response_status));
        }
        let inside = response.response_bytes.filter(|inside| inside.response_type == BASIC);
        let inside = inside.ok_or("it is of no kind that is known")?;
        let der = inside.response.as_bytes();
        let basic = BasicOcspResponse::from_der(der).map_err(|error| error.to_string())?;
        let signed = signed_part(der).map_err(|error| error.to_string())?;
        Ok(Self { basic, signed: der[signed].to_vec() })
    }

    /// What it says of a certificate; `None` when it is about others.
    fn status(
        &self,
        question: StatusQuestion<'_>,
        rules: OcspRules,
        nonce: Option<&[u8]>,
        delegate: DelegateStatus<'_>,
    ) -> Option<Result<Time, Denial>> {
        let singles: Vec<&SingleResponse> = self.singles(question).collect();
        if singles.is_empty() {
            return None;
        }
        Some(self.judged(&singles, question, rules, nonce, delegate))
    }

    fn judged(
        &self,
        singles: &[&SingleResponse],
        question: StatusQuestion<'_>,
        rules: OcspRules,
        nonce: Option<&[u8]>,
        delegate: DelegateStatus<'_>,
    ) -> Result<Time, Denial> {
        let failed = |why: &str| denial(question, why.to_owned());
        self.check_extensions(singles).map_err(|why| denial(question, why))?;
        self.check_signer(question, delegate).map_err(|why| denial(question, why))?;
        if let Some(nonce) = nonce {
            match self.nonce() {
                Some(told) if told != nonce => {
                    return Err(Denial::OcspNonce { subject: question.certificate.subject() });
                }
                None if rules.require_nonce => {
                    return Err(Denial::OcspNonce { subject: question.certificate.subject() });
                }
                _ => {}
            }
        }
        let subject = || question.certificate.subject();
        for single in singles {
            match single.cert_status {
                CertStatus::Good(_) => {}
                CertStatus::Revoked(info) => {
                    let on = moment(&info.revocation_time);
                    return Err(Denial::Revoked { subject: subject(), on });
                }
                CertStatus::Unknown(_) => return Err(Denial::OcspUnknown { subject: subject() }),
            }
        }
        let ends = singles.iter().filter_map(|single| self.fresh_until(single, question.at, rules));
        ends.max().ok_or_else(|| failed("it is not of this time"))
    }

    /// The parts that are about this certificate of this issuer.
    fn singles<'a>(
        &'a self,
        question: StatusQuestion<'a>,
    ) -> impl Iterator<Item = &'a SingleResponse> {
        self.basic
            .tbs_response_data
            .responses
            .iter()
            .filter(move |single| is_about(&single.cert_id, question))
    }

    /// The last moment of a part that is fresh now.
    fn fresh_until(&self, single: &SingleResponse, at: Time, rules: OcspRules) -> Option<Time> {
        let not_of_the_future =
            |time: &OcspGeneralizedTime| moment(time).0 <= at.0 + CLOCKS_DIFFER_SECONDS;
        let until = match &single.next_update {
            Some(next) => moment(next),
            None => Time(moment(&single.this_update).0.saturating_add(rules.max_age.as_secs())),
        };
        let is_fresh = at <= until
            && not_of_the_future(&single.this_update)
            && not_of_the_future(&self.basic.tbs_response_data.produced_at);
        is_fresh.then_some(until)
    }

    /// Critical extensions, of which nothing here is known, are refused (RFC 6960, 4.4).
    fn check_extensions(&self, singles: &[&SingleResponse]) -> Result<(), String> {
        let data = &self.basic.tbs_response_data;
        let all = singles.iter().filter_map(|single| single.single_extensions.as_ref());
        let mut all = all.chain(&data.response_extensions).flatten();
        match all.find(|extension| extension.critical && extension.extn_id != NONCE) {
            Some(extension) => Err(format!("it has the critical extension {}", extension.extn_id)),
            None => Ok(()),
        }
    }

    fn nonce(&self) -> Option<Vec<u8>> {
        let extensions = self.basic.tbs_response_data.response_extensions.iter().flatten();
        let mut nonces = extensions.filter(|extension| extension.extn_id == NONCE);
        let value = nonces.next()?.extn_value.as_bytes();
        // Some responders repeat the bytes without their OCTET STRING.
        let bytes = OctetString::from_der(value).map_or(value.to_vec(), |s| s.as_bytes().to_vec());
        Some(bytes)
    }

    /// 4.2.2.2: the CA itself, or a delegate that the CA's own key made one.
    fn check_signer(
        &self,
        question: StatusQuestion<'_>,
        delegate: DelegateStatus<'_>,
    ) -> Result<(), String> {
        let issuer = question.issuer;
        if self.is_of(issuer) && self.is_signed_by(issuer) {
            return Ok(());
        }
        let mut why = "its signer is neither the CA nor one of its delegates".to_owned();
        for certificate in self.basic.certs.iter().flatten() {
            let parsed = certificate.to_der().and_then(Certificate::from_der);
            let Ok(certificate) = parsed else { continue };
            if !self.is_of(&certificate) || !self.is_signed_by(&certificate) {
                continue;
            }
            match check_delegate(&certificate, question, delegate) {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn is_of(&self, certificate: &Certificate) -> bool {
        match &self.basic.tbs_response_data.responder_id {
            ResponderId::ByName(name) => CanonicalName::from_name(name) == certificate.subject_name,
            ResponderId::ByKey(hash) => hash.as_bytes() == &Sha1::digest(key_bits(certificate))[..],
        }
    }

    fn is_signed_by(&self, certificate: &Certificate) -> bool {
        let signature = self.basic.signature.as_bytes();
        certificate.key().zip(signature).is_some_and(|(key, signature)| {
            key.verify(&self.basic.signature_algorithm, None, &self.signed, signature).is_ok()
        })
    }
}

fn check_delegate(
    certificate: &Certificate,
    question: StatusQuestion<'_>,
    status: DelegateStatus<'_>,
) -> Result<(), String> {
    let issuer = question.issuer;
    let is_issued = certificate.issuer_name == issuer.subject_name
        && issuer.key().is_some_and(|key| certificate.is_signed_by(key).is_ok());
    if !is_issued {
        return Err("its signer is no delegate of the CA's key".to_owned());
    }
    let extensions = &certificate.extensions;
    let usages = extensions.extended_key_usage.as_deref().unwrap_or_default();
    let signs = extensions.key_usage.is_none_or(|usage| usage.digital_signature());
    if !usages.contains(&OCSP_SIGNING) || !signs {
        return Err("its signer may not sign OCSP answers".to_owned());
    }
    in_time(certificate, question.at)
        .and_then(|()| understood(certificate))
        .and_then(|()| if extensions.ocsp_no_check { Ok(()) } else { status(certificate) })
        .map_err(|refusal| refusal.to_string())
}

fn denial(question: StatusQuestion<'_>, why: String) -> Denial {
    Denial::Ocsp { subject: question.certificate.subject(), why }
}

fn moment(time: &OcspGeneralizedTime) -> Time {
    Time(time.0.to_unix_duration().as_secs())
}

fn key_bits(certificate: &Certificate) -> &[u8] {
    certificate.public_key_info().subject_public_key.raw_bytes()
}

/// By name, key and serial number (RFC 6960, 4.1.1).
fn is_about(id: &CertId, question: StatusQuestion<'_>) -> bool {
    let StatusQuestion { certificate, issuer, .. } = question;
    if id.serial_number != *certificate.serial_number() {
        return false;
    }
    let Ok(name) = certificate.issuer_dn().to_der() else { return false };
    let hashes = match id.hash_algorithm.oid {
        SHA_1 => [Sha1::digest(&name).to_vec(), Sha1::digest(key_bits(issuer)).to_vec()],
        SHA_256 => [Sha256::digest(&name).to_vec(), Sha256::digest(key_bits(issuer)).to_vec()],
        _ => return false,
    };
    hashes == [id.issuer_name_hash.as_bytes(), id.issuer_key_hash.as_bytes()]
}

fn request(question: StatusQuestion<'_>, nonce: &[u8]) -> der::Result<Vec<u8>> {
    let StatusQuestion { certificate, issuer, .. } = question;
    let name = certificate.issuer_dn().to_der()?;
    let id = CertId {
        hash_algorithm: AlgorithmIdentifierOwned { oid: SHA_1, parameters: Some(der::Any::null()) },
        issuer_name_hash: OctetString::new(&Sha1::digest(name)[..])?,
        issuer_key_hash: OctetString::new(&Sha1::digest(key_bits(issuer))[..])?,
        serial_number: certificate.serial_number().clone(),
    };
    let nonce = Extension {
        extn_id: NONCE,
        critical: false,
        extn_value: OctetString::new(OctetString::new(nonce)?.to_der()?)?,
    };
    let body = TbsRequest {
        request_list: vec![Request { req_cert: id, single_request_extensions: None }],
        request_extensions: Some(Extensions::from([nonce])),
        ..TbsRequest::default()
    };
    OcspRequest { tbs_request: body, optional_signature: None }.to_der()
}
