//! Certificates and CRLs out of files and folders.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tapstone_piv::{Certificate, Trust};

/// What is looked at in a folder; a file that is named is read whatever it is called.
const NAMES: [&str; 5] = ["der", "cer", "crt", "pem", "crl"];

const END: &str = "-----END";

/// Certificates as bytes, each of which parses.
pub(super) fn certificates(paths: &[PathBuf]) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for (path, bytes) in read(paths)? {
        Certificate::parse(&bytes).with_context(|| path.display().to_string())?;
        all.push(bytes);
    }
    anyhow::ensure!(
        !all.is_empty(),
        "no certificate in {}\nhint: put the root CA's certificate there, as .der, .cer, .crt or \
         .pem",
        names(paths)
    );
    Ok(all)
}

/// CRLs as bytes; `None` when none are named.
pub(super) fn crls(paths: &[PathBuf]) -> anyhow::Result<Option<Vec<Vec<u8>>>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let all: Vec<Vec<u8>> = read(paths)?.into_iter().map(|(_, bytes)| bytes).collect();
    anyhow::ensure!(
        !all.is_empty(),
        "no CRL in {}\nhint: put CRLs there, as .crl, .der or .pem, or leave --crl out",
        names(paths)
    );
    Ok(Some(all))
}

/// Both together.
pub(super) fn trust(certificates: &[Vec<u8>], crls: Option<&[Vec<u8>]>) -> anyhow::Result<Trust> {
    let parsed: Result<_, _> = certificates.iter().map(|der| Certificate::parse(der)).collect();
    Ok(Trust::new(parsed?, crls)?)
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The contents of all files, in the order of their names; a PEM file may hold several.
fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for path in paths {
        let of_path = || path.display().to_string();
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(of_path)?;
        let entries: std::io::Result<Vec<_>> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut inside = entries.with_context(of_path)?;
        inside.retain(|path| path.is_file() && has_name(path));
        inside.sort();
        files.extend(inside);
    }
    let mut all = Vec::new();
    for path in files {
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        all.extend(parts(bytes).into_iter().map(|part| (path.clone(), part)));
    }
    Ok(all)
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
