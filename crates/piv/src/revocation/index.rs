//! A parsed CRL as bytes that are read whole: opening a million entries takes milliseconds, and
//! their signature was verified when the index was made.
//!
//! `TSCRLIX3`, the header's length, the header, the records, and a CRC-32 over all of it. The CRC
//! finds damage; who may write the file is for its folder to decide.

use std::io::{self, Read, Write};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::crl::{Crl, CrlFacts};
use super::entries::{CrlEntries, LONGEST_SERIAL, record_bytes};
use crate::name::CanonicalName;

/// The form of names is a part of the format.
const MAGIC: [u8; 8] = *b"TSCRLIX3";
/// Room for the issuers of a large indirect CRL.
const MOST_HEADER_BYTES: u32 = 1 << 24;
/// 30 bytes each at most: two gigabytes.
const MOST_ENTRIES: u64 = 1 << 26;
/// What is read at once stays in the processor's cache until it is summed up.
const PIECE_BYTES: usize = 1 << 18;

/// An index that cannot be used; its CRL can be read again.
#[derive(Debug, Error)]
pub enum BadIndex {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is cut short, or changed.
    #[error("it is damaged")]
    Damaged,
}

#[derive(Serialize, Deserialize)]
struct Header {
    crl_sha256: [u8; 32],
    facts: CrlFacts,
    issuers: Vec<CanonicalName>,
    /// Of the serial numbers, in bytes.
    longest: u8,
    entries: u64,
}

impl Crl {
    /// Writes the index of a CRL whose encoding has this digest.
    pub(super) fn write_index(&self, crl_sha256: [u8; 32], to: &mut dyn Write) -> io::Result<()> {
        let header = Header {
            crl_sha256,
            facts: self.facts.clone(),
            issuers: self.entries.issuers.clone(),
            longest: self.entries.longest as u8,
            entries: self.entries.len() as u64,
        };
        let header = postcard::to_stdvec(&header).map_err(io::Error::other)?;
        let length = (header.len() as u32).to_be_bytes();
        let mut sum = Hasher::new();
        for part in [&MAGIC[..], &length, &header, self.entries.bytes()] {
            sum.update(part);
            to.write_all(part)?;
        }
        to.write_all(&sum.finalize().to_be_bytes())
    }

    /// Reads an index, with the digest of the CRL that it was made of.
    pub(super) fn read_index(from: &mut dyn Read) -> Result<(Self, [u8; 32]), BadIndex> {
        let mut start = [0; 12];
        from.read_exact(&mut start)?;
        let length = u32::from_be_bytes([start[8], start[9], start[10], start[11]]);
        if start[..8] != MAGIC || length > MOST_HEADER_BYTES {
            return Err(BadIndex::Damaged);
        }
        let mut sum = Hasher::new();
        sum.update(&start);
        let header = read_summed(from, length as usize, &mut sum)?;
        let header: Header = postcard::from_bytes(&header).map_err(|_| BadIndex::Damaged)?;
        let longest = usize::from(header.longest);
        if header.entries > MOST_ENTRIES || longest > LONGEST_SERIAL {
            return Err(BadIndex::Damaged);
        }
        let length = header.entries as usize * record_bytes(longest);
        let records = read_summed(from, length, &mut sum)?;
        let mut told = [0; 4];
        from.read_exact(&mut told)?;
        if sum.finalize().to_be_bytes() != told || from.read(&mut [0])? != 0 {
            return Err(BadIndex::Damaged);
        }
        let entries = CrlEntries::from_index(header.issuers, longest, records);
        Ok((Self { facts: header.facts, entries }, header.crl_sha256))
    }
}

/// So many bytes. Room for them is taken as they come: a length that lies costs nothing.
fn read_summed(from: &mut dyn Read, length: usize, sum: &mut Hasher) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    while bytes.len() < length {
        let start = bytes.len();
        bytes.resize(length.min(start + PIECE_BYTES), 0);
        from.read_exact(&mut bytes[start..])?;
        sum.update(&bytes[start..]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::crl::CrlScope;
    use super::*;
    use crate::time::Time;

    fn own() -> CanonicalName {
        CanonicalName::from_name(&Default::default())
    }

    /// Of a list without entries that are looked at.
    fn header(longest: u8, entries: u64) -> Vec<u8> {
        let facts = CrlFacts {
            issuer: own(),
            issuer_text: String::new(),
            authority_key_id: None,
            this_update: Time(1),
            next_update: Time(2),
            number: None,
            base_number: None,
            scope: CrlScope::default(),
            signers: Vec::new(),
        };
        let header = Header { crl_sha256: [7; 32], facts, issuers: vec![own()], longest, entries };
        postcard::to_stdvec(&header).unwrap()
    }

    /// An index with these parts, and a sum that is right.
    fn index(magic: [u8; 8], length: u32, behind: &[u8]) -> Vec<u8> {
        let mut bytes = [&magic[..], &length.to_be_bytes(), behind].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn with_header(magic: [u8; 8], header: &[u8], records: &[u8]) -> Vec<u8> {
        index(magic, header.len() as u32, &[header, records].concat())
    }

    fn is_damaged(bytes: &[u8]) -> Result<bool, BadIndex> {
        match Crl::read_index(&mut &*bytes) {
            Ok(_) => Ok(false),
            Err(BadIndex::Damaged) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The sum is right in all of them: an index of another format, and lengths that lie.
    #[test]
    fn what_is_no_index_is_known_before_it_is_read() {
        let good = header(21, 0);
        assert!(!is_damaged(&with_header(MAGIC, &good, &[])).unwrap());
        assert!(is_damaged(&with_header(*b"TSCRLIX2", &good, &[])).unwrap());
        let lies = |length| index(MAGIC, length, &[]);
        assert!(is_damaged(&lies(MOST_HEADER_BYTES + 1)).unwrap());
        assert!(is_damaged(&lies(u32::MAX)).unwrap());
        // A header may be as long as this, and this one is not there.
        assert!(matches!(is_damaged(&lies(MOST_HEADER_BYTES)), Err(BadIndex::Read(_))));
        let other = index(*b"TSCRLIX2", MOST_HEADER_BYTES, &[]);
        assert!(is_damaged(&other).unwrap());
        assert!(is_damaged(&with_header(MAGIC, &header(22, 0), &[])).unwrap());
        let many = |entries| with_header(MAGIC, &header(0, entries), &[]);
        assert!(is_damaged(&many(MOST_ENTRIES + 1)).unwrap());
        assert!(is_damaged(&many(u64::MAX)).unwrap());
        assert!(matches!(is_damaged(&many(MOST_ENTRIES)), Err(BadIndex::Read(_))));
        let behind = [&with_header(MAGIC, &good, &[])[..], &[0]].concat();
        assert!(is_damaged(&behind).unwrap(), "something follows it");
    }

    /// Larger than what is read at once, and with the longest serial numbers.
    #[test]
    fn records_are_read_as_they_were_written() {
        let records: Vec<u8> = (0..30 * 20_000_u32).map(|place| (place % 251) as u8).collect();
        let bytes = with_header(MAGIC, &header(21, 20_000), &records);
        let (crl, digest) = Crl::read_index(&mut &bytes[..]).unwrap();
        assert_eq!((crl.entries.len(), crl.entries.longest, digest), (20_000, 21, [7; 32]));
        assert!(crl.entries.bytes() == records);
        let mut again = Vec::new();
        crl.write_index(digest, &mut again).unwrap();
        assert!(again == bytes);
    }
}
