//! Raw samples into a Parquet file, while the run goes on.

use std::path::PathBuf;

use anyhow::Context;
use tapstone_record::DataFile;
use tapstone_record::samples::{Sample, SampleWriter};
use tapstone_token::controller::SampleSink;
use tapstone_token::protocol::RawSample;

/// A samples file with the numbers by which it knows operations and workers.
pub(crate) struct SamplesFile {
    path: PathBuf,
    writer: SampleWriter,
    operations: Vec<String>,
    workers: Vec<u32>,
    failure: Option<String>,
}

impl SamplesFile {
    pub(crate) fn create(path: PathBuf, operations: Vec<String>) -> anyhow::Result<Self> {
        let names: Vec<&str> = operations.iter().map(String::as_str).collect();
        let writer = SampleWriter::create(&path, &names)?;
        Ok(Self { path, writer, operations, workers: Vec::new(), failure: None })
    }

    /// Writes what is left and closes the file. Returns its path and its number of samples.
    pub(crate) fn finish(self) -> anyhow::Result<DataFile> {
        let file = self.path.display().to_string();
        if let Some(failure) = self.failure {
            anyhow::bail!("{file}: {failure}");
        }
        let rows = self.writer.finish().with_context(|| file.clone())?;
        Ok(DataFile { file, count: rows })
    }

    /// Workers are numbered from 0 on in the order in which they turn up.
    fn worker(&mut self, number: u32) -> u32 {
        let known = self.workers.iter().position(|other| *other == number);
        let place = known.unwrap_or_else(|| {
            self.workers.push(number);
            self.workers.len() - 1
        });
        place as u32
    }
}

impl SampleSink for SamplesFile {
    fn take(&mut self, lanes: &[String], samples: &[RawSample]) -> Result<(), String> {
        let operations: Vec<u32> = lanes
            .iter()
            .map(|lane| self.operations.iter().position(|name| name == lane).unwrap_or(0) as u32)
            .collect();
        let batch: Vec<Sample> = samples
            .iter()
            .map(|sample| Sample {
                start: sample.start,
                duration: sample.latency,
                worker: self.worker(sample.worker),
                operation: operations.get(usize::from(sample.lane)).copied().unwrap_or(0),
                result: sample.code as i64,
            })
            .collect();
        self.writer.push(&batch).map_err(|error| {
            let failure = error.to_string();
            self.failure = Some(failure.clone());
            failure
        })
    }
}
