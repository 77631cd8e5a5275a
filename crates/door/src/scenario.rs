//! A scenario: the path of an authentication, the target, what could be changed, and who comes.
//!
//! Scenarios are TOML (`docs/scenario-file.md` has the fields). Everything in one is checked when it
//! is read, and what is wrong is named by file, line and field.

mod changes;
mod checks;
mod content;
mod figure;
mod people;
mod raw;
mod resolve;
mod shipped;

use tapstone_source::{Mistake, Source};
use thiserror::Error;

use crate::change::{self, PathChange};
use crate::millis::Millis;
use crate::path::AuthenticationPath;
use crate::people::People;

pub use shipped::{SHIPPED, UnknownScenario};

/// A scenario whose parts were checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// In a few words.
    pub title: String,
    /// What is done, for example `door.pki-cak`.
    pub operation: String,
    /// Where its figures are from.
    pub source: Option<String>,
    /// What a transaction may take.
    pub target: Millis,
    /// The way from card to door.
    pub path: AuthenticationPath,
    /// What could be changed, in the order in which changes are applied.
    pub changes: Vec<PathChange>,
    /// Those that were made to it.
    pub(crate) made: Vec<PathChange>,
    /// Those that leave it nothing to change any more, since others were made.
    pub(crate) spent: Vec<PathChange>,
    /// What the source itself expects of changes.
    pub(crate) projections: Vec<PublishedProjection>,
    /// Who comes to the door.
    pub people: People,
    /// What a reader should know, as sentences.
    pub notes: Vec<String>,
}

/// What a source expects of some changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublishedProjection {
    pub(crate) says: String,
    pub(crate) with: Vec<String>,
    pub(crate) of: Projected,
    /// The last part that is in the source's figure; without it all, and the self-check.
    pub(crate) until: Option<String>,
    pub(crate) published: Millis,
}

/// What a projection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projected {
    /// What the changes save.
    Saving,
    /// What remains with them.
    Total,
    /// What is missing to the target with them.
    Still,
}

/// Changes that cannot be made together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangesError {
    /// The scenario has no such change.
    #[error("there is no change {name:?}\nhint: {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The one leaves nothing for the other.
    #[error("{0} excludes {1}\nhint: choose one")]
    Excludes(String, String),
    /// A change is none without another one.
    #[error("{0} needs {1}\nhint: add it")]
    Needs(String, String),
    /// A change that was made is to be left out too.
    #[error("{0} is made already\nhint: choose one of --with and --without for it")]
    Made(String),
}

impl ChangesError {
    pub(crate) fn unknown(name: &str, known: &[PathChange]) -> Self {
        let known = known.iter().map(|change| change.id.clone()).collect();
        Self::Unknown { name: name.to_owned(), known }
    }
}

impl Scenario {
    /// Reads a scenario; `file` is what it is called in errors.
    ///
    /// # Errors
    /// With file, line and field, when something in it is wrong.
    pub fn read(text: &str, file: &str) -> Result<Self, Mistake> {
        resolve::scenario(&Source { file, text })
    }

    /// The shipped scenario of this name.
    ///
    /// # Errors
    /// When there is none: the error lists those that there are.
    pub fn shipped(name: &str) -> Result<Self, UnknownScenario> {
        let text = shipped::text(name)?;
        Ok(Self::read(text, name)
            .expect("shipped scenarios are compiled in, and a test reads each"))
    }

    /// The scenario with these changes made, by name, in whatever order.
    ///
    /// # Errors
    /// When a change is not known, excludes another one, or needs one that is not made.
    pub fn with_changes(self, names: &[String]) -> Result<Self, ChangesError> {
        let mut made: Vec<PathChange> = Vec::new();
        for name in names {
            let change = self.changes.iter().find(|change| &change.id == name);
            let change = change.ok_or_else(|| ChangesError::unknown(name, &self.changes))?;
            if let Some(other) = made.iter().find(|other| other.excludes(change)) {
                return Err(ChangesError::Excludes(other.id.clone(), change.id.clone()));
            }
            made.push(change.clone());
        }
        for change in &made {
            let Some(needs) = &change.needs else { continue };
            if !names.contains(needs) {
                return Err(ChangesError::Needs(change.id.clone(), needs.clone()));
            }
        }
        made.sort_by_key(|change| self.changes.iter().position(|known| known.id == change.id));
        // A change that is made cannot be made again.
        made.dedup();
        Ok(self.changed(&made))
    }

    /// The scenario with these changes made: they, and what they exclude, can be made no more, and
    /// what a source expects of the scenario as it was says nothing of it.
    pub(crate) fn changed(mut self, made: &[PathChange]) -> Self {
        if !made.is_empty() {
            self.projections.clear();
        }
        self.path = change::apply(&self.path, made);
        let before = self.changes.clone();
        self.changes
            .retain(|left| made.iter().all(|made| made.id != left.id && !made.excludes(left)));
        for left in &mut self.changes {
            left.needs = left.needs.take().filter(|needs| made.iter().all(|it| &it.id != needs));
        }
        change::leave_out_orphans(&mut self.changes);
        let is_made = |change: &PathChange| made.iter().any(|made| made.id == change.id);
        let is_left = |id: &str| self.changes.iter().any(|left| left.id == id);
        let gone = before.into_iter().filter(|change| !is_left(&change.id));
        let (made, spent): (Vec<_>, Vec<_>) = gone.partition(is_made);
        self.made.extend(made);
        self.spent.extend(spent);
        self
    }
}

#[cfg(test)]
mod tests;
