//! Certificates and CRLs out of files and folders.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tapstone_files::{FileLimit, read_bytes};
use tapstone_measure::units::Nanos;
use tapstone_piv::{Certificate, NotACertificate, OcspRules, OcspSource, RevocationRule, Trust};

use crate::crl_index::{self, IndexFolder, WORTH_AN_INDEX_BYTES};
use crate::error::FilesError;
use crate::responders::{HttpIssuers, HttpResponders};

/// What is looked at in a folder; a file that is named is read whatever it is called.
const CERTIFICATE_NAMES: [&str; 4] = ["der", "cer", "crt", "pem"];

/// The same of CRLs.
const CRL_NAMES: [&str; 5] = ["crl", "der", "cer", "crt", "pem"];

/// The same of OCSP answers.
const OCSP_NAMES: [&str; 4] = ["ocsp", "ors", "resp", "der"];

const END: &str = "-----END";

/// Everything by which certificates are judged, as bytes that can travel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrustFiles {
    /// Certificates that are believed as they are, DER or PEM.
    pub anchors: Vec<Vec<u8>>,
    /// CAs on the way, and signers of CRLs.
    pub intermediates: Vec<Vec<u8>>,
    /// CRLs, and OCSP answers.
    pub revocation: RevocationFiles,
    /// What is done where nothing says whether a certificate was revoked.
    pub rule: RevocationRule,
    /// How OCSP answers are judged, and whether any are asked for.
    pub ocsp: OcspChoice,
    /// CAs that are missing are fetched, for each card at most as long as this; `None`: they are not.
    pub fetch_issuers: Option<Nanos>,
}

/// What says who was revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationFiles {
    /// CRLs, DER or PEM.
    pub crls: Vec<Vec<u8>>,
    /// Files with CRLs that are worth an index.
    pub large_crls: Vec<PathBuf>,
    /// Where indexes are kept; `None`: CRLs are parsed each time, and none is remembered.
    pub index_folder: Option<PathBuf>,
    /// OCSP answers that were fetched beforehand.
    pub ocsp_answers: Vec<Vec<u8>>,
}

impl RevocationFiles {
    /// CRLs and OCSP answers of these paths.
    ///
    /// # Errors
    /// When a file cannot be read, or nothing is where something was named.
    pub fn read(
        crls: &[PathBuf],
        ocsp: &[PathBuf],
        index_folder: Option<PathBuf>,
    ) -> Result<Self, FilesError> {
        let mut files = Self { index_folder, ..Self::default() };
        for path in listed(crls, &CRL_NAMES)? {
            let size = std::fs::metadata(&path).map_or(0, |found| found.len());
            match size >= WORTH_AN_INDEX_BYTES {
                true => files.large_crls.push(path),
                false => files.crls.extend(parts(read_one(&path)?)),
            }
        }
        for path in listed(ocsp, &OCSP_NAMES)? {
            files.ocsp_answers.push(read_one(&path)?);
        }
        if files.crls.is_empty() && files.large_crls.is_empty() && !crls.is_empty() {
            return Err(FilesError::NoCrl(names(crls)));
        }
        match files.ocsp_answers.is_empty() && !ocsp.is_empty() {
            true => Err(FilesError::NoOcspAnswer(names(ocsp))),
            false => Ok(files),
        }
    }

    /// Whether there is anything in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.crls.is_empty() && self.large_crls.is_empty() && self.ocsp_answers.is_empty()
    }
}

/// How OCSP answers are judged, and whether any are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OcspChoice {
    /// Responders are asked about the card's certificate.
    pub is_live: bool,
    /// Whom to ask instead of those that the certificate names.
    pub address: Option<String>,
    /// How old an answer without nextUpdate may be.
    pub max_age: Nanos,
    /// An answer must repeat the nonce of its request.
    pub require_nonce: bool,
    /// How long a responder may take.
    pub timeout: Nanos,
}

/// A door's trust, and what there is to say about files that say nothing.
#[derive(Debug)]
pub struct MadeTrust {
    /// Anchors, intermediate certificates and lists, as the door has them.
    pub trust: Trust,
    /// A sentence for each file that is left out.
    pub notes: Vec<String>,
}

impl TrustFiles {
    /// # Errors
    /// When there is no anchor.
    pub fn trust(&self) -> Result<MadeTrust, FilesError> {
        let parse = |all: &[Vec<u8>]| -> Result<Vec<Certificate>, _> {
            all.iter().map(|bytes| Certificate::parse(bytes)).collect()
        };
        let files = &self.revocation;
        let trust = Trust::new(parse(&self.anchors)?, parse(&self.intermediates)?)?
            .checking_revocation(self.rule, &[])
            .with_ocsp_answers(&files.ocsp_answers);
        let MadeTrust { trust, mut notes } = files.with_crls(trust);
        let rules =
            OcspRules { max_age: self.ocsp.max_age.into(), require_nonce: self.ocsp.require_nonce };
        let source = self.ocsp.is_live.then(|| {
            let responders =
                HttpResponders::new(self.ocsp.timeout.into(), self.ocsp.address.clone());
            Box::new(responders) as Box<dyn OcspSource>
        });
        let mut trust = trust.with_ocsp(rules, source);
        if let Some(limit) = self.fetch_issuers {
            trust = trust.fetching_issuers(Box::new(HttpIssuers::new(limit.into())), limit);
        }
        notes.extend(trust.left_out().iter().cloned());
        Ok(MadeTrust { trust, notes })
    }
}

impl RevocationFiles {
    fn with_crls(&self, mut trust: Trust) -> MadeTrust {
        let mut notes = Vec::new();
        let has_any = !self.crls.is_empty() || !self.large_crls.is_empty();
        let folder = match self.index_folder.as_ref().filter(|_| has_any) {
            None => None,
            Some(path) => match IndexFolder::open(path) {
                Ok(folder) => Some(folder),
                Err(error) => {
                    notes.push(format!(
                        "{}: {error}: CRLs are parsed each time, and none is remembered",
                        path.display()
                    ));
                    None
                }
            },
        };
        for bytes in &self.crls {
            match folder.as_ref().and_then(|folder| folder.small(bytes, &trust)) {
                Some(found) => {
                    notes.extend(found.note);
                    trust = found.lists.into_iter().fold(trust, Trust::with_list);
                }
                None => trust = trust.with_crl(bytes),
            }
        }
        for path in &self.large_crls {
            match crl_index::large(folder.as_ref(), path, &trust) {
                Ok(found) => {
                    notes.extend(found.note);
                    trust = found.lists.into_iter().fold(trust, Trust::with_list);
                }
                Err(why) => notes.push(format!("{} is left out: {why}", path.display())),
            }
        }
        MadeTrust { trust, notes }
    }
}

/// Certificates out of files, by what they are to be.
#[derive(Clone, Debug, Default)]
pub struct SortedCertificates {
    /// Believed as they are.
    pub anchors: Vec<Vec<u8>>,
    /// Certificates of CAs on the way to an anchor, as DER.
    pub intermediates: Vec<Vec<u8>>,
    /// A sentence for each file that is left out, and for each anchor that nobody named as one.
    pub notes: Vec<String>,
}

impl SortedCertificates {
    /// Anchors; each must be a certificate.
    ///
    /// # Errors
    /// When a file cannot be read, or is something else.
    pub fn add_anchors(&mut self, paths: &[PathBuf]) -> Result<(), FilesError> {
        for (path, bytes) in named(paths)? {
            Certificate::parse(&bytes)
                .map_err(|error| FilesError::NotACertificate { path, error })?;
            self.anchors.push(bytes);
        }
        Ok(())
    }

    /// CAs on the way. What is none is left out: it spoils no others.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn add_intermediates(&mut self, paths: &[PathBuf]) -> Result<(), FilesError> {
        for (path, bytes) in named(paths)? {
            match Certificate::parse(&bytes) {
                Ok(_) => self.intermediates.push(bytes),
                Err(error) => self.leave_out(&path, &error),
            }
        }
        Ok(())
    }

    /// Both in one place: self-signed ones become anchors, and each of them is named, because
    /// whoever can put a file there makes one.
    ///
    /// # Errors
    /// When a file cannot be read, or there is no certificate.
    pub fn add_mixed(&mut self, paths: &[PathBuf]) -> Result<(), FilesError> {
        for (path, bytes) in named(paths)? {
            let certificate = Certificate::parse(&bytes)
                .map_err(|error| FilesError::NotACertificate { path: path.clone(), error })?;
            if !certificate.is_self_signed() {
                self.intermediates.push(bytes);
                continue;
            }
            self.anchors.push(bytes);
            if !paths.contains(&path) {
                self.notes.push(format!(
                    "{} is a trust anchor because it signed itself: \"{}\"\nhint: --anchors and \
                     --intermediates keep them apart",
                    path.display(),
                    certificate.subject()
                ));
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &Path, error: &NotACertificate) {
        self.notes.push(format!("{} is left out: {error}", path.display()));
    }
}

/// Certificates of paths that were named: where there are none, somebody is mistaken.
fn named(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u8>)>, FilesError> {
    let all = read(paths)?;
    match all.is_empty() && !paths.is_empty() {
        true => Err(FilesError::NoCertificate(names(paths))),
        false => Ok(all),
    }
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The contents of all files, in the order of their names; a PEM file may hold several.
fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u8>)>, FilesError> {
    let mut all = Vec::new();
    for path in listed(paths, &CERTIFICATE_NAMES)? {
        let bytes = read_one(&path)?;
        all.extend(parts(bytes).into_iter().map(|part| (path.clone(), part)));
    }
    Ok(all)
}

fn read_one(path: &Path) -> Result<Vec<u8>, FilesError> {
    read_bytes(path, FileLimit::CREDENTIAL)
        .map_err(|error| FilesError::Read { path: path.to_owned(), error })
}

/// The files that are named, and those of a folder with such an extension.
fn listed(paths: &[PathBuf], extensions: &[&str]) -> Result<Vec<PathBuf>, FilesError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside =
            inside(path).map_err(|error| FilesError::Read { path: path.clone(), error })?;
        inside.retain(|path| path.is_file() && has_extension(path, extensions));
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// What is in a folder, in no order.
fn inside(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|name| extensions.contains(&name.to_ascii_lowercase().as_str()))
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
