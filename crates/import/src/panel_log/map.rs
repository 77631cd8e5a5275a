//! Which column of a log is what.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tapstone_files::{FileLimit, read_text};
use thiserror::Error;

use super::moment::MomentFormat;

/// Which column of a log is what, from TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// The panel, as the record is to name it.
    #[serde(default)]
    pub made_by: Option<String>,
    /// What stands between two fields: one character, usually a comma.
    #[serde(default = "comma")]
    pub(super) delimiter: char,
    /// How moments are written; see [`MomentFormat`].
    #[serde(default)]
    pub(super) format: MomentFormat,
    /// A line for each event: which columns say when, of which transaction, and what.
    #[serde(default)]
    pub(super) events: Option<Events>,
    pub(super) stage: Vec<StageMap>,
}

/// The columns of a log with a line for each event.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    pub(super) time: String,
    pub(super) transaction: String,
    pub(super) event: String,
}

/// A stage: between two events, between two columns, or a column with lengths of time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageMap {
    pub(super) operation: String,
    #[serde(default)]
    pub(super) from: Option<String>,
    #[serde(default)]
    pub(super) to: Option<String>,
    #[serde(default)]
    pub(super) length: Option<String>,
    #[serde(default)]
    pub(super) unit: Option<DurationUnit>,
}

/// The unit of a column with lengths of time.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum DurationUnit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
}

impl DurationUnit {
    pub(super) const fn nanos(self) -> f64 {
        match self {
            Self::Seconds => 1e9,
            Self::Milliseconds => 1e6,
            Self::Microseconds => 1e3,
        }
    }
}

const fn comma() -> char {
    ','
}

/// A map that cannot be used. The text ends with a hint.
#[derive(Debug, Error)]
pub enum MapError {
    /// The file could not be read.
    #[error("cannot read {}: {source}\nhint: check the path and its permissions", path.display())]
    Read {
        /// The path of the map's file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no map.
    #[error("{}, line {line}: {why}\nhint: {HINT}", path.display())]
    Syntax {
        /// The path of the map's file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, as part of a sentence.
        why: String,
    },
    /// It says too little, or too much.
    #[error("{}: {why}\nhint: {HINT}", path.display())]
    Stage {
        /// The path of the map's file.
        path: PathBuf,
        /// What is wrong, as part of a sentence.
        why: String,
    },
}

const HINT: &str = "a map has [events] with time, transaction and event, and [[stage]] with \
                    operation, from and to; or without events [[stage]] with operation and \
                    columns: from and to, or length and unit";

impl Map {
    /// Reads a map.
    ///
    /// # Errors
    /// When it cannot be read, or does not say enough.
    pub fn read(path: &Path) -> Result<Self, MapError> {
        let text = read_text(path, FileLimit::TOML)
            .map_err(|source| MapError::Read { path: path.into(), source })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a map; `path` is what it is called in errors.
    ///
    /// # Errors
    /// When it does not say enough.
    pub fn parse(text: &str, path: &Path) -> Result<Self, MapError> {
        let map: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            MapError::Syntax {
                path: path.into(),
                line: text[..start].matches('\n').count() + 1,
                why: error.message().trim_end().to_owned(),
            }
        })?;
        let wrong = |why: String| Err(MapError::Stage { path: path.into(), why });
        if map.stage.is_empty() {
            return wrong("it has no stage".into());
        }
        if !map.delimiter.is_ascii() {
            return wrong(format!("{:?} is no delimiter", map.delimiter));
        }
        for (at, stage) in map.stage.iter().enumerate() {
            let name = &stage.operation;
            if map.stage[..at].iter().any(|other| &other.operation == name) {
                return wrong(format!("a second stage {name:?}"));
            }
            match (&stage.from, &stage.to, &stage.length, stage.unit) {
                (Some(from), Some(to), None, None) if from != to => {}
                (None, None, Some(_), Some(_)) if map.events.is_none() => {}
                _ => return wrong(format!("stage {name:?} has not what a stage has")),
            }
        }
        Ok(map)
    }
}
