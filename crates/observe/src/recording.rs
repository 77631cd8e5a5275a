//! Reads the probe's file of events as a source of owned events.
//!
//! A file that is cut short is read as far as it goes: a chunk says how much of it is used, and an
//! event that does not fit there ends it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::iter;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use tapstone_events::system_calls::StackFrame;
use tapstone_events::{
    CallBegun, CallEnded, CallOutcome, CalledFrom, CalledFunction, End, Event, EventSource,
    FUNCTIONS, Family, FunctionId, Kind, LibcCalls, ObservedRun, On, ProcessEnd, Program,
    Scheduled, SentCommand, StubId, TextId, UnseenProgram, WatchCost,
};
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::callers::{KeptStack, LoadedObject, named_frames};
use crate::clock::Scale;
use crate::starts::{self, Start};
use tapstone_probe_core::cost::{StubCost, StubRunning};

use crate::wire::{
    self, CHUNK_BYTES, CHUNK_HEAD_BYTES, ENTER_WORDS, EVENT_ENDS, EVENT_ENTER, EVENT_EXIT,
    EVENT_FIXED, EVENT_FORKED, EVENT_LEAF, EVENT_OBJECT, EVENT_PROCESS, EVENT_SLOT, EVENT_STACK,
    EVENT_STARTS, EVENT_THREAD, FLAG_ABANDONED, FLAG_LENGTH, FLAG_REPLACED, FLAG_SERVICE,
    FLAG_TERMINAL, FLAG_TOKEN, HEADER_BYTES, STARTS_CHILD,
};

const WORD: usize = 8;
/// Words of an event's head.
const HEAD: usize = 2;
/// Files of code that the stacks of a program lead into, at most.
const MOST_OBJECTS: usize = 512;
/// Stacks of a run, at most: a process keeps three from each of a thousand places.
const MOST_STACKS: usize = 1 << 14;
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
        /// The path of the file of events.
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

/// What a probe has written, ready to be read: programs and functions are known already, since
/// threads use each other's.
#[derive(Debug)]
pub struct Recording {
    file: File,
    scale: Scale,
    run: ObservedRun,
    images: ProgramImages,
    functions: Functions,
    /// The parts of the file that each thread wrote, by process and thread.
    threads: BTreeMap<(u32, u32), Vec<RecordingChunk>>,
    unseen: Vec<UnseenProgram>,
    /// Where calls came from.
    callers: HashMap<CallMoment, Arc<[StackFrame]>>,
    /// By a function's number among all that are watched.
    samples: Vec<FunctionSamples>,
}

impl Recording {
    /// Looks through the file for programs, functions and threads. Which programs were not seen,
    /// and why, is found out here, while they can be looked at.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn new(file: File, scale: Scale, run: ObservedRun) -> Result<Self, EventsError> {
        let mut declarations = Declarations {
            file: &file,
            scale: &scale,
            images: ProgramImages::default(),
            functions: Functions::default(),
            starts: Vec::new(),
            stacks: Vec::new(),
        };
        let mut threads: BTreeMap<(u32, u32), Vec<RecordingChunk>> = BTreeMap::new();
        for chunk in used_chunks(&file)? {
            for part in declarations.read(chunk)? {
                threads.entry((part.process, part.thread)).or_default().push(part);
            }
        }
        let Declarations { images, functions, starts, stacks, .. } = declarations;
        let programs: Vec<Program> = images.programs().cloned().collect();
        let unseen = starts::unseen(starts, &programs);
        let samples = samples(&file, &scale)?;
        let callers = callers(&images, stacks);
        Ok(Self { file, scale, run, images, functions, threads, unseen, callers, samples })
    }

    /// Programs that were started, and in which the probe did not begin.
    #[must_use]
    pub fn unseen(&self) -> &[UnseenProgram] {
        &self.unseen
    }
}

impl EventSource for Recording {
    type Error = EventsError;

    fn observed_run(&self) -> ObservedRun {
        self.run
    }

    fn read_events(&self, take: &mut dyn FnMut(Event)) -> Result<(), EventsError> {
        self.images.programs().cloned().map(Event::Program).for_each(&mut *take);
        self.unseen.iter().cloned().map(Event::Unseen).for_each(&mut *take);
        self.functions.list.iter().cloned().map(Event::Function).for_each(&mut *take);
        for (called, function) in self.functions.list.iter().zip((0..).map(FunctionId)) {
            let number = FUNCTIONS.iter().position(|known| known.name == called.function);
            let Some(samples) = number.and_then(|it| self.samples.get(it)) else { continue };
            if let Some(cost) = samples.cost {
                take(Event::WatchCost { function, cost });
            }
            if let Some((time, ran)) = samples.running {
                take(Event::Running { function, time, ran });
            }
        }
        let mut decoder = Decoder { recording: self, texts: HashMap::new(), take };
        for ((process, id), chunks) in &self.threads {
            (decoder.take)(Event::Thread { process: *process, id: *id });
            for chunk in chunks {
                decoder.read(chunk)?;
            }
        }
        Ok(())
    }
}

/// A chunk of the file, or the part of one that a thread wrote.
#[derive(Clone, Copy, Debug)]
struct RecordingChunk {
    number: u64,
    process: u32,
    thread: u32,
    /// Where its events begin and end.
    from: usize,
    to: usize,
}

impl RecordingChunk {
    fn content(&self, file: &File) -> io::Result<Vec<u8>> {
        let mut content = vec![0; self.to - self.from];
        file.read_exact_at(&mut content, chunk_start(self.number) + self.from as u64)?;
        Ok(content)
    }
}

/// A program between two exec(3): stubs have a meaning inside it.
#[derive(Debug)]
struct ProgramImage {
    program: Program,
    /// The first chunk that it wrote.
    since: u64,
    slots: HashMap<u32, FunctionId>,
    /// Files of code that stacks lead into.
    objects: Vec<LoadedObject>,
    /// The image that it was forked off from, whose stubs and files it has too.
    forked_from: Option<usize>,
}

#[derive(Debug, Default)]
struct ProgramImages(Vec<ProgramImage>);

impl ProgramImages {
    /// The image of a process at a chunk.
    fn at(&self, process: u32, chunk: u64) -> Option<usize> {
        self.0.iter().rposition(|image| image.program.id == process && image.since <= chunk)
    }

    fn function(&self, image: usize, slot: u32) -> Option<FunctionId> {
        let mut at = Some(image);
        while let Some(image) = at.and_then(|at| self.0.get(at)) {
            if let Some(function) = image.slots.get(&slot) {
                return Some(*function);
            }
            at = image.forked_from;
        }
        None
    }

    /// The files of code that an image had at a time, then those of whom it was forked off from; of
    /// each those that were loaded last come first.
    fn objects(&self, image: usize, time: u64) -> Vec<&LoadedObject> {
        let line = iter::successors(Some(image), |image| self.0[*image].forked_from);
        let of_image = |image: usize| {
            let objects = self.0[image].objects.iter().filter(|object| object.since <= time);
            let mut objects: Vec<&LoadedObject> = objects.collect();
            objects.sort_by_key(|object| Reverse(object.since));
            objects
        };
        line.flat_map(of_image).collect()
    }

    fn programs(&self) -> impl Iterator<Item = &Program> {
        self.0.iter().map(|image| &image.program)
    }
}

/// Functions as they were called, each once.
#[derive(Debug, Default)]
struct Functions {
    list: Vec<CalledFunction>,
    ids: HashMap<CalledFunction, FunctionId>,
}

impl Functions {
    fn id(&mut self, function: CalledFunction) -> FunctionId {
        let list = &mut self.list;
        *self.ids.entry(function).or_insert_with_key(|function| {
            list.push(function.clone());
            FunctionId(list.len() as u32 - 1)
        })
    }

    fn get(&self, id: FunctionId) -> &CalledFunction {
        &self.list[id.0 as usize]
    }
}

/// An event in a chunk.
#[derive(Clone, Copy)]
struct WireEvent<'a> {
    time: u64,
    kind: u8,
    flags: u8,
    slot: u32,
    words: &'a [u8],
}

impl<'a> WireEvent<'a> {
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

/// What the probe noted at some of a function's calls.
#[derive(Clone, Copy, Debug)]
struct FunctionSamples {
    cost: Option<WatchCost>,
    /// The time of these calls, and for how much of it their threads had a processor.
    running: Option<(Nanos, Nanos)>,
}

/// Those of each function that is watched; none where the file's header is cut short.
fn samples(file: &File, scale: &Scale) -> io::Result<Vec<FunctionSamples>> {
    let read = |at: usize, size: usize| {
        let mut content = vec![0; size * FUNCTIONS.len()];
        file.read_exact_at(&mut content, at as u64).map(|()| content)
    };
    let costs = read(offset_of!(wire::Header, costs), size_of::<StubCost>());
    let running = read(offset_of!(wire::Header, running), size_of::<StubRunning>());
    let (costs, running) = match (costs, running) {
        (Ok(costs), Ok(running)) => (costs, running),
        (Err(why), _) | (_, Err(why)) if why.kind() == io::ErrorKind::UnexpectedEof => {
            return Ok(Vec::new());
        }
        (Err(why), _) | (_, Err(why)) => return Err(why),
    };
    let costs = costs.chunks_exact(size_of::<StubCost>()).map(|it| watch_cost(it, scale));
    let running = running.chunks_exact(size_of::<StubRunning>()).map(|it| running_of(it, scale));
    Ok(costs.zip(running).map(|(cost, running)| FunctionSamples { cost, running }).collect())
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + WORD].try_into().expect("eight"))
}

fn watch_cost(cost: &[u8], scale: &Scale) -> Option<WatchCost> {
    let mean = |sum: usize, count: usize| {
        let sum = number_at(cost, sum);
        Some(scale.duration(sum.checked_div(number_at(cost, count))?))
    };
    let inside = mean(offset_of!(StubCost, inside), offset_of!(StubCost, beginnings))?;
    let before = mean(offset_of!(StubCost, before), offset_of!(StubCost, beginnings))?;
    let after = mean(offset_of!(StubCost, after), offset_of!(StubCost, ends));
    Some(WatchCost { before, inside, after: after.unwrap_or_default() })
}

fn running_of(running: &[u8], scale: &Scale) -> Option<(Nanos, Nanos)> {
    let time = scale.duration(number_at(running, offset_of!(StubRunning, time)));
    let ran = Nanos(number_at(running, offset_of!(StubRunning, ran)));
    (time > Nanos::ZERO).then_some((time, ran))
}

/// The chunks that were used.
fn used_chunks(file: &File) -> io::Result<Vec<RecordingChunk>> {
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
                from: CHUNK_HEAD_BYTES,
                to,
            });
        }
    }
    Ok(chunks)
}

/// The first pass: programs and stubs are declared by one thread and used by others.
struct Declarations<'a> {
    file: &'a File,
    scale: &'a Scale,
    images: ProgramImages,
    functions: Functions,
    starts: Vec<Start>,
    stacks: Vec<ThreadStack>,
}

/// A call by its process, its thread and the time that the probe noted for it.
type CallMoment = (u32, u32, u64);

/// A stack, and whose it was.
struct ThreadStack {
    call: CallMoment,
    image: usize,
    words: Vec<u64>,
}

/// Where the calls came from whose stacks were kept.
fn callers(
    images: &ProgramImages,
    stacks: Vec<ThreadStack>,
) -> HashMap<CallMoment, Arc<[StackFrame]>> {
    // They only become more, so their number tells them apart.
    let mut known: HashMap<(usize, usize), Arc<[LoadedObject]>> = HashMap::new();
    let calls: Vec<CallMoment> = stacks.iter().map(|stack| stack.call).collect();
    let kept: Vec<KeptStack> = stacks
        .into_iter()
        .map(|ThreadStack { call: (_, _, time), image, words }| {
            let found = images.objects(image, time);
            let objects = known
                .entry((image, found.len()))
                .or_insert_with(|| found.into_iter().cloned().collect());
            let program = images.0[image].program.program.clone().into();
            KeptStack { objects: Arc::clone(objects), program, words }
        })
        .collect();
    calls.into_iter().zip(named_frames(&kept)).collect()
}

impl Declarations<'_> {
    /// Takes in what a chunk declares. Returns the parts of it that each thread wrote.
    fn read(&mut self, mut chunk: RecordingChunk) -> io::Result<Vec<RecordingChunk>> {
        let content = chunk.content(self.file)?;
        let mut parts = Vec::new();
        let mut next = chunk.from;
        for event in events(&content) {
            let start = next;
            next += HEAD * WORD + event.words.len();
            match event.kind {
                EVENT_THREAD => {
                    parts.push(RecordingChunk { to: start, ..chunk });
                    chunk.from = start;
                    chunk.thread = event.word(0) as u32;
                }
                EVENT_PROCESS | EVENT_FORKED => self.program(event, chunk.number),
                EVENT_STARTS => self.start(event),
                EVENT_SLOT => self.stub(event, &chunk),
                EVENT_OBJECT => self.object(event, &chunk),
                EVENT_STACK => self.stack(event, &chunk),
                _ => {}
            }
        }
        parts.push(chunk);
        Ok(parts)
    }

    fn program(&mut self, event: WireEvent<'_>, chunk: u64) {
        let parent = (event.word(0) >> 32) as u32;
        let forked_from = match event.kind {
            EVENT_FORKED => self.images.at(parent, chunk),
            _ => None,
        };
        let program = Program {
            id: event.word(0) as u32,
            parent,
            program: String::from_utf8_lossy(event.text(1)).into_owned(),
            started: self.scale.moment(event.time),
        };
        self.images.0.push(ProgramImage {
            program,
            since: chunk,
            slots: HashMap::new(),
            objects: Vec::new(),
            forked_from,
        });
    }

    fn start(&mut self, event: WireEvent<'_>) {
        self.starts.push(Start {
            at: self.scale.moment(event.time),
            process: event.word(0) as u32,
            in_child: event.word(0) >> 32 == STARTS_CHILD,
            program: event.text(1).to_vec(),
        });
    }

    fn object(&mut self, event: WireEvent<'_>, chunk: &RecordingChunk) {
        const WORDS: usize = 4;
        let Some(image) = self.images.at(chunk.process, chunk.number) else { return };
        let objects = &mut self.images.0[image].objects;
        let code = event.word(1)..event.word(2);
        // The file may be anybody's.
        if objects.len() < MOST_OBJECTS && !code.is_empty() {
            let path = event.text(WORDS).to_vec();
            objects.push(LoadedObject {
                since: event.time,
                base: event.word(0),
                code,
                build_id: event.word(3),
                path,
            });
        }
    }

    fn stack(&mut self, event: WireEvent<'_>, chunk: &RecordingChunk) {
        let Some(image) = self.images.at(chunk.process, chunk.number) else { return };
        let words = (0..event.words.len() / WORD).map(|number| event.word(number)).collect();
        let call = (chunk.process, chunk.thread, event.time);
        if self.stacks.len() == MOST_STACKS {
            return;
        }
        self.stacks.push(ThreadStack { call, image, words });
    }

    fn stub(&mut self, event: WireEvent<'_>, chunk: &RecordingChunk) {
        let word = event.word(0);
        let Some(watched) = FUNCTIONS.get((word & 0xFFFF) as usize) else { return };
        let module_bytes = (word >> 16 & 0xFFFF) as usize;
        let caller_bytes = (word >> 32 & 0xFFFF) as usize;
        let names = event.bytes(1);
        let module = names.get(..module_bytes).unwrap_or_default();
        let caller = names.get(module_bytes..module_bytes + caller_bytes).unwrap_or_default();
        let function = self.functions.id(CalledFunction {
            function: watched.name,
            family: watched.family,
            module: String::from_utf8_lossy(module).into_owned(),
            caller: String::from_utf8_lossy(caller).into_owned(),
        });
        if let Some(image) = self.images.at(chunk.process, chunk.number) {
            self.images.0[image].slots.insert(event.slot, function);
        }
    }
}

/// The second pass: what threads did.
struct Decoder<'a> {
    recording: &'a Recording,
    texts: HashMap<Box<[u8]>, TextId>,
    take: &'a mut dyn FnMut(Event),
}

impl Decoder<'_> {
    /// Hands over the events of a chunk.
    fn read(&mut self, chunk: &RecordingChunk) -> io::Result<()> {
        let Recording { file, scale, images, callers, .. } = self.recording;
        let content = chunk.content(file)?;
        let Some(image) = images.at(chunk.process, chunk.number) else { return Ok(()) };
        for event in events(&content) {
            let at = scale.moment(event.time);
            let function = || images.function(image, event.slot);
            let event = match event.kind {
                EVENT_PROCESS => Event::Executed(at),
                EVENT_ENTER => match function() {
                    Some(function) => Event::CallBegun(self.call_begun(event, at, function)),
                    None => Event::Alive(at),
                },
                EVENT_EXIT => Event::CallEnded(self.call_ended(event, at, function())),
                EVENT_LEAF => match function() {
                    Some(function) => Event::Libc(self.libc_calls(event, at, function)),
                    None => Event::Alive(at),
                },
                EVENT_ENDS => Event::ProcessEnded(process_end(event, at)),
                EVENT_STACK => match callers.get(&(chunk.process, chunk.thread, event.time)) {
                    Some(frames) if !frames.is_empty() => {
                        Event::CalledFrom(CalledFrom { at, frames: Arc::clone(frames) })
                    }
                    _ => Event::Alive(at),
                },
                EVENT_FIXED => Event::Injected { at, time: Nanos(event.word(0)) },
                _ => Event::Alive(at),
            };
            (self.take)(event);
        }
        Ok(())
    }

    fn call_begun(&mut self, event: WireEvent<'_>, at: Nanos, function: FunctionId) -> CallBegun {
        let mut begun = CallBegun {
            at,
            stub: StubId(event.slot),
            function,
            handle: event.word(0),
            detail: 0,
            operand: 0,
            only_length: event.flags & FLAG_LENGTH != 0,
            on_token: event.flags & FLAG_TOKEN != 0,
            sent: None,
            reader: None,
        };
        match self.recording.functions.get(function).function {
            name if exchanges(name) => {
                let bytes = event.word(2) as u32;
                let kept = event.bytes(ENTER_WORDS - HEAD);
                let command = kept.get(..kept.len().min(bytes as usize)).unwrap_or_default();
                begun.sent =
                    Some(SentCommand { command: command.into(), digest: event.word(1), bytes });
            }
            "SCardConnect" => begun.reader = Some(self.text(event.text(ENTER_WORDS - HEAD))),
            _ => {
                begun.detail = event.word(1);
                begun.operand = event.word(2);
            }
        }
        begun
    }

    fn call_ended(
        &self,
        event: WireEvent<'_>,
        at: Nanos,
        function: Option<FunctionId>,
    ) -> CallEnded {
        let word = event.word(1);
        let name = function.map(|function| self.recording.functions.get(function).function);
        CallEnded {
            at,
            stub: StubId(event.slot),
            end: match event.flags {
                flags if flags & FLAG_ABANDONED != 0 => End::Abandoned,
                flags if flags & FLAG_REPLACED != 0 => End::Replaced,
                _ => End::Returned,
            },
            result: event.word(0),
            outcome: if name.is_some_and(exchanges) {
                CallOutcome::Response {
                    status: word as u16,
                    bytes: (word >> 16) as u32 & 0xFFFF,
                    digest: (word >> 32) as u32,
                }
            } else if name.is_some_and(has_digest) {
                CallOutcome::Found { count: word as u32, digest: (word >> 32) as u32 }
            } else {
                CallOutcome::Made(word)
            },
        }
    }

    fn libc_calls(
        &mut self,
        event: WireEvent<'_>,
        start: Nanos,
        function: FunctionId,
    ) -> LibcCalls {
        let Recording { scale, functions, .. } = self.recording;
        let bytes = event.bytes(LEAF - HEAD);
        let text = match functions.get(function).family {
            _ if bytes.is_empty() => None,
            // A sockaddr has zeros inside.
            Family::Libc(Kind::Connect) => Some(self.text(bytes)),
            _ => Some(self.text(event.text(LEAF - HEAD))),
        };
        LibcCalls {
            start,
            end: (event.word(0) != 0).then(|| scale.moment(event.word(0))),
            function,
            count: event.word(1).min(u64::from(u32::MAX)) as u32,
            time: scale.duration(event.word(2)),
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

    /// The number of a text, which is declared when it first comes.
    fn text(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.insert(text.into(), id);
        (self.take)(Event::Text(text.into()));
        id
    }
}

fn process_end(event: WireEvent<'_>, at: Nanos) -> ProcessEnd {
    let ran = Nanos(event.word(1));
    let waited = Nanos(event.word(2));
    ProcessEnd {
        process: event.word(0) as u32,
        at,
        first_thread: (ran > Nanos::ZERO).then_some(Scheduled { ran, waited }),
        processor: Nanos(event.word(3)),
    }
}

/// Whether a function sends a command to a card and returns its response.
fn exchanges(function: &str) -> bool {
    matches!(function, "SCardTransmit" | "IFDHTransmitToICC")
}

/// Whether what a function answered is kept as a digest, so that it can be compared.
fn has_digest(function: &str) -> bool {
    matches!(
        function,
        "C_FindObjects"
            | "C_GetAttributeValue"
            | "C_GetInfo"
            | "C_GetSlotList"
            | "C_GetSlotInfo"
            | "C_GetTokenInfo"
            | "C_GetMechanismList"
            | "C_GetMechanismInfo"
    )
}

/// Where a chunk begins.
const fn chunk_start(number: u64) -> u64 {
    HEADER_BYTES as u64 + number * CHUNK_BYTES as u64
}

/// The events of a chunk, to the first that is not whole.
fn events(content: &[u8]) -> impl Iterator<Item = WireEvent<'_>> {
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
    file.read_exact_at(&mut head, std::mem::offset_of!(wire::Header, taken) as u64)?;
    // The file may be anybody's: more chunks than there can be are as many as there can be.
    let chunks = u64::from_ne_bytes(head).saturating_mul(CHUNK_BYTES as u64);
    Ok(chunks.saturating_add(HEADER_BYTES as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(since: &[u64], forked_from: Option<usize>) -> ProgramImage {
        let object = |since: &u64| LoadedObject {
            since: *since,
            base: 0,
            code: 0x1000..0x2000,
            build_id: *since,
            path: Vec::new(),
        };
        let program = Program { id: 1, parent: 0, program: String::new(), started: Nanos::ZERO };
        let objects = since.iter().map(object).collect();
        ProgramImage { program, since: 0, slots: HashMap::new(), objects, forked_from }
    }

    #[test]
    fn what_was_loaded_last_by_then_comes_first_and_the_parents_files_behind() {
        let images = ProgramImages(vec![image(&[2, 1, 9], None), image(&[3, 5], Some(0))]);
        let at = |image, time| -> Vec<u64> {
            images.objects(image, time).iter().map(|object| object.since).collect()
        };
        assert_eq!(at(0, 8), [2, 1]);
        assert_eq!(at(1, 4), [3, 2, 1]);
        assert_eq!(at(1, 9), [5, 3, 9, 2, 1]);
        assert_eq!(at(1, 0), [0; 0]);
    }
}
