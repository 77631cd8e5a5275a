//! Where calls are kept until they are read: a file without a name.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::layout::Record;

/// What has come, in a file without a name.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<File>,
    left: u64,
    pub(crate) dropped: u64,
}

impl Spool {
    pub(crate) fn new(most: u64) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 20, tempfile::tempfile()?);
        Ok(Self { file, left: most, dropped: 0 })
    }

    /// What finds no room is counted.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.get(..Record::BYTES).unwrap_or(bytes);
        match self.left.checked_sub(bytes.len() as u64) {
            None => self.dropped += 1,
            Some(left) => {
                self.file.write_all(bytes)?;
                self.left = left;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<(File, u64)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((file, self.dropped))
    }
}
