//! A generated card for the tests of this program, in the reader.

use std::path::{Path, PathBuf};

use tapstone_record::{CaseResult, Record};
use tapstone_vcard::piv::{CardData, Recipe};
use tempfile::TempDir;

use crate::support::{Card, Pcscd, Slot, Tapstone};

/// A folder with a PIV card and the certificate of its CA.
pub(crate) struct Holder(TempDir);

impl Holder {
    pub(crate) fn new() -> Self {
        Self::with(&Recipe::default())
    }

    pub(crate) fn with(recipe: &Recipe) -> Self {
        let folder = tempfile::tempdir().unwrap();
        CardData::open_or_generate(&folder.path().join("card"), recipe).unwrap();
        Self(folder)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().join("card")
    }

    /// A file beside the card.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.folder().join("ca.der")
    }

    /// The card in the first reader, as this profile.
    pub(crate) fn insert<'a>(&self, pcscd: &'a Pcscd, profile: &Path) -> Card<'a> {
        let folder = self.folder();
        let arguments = [profile.as_os_str(), "--card-data".as_ref(), folder.as_os_str()];
        Card::insert(pcscd, Slot::First, &arguments)
    }

    pub(crate) fn insert_fast<'a>(&self, pcscd: &'a Pcscd) -> Card<'a> {
        self.insert(pcscd, Path::new("piv"))
    }

    pub(crate) fn measure(&self) -> Tapstone {
        measure(&self.ca())
    }
}

/// `tapstone door measure` at the first reader.
pub(crate) fn measure(trust: &Path) -> Tapstone {
    Tapstone::new("door")
        .args("measure --reader")
        .arg(Slot::First.reader())
        .args("--trust")
        .arg(trust)
}

#[track_caller]
pub(crate) fn row(record: &Record, name: &str) -> CaseResult {
    let row = record.results.iter().find(|row| row.operation == name);
    row.cloned().unwrap_or_else(|| panic!("no row {name}"))
}
