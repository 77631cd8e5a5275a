//! What a CRL lists, sorted and of fixed width: a million of them, with serial numbers of 16 bytes,
//! take 25 MB and twenty comparisons.

use std::collections::HashMap;

use der::{Decode, Header, Reader, SliceReader, Tag};
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::CrlReason;
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames};

use crate::name::CanonicalName;
use crate::time::Time;

/// The longest INTEGER of a serial number: 20 bytes (RFC 5280, 4.1.2.2), and one of sign.
pub(super) const LONGEST_SERIAL: usize = 21;
/// 2 bytes of issuer and one of length are in front of a serial number.
const SERIAL: usize = 3;
/// 5 of date and one of reason are behind it.
const BEHIND_BYTES: usize = 6;
/// A record with room for the longest serial number; in a list they have only as much as its own
/// longest one needs.
const RECORD_BYTES: usize = SERIAL + LONGEST_SERIAL + BEHIND_BYTES;

/// certificateIssuer and reasonCode (RFC 5280, 5.3.3 and 5.3.1), and invalidityDate, which nothing
/// here asks for.
const CERTIFICATE_ISSUER: der::asn1::ObjectIdentifier =
    der::asn1::ObjectIdentifier::new_unwrap("2.5.29.29");
const REASON_CODE: der::asn1::ObjectIdentifier =
    der::asn1::ObjectIdentifier::new_unwrap("2.5.29.21");
const INVALIDITY_DATE: der::asn1::ObjectIdentifier =
    der::asn1::ObjectIdentifier::new_unwrap("2.5.29.24");

/// removeFromCRL: only in deltas.
const REMOVE: u8 = CrlReason::RemoveFromCRL as u8;

type Record = [u8; RECORD_BYTES];

/// What a list says of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Revoked(Time),
    /// A delta takes it from the list that it changes.
    Removed,
}

/// The entries of a CRL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CrlEntries {
    /// Of an indirect CRL the issuers of the certificates; of others its own.
    pub(super) issuers: Vec<CanonicalName>,
    /// Of its serial numbers, in bytes.
    pub(super) longest: usize,
    /// The records, one after the other.
    bytes: Vec<u8>,
}

impl CrlEntries {
    /// From the contents of revokedCertificates.
    pub(super) fn read(content: &[u8], own: CanonicalName) -> Result<Self, String> {
        let error = |error: der::Error| error.to_string();
        let mut issuers = vec![own.clone()];
        let mut records: Vec<Record> = Vec::with_capacity(count(content).map_err(error)?);
        let mut numbers = HashMap::from([(own, 0_u16)]);
        let mut issuer = 0;
        let mut longest = 0;
        let mut reader = SliceReader::new_or_empty(content);
        while let Some(entries_reader) = reader.as_mut().filter(|reader| !reader.is_finished()) {
            let header = Header::decode(entries_reader).map_err(error)?;
            header.tag.assert_eq(Tag::Sequence).map_err(error)?;
            let entry = entries_reader.read_slice(header.length).map_err(error)?;
            let mut entry = SliceReader::new(entry).map_err(error)?;
            let serial = serial_content(&mut entry).map_err(error)?;
            let date: Time = x509_cert::time::Time::decode(&mut entry).map_err(error)?.into();
            let mut reason = 0;
            if !entry.is_finished() {
                let extensions = Extensions::decode(&mut entry).map_err(error)?;
                let told = EntryExtensions::read(&extensions)?;
                reason = told.reason;
                if let Some(of) = told.issuer {
                    let next = issuers.len();
                    issuer = *numbers.entry(of.clone()).or_insert(
                        u16::try_from(next).map_err(|_| "more issuers than are counted")?,
                    );
                    if usize::from(issuer) == next {
                        issuers.push(of);
                    }
                }
            }
            if !entry.is_finished() {
                return Err("an entry has more parts than there are".to_owned());
            }
            longest = longest.max(serial.len());
            let mut record = key(issuer, serial).ok_or("a serial number is too long")?;
            let behind = &mut record[SERIAL + LONGEST_SERIAL..];
            behind[..5].copy_from_slice(&date.0.to_be_bytes()[3..]);
            behind[5] = reason;
            records.push(record);
        }
        records.sort_unstable();
        Ok(Self { issuers, longest, bytes: packed(records, longest) })
    }

    /// From an index, which has them sorted.
    pub(super) const fn from_index(
        issuers: Vec<CanonicalName>,
        longest: usize,
        bytes: Vec<u8>,
    ) -> Self {
        Self { issuers, longest, bytes }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len() / record_bytes(self.longest)
    }

    fn record(&self, place: usize) -> &[u8] {
        let bytes = record_bytes(self.longest);
        &self.bytes[place * bytes..][..bytes]
    }

    /// All records, as an index has them.
    pub(super) const fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// What it says of a serial number of this issuer.
    pub(super) fn find(
        &self,
        issuer: &CanonicalName,
        serial: &[u8],
        is_delta: bool,
    ) -> Option<Listed> {
        let number = self.issuers.iter().position(|one| one == issuer)?;
        if serial.len() > self.longest {
            return None;
        }
        let key_end = SERIAL + self.longest;
        let key = key(u16::try_from(number).ok()?, serial)?;
        let key = &key[..key_end];
        let first = self.first_not_below(key);
        let same = (first..self.len()).map(|place| self.record(place));
        let same = same.take_while(|record| record[..key_end] == *key);
        let listed = same.map(|record| {
            let mut date = [0; 8];
            date[3..].copy_from_slice(&record[key_end..key_end + 5]);
            match is_delta && record[key_end + 5] == REMOVE {
                true => Listed::Removed,
                false => Listed::Revoked(Time(u64::from_be_bytes(date))),
            }
        });
        // Of several entries the worst one counts.
        listed.reduce(|one, other| if one == Listed::Removed { other } else { one })
    }

    fn first_not_below(&self, key: &[u8]) -> usize {
        let mut low = 0;
        let mut high = self.len();
        while low < high {
            let middle = low.midpoint(high);
            match self.record(middle)[..key.len()] < *key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Of a list with this longest serial number.
pub(super) const fn record_bytes(longest: usize) -> usize {
    SERIAL + longest + BEHIND_BYTES
}

/// Without the room that no serial number needs.
fn packed(records: Vec<Record>, longest: usize) -> Vec<u8> {
    let count = records.len();
    let mut bytes = records.into_flattened();
    for place in 0..count {
        let from = place * RECORD_BYTES;
        let to = place * record_bytes(longest);
        let behind = from + SERIAL + LONGEST_SERIAL;
        bytes.copy_within(from..from + SERIAL + longest, to);
        bytes.copy_within(behind..behind + BEHIND_BYTES, to + SERIAL + longest);
    }
    bytes.truncate(count * record_bytes(longest));
    bytes
}

struct EntryExtensions {
    reason: u8,
    issuer: Option<CanonicalName>,
}

impl EntryExtensions {
    /// A critical one that is not known makes the whole list unusable (RFC 5280, 5.3).
    fn read(extensions: &Extensions) -> Result<Self, String> {
        let mut read = Self { reason: 0, issuer: None };
        for extension in extensions {
            let value = extension.extn_value.as_bytes();
            match extension.extn_id {
                REASON_CODE => {
                    let reason = CrlReason::from_der(value).map_err(|error| error.to_string())?;
                    read.reason = reason as u8;
                }
                CERTIFICATE_ISSUER => {
                    let names = GeneralNames::from_der(value).map_err(|error| error.to_string())?;
                    let name = names.iter().find_map(|name| match name {
                        GeneralName::DirectoryName(name) => Some(CanonicalName::from_name(name)),
                        _ => None,
                    });
                    read.issuer = Some(name.ok_or("an entry's certificateIssuer has no name")?);
                }
                INVALIDITY_DATE => {}
                other if extension.critical => {
                    return Err(format!("an entry has the critical extension {other}"));
                }
                _ => {}
            }
        }
        Ok(read)
    }
}

/// How many elements there are.
fn count(content: &[u8]) -> der::Result<usize> {
    let mut count = 0;
    let Some(mut reader) = SliceReader::new_or_empty(content) else { return Ok(0) };
    while !reader.is_finished() {
        let header = Header::decode(&mut reader)?;
        reader.read_slice(header.length)?;
        count += 1;
    }
    Ok(count)
}

/// The content octets of an INTEGER, as few as there can be (X.690, 8.3.2): certificates have no
/// others, and a list that writes one with more must not miss it.
fn serial_content<'a>(entry: &mut SliceReader<'a>) -> der::Result<&'a [u8]> {
    let header = Header::decode(entry)?;
    header.tag.assert_eq(Tag::Integer)?;
    let mut content = entry.read_slice(header.length)?;
    while let [0, 0..=0x7F, ..] | [0xFF, 0x80..=0xFF, ..] = content {
        content = &content[1..];
    }
    match content.is_empty() {
        true => Err(Tag::Integer.length_error()),
        false => Ok(content),
    }
}

/// A record with nothing but its key.
fn key(issuer: u16, serial: &[u8]) -> Option<Record> {
    let mut record = [0; RECORD_BYTES];
    record[..2].copy_from_slice(&issuer.to_be_bytes());
    record[2] = serial.len() as u8;
    record[SERIAL..SERIAL + LONGEST_SERIAL].get_mut(..serial.len())?.copy_from_slice(serial);
    Some(record)
}

/// An empty SEQUENCE has nothing to read, which is no error.
trait NewOrEmpty<'a>: Sized {
    fn new_or_empty(content: &'a [u8]) -> Option<Self>;
}

impl<'a> NewOrEmpty<'a> for SliceReader<'a> {
    fn new_or_empty(content: &'a [u8]) -> Option<Self> {
        Self::new(content).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with these content octets as its serial number.
    fn entry(serial: &[u8]) -> Vec<u8> {
        let date = b"\x17\x0D260101000000Z";
        let length = serial.len() as u8;
        let header = [0x30, 2 + length + date.len() as u8, 2, length];
        [&header[..], serial, date].concat()
    }

    fn read(serial: &[u8]) -> Result<CrlEntries, String> {
        CrlEntries::read(&entry(serial), CanonicalName::from_name(&Default::default()))
    }

    #[test]
    fn entries_are_found_whatever_their_lengths_and_however_many_there_are() {
        let own = CanonicalName::from_name(&Default::default());
        let serials: Vec<Vec<u8>> = (1..=21_u8)
            .flat_map(|length| [vec![1; length.into()], vec![9; length.into()]])
            .collect();
        for count in 0..=serials.len() {
            let listed = &serials[..count];
            let content: Vec<u8> = listed.iter().rev().flat_map(|serial| entry(serial)).collect();
            let entries = CrlEntries::read(&content, own.clone()).unwrap();
            let longest = listed.last().map_or(0, Vec::len);
            assert_eq!((entries.len(), entries.longest), (count, longest));
            assert_eq!(entries.bytes().len(), count * (longest + 9));
            let on = Listed::Revoked(Time(1_767_225_600));
            for (place, serial) in serials.iter().enumerate() {
                let wanted = (place < count).then_some(on);
                assert_eq!(entries.find(&own, serial, false), wanted, "{place} of {count}");
            }
            for other in [&[0][..], &[5], &[5; 7], &[0xA; 21], &[1; 22]] {
                assert_eq!(entries.find(&own, other, false), None);
            }
        }
    }

    #[test]
    fn serial_numbers_are_compared_as_numbers() {
        for (written, number) in [
            (&[7][..], &[7][..]),
            (&[0, 7], &[7]),
            (&[0, 0, 0, 0x7F], &[0x7F]),
            (&[0, 0x80], &[0, 0x80]),
            (&[0, 0, 0x80], &[0, 0x80]),
            (&[0, 0], &[0]),
            (&[0xFF, 0xFF], &[0xFF]),
            (&[0xFF, 0x80], &[0x80]),
            (&[0xFF, 0x7F], &[0xFF, 0x7F]),
        ] {
            let entries = read(written).unwrap();
            let own = &entries.issuers[0];
            assert!(entries.find(own, number, false).is_some(), "{written:02X?}");
            assert_eq!(entries.find(own, &[number, &[1]].concat(), false), None);
        }
        assert!(read(&[]).is_err());
        assert!(read(&[1; 21]).is_ok());
        assert!(read(&[1; 22]).is_err());
    }
}
