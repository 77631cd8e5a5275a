//! A record as text and as a file; nothing is written that could not be read again.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tapstone_files::{Access, FileLimit};

use crate::error::{Position, RecordError};
use crate::record::{Record, SchemaName};
use crate::unique_fields::UniqueFields;
use crate::version_1;

impl Record {
    /// Reads a record from a file.
    ///
    /// # Errors
    /// When there is no such file, when it is no record of version 1 or 2, and when a field is
    /// malformed: the error then names file, line and field; of a record of version 1 the field as
    /// version 2 calls it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let text = tapstone_files::read_text(path, FileLimit::RECORD)
            .map_err(|source| RecordError::Read { path: path.into(), source })?;
        Self::from_json(&text, path)
    }

    /// Reads a record from text. `origin` is what errors call it.
    ///
    /// # Errors
    /// As [`Record::read`], apart from the file.
    pub fn from_json(text: &str, origin: impl AsRef<Path>) -> Result<Self, RecordError> {
        let origin = origin.as_ref();
        let malformed = |Fault { field, error }| RecordError::Malformed {
            path: origin.into(),
            position: position(&error),
            field,
            reason: without_place(&error),
        };
        match version(text, origin)? {
            Version::Current => parse(text),
            Version::One => {
                parse::<UniqueFields>(text).and_then(|_| parse(text)).and_then(from_version_1)
            }
            // Broken JSON, or cut off: said with the field in which that is.
            Version::Unreadable => parse::<Value>(text).and_then(|_| parse(text)),
        }
        .map_err(malformed)
    }

    /// The record as indented JSON that ends with a new line.
    ///
    /// # Errors
    /// When a figure is infinite or not a number, and is not one that may be null: named by field.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let unwritable = |field, error: &serde_json::Error| RecordError::Unwritable {
            field,
            reason: without_place(error),
        };
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| unwritable("the record".into(), &error))?;
        text.push('\n');
        // JSON has no NaN: serde_json writes null, which only shows when it is read.
        parse::<Self>(&text).map_err(|Fault { field, error }| unwritable(field, &error))?;
        Ok(text)
    }

    /// Writes the record to a file, which keeps its old content until the new one is complete.
    ///
    /// What is no file (`/dev/stdout`, a pipe) is written to directly. `access` is for a file that
    /// was not there before.
    ///
    /// # Errors
    /// As [`Record::to_json`], and when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, access: Access) -> Result<(), RecordError> {
        let path = path.as_ref();
        let text = self.to_json()?;
        tapstone_files::write_whole(path, access, |to| to.write_all(text.as_bytes()))
            .map_err(|source| RecordError::Write { path: path.into(), source })
    }
}

/// What is wrong, and with which field.
struct Fault {
    field: String,
    error: serde_json::Error,
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(Fault::from)?;
    json.end().map_err(|error| Fault { field: "after the record".into(), error })?;
    Ok(parsed)
}

fn from_version_1(mut record: Value) -> Result<Record, Fault> {
    version_1::rename_fields(&mut record);
    record["schema"] = SchemaName::V2.as_str().into();
    serde_path_to_error::deserialize(record).map_err(Fault::from)
}

impl From<serde_path_to_error::Error<serde_json::Error>> for Fault {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self { field: error.path().to_string(), error: error.into_inner() }
    }
}

/// Which version of the format a text says that it is.
enum Version {
    Current,
    One,
    /// It is no JSON as a whole.
    Unreadable,
}

/// Refuses other versions before their fields can look malformed.
fn version(text: &str, origin: &Path) -> Result<Version, RecordError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let no_record = |reason: String| Err(RecordError::NotARecord { path: origin.into(), reason });
    match text.trim_start().chars().next() {
        None => return no_record("the file is empty".into()),
        Some('{') => {}
        Some(_) => return no_record("it is no JSON object".into()),
    }
    match serde_json::from_str::<Head>(text) {
        Ok(head) if head.schema == SchemaName::V2.as_str() => Ok(Version::Current),
        Ok(head) if head.schema == version_1::SCHEMA => Ok(Version::One),
        Ok(head) => Err(RecordError::OtherSchema { path: origin.into(), found: head.schema }),
        Err(error) if error.is_data() => no_record(without_place(&error)),
        Err(_) => Ok(Version::Unreadable),
    }
}

/// Where in the text; nothing of an error that was found in its values alone.
fn position(error: &serde_json::Error) -> Option<Position> {
    (error.line() > 0).then(|| Position { line: error.line(), column: error.column() })
}

/// The message of an error without serde_json's own "at line 1 column 2".
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].to_owned(),
        None => text,
    }
}
