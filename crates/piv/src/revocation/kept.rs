//! The list of a CRL that was seen before: out of its index, and the CRL itself is only hashed.
//!
//! A large CRL is never held: memory that is touched for the first time costs more than the hashing
//! of what it would hold. Its two ends are read first, which say whose it is and so which index is
//! to be read; while that is read, another thread reads all of the CRL, and takes the ends from it
//! once more, so that the digest is of the very bytes that said whose it is.

use std::io::{self, Read, Seek, SeekFrom};

use aws_lc_rs::digest::{Context, SHA256};

use super::crl::{CrlFacts, CrlFront, NotACrl, decoded, is_pem};
use super::{IndexedList, RevocationList};

/// What stands in front of the entries must end before.
const START_BYTES: u64 = 1 << 16;
/// What stands behind them: extensions and a signature.
const MOST_BEHIND_BYTES: usize = 1 << 20;
/// Of a file in PEM, which is held.
const MOST_PEM_BYTES: u64 = 1 << 29;

/// A CRL by its digest, and the list that is kept of its series.
#[derive(Debug)]
pub struct KeptCrl {
    /// By what its index is kept: issuer, key, and what it is about. A newer list of the same series
    /// has the same.
    pub series: [u8; 32],
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// What the index has, of this CRL or of another one of the series.
    pub index: Option<IndexedList>,
}

impl KeptCrl {
    /// Reads a CRL, and what there is of its series. An index that is damaged is none.
    ///
    /// # Errors
    /// When it cannot be read, is no CRL that can be used, or changes while it is read.
    pub fn open<I: Read>(
        crl: &mut (impl Read + Seek + Send),
        index: impl FnOnce([u8; 32]) -> Option<I>,
    ) -> Result<Self, NotACrl> {
        let series = ends(&mut Skipped(&mut *crl))?.series();
        crl.rewind().map_err(unread)?;
        let mut all = Hashed { crl, context: Context::new(&SHA256) };
        let (read, index) = std::thread::scope(|scope| {
            let spawned = std::thread::Builder::new().spawn_scoped(scope, || ends(&mut all));
            let read = spawned
                .map_err(|error| NotACrl(format!("no thread can be had to read it: {error}")))?;
            let index =
                index(series).and_then(|mut from| RevocationList::read_index(&mut from).ok());
            Ok((read.join().expect("what is read from others makes no panic"), index))
        })?;
        if read?.series() != series {
            return Err(NotACrl("it changed while it was read".to_owned()));
        }
        let digest = all.context.finish();
        let sha256 = digest.as_ref().try_into().expect("SHA-256 has 32 bytes");
        Ok(Self { series, sha256, index })
    }
}

/// A CRL from its beginning, with a way past its entries.
trait CrlFile: Read {
    fn skip(&mut self, bytes: u64) -> io::Result<()>;

    /// Comes when all that is looked at was read.
    fn finish(&mut self) -> io::Result<()>;
}

/// Does not read what it passes.
struct Skipped<'a, C>(&'a mut C);

impl<C: Read> Read for Skipped<'_, C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<C: Read + Seek> CrlFile for Skipped<'_, C> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = i64::try_from(bytes).map_err(io::Error::other)?;
        self.0.seek(SeekFrom::Current(bytes)).map(|_| ())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hashes all that it reads or passes.
struct Hashed<'a, C> {
    crl: &'a mut C,
    context: Context,
}

impl<C: Read> Read for Hashed<'_, C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.crl.read(buffer)?;
        self.context.update(&buffer[..count]);
        Ok(count)
    }
}

impl<C: Read> CrlFile for Hashed<'_, C> {
    fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        // It stays in the processor's cache.
        let mut piece = [0; START_BYTES as usize];
        while bytes > 0 {
            let most = bytes.min(START_BYTES) as usize;
            match self.read(&mut piece[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes -= count as u64,
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let behind = io::copy(&mut self.take(START_BYTES), &mut io::sink())?;
        match behind < START_BYTES {
            true => Ok(()),
            false => Err(io::Error::other("something else stands behind it")),
        }
    }
}

/// What a CRL says in front of and behind its entries.
fn ends(crl: &mut impl CrlFile) -> Result<CrlFacts, NotACrl> {
    let mut start = Vec::new();
    crl.take(START_BYTES).read_to_end(&mut start).map_err(unread)?;
    if is_pem(&start) {
        crl.take(MOST_PEM_BYTES).read_to_end(&mut start).map_err(unread)?;
        start = decoded(&start)?.into_owned();
    }
    let front = CrlFront::read(&start).map_err(|error| NotACrl(error.to_string()))?;
    let wanted = front.end - front.entries.end;
    if wanted > MOST_BEHIND_BYTES {
        return Err(NotACrl("more stands behind its entries than belongs there".to_owned()));
    }
    let mut behind = start.get(front.entries.end..).unwrap_or_default().to_vec();
    let passed = front.entries.end.saturating_sub(start.len());
    let missing = wanted.saturating_sub(behind.len());
    crl.skip(passed as u64).map_err(unread)?;
    crl.take(missing as u64).read_to_end(&mut behind).map_err(unread)?;
    crl.finish().map_err(unread)?;
    behind.truncate(wanted);
    front.facts(&behind)
}

fn unread(error: io::Error) -> NotACrl {
    NotACrl(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use der::{Encode, Length};

    use super::super::crl_digest;
    use super::*;

    /// Somebody writes into it between its two readings: the second one has another name.
    struct Changing {
        crl: Cursor<Vec<u8>>,
        other: Vec<u8>,
    }

    impl Read for Changing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.crl.read(buffer)
        }
    }

    impl Seek for Changing {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            if to == SeekFrom::Start(0) {
                *self.crl.get_mut() = std::mem::take(&mut self.other);
            }
            self.crl.seek(to)
        }
    }

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = Length::try_from(content.len()).unwrap().to_der().unwrap();
        [&[tag][..], &length, content].concat()
    }

    /// By a CA of a one-letter name, with so many bytes of entries and a number.
    fn crl(name: u8, entries: usize) -> Vec<u8> {
        let algorithm = [0x30, 10, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2];
        let name = [0x30, 12, 0x31, 10, 0x30, 8, 6, 3, 0x55, 4, 3, 0x0C, 1, name];
        let date = b"\x17\x0D260101000000Z";
        let number = [0x30, 12, 0x30, 10, 6, 3, 0x55, 0x1D, 0x14, 4, 3, 2, 1, 7];
        let head = [&[2, 1, 1][..], &algorithm, &name, date, date].concat();
        let body = [head, element(0x30, &vec![0; entries]), element(0xA0, &number)].concat();
        let signature = element(3, &[0; 71]);
        element(0x30, &[element(0x30, &body), algorithm.to_vec(), signature].concat())
    }

    fn open(bytes: &[u8]) -> Result<KeptCrl, NotACrl> {
        KeptCrl::open(&mut Cursor::new(bytes), |_| None::<&[u8]>)
    }

    #[test]
    fn a_crl_is_hashed_whole_and_known_by_its_ends() {
        for entries in [0, 1, 1000, 65_400, 65_536, 1_000_000] {
            let bytes = crl(b'A', entries);
            let kept = open(&bytes).unwrap();
            assert_eq!(kept.sha256, crl_digest(&bytes), "{entries}");
            assert_eq!(kept.series, open(&crl(b'A', 5)).unwrap().series);
            assert_ne!(kept.series, open(&crl(b'B', entries)).unwrap().series);
            // The digest is of the file, and so of what follows the list, too.
            let longer = [&bytes[..], b"\n"].concat();
            assert_eq!(open(&longer).unwrap().sha256, crl_digest(&longer));
            assert!(open(&[&bytes[..], &[0; 1 << 17]].concat()).is_err());
            for cut in [1, 40, 100] {
                assert!(open(&bytes[..bytes.len() - cut]).is_err(), "{entries} {cut}");
            }
        }
    }

    #[test]
    fn a_crl_in_pem_is_of_the_same_series() {
        let der = crl(b'A', 100_000);
        let pem = der::pem::encode_string("X509 CRL", der::pem::LineEnding::LF, &der).unwrap();
        let kept = open(pem.as_bytes()).unwrap();
        assert_eq!(kept.series, open(&der).unwrap().series);
        assert_eq!(kept.sha256, crl_digest(pem.as_bytes()));
    }

    #[test]
    fn a_crl_that_changes_while_it_is_read_is_refused() {
        let mut file = Changing { crl: Cursor::new(crl(b'A', 9)), other: crl(b'B', 9) };
        let refused = KeptCrl::open(&mut file, |_| None::<&[u8]>).unwrap_err();
        assert!(refused.to_string().contains("it changed while it was read"), "{refused}");
    }

    /// The same, with other elements in place of the entries, and with these extensions.
    fn crl_of(entries: &[u8], extensions: &[u8]) -> Vec<u8> {
        let algorithm = [0x30, 10, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2];
        let name = [0x30, 12, 0x31, 10, 0x30, 8, 6, 3, 0x55, 4, 3, 0x0C, 1, b'A'];
        let date = b"\x17\x0D260101000000Z";
        let head = [&[2, 1, 1][..], &algorithm, &name, date, date].concat();
        let body = [&head, entries, extensions].concat();
        let signature = element(3, &[0; 71]);
        element(0x30, &[element(0x30, &body), algorithm.to_vec(), signature].concat())
    }

    /// A megabyte may stand behind the entries: extensions, algorithm and signature.
    #[test]
    fn so_much_stands_behind_the_entries_and_no_more() {
        // An extension that nobody knows, which is not critical.
        let padded = |bytes: usize| {
            let unknown = [&[6, 3, 0x2A, 3, 4][..], &element(4, &vec![0; bytes])].concat();
            let all = element(0xA0, &element(0x30, &element(0x30, &unknown)));
            (crl_of(&element(0x30, &[]), &all), all.len() + 12 + 73)
        };
        let beside = padded(MOST_BEHIND_BYTES - 1000).1 - (MOST_BEHIND_BYTES - 1000);
        let most = MOST_BEHIND_BYTES - beside;
        assert_eq!(padded(most).1, MOST_BEHIND_BYTES);
        open(&padded(most).0).unwrap();
        for more in [1, 2, 5000] {
            let refused = open(&padded(most + more).0).unwrap_err().to_string();
            assert!(refused.contains("more stands behind its entries"), "{refused}");
        }
    }

    /// Elements that end behind what they lie in.
    #[test]
    fn lengths_that_lie_are_refused() {
        // Entries of a thousand bytes, of which nine are there, and then some that are there whole.
        for entries in [&[0x30, 0x82, 3, 0xE8][..], &[0x30, 0x7F]] {
            let bytes = crl_of(&[entries, &[0; 9]].concat(), &[]);
            assert!(open(&bytes).is_err());
            // What follows the list makes the entries end before the end of the file.
            assert!(open(&[&bytes[..], &[0; 2000]].concat()).is_err());
        }
        // The whole says that it is shorter than its signed part; and so much shorter that it ends
        // in front of the entries.
        let whole = crl(b'A', 300);
        assert_eq!(whole[..2], [0x30, 0x82]);
        for length in [330_u16, 310, 40, 0] {
            let mut bytes = whole.clone();
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            assert!(open(&bytes).is_err(), "{length}");
        }
    }
}
