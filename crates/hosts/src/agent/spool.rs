//! Raw samples, kept on the agent's disk until they are asked for. They would be most of what a run
//! sends, at the very time when nothing should disturb it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::iter;

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

    /// All that was kept, batch by batch; the spool is empty from now on.
    pub(crate) fn batches(&mut self) -> impl Iterator<Item = Vec<RawSample>> + use<> {
        self.lost = 0;
        let mut kept = self.file.take().and_then(from_its_start).map(BufReader::new);
        iter::from_fn(move || receive(kept.as_mut()?).ok().flatten())
    }
}

fn from_its_start(file: BufWriter<File>) -> Option<File> {
    let mut file = file.into_inner().ok()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    Some(file)
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
        let all: Vec<RawSample> = spool.batches().flatten().collect();
        assert_eq!(all, [sample(1), sample(2), sample(3)]);
        assert_eq!(spool.batches().count(), 0, "it is empty");
        assert_eq!(spool.lost(), 0);
    }
}
