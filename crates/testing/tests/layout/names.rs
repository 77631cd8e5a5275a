//! Names of public types, without those of tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What begins a public type, at the beginning of a line: those inside of functions and modules of
/// the same file are not looked at.
const KINDS: [&str; 4] = ["pub struct ", "pub enum ", "pub trait ", "pub type "];

/// All in a folder and below it.
pub(crate) fn of_public_types(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(entries) = fs::read_dir(folder) else { return names };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(of_public_types(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            names.extend(text.lines().filter_map(type_of_line));
        }
    }
    names
}

fn type_of_line(line: &str) -> Option<String> {
    let rest = KINDS.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|it: char| !it.is_alphanumeric()).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

#[test]
fn a_type_is_known_by_its_line() {
    assert_eq!(type_of_line("pub struct Lane<'a> {").as_deref(), Some("Lane"));
    assert_eq!(type_of_line("pub type HeardOf<P> = ();").as_deref(), Some("HeardOf"));
    assert_eq!(type_of_line("pub(crate) struct Lane;"), None);
    assert_eq!(type_of_line("    pub struct Inner;"), None);
}
