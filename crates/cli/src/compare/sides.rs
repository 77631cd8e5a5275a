//! What is compared: a file, or a reference by name.

use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};
use tapstone_compare::NamedRecord;
use tapstone_files::{FileLimit, read_text};
use tapstone_record::Record;
use tapstone_reference::Reference;

/// What names a reference rather than a file.
const PREFIX: &str = "reference:";

/// One of the two.
pub(super) enum ComparedSide {
    Record(Box<OpenedRecord>),
    Reference(Box<Reference>),
}

/// A record with the file that it was read from.
pub(super) struct OpenedRecord {
    pub(super) record: Record,
    pub(super) path: String,
    pub(super) content: String,
    sha256: String,
}

impl OpenedRecord {
    pub(super) fn read(name: &str) -> anyhow::Result<Self> {
        let path = Path::new(name);
        let content = read_text(path, FileLimit::RECORD).with_context(|| {
            format!("cannot read {name}\nhint: name a record, or a reference: {}", references())
        })?;
        let record = Record::from_json(&content, path)?;
        let sha256 = hex::encode(Sha256::digest(&content));
        Ok(Self { record, path: name.to_owned(), content, sha256 })
    }

    pub(super) fn named(&self) -> NamedRecord<'_> {
        NamedRecord { record: &self.record, path: &self.path, sha256: &self.sha256 }
    }
}

impl ComparedSide {
    pub(super) fn open(name: &str) -> anyhow::Result<Self> {
        if let Some(name) = name.strip_prefix(PREFIX) {
            return Ok(Self::Reference(Box::new(tapstone_reference::load(name)?)));
        }
        Ok(Self::Record(Box::new(OpenedRecord::read(name)?)))
    }
}

/// `reference:hsm-speed, reference:jcop-cards, …`.
pub(super) fn references() -> String {
    let names = tapstone_reference::names().into_iter();
    names.map(|name| format!("{PREFIX}{name}")).collect::<Vec<_>>().join(", ")
}
