//! From a measuring thread to the thread that talks to the controller: a ring without locks.
//!
//! The measuring thread copies a closed slice into memory prepared beforehand. When the ring is
//! full the slice stays open (see [`tapstone_measure::recorder`]); raw samples that find no room
//! are counted, never silently lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rtrb::{Consumer, Producer, RingBuffer};
use tapstone_measure::recorder::{OperationSample, Sink};
use tapstone_measure::slice::Slice;

use crate::protocol::RawSample;

/// Slices of a second or so, at their largest.
const SLICE_RING_BYTES: usize = 4 << 20;

/// Samples of a tenth of a second at the highest rate that a call through a table can reach.
const SAMPLE_RING: usize = 1 << 21;

/// Where a measuring thread puts what it has.
pub(super) struct RingSink {
    slices: Producer<u8>,
    scratch: Vec<u8>,
    samples: Option<Samples>,
}

struct Samples {
    worker: u32,
    ring: Producer<RawSample>,
    dropped: Arc<AtomicU64>,
}

/// The end of a thread's ring at which its worker reads.
pub(super) struct Drain {
    slices: Consumer<u8>,
    samples: Option<Consumer<RawSample>>,
    dropped: Arc<AtomicU64>,
}

/// Both ends of one thread's ring.
pub(super) fn ring(worker: u32, samples: bool) -> (RingSink, Drain) {
    let (slice_in, slice_out) = RingBuffer::new(SLICE_RING_BYTES);
    let dropped = Arc::new(AtomicU64::new(0));
    let (sample_in, sample_out) = match samples {
        true => {
            let (ring, out) = RingBuffer::new(SAMPLE_RING);
            (Some(Samples { worker, ring, dropped: Arc::clone(&dropped) }), Some(out))
        }
        false => (None, None),
    };
    let scratch = vec![0; SLICE_RING_BYTES / 4];
    let sink = RingSink { slices: slice_in, scratch, samples: sample_in };
    (sink, Drain { slices: slice_out, samples: sample_out, dropped })
}

impl Sink for RingSink {
    fn slice(&mut self, lane: usize, slice: &Slice) -> bool {
        let Ok(encoded) = postcard::to_slice(&(lane as u8, slice), &mut self.scratch) else {
            return false;
        };
        let length = (encoded.len() as u32).to_le_bytes();
        if self.slices.slots() < encoded.len() + length.len() {
            return false;
        }
        push(&mut self.slices, &length);
        push(&mut self.slices, encoded);
        true
    }

    #[inline]
    fn sample(&mut self, sample: OperationSample) {
        if let Some(samples) = &mut self.samples {
            samples.push(sample);
        }
    }
}

impl Samples {
    fn push(&mut self, sample: OperationSample) {
        let raw = RawSample {
            worker: self.worker,
            lane: sample.lane as u8,
            start: sample.start,
            latency: sample.latency,
            code: sample.failure.unwrap_or(0),
        };
        if self.ring.push(raw).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

fn push(ring: &mut Producer<u8>, bytes: &[u8]) {
    if let Ok(mut chunk) = ring.write_chunk(bytes.len()) {
        let (first, second) = chunk.as_mut_slices();
        let (head, tail) = bytes.split_at(first.len());
        first.copy_from_slice(head);
        second.copy_from_slice(tail);
        chunk.commit_all();
    }
}

impl Drain {
    /// The slices that are there, with their lanes.
    pub(super) fn slices(&mut self) -> Vec<(u8, Slice)> {
        let mut slices = Vec::new();
        // The producer commits the length before the slice: look before taking.
        while let Ok(chunk) = self.slices.read_chunk(4) {
            let length = u32::from_le_bytes(copied(&chunk)) as usize;
            let Ok(whole) = self.slices.read_chunk(4 + length) else { break };
            let (first, second) = whole.as_slices();
            let bytes = [first, second].concat();
            whole.commit_all();
            slices.extend(postcard::from_bytes(&bytes[4..]).ok());
        }
        slices
    }

    /// At most `limit` of the samples that are there.
    pub(super) fn samples(&mut self, limit: usize) -> Vec<RawSample> {
        let Some(ring) = &mut self.samples else { return Vec::new() };
        let count = ring.slots().min(limit);
        ring.read_chunk(count).map(|chunk| chunk.into_iter().collect()).unwrap_or_default()
    }

    /// Samples that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

fn copied(chunk: &rtrb::chunks::ReadChunk<'_, u8>) -> [u8; 4] {
    let (first, second) = chunk.as_slices();
    let mut bytes = [0; 4];
    for (place, byte) in bytes.iter_mut().zip(first.iter().chain(second)) {
        *place = *byte;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapstone_measure::units::Nanos;

    #[test]
    fn slices_come_out_as_they_went_in_however_often_the_ring_goes_round() {
        let (mut sink, mut drain) = ring(0, false);
        let mut slice = Slice::empty();
        for latency in 1..5_000 {
            slice.count(Nanos(latency * 1_000));
        }
        for round in 0..1_000 {
            slice.start = Nanos(round);
            assert!(sink.slice(1, &slice));
            assert_eq!(drain.slices(), [(1, slice.clone())]);
        }
    }

    #[test]
    fn a_full_ring_refuses_a_slice_and_counts_a_sample() {
        let (mut sink, mut drain) = ring(3, true);
        let mut slice = Slice::empty();
        (1..20_000).for_each(|latency| slice.count(Nanos(latency * 100)));
        let mut taken = 0;
        while sink.slice(0, &slice) {
            taken += 1;
        }
        assert_eq!(drain.slices().len(), taken);
        let sample =
            OperationSample { lane: 0, start: Nanos(1), latency: Nanos(2), failure: Some(0x30) };
        (0..SAMPLE_RING + 5).for_each(|_| sink.sample(sample));
        assert_eq!(drain.dropped(), 5);
        assert_eq!(
            drain.samples(1),
            [RawSample { worker: 3, lane: 0, start: Nanos(1), latency: Nanos(2), code: 0x30 }]
        );
    }
}
