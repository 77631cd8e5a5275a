//! PIV data objects (SP 800-73-5 part 1, section 3 and appendix A).

use std::io::Read;

use der::asn1::ObjectIdentifier;
use tapstone_apdu::tlv;

use crate::denial::Denial;

/// id-fpki-common-cardAuth (FIPS 201-3, 4.2.2.2): the policy of card authentication certificates.
pub const CARD_AUTHENTICATION_POLICY: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.2.1.3.17");

/// The application's full name (part 1, 2.2).
pub(crate) const APPLICATION: [u8; 11] = [0xA0, 0, 0, 3, 8, 0, 0, 0x10, 0, 1, 0];

/// Room for any certificate in gzip: a card's container has 1856 bytes for it (part 1, table 8),
/// which it may be several times once it is decompressed.
const MOST_CERTIFICATE: usize = 16_384;

/// A data object by its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataObject {
    pub(crate) tag: [u8; 3],
    pub(crate) name: &'static str,
}

pub(crate) const CHUID: DataObject = DataObject { tag: [0x5F, 0xC1, 0x02], name: "CHUID" };
pub(crate) const CARD_AUTHENTICATION: DataObject =
    DataObject { tag: [0x5F, 0xC1, 0x01], name: "certificate for card authentication" };
pub(crate) const PIV_AUTHENTICATION: DataObject =
    DataObject { tag: [0x5F, 0xC1, 0x05], name: "certificate for PIV authentication" };

impl DataObject {
    /// What is inside tag 53.
    pub(crate) fn content<'a>(&self, response: &'a [u8]) -> Result<&'a [u8], Denial> {
        tlv::only(0x53, response)
            .ok_or_else(|| self.malformed("what comes is not one whole element with tag 53"))
    }

    pub(crate) fn malformed(&self, why: &str) -> Denial {
        Denial::Malformed { what: self.name.to_owned(), why: why.to_owned() }
    }

    /// The certificate in a certificate object: 70, with 71 that says how it is stored.
    pub(crate) fn certificate(&self, response: &[u8]) -> Result<Vec<u8>, Denial> {
        let elements = tlv::elements(self.content(response)?)
            .ok_or_else(|| self.malformed("its elements have wrong lengths"))?;
        let find = |tag| elements.iter().find(|(of, _)| *of == tag).map(|(_, value)| *value);
        let stored = match find(0x70) {
            Some([]) | None => return Err(self.malformed("there is no certificate in it")),
            Some(stored) => stored,
        };
        // CertInfo, bit 1.
        match find(0x71).and_then(<[u8]>::first).is_some_and(|info| info & 1 != 0) {
            true => decompressed(stored),
            false => Ok(stored.to_vec()),
        }
    }
}

/// A certificate in gzip; whatever more it is, it ends at the bound.
fn decompressed(stored: &[u8]) -> Result<Vec<u8>, Denial> {
    let denial = |why: &str| Denial::Compressed { why: why.to_owned() };
    let mut der = Vec::with_capacity(MOST_CERTIFICATE);
    let mut decoder = flate2::bufread::GzDecoder::new(stored).take(MOST_CERTIFICATE as u64 + 1);
    decoder.read_to_end(&mut der).map_err(|error| denial(&error.to_string()))?;
    if der.len() > MOST_CERTIFICATE {
        return Err(denial("it has more than 16384 bytes"));
    }
    match decoder.into_inner().into_inner().is_empty() {
        true => Ok(der),
        false => Err(denial("something follows it")),
    }
}
