//! Results of a thread's calls, kept until they are judged.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::measured::KeptResult;
use crate::plan::SPARE_BYTES;
use crate::steps::ReplayStep;

/// What a kept result takes beside its bytes.
const KEPT_BYTES: usize = size_of::<KeptResult>();

/// Results that are kept, one behind the other: memory for each would be asked for between calls.
#[derive(Default)]
pub(super) struct KeptBytes {
    /// The place of a step, and how many bytes it gave.
    lengths: Vec<(u32, usize)>,
    bytes: Vec<u8>,
    /// Bytes that this thread may keep before it asks for more.
    allowance: usize,
}

/// Memory for so much, used once already: the first use of a page takes longer than many a call.
pub(super) fn memory_for<T: Clone>(count: usize, anything: T) -> Vec<T> {
    let mut memory = vec![anything; count];
    memory.clear();
    memory
}

impl KeptBytes {
    /// With memory for what these steps gave when they were recorded, out of the room for all.
    pub(super) fn for_steps(steps: &[ReplayStep], room: &AtomicUsize) -> Self {
        let kept = || steps.iter().filter(|step| step.keeps_result());
        let bytes: usize = kept().map(|step| step.room.saturating_sub(SPARE_BYTES) as usize).sum();
        let count = kept().count();
        let wanted = bytes.saturating_add(count.saturating_mul(KEPT_BYTES));
        let take = |left: usize| Some(left - wanted.min(left));
        let left = room.fetch_update(Relaxed, Relaxed, take).unwrap_or_default();
        let allowance = wanted.min(left);
        Self {
            lengths: memory_for(count, (1, 1)),
            bytes: memory_for(bytes.min(allowance), 1),
            allowance,
        }
    }

    /// Keeps a result, as long as there is room in all.
    pub(super) fn keep(&mut self, step: u32, bytes: &[u8], room: &AtomicUsize) {
        /// Asked for at once.
        const PORTION: usize = 64 << 10;
        let needed = bytes.len() + KEPT_BYTES;
        if self.allowance < needed {
            let portion = PORTION.max(needed);
            let taken = room.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(portion));
            self.allowance += taken.map_or(0, |_| portion);
        }
        let Some(left) = self.allowance.checked_sub(needed) else { return };
        self.allowance = left;
        self.lengths.push((step, bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn results(&self) -> Vec<KeptResult> {
        let mut rest = &self.bytes[..];
        let mut next = |length| {
            let (bytes, after) = rest.split_at(length);
            rest = after;
            bytes.to_vec()
        };
        self.lengths
            .iter()
            .map(|(step, length)| KeptResult { step: *step, bytes: next(*length) })
            .collect()
    }
}
