//! Certificates and CRLs out of files and folders.

use std::path::{Path, PathBuf};

use tapstone_files::{Limit, read_bytes};
use tapstone_piv::{Certificate, Trust};

use crate::error::FilesError;

/// What is looked at in a folder; a file that is named is read whatever it is called.
const NAMES: [&str; 5] = ["der", "cer", "crt", "pem", "crl"];

const END: &str = "-----END";

/// Certificates as bytes, each of which parses.
pub fn certificates(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, FilesError> {
    let mut all = Vec::new();
    for (path, bytes) in read(paths)? {
        Certificate::parse(&bytes).map_err(|error| FilesError::NotACertificate { path, error })?;
        all.push(bytes);
    }
    if all.is_empty() {
        return Err(FilesError::NoCertificate(names(paths)));
    }
    Ok(all)
}

/// CRLs as bytes; `None` when none are named.
pub fn crls(paths: &[PathBuf]) -> Result<Option<Vec<Vec<u8>>>, FilesError> {
    if paths.is_empty() {
        return Ok(None);
    }
    let all: Vec<Vec<u8>> = read(paths)?.into_iter().map(|(_, bytes)| bytes).collect();
    if all.is_empty() {
        return Err(FilesError::NoCrl(names(paths)));
    }
    Ok(Some(all))
}

/// Both together.
pub fn trust(certificates: &[Vec<u8>], crls: Option<&[Vec<u8>]>) -> Result<Trust, FilesError> {
    let parsed: Result<_, _> = certificates.iter().map(|der| Certificate::parse(der)).collect();
    Ok(Trust::new(parsed?, crls)?)
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The contents of all files, in the order of their names; a PEM file may hold several.
fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u8>)>, FilesError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside =
            inside(path).map_err(|error| FilesError::Read { path: path.clone(), error })?;
        inside.retain(|path| path.is_file() && has_name(path));
        inside.sort();
        files.extend(inside);
    }
    let mut all = Vec::new();
    for path in files {
        let bytes = read_bytes(&path, Limit::CREDENTIAL)
            .map_err(|error| FilesError::Read { path: path.clone(), error })?;
        all.extend(parts(bytes).into_iter().map(|part| (path.clone(), part)));
    }
    Ok(all)
}

/// What is in a folder, in no order.
fn inside(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

fn has_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|name| NAMES.contains(&name.to_ascii_lowercase().as_str()))
}

/// The blocks of a PEM file; anything else as it is.
fn parts(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) if text.contains(END) => text,
        _ => return vec![bytes],
    };
    let mut blocks = Vec::new();
    for block in text.split("-----BEGIN").skip(1) {
        blocks.push(format!("-----BEGIN{block}").into_bytes());
    }
    blocks
}
