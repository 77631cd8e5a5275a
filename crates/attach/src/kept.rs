//! A file of calls that were watched, to be looked at again: `tapstone trace --pid PID --events FILE`.
//!
//! It begins with [`MAGIC`] and the length of a head in eight bytes, little-endian. The head is JSON:
//! the run, its programs with their code, and the functions that were watched. Behind it stand the
//! calls as the kernel told them. Numbers of sessions and objects, lengths, which attributes a template
//! has, and digests under a key that nobody has any more are in it; of the values of attributes only
//! CKA_CLASS and CKA_TOKEN, no PIN and no data.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tapstone_events::{FUNCTIONS, ObservedRun, Program};
use tapstone_measure::units::Nanos;
use thiserror::Error;

use crate::calibration::ProbeCost;
use crate::functions::WatchedFunction;
use crate::process::Mapping;
use crate::source::AttachedEvents;

/// What such a file begins with. The last byte is the version of what follows.
pub const MAGIC: [u8; 16] = *b"tapstone watch\0\x02";

/// No head of a run is as long, in bytes.
const LONGEST_HEAD: u64 = 64 << 20;

/// Calls that were watched, and what to know of them.
#[derive(Debug)]
pub struct KeptWatch {
    /// The calls, one by one.
    pub events: AttachedEvents,
    /// Of some modules only the beginnings of calls were seen.
    pub has_unseen_returns: bool,
    /// What was said of the run when it was watched.
    pub warnings: Vec<String>,
    /// Bytes that are missing at the file's end: it was cut short.
    pub missing: u64,
}

/// Why such a file cannot be read.
#[derive(Debug, Error)]
pub enum KeptError {
    /// The system says no.
    #[error("{}: {why}\nhint: `tapstone trace --pid PID --events FILE` keeps one", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It begins like one, and goes on in another way.
    #[error(
        "{}: events of a watched program, but damaged: {why}\nhint: watch the program again, with \
         --events",
        path.display()
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    started: Nanos,
    ended: Nanos,
    dropped: u64,
    cost: ProbeCost,
    has_load: bool,
    functions: Vec<HeadFunction>,
    programs: Vec<HeadProgram>,
    code: BTreeMap<u32, Vec<Mapping>>,
    has_unseen_returns: bool,
    warnings: Vec<String>,
    /// Bytes that follow.
    bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeadFunction {
    name: String,
    module: String,
    is_stepped: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeadProgram {
    id: u32,
    parent: u32,
    program: String,
    started: Nanos,
}

impl KeptWatch {
    /// Writes them to where they can be read again.
    ///
    /// # Errors
    /// When reading or writing fails.
    pub fn write(
        events: &AttachedEvents,
        has_unseen_returns: bool,
        warnings: &[String],
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let mut calls = events.calls()?;
        let bytes = calls.get_ref().metadata()?.len() - events.begin;
        let functions = events.functions.iter().map(|it| HeadFunction {
            name: it.name.to_owned(),
            module: it.module.clone(),
            is_stepped: it.is_stepped,
        });
        let programs = events.programs.iter().cloned();
        let programs = programs.map(|Program { id, parent, program, started }| HeadProgram {
            id,
            parent,
            program,
            started,
        });
        let head = Head {
            started: events.run.started,
            ended: events.run.ended,
            dropped: events.run.dropped,
            cost: events.cost,
            has_load: events.has_load,
            functions: functions.collect(),
            programs: programs.collect(),
            code: events.code.clone(),
            has_unseen_returns,
            warnings: warnings.to_vec(),
            bytes,
        };
        let head = serde_json::to_vec(&head)?;
        to.write_all(&MAGIC)?;
        to.write_all(&(head.len() as u64).to_le_bytes())?;
        to.write_all(&head)?;
        io::copy(&mut calls, to)?;
        Ok(())
    }

    /// Reads a file's head; its calls are read when they are asked for. `None`: it is another kind
    /// of file.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<Option<Self>, KeptError> {
        let failed = |why| KeptError::Read { path: path.to_owned(), why };
        let mut file = File::open(path).map_err(failed)?;
        let mut begin = [0; MAGIC.len()];
        match file.read_exact(&mut begin) {
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(failed)?,
        }
        if begin != MAGIC {
            return Ok(None);
        }
        let damaged = |why: String| KeptError::Damaged { path: path.to_owned(), why };
        let head = read_head(&mut file).map_err(failed)?;
        let head = head.ok_or_else(|| damaged("it ends within its head".to_owned()))?;
        let head: Head = serde_json::from_slice(&head).map_err(|why| damaged(why.to_string()))?;
        let functions = head.functions.into_iter().map(watched_function);
        let functions = functions.collect::<Result<_, _>>().map_err(damaged)?;
        if head.ended < head.started || head.ended.0 > i64::MAX as u64 {
            return Err(damaged("it ends before it begins".to_owned()));
        }
        let begin = file.stream_position().map_err(failed)?;
        let there = file.metadata().map_err(failed)?.len().saturating_sub(begin);
        let programs = head.programs.into_iter().map(|it| Program {
            id: it.id,
            parent: it.parent,
            program: it.program,
            started: it.started.clamp(head.started, head.ended),
        });
        let run = ObservedRun {
            started: head.started,
            ended: head.ended,
            dropped: head.dropped,
            ..ObservedRun::default()
        };
        let programs = programs.collect();
        let mut events = AttachedEvents {
            file,
            begin,
            functions,
            programs,
            code: head.code,
            run,
            cost: head.cost,
            has_load: head.has_load,
        };
        events.run.dropped = run.dropped.saturating_add(events.count_damaged().map_err(failed)?);
        Ok(Some(Self {
            events,
            has_unseen_returns: head.has_unseen_returns,
            warnings: head.warnings,
            missing: head.bytes.saturating_sub(there),
        }))
    }
}

/// `None`: the file is too short for it.
fn read_head(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match file.read_exact(&mut length) {
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u64::from_le_bytes(length);
    let mut head = Vec::new();
    let read = file.take(length.min(LONGEST_HEAD)).read_to_end(&mut head)?;
    Ok((read as u64 == length).then_some(head))
}

fn watched_function(head: HeadFunction) -> Result<WatchedFunction, String> {
    let known = FUNCTIONS.iter().find(|it| it.name == head.name);
    let known = known.ok_or_else(|| format!("no function is called {:?}", head.name))?;
    Ok(WatchedFunction {
        name: known.name,
        family: known.family,
        module: head.module,
        is_stepped: head.is_stepped,
        others: BTreeSet::new(),
        is_called: true,
    })
}
