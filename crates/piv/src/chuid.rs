//! The card holder unique identifier: SP 800-73-5 part 1, 3.1.2; FIPS 201-3, 4.2.1.

use std::fmt;
use std::sync::Arc;

use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{ObjectIdentifier, OctetStringRef};
use der::{Decode, Encode};
use serde::{Deserialize, Serialize};
use tapstone_apdu::tlv;

use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::key::HashFunction;
use crate::object;
use crate::time::Time;

/// FASC-N, organisation, DUNS, GUID and expiration date end within so many bytes of the content.
pub(crate) const START: usize = 61;

const FASC_N: u8 = 0x30;
const GUID: u8 = 0x34;
const EXPIRATION: u8 = 0x35;
const SIGNATURE: u8 = 0x3E;
const ERROR_DETECTION: u8 = 0xFE;

/// The message-digest attribute (RFC 5652, 11.2).
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");

/// The content-type attribute (RFC 5652, 11.1), and what it says of a CHUID (FIPS 201-3, 4.2.1).
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const CHUID_SECURITY_OBJECT: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.6.1");

/// What identifies a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardIdentity {
    /// The FASC-N, 25 bytes.
    pub fasc_n: Option<Vec<u8>>,
    /// The GUID of the CHUID, the UUID of a certificate.
    pub uuid: Option<[u8; 16]>,
}

impl CardIdentity {
    /// FASC-N and UUID from the subject alternative name of a certificate, as they stand there.
    pub(crate) fn from_certificate(certificate: &Certificate) -> Self {
        let extensions = &certificate.extensions;
        Self { fasc_n: extensions.fasc_n.clone(), uuid: extensions.uuid }
    }

    /// What of it identifies somebody. Agency 9999 is that of all PIV-I cards (FIPS 201-3, 4.2.1;
    /// the PIV-I profile), and a GUID of zeros nobody's.
    pub(crate) fn identifying(&self) -> Self {
        Self {
            fasc_n: self.fasc_n.clone().filter(|fasc_n| !is_of_no_agency(fasc_n)),
            uuid: self.uuid.filter(|uuid| *uuid != [0; 16]),
        }
    }

    /// The same, where there is any.
    pub(crate) fn proven(&self) -> Result<Self, Denial> {
        match self.identifying() {
            Self { fasc_n: None, uuid: None } => Err(Denial::NoIdentifier),
            own => Ok(own),
        }
    }

    /// Whether certificate and CHUID are of one card: whatever the certificate has must be the
    /// CHUID's. Older certificates have no UUID.
    pub(crate) fn is_of(&self, chuid: &Chuid) -> Result<(), Denial> {
        if self.fasc_n.is_some() && self.fasc_n != chuid.identity.fasc_n {
            return Err(Denial::FascNMismatch);
        }
        if self.uuid.is_some() && self.uuid != chuid.identity.uuid {
            return Err(Denial::UuidMismatch);
        }
        Ok(())
    }
}

/// Start sentinel and agency code 9999, in 5 bits a digit: 11010 10011 10011 10011 10011.
fn is_of_no_agency(fasc_n: &[u8]) -> bool {
    matches!(fasc_n, [0xD4, 0xE7, 0x39, next, ..] if next & 0x80 != 0)
}

/// The UUID as RFC 9562 writes it; without one the FASC-N in hexadecimal.
impl fmt::Display for CardIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.uuid, &self.fasc_n) {
            (Some(uuid), _) => {
                let digits = hex::encode(uuid);
                let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20]];
                write!(f, "{}-{}", parts.join("-"), &digits[20..])
            }
            (None, Some(fasc_n)) => write!(f, "FASC-N {}", hex::encode_upper(fasc_n)),
            (None, None) => f.write_str("nobody"),
        }
    }
}

/// A CHUID, or its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chuid {
    /// Whose card it is.
    pub identity: CardIdentity,
    /// The last second of its last day.
    pub expires: Time,
    /// Everything that the signature covers; empty of a start.
    signed: Vec<u8>,
    /// The CMS signature; empty of a start.
    signature: Vec<u8>,
}

impl Chuid {
    /// The whole object as GET DATA brings it.
    ///
    /// # Errors
    /// When it is no CHUID with FASC-N, GUID and expiration date.
    pub fn parse(response: &[u8]) -> Result<Self, Denial> {
        let content = object::CHUID.content(response)?;
        let elements = tlv::elements(content)
            .ok_or_else(|| object::CHUID.malformed("its elements have wrong lengths"))?;
        let mut chuid = Self::from_elements(&elements)?;
        let mut end = 0;
        for (tag, value) in &elements {
            let start = end;
            end = value.as_ptr() as usize - content.as_ptr() as usize + value.len();
            match *tag {
                SIGNATURE => chuid.signature = value.to_vec(),
                // As the card has them: the signature is over these bytes.
                _ => chuid.signed.extend_from_slice(&content[start..end]),
            }
        }
        // SP 800-73-5 part 1, 3.1.2: the error detection code is the last element, and empty.
        if elements.last() != Some(&(ERROR_DETECTION, &[])) {
            return Err(object::CHUID.malformed("it does not end with FE 00"));
        }
        Ok(chuid)
    }

    /// The object's start, which holds all but the signature.
    ///
    /// # Errors
    /// When FASC-N, GUID and expiration date are not in it.
    pub fn parse_start(response: &[u8]) -> Result<Self, Denial> {
        let cut = || object::CHUID.malformed("its start does not hold FASC-N, GUID and date");
        // 53 and its length: short, or one or two bytes after 81 or 82.
        let header = match response {
            [0x53, 0x82, ..] => 4,
            [0x53, 0x81, ..] => 3,
            [0x53, ..] => 2,
            _ => return Err(cut()),
        };
        let mut rest = response.get(header..).ok_or_else(cut)?;
        let mut elements = Vec::with_capacity(8);
        while let [tag, length @ 0..=0x7F, after @ ..] = rest {
            let Some((value, more)) = after.split_at_checked(usize::from(*length)) else { break };
            elements.push((*tag, value));
            rest = more;
        }
        Self::from_elements(&elements)
    }

    fn from_elements(elements: &[(u8, &[u8])]) -> Result<Self, Denial> {
        // One of two would be compared, and the other one perhaps believed.
        let count = |tag| elements.iter().filter(|(of, _)| *of == tag).count();
        if [FASC_N, GUID, EXPIRATION, SIGNATURE].iter().any(|tag| count(*tag) > 1) {
            return Err(object::CHUID.malformed("an element is there twice"));
        }
        let find = |tag| elements.iter().find(|(of, _)| *of == tag).map(|(_, value)| *value);
        let missing = |what: &str| object::CHUID.malformed(&format!("{what} is missing"));
        let fasc_n = find(FASC_N).filter(|value| value.len() == 25);
        let guid = find(GUID).and_then(|value| value.try_into().ok());
        let expires = find(EXPIRATION).and_then(Time::end_of_day);
        Ok(Self {
            identity: CardIdentity {
                fasc_n: Some(fasc_n.ok_or_else(|| missing("the FASC-N"))?.to_vec()),
                uuid: Some(guid.ok_or_else(|| missing("the GUID"))?),
            },
            expires: expires.ok_or_else(|| missing("the expiration date"))?,
            signed: Vec::new(),
            signature: Vec::new(),
        })
    }

    pub(crate) fn in_time(&self, at: Time) -> Result<(), Denial> {
        match at > self.expires {
            true => Err(Denial::ChuidExpired { until: self.expires, at }),
            false => Ok(()),
        }
    }

    /// Checks the signature; the certificate of its signer, still to be validated.
    ///
    /// # Errors
    /// When it is not signed, or not by the certificate that is in it.
    pub fn signer(&self) -> Result<Arc<Certificate>, Denial> {
        let wrong = |why: &str| Denial::ChuidSignature { why: why.to_owned() };
        let data = signed_data(&self.signature).ok_or_else(|| wrong("it is no CMS SignedData"))?;
        let [signer] = data.signer_infos.0.as_slice() else {
            return Err(wrong("it has not one signer"));
        };
        let certificate = certificate(&data, signer)
            .ok_or_else(|| wrong("the signer's certificate is missing"))?;
        let hash = HashFunction::by_oid(&signer.digest_alg.oid)
            .ok_or_else(|| wrong("its hash function is not supported"))?;
        let digest = hash.digest(&self.signed);
        if data.encap_content_info.econtent_type != CHUID_SECURITY_OBJECT {
            return Err(wrong("it is the signature of something else"));
        }
        // RFC 5652, 5.3: of such content the attributes are signed.
        let attributes =
            signer.signed_attrs.as_ref().ok_or_else(|| wrong("it has no signed attributes"))?;
        let attribute = |oid| {
            let mut of_kind = attributes.iter().filter(move |attribute| attribute.oid == oid);
            of_kind.next().filter(|_| of_kind.next().is_none()).and_then(|one| one.values.get(0))
        };
        let told = attribute(MESSAGE_DIGEST)
            .and_then(|value| value.decode_as::<OctetStringRef<'_>>().ok());
        if told.is_none_or(|told| told.as_bytes() != digest) {
            return Err(wrong("the CHUID is not the one that was signed"));
        }
        let kind =
            attribute(CONTENT_TYPE).and_then(|value| value.decode_as::<ObjectIdentifier>().ok());
        if kind != Some(CHUID_SECURITY_OBJECT) {
            return Err(wrong("its attributes are those of something else"));
        }
        let message = attributes.to_der().map_err(|_| wrong("its attributes cannot be read"))?;
        let key = certificate.key().ok_or_else(|| wrong("the signer's key is not supported"))?;
        key.verify(&signer.signature_algorithm, Some(hash), &message, signer.signature.as_bytes())
            .map_err(|_| wrong("it is not the signer's"))?;
        Ok(Arc::new(certificate))
    }
}

/// CMS with signatures, or with certificates alone (RFC 5652, 5).
pub(crate) fn signed_data(der: &[u8]) -> Option<SignedData> {
    ContentInfo::from_der(der).ok()?.content.decode_as::<SignedData>().ok()
}

fn certificate(data: &SignedData, signer: &SignerInfo) -> Option<Certificate> {
    let certificates = data.certificates.as_ref()?.0.iter().filter_map(|choice| match choice {
        CertificateChoices::Certificate(certificate) => {
            Certificate::from_der(certificate.to_der().ok()?).ok()
        }
        CertificateChoices::Other(_) => None,
    });
    let mut of_signer = certificates.filter(|certificate| match &signer.sid {
        SignerIdentifier::IssuerAndSerialNumber(named) => {
            named.issuer == *certificate.issuer_dn()
                && named.serial_number == *certificate.serial_number()
        }
        SignerIdentifier::SubjectKeyIdentifier(id) => {
            certificate.extensions.subject_key_id.as_deref() == Some(id.0.as_bytes())
        }
    });
    of_signer.next()
}
