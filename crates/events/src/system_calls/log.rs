//! The calls of a run, in little memory.
//!
//! Each is written as the difference to the last call of the same kind, in as few bytes as that
//! takes: a program that makes ten million calls makes most of them in a loop. About 20 bytes a
//! call instead of 96.

use std::collections::HashMap;

use tapstone_measure::units::Nanos;

use super::names::NameId;
use super::stacks::StackId;
use super::table;

/// One system call that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// The id of the process that made it.
    pub process: u32,
    /// Whose it is: the process's own number in its first thread.
    pub thread: u32,
    /// When the thread was let into the kernel, on CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When the tracer saw that it was back; or that it will not come back.
    pub end: Nanos,
    /// Which call, by Linux's number.
    pub number: u32,
    /// Its arguments; zeros where it has none.
    pub arguments: [u64; 6],
    /// What it returned, an error as `-errno`; none when it never did: the process ended first.
    pub result: Option<i64>,
    /// What it worked on: a path, a descriptor's file, a socket's peer.
    pub on: Option<NameId>,
    /// Where it came from.
    pub stack: StackId,
}

impl SystemCall {
    /// The call's name as in syscalls(2).
    #[must_use]
    pub fn name(&self) -> &'static str {
        table::by_number(self.number).map_or("unknown", |known| known.name)
    }
}

/// All calls of a run, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    chunks: Vec<Vec<u8>>,
    count: u64,
}

impl Calls {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The calls, in the order in which they ended.
    pub fn iter(&self) -> impl Iterator<Item = SystemCall> {
        let mut last = Last::default();
        let mut chunks = self.chunks.iter();
        let mut rest: &[u8] = &[];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                rest = chunks.next()?;
            }
            Some(last.read(&mut rest))
        })
    }
}

/// Calls as they are written.
#[derive(Debug)]
pub struct SystemCallWriter {
    calls: Calls,
    last: Last,
    most_bytes: usize,
    /// Calls that were not written because there were too many.
    pub dropped: u64,
}

/// Large, so that there are few; and not so large that a short run takes much.
const CHUNK_BYTES: usize = 256 << 10;

/// No call takes more: a byte of flags and 13 numbers of at most 10 bytes.
const MOST_CALL_BYTES: usize = 131;

impl SystemCallWriter {
    /// For at most so many bytes.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        Self { calls: Calls::default(), last: Last::default(), most_bytes, dropped: 0 }
    }

    /// Writes a call, or counts it as dropped.
    pub fn write(&mut self, call: &SystemCall) {
        let is_full = |chunk: &Vec<u8>| chunk.len() + MOST_CALL_BYTES > CHUNK_BYTES;
        if self.calls.chunks.last().is_none_or(is_full) {
            if (self.calls.chunks.len() + 1) * CHUNK_BYTES > self.most_bytes {
                self.dropped += 1;
                return;
            }
            self.calls.chunks.push(Vec::with_capacity(CHUNK_BYTES));
        }
        let chunk = self.calls.chunks.last_mut().expect("there is one now");
        self.last.write(call, chunk);
        self.calls.count += 1;
    }

    /// All calls that were written.
    #[must_use]
    pub fn into_calls(self) -> Calls {
        self.calls
    }
}

/// What the next call is written as the difference to.
#[derive(Debug, Default)]
struct Last {
    process: u64,
    thread: u64,
    end: u64,
    of_number: HashMap<u32, LastOfNumber>,
}

#[derive(Debug, Default)]
struct LastOfNumber {
    arguments: [u64; 6],
    result: u64,
    on: u64,
    stack: u64,
}

/// The lowest six bits: which arguments differ from the last ones.
const HAS_RESULT: u8 = 1 << 6;
const HAS_OPERAND: u8 = 1 << 7;

impl Last {
    fn write(&mut self, call: &SystemCall, into: &mut Vec<u8>) {
        let last = self.of_number.entry(call.number).or_default();
        let mut flags = 0;
        for place in 0..6 {
            flags |= u8::from(call.arguments[place] != last.arguments[place]) << place;
        }
        flags |= if call.result.is_some() { HAS_RESULT } else { 0 };
        flags |= if call.on.is_some() { HAS_OPERAND } else { 0 };
        into.push(flags);
        write_number(u64::from(call.number), into);
        write_difference(&mut self.process, u64::from(call.process), into);
        write_difference(&mut self.thread, u64::from(call.thread), into);
        write_difference(&mut self.end, call.start.0, into);
        write_number((call.end - call.start).0, into);
        self.end = call.start.0 + (call.end - call.start).0;
        for place in (0..6).filter(|place| flags >> place & 1 == 1) {
            write_difference(&mut last.arguments[place], call.arguments[place], into);
        }
        if let Some(result) = call.result {
            write_difference(&mut last.result, result as u64, into);
        }
        if let Some(on) = call.on {
            write_difference(&mut last.on, u64::from(on.0), into);
        }
        write_difference(&mut last.stack, u64::from(call.stack.0), into);
    }

    fn read(&mut self, from: &mut &[u8]) -> SystemCall {
        let flags = from[0];
        *from = &from[1..];
        let number = read_number(from) as u32;
        let last = self.of_number.entry(number).or_default();
        let process = read_difference(&mut self.process, from) as u32;
        let thread = read_difference(&mut self.thread, from) as u32;
        let start = Nanos(read_difference(&mut self.end, from));
        let end = start + Nanos(read_number(from));
        self.end = end.0;
        for place in (0..6).filter(|place| flags >> place & 1 == 1) {
            read_difference(&mut last.arguments[place], from);
        }
        let has = |flag| flags & flag != 0;
        let result = has(HAS_RESULT).then(|| read_difference(&mut last.result, from) as i64);
        let on = has(HAS_OPERAND).then(|| NameId(read_difference(&mut last.on, from) as u32));
        let stack = StackId(read_difference(&mut last.stack, from) as u32);
        let arguments = last.arguments;
        SystemCall { process, thread, start, end, number, arguments, result, on, stack }
    }
}

/// A number as its difference to `last`, which becomes the number.
fn write_difference(last: &mut u64, number: u64, into: &mut Vec<u8>) {
    let difference = number.wrapping_sub(*last) as i64;
    *last = number;
    // Small ones of both signs become small ones without ("zigzag").
    write_number((difference << 1 ^ difference >> 63) as u64, into);
}

fn read_difference(last: &mut u64, from: &mut &[u8]) -> u64 {
    let zigzag = read_number(from);
    let difference = zigzag >> 1 ^ (zigzag & 1).wrapping_neg();
    *last = last.wrapping_add(difference);
    *last
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more (LEB128).
fn write_number(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn read_number(from: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = from[0];
        *from = &from[1..];
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_call() -> impl Strategy<Value = SystemCall> {
        let who = (any::<u32>(), any::<u32>(), 0..500u32);
        let when = (0..u64::MAX / 2, 0..u64::MAX / 2);
        let what = (any::<[u64; 6]>(), any::<Option<i64>>(), any::<Option<u32>>(), any::<u32>());
        (who, when, what).prop_map(|((process, thread, number), (start, length), what)| {
            let (arguments, result, on, stack) = what;
            let end = Nanos(start + length);
            let start = Nanos(start);
            let on = on.map(NameId);
            let stack = StackId(stack);
            SystemCall { process, thread, start, end, number, arguments, result, on, stack }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(calls in prop::collection::vec(any_call(), 0..3_000)) {
            let mut writer = SystemCallWriter::new(usize::MAX);
            for call in &calls {
                writer.write(call);
            }
            let written = writer.into_calls();
            prop_assert_eq!(written.len(), calls.len() as u64);
            prop_assert!(written.iter().eq(calls));
        }
    }

    /// A packet that reads a file: open, read, close.
    fn call_of_a_loop(place: u64) -> SystemCall {
        let number = [257, 0, 3][place as usize % 3];
        SystemCall {
            process: 4711,
            thread: 4711,
            start: Nanos(1_000_000_000_000 + place * 12_345),
            end: Nanos(1_000_000_000_000 + place * 12_345 + 3_000 + place % 700),
            number,
            arguments: [3, 0x7FFF_1234_5000, 4096, 0, 0, 0],
            result: Some(place as i64 % 3),
            on: Some(NameId(7)),
            stack: StackId(number + 20),
        }
    }

    #[test]
    fn ten_million_calls_of_a_loop_would_take_a_fifth_of_a_gigabyte() {
        let mut writer = SystemCallWriter::new(usize::MAX);
        for place in 0..100_000 {
            writer.write(&call_of_a_loop(place));
        }
        let bytes: usize = writer.calls.chunks.iter().map(Vec::len).sum();
        assert!(bytes < 100_000 * 20, "{bytes}");
    }

    #[test]
    fn a_limit_of_two_chunks_holds_two_chunks() {
        let mut writer = SystemCallWriter::new(2 * CHUNK_BYTES);
        assert!(writer.calls.is_empty());
        for place in 0..100_000 {
            writer.write(&call_of_a_loop(place));
        }
        assert!(writer.dropped > 0 && !writer.calls.is_empty());
        assert_eq!(writer.calls.chunks.len(), 2);
        // A chunk is left only where the largest call might not fit any more.
        let least = CHUNK_BYTES - MOST_CALL_BYTES;
        assert!(writer.calls.chunks.iter().all(|chunk| chunk.len() > least));
        assert_eq!(writer.calls.len() + writer.dropped, 100_000);
        assert!(writer.calls.chunks.iter().all(|chunk| chunk.capacity() == CHUNK_BYTES));
    }
}
