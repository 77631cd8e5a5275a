//! Where card data lies: a folder that appears whole or not at all, or a TOML file.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use serde::Deserialize;
use tapstone_files::{FileLimit, read_bytes, read_text};
use zeroize::Zeroizing;

use super::{CardDataError, Files, KEYS, key_file};
use crate::piv::{object, tlv};

/// Not on the card: who issued it.
pub(super) const CA_CERTIFICATE: &str = "ca.der";
pub(super) const CA_KEY: &str = "ca.p8";

/// The file in one: `pin = "123456"`, and below `[files]` names with their contents in hex.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    pin: Option<String>,
    puk: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Whether a card can be made under this name: there is nothing, or an empty folder.
pub(super) fn is_free(path: &Path) -> Result<bool, CardDataError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(true),
            ErrorKind::NotADirectory => Ok(false),
            _ => Err(failed("read", path, error)),
        },
    }
}

/// Reads a folder or a file.
pub(super) fn read(path: &Path) -> Result<Files, CardDataError> {
    let files = if path.is_dir() { read_folder(path)? } else { read_document(path)? };
    for (name, content) in &files {
        if content.len() > LONGEST_OBJECT {
            let bytes = content.len();
            let limit = LONGEST_OBJECT;
            return Err(CardDataError::TooLong { path: path.join(name), bytes, limit });
        }
    }
    Ok(files)
}

/// So that a length of two bytes holds it with what is put around it.
const LONGEST_OBJECT: usize = tlv::LONGEST - 64;

/// Writes a folder that did not exist or was empty. When another process was faster, its folder
/// stays.
pub(super) fn write(folder: &Path, files: &Files) -> Result<(), CardDataError> {
    let absolute = std::path::absolute(folder).map_err(|error| failed("write", folder, error))?;
    let parent = absolute.parent().unwrap_or(&absolute);
    let write = || -> io::Result<()> {
        fs::create_dir_all(parent)?;
        // Made with mode 0700, and removed again if it is not renamed.
        let made = tempfile::Builder::new().prefix(".piv-").tempdir_in(parent)?;
        fs::set_permissions(made.path(), Permissions::from_mode(0o700))?;
        for (name, content) in files {
            let mut options = OpenOptions::new();
            let mode = if is_secret(name) { 0o600 } else { 0o644 };
            let mut file =
                options.write(true).create_new(true).mode(mode).open(made.path().join(name))?;
            file.write_all(content)?;
            file.sync_all()?;
        }
        // Replaces nothing but an empty folder.
        match fs::rename(made.path(), &absolute) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) =>
            {
                Ok(())
            }
            Ok(()) => {
                // It is no longer where it would be removed.
                let _ = made.keep();
                Ok(())
            }
            error => error,
        }
    };
    write().map_err(|error| failed("write", folder, error))
}

fn is_secret(name: &str) -> bool {
    name.ends_with(".p8") || matches!(name, "pin" | "puk")
}

fn read_folder(folder: &Path) -> Result<Files, CardDataError> {
    let mut files = Files::new();
    let entries = fs::read_dir(folder).map_err(|error| failed("read", folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", folder, error))?;
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if is_known(name) {
            let content = read_bytes(&path, FileLimit::CREDENTIAL)
                .map_err(|error| failed("read", &path, error))?;
            files.insert(name.into(), Zeroizing::new(content));
        } else if looks_like_one(&path) {
            return Err(CardDataError::UnknownName { path, known: known() });
        }
    }
    Ok(files)
}

fn read_document(path: &Path) -> Result<Files, CardDataError> {
    let text = read_text(path, FileLimit::TOML).map_err(|error| failed("read", path, error))?;
    let text = Zeroizing::new(text);
    let wrong = |why: String| CardDataError::Toml { path: path.into(), why };
    // The error's own display quotes the line, which may hold a PIN or a key.
    let document: Document = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        wrong(format!("line {line}: {}", error.message()))
    })?;
    let mut files = Files::new();
    for (name, content) in document.files {
        if !is_known(&name) {
            return Err(CardDataError::UnknownName { path: path.join(name), known: known() });
        }
        let digits: Zeroizing<String> =
            Zeroizing::new(content.split_ascii_whitespace().collect::<String>());
        let content = hex::decode(&*digits).map_err(|_| wrong(format!("{name} is not hex")))?;
        files.insert(name, Zeroizing::new(content));
    }
    for (name, text) in [("pin", document.pin), ("puk", document.puk)] {
        if let Some(text) = text {
            files.insert(name.into(), Zeroizing::new(text.into_bytes()));
        }
    }
    Ok(files)
}

fn names() -> impl Iterator<Item = String> {
    let keys = KEYS.into_iter().map(key_file);
    let others = ["pin", "puk", CA_CERTIFICATE, CA_KEY].map(String::from);
    object::files().map(String::from).chain(keys).chain(others)
}

fn known() -> String {
    names().collect::<Vec<_>>().join(", ")
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Probably a misspelt one. Notes beside the objects are nobody's business.
fn looks_like_one(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("bin" | "der" | "p8"))
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> CardDataError {
    CardDataError::File { action, path: path.into(), source }
}
