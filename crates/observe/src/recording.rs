//! Reads the probe's file of events as a source of owned events.
//!
//! A file that is cut short is read as far as it goes: a chunk says how much of it is used, and an
//! event that does not fit there ends it.

mod chunks;
mod declarations;
mod decoder;
mod samples;
mod totals;
mod unannounced;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tapstone_events::system_calls::StackFrame;
use tapstone_events::{
    Event, EventSource, FUNCTIONS, FunctionId, Losses, ObservedRun, Program, SummedCalls,
    UnlistedCall, UnseenProgram,
};
use thiserror::Error;

pub use self::chunks::used;
use self::chunks::{RecordingChunk, used_chunks};
use self::declarations::{CallMoment, Declarations, Functions, ProgramImages, callers};
use self::decoder::Decoder;
use self::samples::{FunctionSamples, samples};
use self::totals::{Details, add_details, last_calls, summed_calls, summed_from};
use self::unannounced::unannounced;
use crate::clock::Scale;
use crate::starts;
use crate::wire::{CHUNK_EVENTS, CHUNK_LAST, CHUNK_TIMES, CHUNK_TOTALS};

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
    /// Calls that are in no thread.
    summed: Vec<SummedCalls>,
    /// The last of those.
    last_calls: Vec<UnlistedCall>,
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
        let chunks = used_chunks(&file)?;
        let that_hold = |content| chunks.iter().filter(move |chunk| chunk.holds == content);
        for chunk in that_hold(CHUNK_EVENTS).copied() {
            for part in declarations.read(chunk)? {
                threads.entry((part.process, part.thread)).or_default().push(part);
            }
        }
        let Declarations { images, functions, starts, stacks, .. } = declarations;
        let programs: Vec<Program> = images.programs().cloned().collect();
        let unseen = starts::unseen(starts, &programs, &unannounced(&file)?);
        let samples = samples(&file, &scale)?;
        let callers = callers(&images, stacks);
        let run = ObservedRun { summed_from: summed_from(&file, &scale)?, ..run };
        let mut details = Details::new();
        for chunk in that_hold(CHUNK_TIMES) {
            add_details(&file, &scale, &images, chunk, &mut details)?;
        }
        let mut summed = Vec::new();
        for chunk in that_hold(CHUNK_TOTALS) {
            summed.extend(summed_calls(&file, &scale, &images, chunk, &mut details)?);
        }
        let mut last = Vec::new();
        for chunk in that_hold(CHUNK_LAST) {
            last.extend(last_calls(&file, &scale, &images, chunk)?);
        }
        Ok(Self {
            file,
            scale,
            run,
            images,
            functions,
            threads,
            unseen,
            callers,
            summed,
            last_calls: last,
            samples,
        })
    }

    /// What the probe lost, and what it summed instead of listing it.
    #[must_use]
    pub fn with_sums(&self, losses: Losses) -> Losses {
        Losses {
            // The file may be anybody's.
            summed: self.summed.iter().fold(0, |all, calls| calls.count.saturating_add(all)),
            summed_after: self.run.summed_from.unwrap_or_default() - self.run.started,
            ..losses
        }
    }

    /// The process of the first program that was seen.
    pub(crate) fn first_process(&self) -> Option<u32> {
        self.images.programs().map(|program| program.id).next()
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
        self.summed.iter().cloned().map(Event::Summed).for_each(&mut *take);
        self.last_calls.iter().copied().map(Event::Unlisted).for_each(&mut *take);
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
