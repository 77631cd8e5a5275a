//! A record as text and as a file. A file is either the old one or the whole new one, never a
//! part; and nothing is written that could not be read again.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::RecordError;
use crate::record::{Record, SchemaName};

impl Record {
    /// Reads a record from a file.
    ///
    /// # Errors
    /// When there is no such file, when it is no record of this version, and when a field is
    /// malformed: the error then names file, line and field.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| RecordError::Read { path: path.into(), source })?;
        Self::from_json(&text, path)
    }

    /// Reads a record from text. `origin` is what errors call it.
    ///
    /// # Errors
    /// As [`Record::read`], apart from the file.
    pub fn from_json(text: &str, origin: impl AsRef<Path>) -> Result<Self, RecordError> {
        let origin = origin.as_ref();
        check_schema(text, origin)?;
        parse(text).map_err(|Fault { field, error }| RecordError::Malformed {
            path: origin.into(),
            line: error.line(),
            column: error.column(),
            field,
            reason: without_place(&error),
        })
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
        parse(&text).map_err(|Fault { field, error }| unwritable(field, &error))?;
        Ok(text)
    }

    /// Writes the record to a file, which keeps its old content until the new one is complete.
    ///
    /// What is no file (`/dev/stdout`, a pipe) is written to directly.
    ///
    /// # Errors
    /// As [`Record::to_json`], and when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), RecordError> {
        let path = path.as_ref();
        write_file(path, self.to_json()?.as_bytes())
    }
}

/// Writes a file whole or not at all, as records are written.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: impl AsRef<Path>, content: &[u8]) -> Result<(), RecordError> {
    let path = path.as_ref();
    let written = if is_special(path) {
        fs::write(path, content)
    } else {
        replace(&through_links(path), content)
    };
    written.map_err(|source| RecordError::Write { path: path.into(), source })
}

/// Whether something other than a file is there: renaming a file over it would destroy it.
pub(crate) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Makes sure that the names of a folder are on the disk, not only the content of its files.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The file that a symbolic link leads to, so that the link itself stays.
fn through_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes beside the file and renames: rename(2) is atomic within a folder.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = tempfile::Builder::new()
        .prefix(".tapstone-")
        // Less the umask, as for any other file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))?;
    temporary.write_all(content)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// What is wrong, and with which field.
struct Fault {
    field: String,
    error: serde_json::Error,
}

fn parse(text: &str) -> Result<Record, Fault> {
    let mut json = serde_json::Deserializer::from_str(text);
    let record = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Fault { field: error.path().to_string(), error: error.into_inner() })?;
    json.end().map_err(|error| Fault { field: "after the record".into(), error })?;
    Ok(record)
}

/// Refuses other versions before their fields can look malformed.
fn check_schema(text: &str, origin: &Path) -> Result<(), RecordError> {
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
        Ok(head) if head.schema == SchemaName::V1.as_str() => Ok(()),
        Ok(head) => Err(RecordError::OtherSchema { path: origin.into(), found: head.schema }),
        Err(error) if error.is_data() => no_record(without_place(&error)),
        // Broken JSON, or cut off: reading the whole says where, and in which field.
        Err(_) => Ok(()),
    }
}

/// The message of an error without serde_json's own "at line 1 column 2".
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].to_owned(),
        None => text,
    }
}
