//! Reading what a user names, which may be anything: `/dev/zero` has no end.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// How many bytes a file of some kind may have. Each is many times what the largest real one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileLimit(u64);

impl FileLimit {
    /// Of a file that a person writes: suites, scenarios, profiles, configurations.
    pub const TOML: Self = Self::mebibytes(4);
    /// Of a credential or a certificate.
    pub const CREDENTIAL: Self = Self::mebibytes(4);
    /// Of a record. A run of ten thousand cases writes some 60 MB.
    pub const RECORD: Self = Self::mebibytes(1024);

    /// So many times 1,048,576 bytes.
    #[must_use]
    pub const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }
}

impl fmt::Display for FileLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0 >> 20)
    }
}

/// A file that is read as it comes. Beyond its limit reading fails: [`ErrorKind::FileTooLarge`].
#[derive(Debug)]
pub struct LimitedFile {
    file: File,
    limit: FileLimit,
    left: u64,
}

impl LimitedFile {
    /// Opens it.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn open(path: &Path, limit: FileLimit) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, limit, left: limit.0 })
    }
}

impl Read for LimitedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            let what = format!("it has more than {}, and no such file needs as much", self.limit);
            io::Error::new(ErrorKind::FileTooLarge, what)
        })?;
        Ok(count)
    }
}

/// All bytes of a file.
///
/// # Errors
/// When it cannot be read, or has more bytes than `limit`: [`ErrorKind::FileTooLarge`].
pub fn read_bytes(path: &Path, limit: FileLimit) -> io::Result<Vec<u8>> {
    let mut file = LimitedFile::open(path, limit)?;
    // As large as it says at once: a vector that grows leaves copies of a secret behind.
    let length = file.file.metadata()?.len().min(limit.0);
    let mut content = Vec::with_capacity(length as usize + 1);
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// The text of a file.
///
/// # Errors
/// As [`read_bytes`], and when it is not UTF-8: [`ErrorKind::InvalidData`].
pub fn read_text(path: &Path, limit: FileLimit) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(read_bytes(path, limit)?).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_without_an_end_is_left_at_the_limit() {
        let error = read_bytes(Path::new("/dev/zero"), FileLimit::mebibytes(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has more than 1 MiB, and no such file needs as much");
    }

    #[test]
    fn a_file_as_large_as_the_limit_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read_text(&path, FileLimit::mebibytes(1)).unwrap().len(), 1 << 20);
        fs::write(&path, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(read_text(&path, FileLimit::mebibytes(1)).is_err());
    }

    #[test]
    fn what_is_no_text_is_called_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin-1");
        fs::write(&path, b"caf\xe9").unwrap();
        let error = read_text(&path, FileLimit::TOML).unwrap_err();
        assert_eq!(error.to_string(), "it is not text in UTF-8");
    }
}
