//! Counts of what was dropped unread, for whoever looks after an agent or a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::envelope::Dropped;

/// How often it is said that more was dropped.
const INTERVAL: Duration = Duration::from_secs(10);

/// What was dropped so far, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct DroppedCounts {
    counts: BTreeMap<Dropped, u64>,
    told: u64,
    told_at: Option<Instant>,
}

impl DroppedCounts {
    pub(crate) fn note(&mut self, why: Dropped) {
        *self.counts.entry(why).or_default() += 1;
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The counts, when there is something new to say and it was not said just now.
    pub(crate) fn news(&mut self) -> Option<String> {
        let is_early = self.told_at.is_some_and(|at| at.elapsed() < INTERVAL);
        if self.total() == self.told || is_early {
            return None;
        }
        self.told = self.total();
        self.told_at = Some(Instant::now());
        Some(self.to_string())
    }
}

impl fmt::Display for DroppedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |(why, count): (&Dropped, &u64)| match why {
            Dropped::Unsigned => format!("{count} unsigned"),
            Dropped::Foreign => format!("{count} foreign"),
            Dropped::Replayed => format!("{count} replayed"),
        };
        let parts: Vec<String> = self.counts.iter().map(part).collect();
        write!(f, "dropped {} packets: {}", self.total(), parts.join(", "))
    }
}
