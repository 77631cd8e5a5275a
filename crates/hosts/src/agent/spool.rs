//! Raw samples, kept on the agent's disk until they are asked for. They would be most of what a run
//! sends, at the very time when nothing should disturb it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};

use tapstone_token::protocol::RawSample;
use tapstone_worker::{receive, send};

/// The samples of one worker's case.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<BufWriter<File>>,
    /// Samples that could not be kept.
    lost: u64,
}

impl Spool {
    /// Keeps samples, or counts them as lost.
    pub(crate) fn keep(&mut self, samples: &Vec<RawSample>) {
        if self.lost > 0 || self.append(samples).is_err() {
            self.lost += samples.len() as u64;
        }
    }

    /// Samples that could not be kept so far.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    fn append(&mut self, samples: &Vec<RawSample>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            // Without a name: it is gone with its process, whatever happens.
            None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        send(file, samples)
    }

    /// Hands over all that was kept, batch by batch; then it is empty.
    pub(crate) fn empty(&mut self, mut take: impl FnMut(Vec<RawSample>)) {
        self.lost = 0;
        let Some(file) = self.file.take() else { return };
        let Ok(mut file) = file.into_inner() else { return };
        if file.seek(SeekFrom::Start(0)).is_err() {
            return;
        }
        let mut batches = BufReader::new(file);
        while let Ok(Some(batch)) = receive(&mut batches) {
            take(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapstone_measure::units::Nanos;

    #[test]
    fn samples_come_back_in_order_and_once() {
        let sample = |start| RawSample {
            worker: 1,
            lane: 0,
            start: Nanos(start),
            latency: Nanos(2),
            code: 0,
        };
        let mut spool = Spool::default();
        spool.keep(&vec![sample(1), sample(2)]);
        spool.keep(&vec![sample(3)]);
        let mut all = Vec::new();
        spool.empty(|batch| all.extend(batch));
        assert_eq!(all, [sample(1), sample(2), sample(3)]);
        spool.empty(|_| panic!("it is empty"));
        assert_eq!(spool.lost(), 0);
    }
}
