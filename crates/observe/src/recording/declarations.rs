//! The first pass over a file of events: programs, functions and stacks, which one thread declares
//! and others use.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::iter;
use std::sync::Arc;

use tapstone_events::system_calls::StackFrame;
use tapstone_events::{CalledFunction, FUNCTIONS, FunctionId, Program};

use super::chunks::{HEAD, RecordingChunk, WORD, WireEvent, events};
use crate::callers::{KeptStack, LoadedObject, named_frames};
use crate::clock::Scale;
use crate::starts::Start;
use crate::wire::{
    EVENT_FORKED, EVENT_OBJECT, EVENT_PROCESS, EVENT_SLOT, EVENT_STACK, EVENT_STARTS, EVENT_THREAD,
    STARTS_CHILD,
};

/// Files of code that the stacks of a program lead into, at most.
const MOST_OBJECTS: usize = 512;
/// Stacks of a run, at most: a process keeps three from each of a thousand places.
const MOST_STACKS: usize = 1 << 14;

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
pub(super) struct ProgramImages(Vec<ProgramImage>);

impl ProgramImages {
    /// The image of a process at a chunk.
    pub(super) fn at(&self, process: u32, chunk: u64) -> Option<usize> {
        self.0.iter().rposition(|image| image.program.id == process && image.since <= chunk)
    }

    pub(super) fn function(&self, image: usize, slot: u32) -> Option<FunctionId> {
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

    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.0.iter().map(|image| &image.program)
    }
}

/// Functions as they were called, each once.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) list: Vec<CalledFunction>,
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

    pub(super) fn get(&self, id: FunctionId) -> &CalledFunction {
        &self.list[id.0 as usize]
    }
}

/// The first pass: programs and stubs are declared by one thread and used by others.
pub(super) struct Declarations<'a> {
    pub(super) file: &'a File,
    pub(super) scale: &'a Scale,
    pub(super) images: ProgramImages,
    pub(super) functions: Functions,
    pub(super) starts: Vec<Start>,
    pub(super) stacks: Vec<ThreadStack>,
}

/// A call by its process, its thread and the time that the probe noted for it.
pub(super) type CallMoment = (u32, u32, u64);

/// A stack, and whose it was.
pub(super) struct ThreadStack {
    call: CallMoment,
    image: usize,
    words: Vec<u64>,
}

/// Where the calls came from whose stacks were kept.
pub(super) fn callers(
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
    pub(super) fn read(&mut self, mut chunk: RecordingChunk) -> io::Result<Vec<RecordingChunk>> {
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

#[cfg(test)]
mod tests {
    use tapstone_measure::units::Nanos;

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
