//! The reader's side of a ring buffer (Documentation/bpf/ringbuf.rst).

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::maps::Map;

/// A record is being written.
const BUSY: u32 = 1 << 31;
/// A record was given up.
const DISCARDED: u32 = 1 << 30;
/// Before each record.
const HEAD_BYTES: usize = 8;

#[derive(Debug)]
pub(crate) struct Ring {
    /// One page: how far this side has read.
    consumer: MmapRaw,
    /// One page: how far the kernel has written; and behind it the ring, twice in a row.
    producer: MmapRaw,
    page: usize,
    size: usize,
}

impl Ring {
    pub(crate) fn open(map: &Map) -> io::Result<Self> {
        // SAFETY: sysconf(3) reads a constant.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let size = map.entries() as usize;
        let consumer = MmapOptions::new().len(page).map_raw(&map.descriptor())?;
        let producer = MmapOptions::new()
            .offset(page as u64)
            .len(page + 2 * size)
            .map_raw_read_only(&map.descriptor())?;
        Ok(Self { consumer, producer, page, size })
    }

    /// Hands over what has come. Returns how many records that were.
    pub(crate) fn read(&self, take: &mut dyn FnMut(&[u8])) -> usize {
        let read = self.position(&self.consumer);
        let written = self.position(&self.producer);
        let mut at = read.load(Ordering::Relaxed);
        let mut records = 0;
        while at < written.load(Ordering::Acquire) {
            let head = self.head(at).load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !DISCARDED) as usize;
            if head & DISCARDED == 0 {
                take(self.record(at, length));
                records += 1;
            }
            at += (HEAD_BYTES + length).next_multiple_of(8) as u64;
            // Now the kernel may write there.
            read.store(at, Ordering::Release);
        }
        records
    }

    fn position(&self, page: &MmapRaw) -> &AtomicU64 {
        // SAFETY: each of these pages begins with such a position, which both sides use atomically,
        // and stays mapped as long as `self`.
        unsafe { &*page.as_ptr().cast::<AtomicU64>() }
    }

    fn head(&self, at: u64) -> &AtomicU32 {
        let place = self.page + at as usize % self.size;
        // SAFETY: records begin at multiples of eight bytes inside the ring, with such a head.
        unsafe { &*self.producer.as_ptr().add(place).cast::<AtomicU32>() }
    }

    /// The ring is mapped twice in a row, so that a record at its end goes on behind it.
    fn record(&self, at: u64, length: usize) -> &[u8] {
        let place = self.page + at as usize % self.size + HEAD_BYTES;
        let length = length.min(self.size - HEAD_BYTES);
        // SAFETY: inside the mapping, and the kernel writes there only when `read` has moved on,
        // which the caller does afterwards.
        unsafe { std::slice::from_raw_parts(self.producer.as_ptr().add(place), length) }
    }
}
