//! Which PKCS #11 modules does this machine have?
//!
//! Three sources, in this order: modules that the user names, those that p11-kit is configured
//! with, and files at well-known paths. A file that several of them lead to is listed once.
//! Nothing here loads a module: what a file holds is only known to a worker that opens it.
//!
//! A path that is named is listed first, also when there is no such file:
//!
//! ```
//! use std::path::PathBuf;
//! use tapstone_discover::{FoundBy, State, modules};
//!
//! let named = PathBuf::from("/nowhere/module.so");
//! let found = modules(&[named.clone()]);
//! assert_eq!(found.candidates[0].path, named);
//! assert_eq!(found.candidates[0].found_by, FoundBy::Named);
//! assert_eq!(found.candidates[0].state, State::Missing);
//! ```

#![forbid(unsafe_code)]

mod conf;
mod p11kit;
mod roots;
mod well_known;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use conf::Note;
pub use roots::Roots;

/// The modules of this machine, the `named` ones first.
#[must_use]
pub fn modules(named: &[PathBuf]) -> Discovery {
    Discovery::below(&Roots::default(), named)
}

/// What was found, and what was wrong on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Each file once: named ones, p11-kit's by priority and name, then well-known paths.
    pub candidates: Vec<Candidate>,
    /// Mistakes in p11-kit's configuration, and entries in it that are not a file to load.
    pub notes: Vec<Note>,
}

impl Discovery {
    /// The modules of the tree at `roots`; the `named` paths are taken as they are.
    #[must_use]
    pub fn below(roots: &Roots, named: &[PathBuf]) -> Self {
        let mut notes = Vec::new();
        let named = named.iter().map(|path| Candidate::new(path, FoundBy::Named));
        let configured = p11kit::configured(roots, &mut notes);
        let candidates = named.chain(configured).chain(well_known::present(roots));
        Self { candidates: unique(candidates), notes }
    }
}

/// A file that is, or is said to be, a PKCS #11 module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file, absolute, by the name it was found under: symbolic links are not resolved.
    pub path: PathBuf,
    /// What p11-kit calls it, or else the product.
    pub name: Option<String>,
    /// What led to it first.
    pub found_by: FoundBy,
    /// Whether it is one to load.
    pub state: State,
    /// What it is, and what to know before it is measured.
    pub notes: Vec<String>,
}

/// What led to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The user has named it.
    Named,
    /// The configuration of p11-kit names it (p11-kit.conf(5)).
    P11Kit {
        /// The file with its `module:` line.
        config: PathBuf,
    },
    /// It lies where its packages or its vendor's installer put it.
    WellKnownPath,
}

/// Whether a module is one to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The module's file is there.
    Ready,
    /// p11-kit is told to keep it from a program called `tapstone`. Naming it overrules that.
    Disabled,
    /// There is no such file, or no right to see it.
    Missing,
}

impl Candidate {
    fn new(path: &Path, found_by: FoundBy) -> Self {
        let known = well_known::by_file_name(path);
        Self {
            // Fails for an empty path only, which is missing under any name.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            name: known.map(|known| known.name.to_owned()),
            found_by,
            state: if path.is_file() { State::Ready } else { State::Missing },
            notes: known.map(|known| known.what.to_owned()).into_iter().collect(),
        }
    }

    /// Another source led to the same file: the first one decides, the others add what they know.
    fn absorb(&mut self, other: Self) {
        if let (FoundBy::Named, FoundBy::P11Kit { .. }) = (&self.found_by, &other.found_by) {
            self.name = other.name;
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Each file once, where it came first.
fn unique(candidates: impl Iterator<Item = Candidate>) -> Vec<Candidate> {
    let mut unique: Vec<Candidate> = Vec::new();
    let mut position_of = HashMap::new();
    for candidate in candidates {
        let file = fs::canonicalize(&candidate.path).unwrap_or_else(|_| candidate.path.clone());
        let position = *position_of.entry(file).or_insert(unique.len());
        match unique.get_mut(position) {
            Some(first) => first.absorb(candidate),
            None => unique.push(candidate),
        }
    }
    unique
}
