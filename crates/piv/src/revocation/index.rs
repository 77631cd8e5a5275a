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
