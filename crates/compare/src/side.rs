//! What the two sides of a comparison are called.

use std::path::Path;

use tapstone_record::{Imported, Side, Target};
use tapstone_reference::Reference;

use crate::NamedRecord;

pub(crate) fn side_of_record(named: NamedRecord<'_>) -> Side {
    let file = Path::new(named.path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Side {
        name: device(&named.record.target).or(file).unwrap_or_else(|| named.path.to_owned()),
        source: named.path.to_owned(),
        sha256: Some(named.sha256.to_owned()),
        emulated: named.record.target.emulated.as_ref().map(|it| it.profile.clone()),
        made_by: named.record.imported.as_ref().map(maker),
    }
}

pub(crate) fn side_of_reference(reference: &Reference) -> Side {
    Side {
        name: reference.name.to_owned(),
        source: reference.source.clone(),
        sha256: None,
        emulated: None,
        made_by: None,
    }
}

/// The program that made imported figures; where its file does not tell, what the file is.
pub(crate) fn maker(origin: &Imported) -> String {
    origin.made_by.clone().unwrap_or_else(|| origin.format.clone())
}

/// What the record says that its device is.
fn device(target: &Target) -> Option<String> {
    let card = target.card.as_ref().and_then(|card| card.name.clone());
    let token = || match &target.tokens[..] {
        [token] => Some(token.label.clone()),
        _ => None,
    };
    card.or_else(token).filter(|name| !name.trim().is_empty())
}
