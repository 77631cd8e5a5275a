//! Where calls came from: the stacks that the probe has kept, frame by frame, with names.
//!
//! The probe keeps of a stack only what unwinding needs ([`tapstone_probe_core::callers`]). Frames
//! are undone here, by the unwinding tables of the files of code that were loaded. A stack ends
//! where these tables do: in code that was made at run time, on another stack, or beyond what the
//! probe has looked at.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder};
use tapstone_events::system_calls::StackFrame;
use tapstone_probe_core::callers::{STACK_BYTES, place_and_word};

use crate::code::{CodeImage, SourceFrame, Sources, demangled, file_name};
use crate::wire::PROBE_NAME;

/// Frames further out than these are not looked for.
const MOST_FRAMES: usize = 64;
const WORD: u64 = 8;

/// A file of code that a program had loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoadedObject {
    /// When the probe first met it, on its own clock: later than what was there before.
    pub(crate) since: u64,
    /// From the addresses that it is linked for to where it was.
    pub(crate) base: u64,
    /// Where its code was.
    pub(crate) code: Range<u64>,
    /// The first eight bytes of its build id; 0 where it has none.
    pub(crate) build_id: u64,
    /// Its path as the dynamic linker knows it; empty for the program itself.
    pub(crate) path: Vec<u8>,
}

/// A stack as the probe kept it.
#[derive(Clone, Debug)]
pub(crate) struct KeptStack {
    /// What the program had loaded by then, for all that is known. Where two overlap, the first is
    /// what was there.
    pub(crate) objects: Arc<[LoadedObject]>,
    /// The program's own file.
    pub(crate) program: PathBuf,
    /// The words of the event.
    pub(crate) words: Vec<u64>,
}

/// A frame before it has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct CodePlace {
    /// Which file, in the order in which they were met.
    file: usize,
    /// The address that it is linked for. It is one that a call returns to.
    address: u64,
}

/// The frames of each stack, the innermost first: the function that made the call.
pub(crate) fn named_frames(stacks: &[KeptStack]) -> Vec<Arc<[StackFrame]>> {
    let mut files = CodeFiles::default();
    let places: Vec<Vec<CodePlace>> = {
        let mut spaces: HashMap<(&Path, &[LoadedObject]), Space> = HashMap::new();
        let places = stacks.iter().map(|stack| {
            let space = spaces
                .entry((&stack.program, &stack.objects))
                .or_insert_with(|| Space::new(&mut files, stack));
            space.places(&stack.words)
        });
        places.collect()
    };
    let all: BTreeSet<CodePlace> = places.iter().flatten().copied().collect();
    let names = files.names(&all);
    let frames = |places: Vec<CodePlace>| places.iter().flat_map(|it| names[it].clone()).collect();
    places.into_iter().map(frames).collect()
}

/// The code that a program had loaded.
struct Space {
    objects: Vec<SpaceObject>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: CacheX86_64,
}

/// A stretch of code.
struct SpaceObject {
    code: Range<u64>,
    base: u64,
    /// None for the probe's own.
    file: Option<usize>,
}

impl Space {
    fn new(files: &mut CodeFiles, stack: &KeptStack) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        let mut objects: Vec<SpaceObject> = Vec::new();
        for object in &*stack.objects {
            let LoadedObject { base, code, build_id, path, .. } = object;
            let overlaps =
                |other: &SpaceObject| other.code.start < code.end && code.start < other.code.end;
            if objects.iter().any(overlaps) {
                continue;
            }
            let file = (path != PROBE_NAME).then(|| {
                let path = if path.is_empty() {
                    &stack.program
                } else {
                    Path::new(OsStr::from_bytes(path))
                };
                let file = files.number(path, *build_id);
                if let Some(layout) = files.list[file].layout() {
                    let name = String::new();
                    unwinder.add_module(Module::new(name, code.clone(), *base, layout.unwinding()));
                }
                file
            });
            objects.push(SpaceObject { code: code.clone(), base: *base, file });
        }
        Self { objects, unwinder, cache: CacheX86_64::new() }
    }

    /// The frames of a stack, the innermost first, without those of the probe.
    fn places(&mut self, words: &[u64]) -> Vec<CodePlace> {
        let [stack_pointer, frame_pointer, returns_to, kept @ ..] = words else {
            return Vec::new();
        };
        let stack: HashMap<u64, u64> = kept.iter().map(|word| place_and_word(*word)).collect();
        // What was not kept is no address: a register that a function has saved and its caller uses
        // for something else.
        let mut word = |address: u64| match address.checked_sub(*stack_pointer) {
            Some(offset) if offset < STACK_BYTES as u64 && offset % WORD == 0 => {
                Ok(stack.get(&(offset / WORD)).copied().unwrap_or(0))
            }
            _ => Err(()),
        };
        let mut registers = UnwindRegsX86_64::new(*returns_to, *stack_pointer, *frame_pointer);
        let mut places = Vec::new();
        let mut next = FrameAddress::from_return_address(*returns_to);
        for _ in 0..MOST_FRAMES {
            let Some(address) = next else { break };
            let at = address.address_for_lookup();
            let Some(object) = self.objects.iter().find(|it| it.code.contains(&at)) else { break };
            next = match object.file {
                Some(file) => {
                    let linked_for = address.address().wrapping_sub(object.base);
                    places.push(CodePlace { file, address: linked_for });
                    let Self { unwinder, cache, .. } = self;
                    let caller = unwinder.unwind_frame(address, &mut registers, cache, &mut word);
                    caller.ok().flatten().and_then(FrameAddress::from_return_address)
                }
                None => caller_of_stub(&mut registers, &mut word),
            };
        }
        places
    }
}

/// From the probe's own frame to that of its caller: it keeps a frame pointer.
fn caller_of_stub(
    registers: &mut UnwindRegsX86_64,
    word: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<FrameAddress> {
    let frame = registers.bp();
    let returns_to = word(frame.checked_add(WORD)?).ok()?;
    let base = word(frame).ok()?;
    *registers = UnwindRegsX86_64::new(returns_to, frame.checked_add(2 * WORD)?, base);
    FrameAddress::from_return_address(returns_to)
}

/// All files of code that stacks lead into.
#[derive(Default)]
struct CodeFiles {
    list: Vec<CodeImage>,
    names: Vec<Arc<str>>,
    numbers: HashMap<(PathBuf, u64), usize>,
}

impl CodeFiles {
    fn number(&mut self, path: &Path, build_id: u64) -> usize {
        let Self { list, names, numbers } = self;
        *numbers.entry((path.to_owned(), build_id)).or_insert_with(|| {
            names.push(file_name(&path.to_string_lossy()).into());
            list.push(CodeImage::of_build(path, build_id));
            list.len() - 1
        })
    }

    /// The functions at each place: several where some were inlined.
    fn names(&self, places: &BTreeSet<CodePlace>) -> HashMap<CodePlace, Vec<StackFrame>> {
        let mut all = HashMap::new();
        for (file, image) in self.list.iter().enumerate() {
            let here: Vec<CodePlace> =
                places.iter().copied().filter(|place| place.file == file).collect();
            if here.is_empty() {
                continue;
            }
            // A call may be the last thing in its function: what it returns to is behind that.
            let calls: Vec<u64> = here.iter().map(|place| place.address.wrapping_sub(1)).collect();
            let sources = image.sources();
            for (place, function) in here.iter().zip(image.functions(&calls)) {
                let start = function.as_ref().map_or(0, |function| function.start);
                let symbol = StackFrame {
                    module: Arc::clone(&self.names[file]),
                    function: function.map(|function| demangled(&function.name)),
                    offset: place.address.wrapping_sub(start),
                    source: None,
                };
                all.insert(
                    *place,
                    with_source(symbol, sources.as_ref(), place.address.wrapping_sub(1)),
                );
            }
        }
        all
    }
}

/// A frame as its file's symbols have it, with what its debug information adds.
fn with_source(symbol: StackFrame, sources: Option<&Sources>, address: u64) -> Vec<StackFrame> {
    let found = sources.map_or_else(Vec::new, |sources| sources.frames_at(address));
    if found.is_empty() {
        return vec![symbol];
    }
    let frame = |source: SourceFrame| StackFrame {
        function: source.function.or_else(|| symbol.function.clone()),
        source: source.source,
        ..symbol.clone()
    };
    found.into_iter().map(frame).collect()
}
