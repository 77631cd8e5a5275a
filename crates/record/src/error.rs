//! What can go wrong between a record and its file, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::record::SchemaName;
use crate::version_1;

/// A record could not be read or written. Its text ends with a hint.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {source}\nhint: check the path and its permissions", path.display())]
    Read {
        /// The path of the file that could not be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is JSON, but of something else.
    #[error(
        "{} is not a Tapstone record: {reason}\nhint: a record is a JSON object that starts with \
         \"schema\": \"{}\"", path.display(), SchemaName::V2.as_str()
    )]
    NotARecord {
        /// The path of the file that is no record.
        path: PathBuf,
        /// What is missing or malformed, as a sentence.
        reason: String,
    },
    /// The file is a record of a version that this program does not know.
    #[error(
        "{} is a \"{found}\", and this version reads \"{}\" and \"{}\"\nhint: read it with the \
         version of Tapstone that wrote it (its \"tool.version\"), or with a newer one",
        path.display(), SchemaName::V2.as_str(), version_1::SCHEMA
    )]
    OtherSchema {
        /// The path of the file of another format version.
        path: PathBuf,
        /// The version that it declares.
        found: String,
    },
    /// The file is cut off, or a field is missing or holds something that it cannot.
    #[error(
        "{}{}: {field}: {reason}\nhint: the file was cut off or changed by hand; correct the \
         field, or measure again", path.display(), behind_the_path(position)
    )]
    Malformed {
        /// The path of the file that could not be parsed.
        path: PathBuf,
        /// Where in the file; not known of a record of version 1, whose fields are renamed before
        /// they are read.
        position: Option<Position>,
        /// The field, for example `results[0].window.seconds`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A figure of the record is infinite or not a number, which JSON cannot hold.
    #[error(
        "cannot write {field}: {reason}\nhint: a figure that is not known must be left out, not \
         written as NaN or infinity; please report this as a defect of Tapstone"
    )]
    Unwritable {
        /// The field, for example `results[0].throughput.estimate`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file could not be written. A file that was there before is untouched.
    #[error(
        "cannot write {}: {source}\nhint: check that the folder exists, may be written to, and \
         has space left", path.display()
    )]
    Write {
        /// The path of the file that could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// As compilers say it: `run.json:12:5`.
fn behind_the_path(position: &Option<Position>) -> String {
    position.map_or_else(String::new, |Position { line, column }| format!(":{line}:{column}"))
}
