//! Certificate revocation lists (RFC 5280, section 5): complete, partitioned, indirect and delta.

use std::borrow::Cow;
use std::ops::Range;

use der::asn1::{ObjectIdentifier, Uint};
use der::{Decode, Encode, Header, Reader, SliceReader, Tag};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;
use x509_cert::ext::pkix::crl::IssuingDistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::name::Name;
use x509_cert::spki::AlgorithmIdentifierOwned;

use super::entries::CrlEntries;
use crate::certificate::{Certificate, binary};
use crate::name::CanonicalName;
use crate::time::Time;

const AUTHORITY_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");
const CRL_NUMBER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.20");
const DELTA_CRL_INDICATOR: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.27");
const ISSUING_DISTRIBUTION_POINT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.28");

/// All reasons of RFC 5280, 4.2.1.13, but the first bit, which is not used.
pub(super) const ALL_REASONS: u16 = 0b1_1111_1110;

/// These bytes are no CRL that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no CRL that can be used: {0}\nhint: CRLs in DER or PEM are read")]
pub struct NotACrl(pub(super) String);

impl NotACrl {
    /// For a list that is left out.
    pub(super) fn sentence(&self) -> String {
        format!("a CRL that cannot be used: {}", self.0)
    }
}

/// A list. Its signature holds for the keys that `signers` names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crl {
    pub(super) facts: CrlFacts,
    pub(super) entries: CrlEntries,
}

/// All of a CRL but its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CrlFacts {
    pub(super) issuer: CanonicalName,
    /// As RFC 4514 writes it.
    pub(super) issuer_text: String,
    pub(super) authority_key_id: Option<Vec<u8>>,
    pub(super) this_update: Time,
    pub(super) next_update: Time,
    /// Big-endian without leading zeros.
    pub(super) number: Option<Vec<u8>>,
    /// Of a delta the number of the list that it changes.
    pub(super) base_number: Option<Vec<u8>>,
    pub(super) scope: CrlScope,
    /// SHA-256 of the public keys by which its signature holds.
    pub(super) signers: Vec<[u8; 32]>,
}

/// What an issuing distribution point says (5.2.5); without one a list is about everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CrlScope {
    /// `None`: all names.
    pub(super) names: Option<Vec<Vec<u8>>>,
    pub(super) users_only: bool,
    pub(super) cas_only: bool,
    pub(super) attributes_only: bool,
    pub(super) is_indirect: bool,
    /// Bits as in ReasonFlags.
    pub(super) reasons: u16,
}

impl Default for CrlScope {
    fn default() -> Self {
        Self {
            names: None,
            users_only: false,
            cas_only: false,
            attributes_only: false,
            is_indirect: false,
            reasons: ALL_REASONS,
        }
    }
}

/// What stands in front of the entries, and where the parts of the encoding are.
pub(super) struct CrlFront {
    facts: CrlFacts,
    algorithm: AlgorithmIdentifierOwned,
    signed: Range<usize>,
    /// Only their contents.
    pub(super) entries: Range<usize>,
    pub(super) end: usize,
}

/// What stands behind the entries.
struct CrlBack {
    extensions: Extensions,
    algorithm: AlgorithmIdentifierOwned,
    signature: Vec<u8>,
}

/// What its signature is checked by.
struct CrlSignature<'a> {
    signed: &'a [u8],
    inside: &'a AlgorithmIdentifierOwned,
    outside: &'a AlgorithmIdentifierOwned,
    bits: &'a [u8],
}

impl Crl {
    /// Parses it, and finds out which of these keys signed it.
    pub(super) fn parse(
        bytes: &[u8],
        certificates: &[std::sync::Arc<Certificate>],
    ) -> Result<Self, NotACrl> {
        let der = decoded(bytes)?;
        let error = |error: der::Error| NotACrl(error.to_string());
        let front = CrlFront::read(&der).map_err(error)?;
        let part =
            |range: Range<usize>| der.get(range).ok_or_else(|| error(Tag::Sequence.length_error()));
        let back = CrlBack::read(part(front.entries.end..front.end)?, &front).map_err(error)?;
        let signature = CrlSignature {
            signed: part(front.signed.clone())?,
            inside: &front.algorithm,
            outside: &back.algorithm,
            bits: &back.signature,
        };
        let mut facts = front.facts.clone();
        facts.read_extensions(&back.extensions).map_err(NotACrl)?;
        facts.signers = facts.signers_among(certificates, &signature);
        let entries = part(front.entries.clone())?;
        let entries = CrlEntries::read(entries, facts.issuer.clone()).map_err(NotACrl)?;
        if !facts.scope.is_indirect && entries.issuers.len() > 1 {
            return Err(NotACrl("it lists certificates of others and is not indirect".into()));
        }
        Ok(Self { facts, entries })
    }
}

pub(super) fn is_pem(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"-----")
}

/// DER as it is, without a copy of what may be very large; PEM decoded.
pub(super) fn decoded(bytes: &[u8]) -> Result<Cow<'_, [u8]>, NotACrl> {
    match is_pem(bytes) {
        true => binary(bytes).map(Cow::Owned).map_err(NotACrl),
        false => Ok(Cow::Borrowed(bytes)),
    }
}

impl CrlFront {
    /// From the first bytes of an encoding. They may end behind the header of the entries.
    pub(super) fn read(start: &[u8]) -> der::Result<Self> {
        let mut reader = SliceReader::new(start)?;
        let end = element(&mut reader, Tag::Sequence)?.end;
        let signed_start = position(&reader)?;
        let signed_end = element(&mut reader, Tag::Sequence)?.end;
        if reader.peek_header()?.tag == Tag::Integer {
            u8::decode(&mut reader)?;
        }
        let algorithm = AlgorithmIdentifierOwned::decode(&mut reader)?;
        let issuer = Name::decode(&mut reader)?;
        let this_update = x509_cert::time::Time::decode(&mut reader)?.into();
        let next_update = x509_cert::time::Time::decode(&mut reader)?.into();
        let here = position(&reader)?;
        let entries = match here < signed_end && reader.peek_header()?.tag == Tag::Sequence {
            true => element(&mut reader, Tag::Sequence)?,
            false => here..here,
        };
        if entries.end > signed_end || signed_end > end {
            return Err(Tag::Sequence.length_error());
        }
        let facts = CrlFacts {
            issuer: CanonicalName::from_name(&issuer),
            issuer_text: issuer.to_string(),
            authority_key_id: None,
            this_update,
            next_update,
            number: None,
            base_number: None,
            scope: CrlScope::default(),
            signers: Vec::new(),
        };
        Ok(Self { facts, algorithm, signed: signed_start..signed_end, entries, end })
    }

    /// All that the list says but its entries, with the bytes behind them. The signature is not
    /// looked at.
    pub(super) fn facts(&self, behind: &[u8]) -> Result<CrlFacts, NotACrl> {
        let back = CrlBack::read(behind, self).map_err(|error| NotACrl(error.to_string()))?;
        let mut facts = self.facts.clone();
        facts.read_extensions(&back.extensions).map_err(NotACrl)?;
        Ok(facts)
    }
}

impl CrlBack {
    /// From the bytes between the entries and the end.
    fn read(bytes: &[u8], front: &CrlFront) -> der::Result<Self> {
        let too_short = || Tag::Sequence.length_error();
        let signed = front.signed.end - front.entries.end;
        let (signed, outside) = bytes.split_at_checked(signed).ok_or_else(too_short)?;
        let mut signed = SliceReader::new(signed)?;
        let extensions = match signed.is_finished() {
            true => Extensions::new(),
            false => signed
                .context_specific::<Extensions>(der::TagNumber::N0, der::TagMode::Explicit)?
                .unwrap_or_default(),
        };
        signed.finish(())?;
        let mut outside = SliceReader::new(outside)?;
        let algorithm = AlgorithmIdentifierOwned::decode(&mut outside)?;
        let signature = der::asn1::BitStringRef::decode(&mut outside)?;
        let signature = signature.as_bytes().unwrap_or_default().to_vec();
        outside.finish(())?;
        Ok(Self { extensions, algorithm, signature })
    }
}

impl CrlFacts {
    /// Whatever says that it is not complete counts, be it critical or not.
    fn read_extensions(&mut self, extensions: &Extensions) -> Result<(), String> {
        let error = |error: der::Error| error.to_string();
        for (place, extension) in extensions.iter().enumerate() {
            if extensions[..place].iter().any(|before| before.extn_id == extension.extn_id) {
                return Err(format!("the extension {} is there twice", extension.extn_id));
            }
            let value = extension.extn_value.as_bytes();
            match extension.extn_id {
                AUTHORITY_KEY_IDENTIFIER => {
                    let id = AuthorityKeyIdentifier::from_der(value).map_err(error)?;
                    self.authority_key_id = id.key_identifier.map(|id| id.as_bytes().to_vec());
                }
                CRL_NUMBER => {
                    let number = Uint::from_der(value).map_err(error)?;
                    self.number = Some(number.as_bytes().to_vec());
                }
                DELTA_CRL_INDICATOR => {
                    let number = Uint::from_der(value).map_err(error)?;
                    self.base_number = Some(number.as_bytes().to_vec());
                }
                ISSUING_DISTRIBUTION_POINT => {
                    let point = IssuingDistributionPoint::from_der(value).map_err(error)?;
                    self.scope = CrlScope::from_point(&point, &self.issuer);
                }
                other if extension.critical => {
                    return Err(format!("it has the critical extension {other}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The keys of those who are named as its issuer, may sign CRLs, and signed it.
    fn signers_among(
        &self,
        certificates: &[std::sync::Arc<Certificate>],
        of: &CrlSignature<'_>,
    ) -> Vec<[u8; 32]> {
        if of.inside != of.outside {
            return Vec::new();
        }
        let mut signers: Vec<[u8; 32]> = Vec::new();
        for certificate in certificates.iter().filter(|one| self.may_be_signed_by(one)) {
            let holds = certificate
                .key()
                .is_some_and(|key| key.verify(of.outside, None, of.signed, of.bits).is_ok());
            if holds && !signers.contains(&certificate.key_sha256) {
                signers.push(certificate.key_sha256);
            }
        }
        signers
    }

    /// By what its index is kept: a newer list of the same series has the same.
    pub(super) fn series(&self) -> [u8; 32] {
        let is_delta = self.base_number.is_some();
        let parts = (&self.issuer, &self.authority_key_id, &self.scope, is_delta);
        let bytes = postcard::to_stdvec(&parts).expect("these have an encoding");
        Sha256::digest(bytes).into()
    }

    /// By name, key identifier and key usage; the signature is apart.
    pub(super) fn may_be_signed_by(&self, certificate: &Certificate) -> bool {
        let named = self.issuer == certificate.subject_name && !self.issuer.is_empty();
        let same_key = match (&self.authority_key_id, &certificate.extensions.subject_key_id) {
            (Some(wanted), Some(own)) => wanted == own,
            _ => true,
        };
        named && same_key && certificate.extensions.may_sign_crls()
    }

    /// Whether this certificate's key signed it.
    pub(super) fn is_signed_by(&self, certificate: &Certificate) -> bool {
        self.may_be_signed_by(certificate) && self.signers.contains(&certificate.key_sha256)
    }

    /// The same issuer, key and scope: of such lists only the newest says anything.
    pub(super) fn is_of_series(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.signers == other.signers && self.scope == other.scope
    }

    /// Whether this delta changes this list, or an older one of the series (5.2.4), and is valid now.
    pub(super) fn may_remove_from(&self, list: &Self, at: Time) -> bool {
        let by_size = |number: &[u8]| (number.len(), number.to_vec());
        let base = self.base_number.as_deref().unwrap_or_default();
        let is_of_list = list.number.as_deref().is_some_and(|of| by_size(base) <= by_size(of));
        is_of_list && self.authority_key_id == list.authority_key_id && at <= self.next_update
    }

    /// Newer lists are greater: by number (5.2.3), then by date.
    pub(super) fn age(&self) -> (usize, &[u8], Time) {
        let number = self.number.as_deref().unwrap_or_default();
        (number.len(), number, self.this_update)
    }
}

impl CrlScope {
    fn from_point(point: &IssuingDistributionPoint, issuer: &CanonicalName) -> Self {
        Self {
            names: point.distribution_point.as_ref().map(|name| point_names(name, issuer)),
            users_only: point.only_contains_user_certs,
            cas_only: point.only_contains_ca_certs,
            attributes_only: point.only_contains_attribute_certs,
            is_indirect: point.indirect_crl,
            reasons: point.only_some_reasons.map_or(ALL_REASONS, |some| some.bits() & ALL_REASONS),
        }
    }
}

/// The names of a distribution point, as bytes that are equal where the names are. A relative one
/// is relative to whoever issues the CRL (4.2.1.13).
pub(super) fn point_names(name: &DistributionPointName, issuer: &CanonicalName) -> Vec<Vec<u8>> {
    match name {
        DistributionPointName::FullName(names) => names.iter().filter_map(name_key).collect(),
        DistributionPointName::NameRelativeToCRLIssuer(rdn) => {
            vec![directory_key(&issuer.joined(rdn))]
        }
    }
}

pub(super) fn name_key(name: &GeneralName) -> Option<Vec<u8>> {
    match name {
        GeneralName::DirectoryName(name) => Some(directory_key(&CanonicalName::from_name(name))),
        other => other.to_der().ok(),
    }
}

pub(super) fn directory_key(name: &CanonicalName) -> Vec<u8> {
    [&b"\0"[..], &name.to_bytes()].concat()
}

/// Where the contents of an element are, of which only the header has to be there.
fn element(reader: &mut SliceReader<'_>, tag: Tag) -> der::Result<Range<usize>> {
    let header = Header::decode(reader)?;
    header.tag.assert_eq(tag)?;
    let start = position(reader)?;
    Ok(start..start + usize::try_from(header.length)?)
}

fn position(reader: &SliceReader<'_>) -> der::Result<usize> {
    usize::try_from(reader.position())
}
