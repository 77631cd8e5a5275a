//! What is compared: a file, or a reference by name.

use std::fs;
use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};
use tapstone_compare::Named;
use tapstone_record::Record;
use tapstone_record::reference::{self, NAMES, Reference};

/// What names a reference rather than a file.
const PREFIX: &str = "reference:";

/// One of the two.
pub(super) enum Side {
    Record(Box<Opened>),
    Reference(Box<Reference>),
}

/// A record with the file that it was read from.
pub(super) struct Opened {
    pub(super) record: Record,
    pub(super) path: String,
    sha256: String,
}

impl Opened {
    pub(super) fn named(&self) -> Named<'_> {
        Named { record: &self.record, path: &self.path, sha256: &self.sha256 }
    }
}

impl Side {
    pub(super) fn open(name: &str) -> anyhow::Result<Self> {
        if let Some(name) = name.strip_prefix(PREFIX) {
            return Ok(Self::Reference(Box::new(reference::load(name)?)));
        }
        let path = Path::new(name);
        let content = fs::read_to_string(path).with_context(|| {
            format!("cannot read {name}\nhint: name a record, or a reference: {}", references())
        });
        let content = content.map_err(|error| in_one_line(&error))?;
        let record = Record::from_json(&content, path)?;
        let sha256 = hex::encode(Sha256::digest(&content));
        Ok(Self::Record(Box::new(Opened { record, path: name.to_owned(), sha256 })))
    }
}

/// The cause before the hint, so that the hint ends the text.
fn in_one_line(error: &anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let cause = error.root_cause();
    match text.split_once('\n') {
        Some((what, hint)) => anyhow::anyhow!("{what}: {cause}\n{hint}"),
        None => anyhow::anyhow!("{text}: {cause}"),
    }
}

/// `reference:hsm-speed, reference:jcop-cards, …`.
pub(super) fn references() -> String {
    NAMES.iter().map(|name| format!("{PREFIX}{name}")).collect::<Vec<_>>().join(", ")
}
