//! A file of events that `trace --events` kept, through to what `trace --read` makes of it.

use std::fmt::Debug;
use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};
use tapstone_events::EventSource;
use tapstone_explain::operation::Operations;
use tapstone_explain::{findings, folded, owners, perfetto, reading, tables};
use tapstone_observe::kept::read_kept;
use tapstone_probe_core::wire::{
    CHUNK_BYTES, CHUNK_EVENTS, CHUNK_HEAD_BYTES, CHUNK_LAST, CHUNK_TIMES, CHUNK_TOTALS,
    CLOCK_NANOS, HEADER_BYTES, Header, MAGIC, Run, VERSION,
};

use crate::FuzzTarget;
use crate::structure::{Structure, messages};

/// A file is 64 KiB and more, nearly all of it zero: the first message is what its header says
/// (`write_header`), each other one is a chunk: process, thread, and events, or sums of calls where
/// the thread's highest bit is set.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "events",
    reads: "kept events",
    structure: Structure::Messages,
    longest: 8192,
    check,
};

fn check(input: &[u8]) {
    let file = kept_file(input);
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(kept) = read_kept(&path) else { return };
    read_through(&kept.recording);
}

/// All that `trace --read` makes of events.
pub(super) fn read_through<S: EventSource<Error: Debug>>(source: &S) {
    let mut events = [0, 0];
    for count in &mut events {
        source.read_events(&mut |_| *count += 1).expect("the file is in memory");
    }
    assert_eq!(events[0], events[1], "it can be read again");
    let timeline = reading::read_timeline(source).expect("the file is in memory");
    for thread in &timeline.threads {
        assert!(
            thread.spans.iter().all(|call| call.start <= call.end),
            "a call ends before it begins"
        );
    }
    let _ = tables::calls(&timeline, &owners::of_threads(&timeline));
    let operations = Operations::whole(&timeline);
    let found = findings::find(&timeline, &operations, []);
    for finding in &found {
        let _ = finding.record(&timeline, None);
    }
    perfetto::write_trace(&timeline, [], std::io::sink()).expect("it goes nowhere");
    folded::write_folded(&timeline, std::io::sink()).expect("it goes nowhere");
}

/// The file that an input stands for, in memory.
fn kept_file(input: &[u8]) -> File {
    let file = File::from(memfd_create("events", MemfdFlags::CLOEXEC).expect("memory"));
    let mut messages = messages(input);
    let header = messages.next().unwrap_or_default();
    let mut chunks = 0;
    for chunk in messages {
        write_chunk(&file, chunks, chunk);
        chunks += 1;
    }
    file.set_len((HEADER_BYTES + chunks * CHUNK_BYTES) as u64).expect("memory");
    write_header(&file, header, chunks as u64);
    file
}

/// Nine words, of which those that are missing are those of a run of a second: how many chunks
/// more or fewer there are than the header says, events that were dropped, the clock, both clocks
/// at the start and at the end, when the command had ended, and since when calls were summed.
fn write_header(file: &File, header: &[u8], chunks: u64) {
    const SECOND: u64 = 1_000_000_000;
    let mut words = header.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    let mut word = |default: u64| words.next().unwrap_or(default);
    let put = |at: usize, value: u64| {
        file.write_all_at(&value.to_ne_bytes(), at as u64).expect("memory");
    };
    put(offset_of!(Header, magic), MAGIC);
    put(offset_of!(Header, taken), chunks.wrapping_add(word(0)));
    put(offset_of!(Header, dropped), word(0));
    put(offset_of!(Header, version), u64::from(VERSION) | word(CLOCK_NANOS.into()) << 32);
    let run = offset_of!(Header, run);
    put(run + offset_of!(Run, first), word(1));
    put(run + offset_of!(Run, first) + 8, word(1));
    put(run + offset_of!(Run, last), word(SECOND));
    put(run + offset_of!(Run, last) + 8, word(SECOND));
    put(run + offset_of!(Run, started), 1);
    put(run + offset_of!(Run, ended), word(SECOND));
    put(offset_of!(Header, summed_from), word(0));
}

fn write_chunk(file: &File, number: usize, chunk: &[u8]) {
    let (process_and_thread, events) = chunk.split_at(chunk.len().min(8));
    let events = &events[..events.len().min(CHUNK_BYTES - CHUNK_HEAD_BYTES)];
    let mut bytes = [0; CHUNK_HEAD_BYTES];
    bytes[..process_and_thread.len()].copy_from_slice(process_and_thread);
    let content = match bytes[7] >> 5 {
        0..4 => CHUNK_EVENTS,
        4 | 5 => CHUNK_TOTALS,
        6 => CHUNK_TIMES,
        _ => CHUNK_LAST,
    };
    bytes[12..].copy_from_slice(&content.to_ne_bytes());
    bytes[8..12].copy_from_slice(&((CHUNK_HEAD_BYTES + events.len()) as u32).to_ne_bytes());
    let start = (HEADER_BYTES + number * CHUNK_BYTES) as u64;
    file.write_all_at(&bytes, start).expect("memory");
    file.write_all_at(events, start + CHUNK_HEAD_BYTES as u64).expect("memory");
}
