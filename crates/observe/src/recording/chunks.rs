//! The chunks of a file of events, and the events in them as they were written.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use crate::wire::{self, CHUNK_BYTES, CHUNK_HEAD_BYTES, HEADER_BYTES};

pub(super) const WORD: usize = 8;
/// Words of an event's head.
pub(super) const HEAD: usize = 2;

/// A chunk of the file, or the part of one that a thread wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordingChunk {
    pub(super) number: u64,
    pub(super) process: u32,
    pub(super) thread: u32,
    /// What it holds: one of `CHUNK_…`.
    pub(super) holds: u32,
    /// Where its content begins and ends.
    pub(super) from: usize,
    pub(super) to: usize,
}

impl RecordingChunk {
    pub(super) fn content(&self, file: &File) -> io::Result<Vec<u8>> {
        let mut content = vec![0; self.to - self.from];
        file.read_exact_at(&mut content, chunk_start(self.number) + self.from as u64)?;
        Ok(content)
    }
}

/// An event in a chunk.
#[derive(Clone, Copy)]
pub(super) struct WireEvent<'a> {
    pub(super) time: u64,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) slot: u32,
    pub(super) words: &'a [u8],
}

impl<'a> WireEvent<'a> {
    /// A word behind the head.
    pub(super) fn word(&self, number: usize) -> u64 {
        let at = number * WORD;
        let word = self.words.get(at..at + WORD).and_then(|bytes| bytes.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }

    /// Bytes behind so many words. Texts are padded with zeros.
    pub(super) fn bytes(&self, words: usize) -> &'a [u8] {
        self.words.get(words * WORD..).unwrap_or_default()
    }

    pub(super) fn text(&self, words: usize) -> &'a [u8] {
        let bytes = self.bytes(words);
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        &bytes[..length]
    }
}

/// The chunks that were used.
pub(super) fn used_chunks(file: &File) -> io::Result<Vec<RecordingChunk>> {
    let mut chunks = Vec::new();
    let length = file.metadata()?.len().min(used(file)?);
    let whole = |number: u64| chunk_start(number) + CHUNK_HEAD_BYTES as u64 <= length;
    for number in (0..).take_while(|number| whole(*number)) {
        let mut head = [0; CHUNK_HEAD_BYTES];
        file.read_exact_at(&mut head, chunk_start(number))?;
        let field = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four"));
        let process = field(0);
        let used = field(8) as usize;
        // Who took it may have ended before its first event.
        if process != 0 {
            let there = (length - chunk_start(number)).min(CHUNK_BYTES as u64) as usize;
            let to = used.clamp(CHUNK_HEAD_BYTES, there);
            chunks.push(RecordingChunk {
                number,
                process,
                thread: field(4),
                holds: field(12),
                from: CHUNK_HEAD_BYTES,
                to,
            });
        }
    }
    Ok(chunks)
}

/// Where a chunk begins.
const fn chunk_start(number: u64) -> u64 {
    HEADER_BYTES as u64 + number * CHUNK_BYTES as u64
}

/// The events of a chunk, to the first that is not whole.
pub(super) fn events(content: &[u8]) -> impl Iterator<Item = WireEvent<'_>> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<{ HEAD * WORD }>()?;
        let field = |at: usize, length: usize| {
            head[at..at + length].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let length = field(10, 2) as usize * WORD;
        let event = rest.get(HEAD * WORD..length)?;
        rest = rest.get(length..)?;
        let time = field(0, 8);
        let kind = head[8];
        let flags = head[9];
        Some(WireEvent { time, kind, flags, slot: field(12, 4) as u32, words: event })
    })
}

/// How much of the file holds events, in bytes.
///
/// # Errors
/// When it cannot be read.
pub fn used(file: &File) -> io::Result<u64> {
    let mut head = [0; size_of::<u64>()];
    file.read_exact_at(&mut head, offset_of!(wire::Header, taken) as u64)?;
    // The file may be anybody's: more chunks than there can be are as many as there can be.
    let chunks = u64::from_ne_bytes(head).saturating_mul(CHUNK_BYTES as u64);
    Ok(chunks.saturating_add(HEADER_BYTES as u64))
}
