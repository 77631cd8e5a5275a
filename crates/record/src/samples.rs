//! Every single operation of a run, as Parquet: for those who want more than figures.
//!
//! Memory stays bounded however long the run is, and the file is whole at every moment: a run
//! that is killed leaves all that was written before in `<name>.partial`, readable as it is.

mod columns;
mod whole_file;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parquet::errors::ParquetError;
use tapstone_measure::units::Nanos;
use thiserror::Error;

use columns::{Columns, Encoder};
use whole_file::WholeFile;

use tapstone_files::{WriteTarget, target};

/// Rows are written out when there are this many, so that about 40 MiB hold them until then.
pub const ROW_GROUP_ROWS: usize = 1 << 20;

/// Rows are written out when this much time has passed, so that a slow device that runs for days
/// loses no more when it is killed.
pub const ROW_GROUP_TIME: Duration = Duration::from_secs(60);

/// One operation, as a row of the Parquet file of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it started, on the machine's CLOCK_MONOTONIC; in an open loop, when it was to start.
    pub start: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Who did it, counted from 0 over all threads, processes and hosts.
    pub worker: u32,
    /// Which operation, as an index into the names given to [`SampleWriter::create`].
    pub operation: u32,
    /// Its return code as a number; 0 when it went well.
    pub result: i64,
}

/// Writes samples to a Parquet file as they come.
///
/// [`SampleWriter::finish`] gives the file its name. Dropped without it, the writer keeps what it
/// has under the name of [`SampleWriter::partial_path`], unless it has nothing.
pub struct SampleWriter {
    columns: Columns,
    encoder: Encoder,
    /// `None` once finished, or once a write has failed.
    file: Option<WholeFile>,
    path: PathBuf,
    written: u64,
    last_write: Instant,
}

impl SampleWriter {
    /// Starts a file of samples of these operations.
    ///
    /// # Errors
    /// When the file cannot be created, or when an earlier run was cut off and left its samples
    /// where this one would put them.
    pub fn create(path: impl AsRef<Path>, operations: &[&str]) -> Result<Self, SamplesError> {
        let path = path.as_ref();
        let WriteTarget::File(path) = target(path) else {
            return Err(SamplesError::NotAFile { path: path.into() });
        };
        let mut encoder = Encoder::new(operations)?;
        let columns = Columns::default();
        let mut file = WholeFile::create(&path).map_err(|source| refusal(&path, source))?;
        // A file without rows, but a file.
        let (data, footer) = encoder.encode(&columns)?;
        if let Err(source) = file.append(data, footer) {
            file.remove();
            return Err(refusal(&path, source));
        }
        let last_write = Instant::now();
        Ok(Self { columns, encoder, file: Some(file), path, written: 0, last_write })
    }

    /// Adds samples, in any order. Now and then this writes to the disk: not from a timed section.
    ///
    /// # Errors
    /// When a sample's operation has no name, or when the file cannot be written; the samples of
    /// earlier writes are kept then, and later ones refused.
    pub fn push(&mut self, batch: &[Sample]) -> Result<(), SamplesError> {
        let known = self.encoder.operations();
        if let Some(stranger) = batch.iter().find(|sample| sample.operation as usize >= known) {
            return Err(SamplesError::UnknownOperation { operation: stranger.operation, known });
        }
        let mut rest = batch;
        while !rest.is_empty() {
            let room = ROW_GROUP_ROWS - self.columns.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.columns.extend(now);
            rest = later;
            if self.columns.len() == ROW_GROUP_ROWS {
                self.checkpoint()?;
            }
        }
        if self.last_write.elapsed() >= ROW_GROUP_TIME {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Writes out what is held in memory, so that it survives the end of this process.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn checkpoint(&mut self) -> Result<(), SamplesError> {
        if self.columns.len() > 0 {
            self.write_out()?;
        }
        Ok(())
    }

    /// Completes the file, gives it its name, and says how many samples it holds.
    ///
    /// # Errors
    /// When the file cannot be written or renamed.
    pub fn finish(mut self) -> Result<u64, SamplesError> {
        self.checkpoint()?;
        let file = self.file.take().ok_or_else(|| self.broken())?;
        file.finish().map_err(|source| self.write_error(source))?;
        Ok(self.written)
    }

    /// Where the samples are until the file is finished.
    #[must_use]
    pub fn partial_path(&self) -> PathBuf {
        whole_file::partial(&self.path)
    }

    /// Appends what is held as a row group. A writer that failed once refuses: its file must stay
    /// as it was before the failure.
    fn write_out(&mut self) -> Result<(), SamplesError> {
        let Some(mut file) = self.file.take() else { return Err(self.broken()) };
        let (data, footer) = self.encoder.encode(&self.columns)?;
        if let Err(source) = file.append(data, footer) {
            if self.written == 0 {
                file.remove();
            }
            return Err(self.write_error(source));
        }
        self.file = Some(file);
        self.written += self.columns.len() as u64;
        self.columns.clear();
        self.last_write = Instant::now();
        Ok(())
    }

    fn write_error(&self, source: io::Error) -> SamplesError {
        let path = self.path.clone();
        let written = self.written;
        SamplesError::Write { path, written, partial: self.partial_path(), source }
    }

    fn broken(&self) -> SamplesError {
        self.write_error(io::Error::other("an earlier write failed"))
    }
}

impl fmt::Debug for SampleWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.written + self.columns.len() as u64;
        f.debug_struct("SampleWriter").field("path", &self.path).field("rows", &rows).finish()
    }
}

impl Drop for SampleWriter {
    fn drop(&mut self) {
        if self.file.is_none() {
            return;
        }
        // Nobody is left to tell of an error, and the file is whole with or without this.
        let _ = self.checkpoint();
        if self.written == 0
            && let Some(file) = self.file.take()
        {
            file.remove();
        }
    }
}

fn refusal(path: &Path, source: io::Error) -> SamplesError {
    if source.kind() == io::ErrorKind::AlreadyExists {
        return SamplesError::Leftover { partial: whole_file::partial(path) };
    }
    SamplesError::Create { path: path.into(), source }
}

/// What became of the samples before the one that could not be written.
fn kept(written: u64, partial: &Path) -> String {
    match written {
        0 => "no sample was written before".to_owned(),
        _ => format!("{written} samples are safe in {}", partial.display()),
    }
}

/// Samples could not be written. The text ends with a hint.
#[derive(Debug, Error)]
pub enum SamplesError {
    /// Something other than a file has the name.
    #[error(
        "cannot write samples to {}: it is not a file\nhint: samples need a file on a disk; name \
         one that ends in .parquet", path.display()
    )]
    NotAFile {
        /// The path that is no name of a Parquet file.
        path: PathBuf,
    },
    /// The file could not be created.
    #[error(
        "cannot create {}: {source}\nhint: check that the folder exists and may be written to",
        path.display()
    )]
    Create {
        /// The path of the file that could not be created.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier run was cut off, or another one is still under way.
    #[error(
        "{} is there already\nhint: an earlier run was cut off and left its samples there, or \
         another run is still writing; rename or remove it, or choose another name",
        partial.display()
    )]
    Leftover {
        /// The path of the unfinished file that is there.
        partial: PathBuf,
    },
    /// A sample names an operation that the file does not know.
    #[error(
        "a sample of operation {operation}, and the file knows {known}\nhint: please report this \
         as a defect of Tapstone"
    )]
    UnknownOperation {
        /// The index of the sample's operation, beyond the names that there are.
        operation: u32,
        /// How many operations the file was created with.
        known: usize,
    },
    /// The disk did not take the samples.
    #[error(
        "cannot write {}: {source}\nhint: check the space that is left; {}",
        path.display(), kept(*written, partial)
    )]
    Write {
        /// The path that the finished file was to get.
        path: PathBuf,
        /// The samples that were written before.
        written: u64,
        /// The path of the file in which the samples are.
        partial: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The samples could not be put into Parquet's form.
    #[error("cannot encode samples: {0}\nhint: please report this as a defect of Tapstone")]
    Encode(#[from] ParquetError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(start: u64) -> Sample {
        Sample { start: Nanos(start), duration: Nanos(1), worker: 0, operation: 0, result: 0 }
    }

    #[test]
    fn a_writer_shows_the_samples_written_and_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.parquet");
        let mut writer = SampleWriter::create(&path, &["sign"]).unwrap();
        writer.push(&[1, 2, 3, 4].map(sample)).unwrap();
        writer.checkpoint().unwrap();
        writer.push(&[5, 6, 7].map(sample)).unwrap();
        let shown = format!("{writer:?}");
        assert_eq!(shown, format!("SampleWriter {{ path: {path:?}, rows: 7 }}"));
        assert_eq!(writer.finish().unwrap(), 7);
    }

    #[test]
    fn a_failed_write_says_what_is_safe() {
        let told = |written| {
            let source = io::Error::other("no space");
            let path = PathBuf::from("a.parquet");
            let partial = PathBuf::from("a.parquet.partial");
            SamplesError::Write { path, written, partial, source }.to_string()
        };
        let begin = "cannot write a.parquet: no space\nhint: check the space that is left; ";
        assert_eq!(told(0), format!("{begin}no sample was written before"));
        assert_eq!(told(3), format!("{begin}3 samples are safe in a.parquet.partial"));
    }
}
