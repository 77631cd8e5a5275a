//! `tapstone` at the virtual readers.

use tapstone_testing::eventually;

use super::Slot;
use crate::run::{Running, TIME_LIMIT, Tapstone};

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
    /// sooner, so this one measures. The second is counted in looks: time goes on while a machine
    /// stands still, and nothing is looked at.
    pub(crate) fn wait_until_it_measures(&self) {
        const LOOKS: u32 = 200;
        let mut last = (Vec::new(), 0);
        let measures = eventually(TIME_LIMIT, || {
            let workers = self.workers();
            let same = !workers.is_empty() && workers == last.0;
            last = (workers, if same { last.1 + 1 } else { 0 });
            last.1 >= LOOKS
        });
        assert!(measures, "{}", self.said());
    }
}
