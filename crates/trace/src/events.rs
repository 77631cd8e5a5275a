//! Reads the file of events into a timeline.
//!
//! A file that is cut short is read as far as it goes: a chunk says how much of it is used, and an
//! event that does not fit there ends it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::clock::Scale;
use crate::functions::FUNCTIONS;
use crate::starts::{self, Start};
use crate::timeline::{
    Builder, CallId, End, Exchange, Family, Leaf, On, Process, Span, Thread, Timeline,
};
use crate::wire::{
    self, CHUNK_BYTES, CHUNK_HEAD_BYTES, ENTER_WORDS, EVENT_ENTER, EVENT_EXIT, EVENT_FIXED,
    EVENT_FORKED, EVENT_LEAF, EVENT_PROCESS, EVENT_SLOT, EVENT_STARTS, EVENT_THREAD,
    FLAG_ABANDONED, FLAG_REPLACED, FLAG_SERVICE, FLAG_TERMINAL, FLAG_TOKEN, HEADER_BYTES,
    STARTS_CHILD,
};

const WORD: usize = 8;
/// Words of an event's head.
const HEAD: usize = 2;
/// Words of a leaf before its bytes.
const LEAF: usize = size_of::<wire::Leaf>() / WORD;

/// Why a file of events cannot be read.
#[derive(Debug, Error)]
pub enum EventsError {
    /// The system says no.
    #[error("the file of events cannot be read: {0}\nhint: is its disk still there?")]
    Read(#[from] io::Error),
    /// A file that was kept cannot be opened.
    #[error("{}: {why}\nhint: `tapstone trace --events FILE -- COMMAND` keeps one", path.display())]
    Open {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is something else.
    #[error(
        "{} holds no events of this version of Tapstone\nhint: trace the program again, with \
         --events", .0.display()
    )]
    NoEvents(PathBuf),
}

/// Reads events that a probe has written, of the run from `started` to `ended`.
///
/// # Errors
/// When the file cannot be read.
pub fn read(
    file: &File,
    scale: &Scale,
    started: Nanos,
    ended: Nanos,
) -> Result<Timeline, EventsError> {
    let (builder, images, starts) = (Builder::default(), Images::default(), Vec::new());
    let mut reader = Reader { file, scale, builder, images, starts };
    let chunks = reader.chunks()?;
    let mut of_threads: BTreeMap<(u32, u32), Vec<Chunk>> = BTreeMap::new();
    for chunk in chunks {
        for part in reader.declarations(chunk)? {
            of_threads.entry((part.process, part.thread)).or_default().push(part);
        }
    }
    for ((process, id), chunks) in of_threads {
        let mut thread = Building::new(process, id);
        for chunk in chunks {
            reader.events(&chunk, &mut thread)?;
        }
        if let Some(thread) = thread.finish() {
            reader.builder.timeline().threads.push(thread);
        }
    }
    let Reader { mut builder, images, starts, .. } = reader;
    let timeline = builder.timeline();
    timeline.processes = images.processes();
    timeline.unseen = starts::unseen(starts, &timeline.processes);
    (timeline.started, timeline.ended) = (started, ended);
    timeline.root = root(timeline);
    first_threads(timeline);
    still_open(timeline);
    // A daemon was there before.
    timeline.threads.retain_mut(|thread| {
        if thread.start < started {
            thread.keep_within(started, ended);
        }
        !thread.spans.is_empty() || !thread.leaves.is_empty()
    });
    timeline.threads.sort_by_key(|thread| thread.start);
    Ok(builder.finish())
}

/// The first program that began after the command was started: a daemon began before.
fn root(timeline: &Timeline) -> u32 {
    let began = timeline.processes.iter().filter(|process| process.started >= timeline.started);
    began.min_by_key(|process| process.started).map_or(0, |process| process.id)
}

/// The command's first thread lived as long as the run. What began before it is a daemon's, and
/// counts from there on.
fn first_threads(timeline: &mut Timeline) {
    let (root, started, ended) = (timeline.root, timeline.started, timeline.ended);
    for thread in &mut timeline.threads {
        if thread.process == root && thread.id == root {
            (thread.start, thread.end) = (started, ended.max(thread.end));
        }
    }
}

/// What never returned lasted as long as its process.
fn still_open(timeline: &mut Timeline) {
    let mut ends: HashMap<u32, Nanos> = HashMap::new();
    for thread in &timeline.threads {
        let end = ends.entry(thread.process).or_default();
        *end = thread.end.max(*end);
    }
    for thread in &mut timeline.threads {
        let end = ends[&thread.process];
        for span in thread.spans.iter_mut().filter(|span| span.end == Nanos::NEVER) {
            (span.end, thread.end) = (end, end);
        }
        for leaf in thread.leaves.iter_mut().filter(|leaf| leaf.end == Nanos::NEVER) {
            (leaf.end, leaf.time, thread.end) = (end, end - leaf.start, end);
        }
    }
}

/// A chunk of the file, or the part of one that a thread wrote.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    number: u64,
    process: u32,
    thread: u32,
    /// Where its events begin and end.
    from: usize,
    to: usize,
}

/// A program between two exec(3): stubs have a meaning inside it.
#[derive(Debug, Default)]
struct Image {
    process: u32,
    parent: u32,
    program: String,
    /// The first chunk that it wrote.
    since: u64,
    started: Nanos,
    slots: HashMap<u32, CallId>,
    /// The image that it was forked off from, whose stubs it has too.
    forked_from: Option<usize>,
}

#[derive(Debug, Default)]
struct Images(Vec<Image>);

impl Images {
    /// The image of a process at a chunk.
    fn at(&self, process: u32, chunk: u64) -> Option<usize> {
        self.0.iter().rposition(|image| image.process == process && image.since <= chunk)
    }

    fn call(&self, image: usize, slot: u32) -> Option<CallId> {
        let mut at = Some(image);
        while let Some(image) = at.and_then(|at| self.0.get(at)) {
            if let Some(call) = image.slots.get(&slot) {
                return Some(*call);
            }
            at = image.forked_from;
        }
        None
    }

    fn processes(self) -> Vec<Process> {
        let process = |image: Image| Process {
            id: image.process,
            parent: image.parent,
            program: image.program,
            started: image.started,
        };
        self.0.into_iter().map(process).collect()
    }
}

struct Reader<'a> {
    file: &'a File,
    scale: &'a Scale,
    builder: Builder,
    images: Images,
    starts: Vec<Start>,
}

/// An event in a chunk.
#[derive(Clone, Copy)]
struct Event<'a> {
    time: u64,
    kind: u8,
    flags: u8,
    slot: u32,
    words: &'a [u8],
}

impl<'a> Event<'a> {
    /// A word behind the head.
    fn word(&self, number: usize) -> u64 {
        let at = number * WORD;
        let word = self.words.get(at..at + WORD).and_then(|bytes| bytes.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }

    /// Bytes behind so many words. Texts are padded with zeros.
    fn bytes(&self, words: usize) -> &'a [u8] {
        self.words.get(words * WORD..).unwrap_or_default()
    }

    fn text(&self, words: usize) -> &'a [u8] {
        let bytes = self.bytes(words);
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        &bytes[..length]
    }
}

impl Reader<'_> {
    /// The chunks that were used.
    fn chunks(&self) -> io::Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let length = self.file.metadata()?.len().min(used(self.file)?);
        let whole = |number: u64| at(number) + CHUNK_HEAD_BYTES as u64 <= length;
        for number in (0..).take_while(|number| whole(*number)) {
            let mut head = [0; CHUNK_HEAD_BYTES];
            self.file.read_exact_at(&mut head, at(number))?;
            let field = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four"));
            let (process, thread, used) = (field(0), field(4), field(8) as usize);
            // Who took it may have ended before its first event.
            if process != 0 {
                let there = (length - at(number)).min(CHUNK_BYTES as u64) as usize;
                let (from, to) = (CHUNK_HEAD_BYTES, used.clamp(CHUNK_HEAD_BYTES, there));
                chunks.push(Chunk { number, process, thread, from, to });
            }
        }
        Ok(chunks)
    }

    fn content(&self, chunk: &Chunk) -> io::Result<Vec<u8>> {
        let mut content = vec![0; chunk.to - chunk.from];
        self.file.read_exact_at(&mut content, at(chunk.number) + chunk.from as u64)?;
        Ok(content)
    }

    /// Programs and stubs: they are told of by one thread and used by others. Returns the parts of
    /// the chunk that each thread wrote.
    fn declarations(&mut self, mut chunk: Chunk) -> io::Result<Vec<Chunk>> {
        let content = self.content(&chunk)?;
        let (mut parts, mut next) = (Vec::new(), chunk.from);
        for event in events(&content) {
            let start = next;
            next += HEAD * WORD + event.words.len();
            match event.kind {
                EVENT_THREAD => {
                    parts.push(Chunk { to: start, ..chunk });
                    (chunk.from, chunk.thread) = (start, event.word(0) as u32);
                }
                EVENT_PROCESS | EVENT_FORKED => {
                    let (process, parent) = (event.word(0) as u32, (event.word(0) >> 32) as u32);
                    let forked_from = match event.kind {
                        EVENT_FORKED => self.images.at(parent, chunk.number),
                        _ => None,
                    };
                    let program = String::from_utf8_lossy(event.text(1)).into_owned();
                    let slots = HashMap::new();
                    let since = chunk.number;
                    let started = self.scale.moment(event.time);
                    let image =
                        Image { process, parent, program, since, slots, forked_from, started };
                    self.images.0.push(image);
                }
                EVENT_STARTS => {
                    let (process, how) = (event.word(0) as u32, event.word(0) >> 32);
                    let (at, program) = (self.scale.moment(event.time), event.text(1).to_vec());
                    self.starts.push(Start { at, process, in_child: how == STARTS_CHILD, program });
                }
                EVENT_SLOT => {
                    let word = event.word(0);
                    let function = (word & 0xFFFF) as usize;
                    let (first, second) =
                        ((word >> 16 & 0xFFFF) as usize, (word >> 32 & 0xFFFF) as usize);
                    let names = event.bytes(1);
                    let (module, caller) = (
                        String::from_utf8_lossy(names.get(..first).unwrap_or_default()),
                        String::from_utf8_lossy(
                            names.get(first..first + second).unwrap_or_default(),
                        ),
                    );
                    if function < FUNCTIONS.len() {
                        let call = self.builder.call(function, &module, &caller);
                        if let Some(image) = self.images.at(chunk.process, chunk.number) {
                            self.images.0[image].slots.insert(event.slot, call);
                        }
                    }
                }
                _ => {}
            }
        }
        parts.push(chunk);
        Ok(parts)
    }

    fn events(&mut self, chunk: &Chunk, thread: &mut Building) -> io::Result<()> {
        let content = self.content(chunk)?;
        let Some(image) = self.images.at(chunk.process, chunk.number) else { return Ok(()) };
        for event in events(&content) {
            let time = self.scale.moment(event.time);
            thread.seen(time);
            match event.kind {
                EVENT_PROCESS => thread.new_program(time),
                EVENT_ENTER => {
                    if let Some(call) = self.images.call(image, event.slot) {
                        let span = self.span(event, time, call);
                        thread.enter(span, event.slot);
                    }
                }
                EVENT_EXIT => thread.exit(event, time, &mut self.builder),
                EVENT_LEAF => {
                    if let Some(call) = self.images.call(image, event.slot) {
                        let leaf = self.leaf(event, time, call);
                        thread.leaf(leaf);
                    }
                }
                EVENT_FIXED => thread.fixed(Nanos(event.word(0))),
                _ => {}
            }
        }
        Ok(())
    }

    fn span(&mut self, event: Event<'_>, start: Nanos, call: CallId) -> Span {
        let function = self.builder.timeline().call(call).function;
        let (exchange, text) = match function {
            "SCardTransmit" | "IFDHTransmitToICC" => {
                let sent = event.word(2) as u32;
                let kept = event.bytes(ENTER_WORDS - HEAD);
                let command = kept.get(..kept.len().min(sent as usize)).unwrap_or_default();
                let digest = event.word(1);
                let exchange = Exchange {
                    command: command.into(),
                    digest,
                    sent,
                    received: 0,
                    status: 0,
                    answer: 0,
                };
                (Some(self.builder.exchange(exchange)), None)
            }
            "SCardConnect" => (None, Some(self.builder.text(event.text(ENTER_WORDS - HEAD)))),
            _ => (None, None),
        };
        let detail = if exchange.is_some() || text.is_some() { 0 } else { event.word(1) };
        Span {
            start,
            end: Nanos::NEVER,
            call,
            parent: None,
            end_kind: End::Open,
            result: 0,
            handle: event.word(0),
            detail,
            made: 0,
            exchange,
            text,
            on_token: event.flags & FLAG_TOKEN != 0,
            injected: Nanos::ZERO,
        }
    }

    fn leaf(&mut self, event: Event<'_>, start: Nanos, call: CallId) -> Leaf {
        let bytes = event.bytes(LEAF - HEAD);
        let text = match self.builder.timeline().call(call).family {
            _ if bytes.is_empty() => None,
            // A sockaddr has zeros inside.
            Family::Libc(crate::functions::Kind::Connect) => Some(self.builder.text(bytes)),
            _ => Some(self.builder.text(event.text(LEAF - HEAD))),
        };
        let end = match event.word(0) {
            0 => Nanos::NEVER,
            end => self.scale.moment(end),
        };
        Leaf {
            start,
            end,
            call,
            parent: None,
            count: event.word(1).min(u64::from(u32::MAX)) as u32,
            time: self.scale.duration(event.word(2)),
            // int and ssize_t alike: the upper half of an int's register means nothing.
            result: i64::from(event.word(5) as i32),
            a: event.word(6),
            b: event.word(7),
            text,
            on: match event.flags {
                flags if flags & FLAG_SERVICE != 0 => On::Service,
                flags if flags & FLAG_TERMINAL != 0 => On::Terminal,
                _ => On::Something,
            },
            replaced: event.flags & FLAG_REPLACED != 0,
        }
    }
}

/// Where a chunk begins.
const fn at(number: u64) -> u64 {
    HEADER_BYTES as u64 + number * CHUNK_BYTES as u64
}

/// The events of a chunk, to the first that is not whole.
fn events(content: &[u8]) -> impl Iterator<Item = Event<'_>> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<{ HEAD * WORD }>()?;
        let field = |at: usize, length: usize| {
            head[at..at + length].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let length = field(10, 2) as usize * WORD;
        let event = rest.get(HEAD * WORD..length)?;
        rest = rest.get(length..)?;
        let (time, kind, flags) = (field(0, 8), head[8], head[9]);
        Some(Event { time, kind, flags, slot: field(12, 4) as u32, words: event })
    })
}

/// A thread whose events come in.
struct Building {
    thread: Thread,
    /// Calls that have not returned: an index and the stub.
    open: Vec<(u32, u32)>,
    last: Nanos,
}

impl Building {
    fn new(process: u32, id: u32) -> Self {
        let thread = Thread { process, id, start: Nanos::NEVER, ..Thread::default() };
        Self { thread, open: Vec::new(), last: Nanos::ZERO }
    }

    fn seen(&mut self, time: Nanos) {
        self.thread.start = self.thread.start.min(time);
        self.last = self.last.max(time);
    }

    /// exec(3): what was open is gone.
    fn new_program(&mut self, time: Nanos) {
        for (at, _) in self.open.drain(..) {
            self.thread.spans[at as usize].end = time;
        }
    }

    fn enter(&mut self, mut span: Span, slot: u32) {
        span.parent = self.open.last().map(|(at, _)| *at);
        self.thread.spans.push(span);
        self.open.push((self.thread.spans.len() as u32 - 1, slot));
    }

    fn exit(&mut self, event: Event<'_>, time: Nanos, builder: &mut Builder) {
        let Some(place) = self.open.iter().rposition(|(_, slot)| *slot == event.slot) else {
            return;
        };
        for (at, _) in self.open.drain(place + 1..) {
            let span = &mut self.thread.spans[at as usize];
            (span.end, span.end_kind) = (time, End::Abandoned);
        }
        let Some((at, _)) = self.open.pop() else { return };
        let span = &mut self.thread.spans[at as usize];
        (span.end, span.result) = (time, event.word(0));
        span.end_kind = match event.flags {
            flags if flags & FLAG_ABANDONED != 0 => End::Abandoned,
            flags if flags & FLAG_REPLACED != 0 => End::Replaced,
            _ => End::Returned,
        };
        let word = event.word(1);
        match span.exchange {
            Some(exchange) => {
                let exchange = &mut builder.timeline().exchanges[exchange.0 as usize];
                exchange.status = word as u16;
                exchange.received = (word >> 16) as u32 & 0xFFFF;
                exchange.answer = (word >> 32) as u32;
            }
            None => span.made = word,
        }
    }

    fn leaf(&mut self, mut leaf: Leaf) {
        leaf.parent = self.open.last().map(|(at, _)| *at);
        if leaf.end != Nanos::NEVER {
            self.last = self.last.max(leaf.end);
        }
        self.thread.leaves.push(leaf);
    }

    fn fixed(&mut self, time: Nanos) {
        if let Some((at, _)) = self.open.last() {
            self.thread.spans[*at as usize].injected += time;
        }
    }

    fn finish(mut self) -> Option<Thread> {
        if self.thread.start == Nanos::NEVER {
            return None;
        }
        self.thread.end = self.last;
        Some(self.thread)
    }
}

/// How much of the file holds events, in bytes.
///
/// # Errors
/// When it cannot be read.
pub fn used(file: &File) -> io::Result<u64> {
    let mut head = [0; size_of::<u64>()];
    file.read_exact_at(&mut head, std::mem::offset_of!(wire::Header, taken) as u64)?;
    Ok(HEADER_BYTES as u64 + u64::from_ne_bytes(head) * CHUNK_BYTES as u64)
}
