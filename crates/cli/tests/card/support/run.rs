//! `tapstone` at the virtual readers.

use std::time::{Duration, Instant};

use tapstone_testing::eventually;

use super::Slot;
use crate::run::{PATIENCE, Running, Tapstone};

impl Tapstone {
    /// A verb with a reader.
    pub(crate) fn at(slot: Slot, verb: &str) -> Self {
        Self::new(verb).args("--reader").arg(slot.reader())
    }

    /// `tapstone card` in the first reader with a suite that is a file of this text.
    pub(crate) fn suite(text: &str) -> Self {
        Self::at(Slot::First, "card").file("suite.toml", text).args("--suite suite.toml")
    }
}

impl Running {
    /// Waits until a worker has lived for a second: the one that looks at the readers is gone
    /// sooner, so this one measures.
    pub(crate) fn wait_until_it_measures(&self) {
        let mut last = (Vec::new(), Instant::now());
        let measures = eventually(PATIENCE, || {
            let workers = self.workers();
            if workers.is_empty() || workers != last.0 {
                last = (workers, Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(1)
        });
        assert!(measures, "{}", self.said());
    }
}
