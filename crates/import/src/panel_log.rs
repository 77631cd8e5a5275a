//! The log of an access-control panel: how long each stage of an authentication took at a real door.
//!
//! Every panel logs in its own way, so a map in TOML says which column is what. A log has either a
//! line for each event, of which those of one transaction belong together, or a line for each
//! transaction, with a moment or a length of time for each stage.
//!
//! A log is read once, line by line; what is kept does not grow with it. Lines that cannot be read
//! are counted and skipped, and the first of them are told.
//!
//! **Resolution.** Panels often log tenths of a second. The coarsest step on which nearly all
//! moments lie is taken for the log's resolution. A difference of two moments is known to one such
//! step either way, so every interval is wider by it on both sides.

mod bounded;
mod contradiction;
mod exchange;
mod first_of;
mod map;
mod moment;
mod order;
mod reading;
mod stage;

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use tapstone_files::{FileLimit, LimitedFile};
use tapstone_record::{self as record, Record, Target, TargetKind, Tool};
use tapstone_text::thousands;

pub use map::{Map, MapError};

use self::reading::Reading;
use crate::{ImportError, SkippedLine};

/// What was read from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct PanelLog {
    /// The record, with a case for each stage.
    pub record: Record,
    /// The first lines that could not be read.
    pub skipped: Vec<SkippedLine>,
    /// How many there are in all.
    pub lines_skipped: u64,
}

/// A year of a large site has some ten million lines.
const LARGEST: FileLimit = FileLimit::mebibytes(1024);

/// Reads a log by a map. `tool` is the program that writes the record.
///
/// # Errors
/// When the file cannot be read, has not the columns of the map, or holds no stage at all.
pub fn read(path: &Path, map: &Map, tool: Tool) -> Result<PanelLog, ImportError> {
    let unreadable = |source| ImportError::Read { path: path.into(), source };
    let file = LimitedFile::open(path, LARGEST).map_err(unreadable)?;
    from_reader(file, path, map, tool)
}

/// Reads a log from wherever it comes; `path` is what it is called.
///
/// # Errors
/// As [`read`].
pub fn from_reader(
    source: impl Read,
    path: &Path,
    map: &Map,
    tool: Tool,
) -> Result<PanelLog, ImportError> {
    let mut digest = Hashing { inner: source, sha256: Sha256::new() };
    let reading = Reading::open(&mut digest, map, path)?;
    let sha256 = hex::encode(digest.sha256.finalize());
    if reading.stages.iter().all(|stage| stage.completed() == 0) {
        return Err(ImportError::NoStages {
            path: path.into(),
            lines: reading.lines,
            why: reading.skipped.first().map_or_else(
                || "no transaction has both ends of a stage".into(),
                |line| format!("line {}: {}", line.line, line.why),
            ),
        });
    }
    Ok(log(path, map, tool, &reading, sha256))
}

fn log(path: &Path, map: &Map, tool: Tool, reading: &Reading, sha256: String) -> PanelLog {
    let started_at = reading.moments.first().unwrap_or_default();
    let target = Target::new(TargetKind::Door);
    let mut record = Record::new(tool, started_at, record::Environment::default(), target);
    record.imported = Some(record::Imported {
        format: "panel-log".into(),
        file: path.display().to_string(),
        sha256,
        made_by: map.made_by.clone(),
        lines_skipped: reading.lines_skipped,
    });
    let resolution = reading.moments.resolution();
    record.results = reading.stages.iter().map(|stage| stage.case(resolution)).collect();
    record.warnings = warnings(reading);
    PanelLog { record, skipped: reading.skipped.clone(), lines_skipped: reading.lines_skipped }
}

/// What holds for all cases.
fn warnings(reading: &Reading) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(step) = reading.moments.resolution() {
        warnings.push(format!(
            "the log's moments are {step} apart: every interval is wider by that on both sides"
        ));
    }
    if reading.moments.local {
        warnings.push("the log gives local time without its zone: it is taken for UTC".into());
    }
    if reading.lines_skipped > 0 {
        warnings.push(format!(
            "{} of {} lines could not be read, and are not in the figures",
            thousands(reading.lines_skipped),
            thousands(reading.lines)
        ));
    }
    if reading.unfinished > 0 {
        warnings.push(format!(
            "{} began and did not end: open stages are not in the figures",
            match reading.unfinished {
                1 => "1 transaction".to_owned(),
                more => format!("{} transactions", thousands(more)),
            }
        ));
    }
    if reading.other_events > 0 {
        warnings.push(format!(
            "{} lines are of events that the map does not use",
            thousands(reading.other_events)
        ));
    }
    warnings
}

/// Passes on what it reads, and keeps its digest.
struct Hashing<R> {
    inner: R,
    sha256: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sha256.update(&buffer[..read]);
        Ok(read)
    }
}
