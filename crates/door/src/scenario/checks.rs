//! What several parts of a scenario are held to.

use tapstone_source::{Mistake, Source};
use toml::Spanned;

use crate::change::PathChange;

pub(super) type ScenarioResult<T> = Result<T, Mistake>;

/// Whether shares add up to 1, but for the rounding of what is written with a few decimals.
pub(super) fn is_whole(sum: f64) -> bool {
    (sum - 1.0).abs() <= 1.0 / SHARE_STEPS
}

/// A sum of shares without the rounding of binary fractions: 0.3 and 0.6 are 0.9.
pub(super) fn shown_sum(sum: f64) -> f64 {
    (sum * SHARE_STEPS).round() / SHARE_STEPS
}

/// Shares that differ by less than one of so many parts are the same.
const SHARE_STEPS: f64 = 1e6;

pub(super) fn known(
    source: &Source<'_>,
    changes: &[PathChange],
    id: &Spanned<String>,
) -> ScenarioResult<PathChange> {
    changes.iter().find(|change| &change.id == id.get_ref()).cloned().ok_or_else(|| {
        let known: Vec<&str> = changes.iter().map(|change| change.id.as_str()).collect();
        let problem = format!("there is no change {:?}\nhint: {}", id.get_ref(), known.join(", "));
        source.error(id.span(), problem)
    })
}

/// Changes that are made together, in the order in which they apply.
pub(super) fn together_made(
    source: &Source<'_>,
    with: &[Spanned<String>],
    changes: &[PathChange],
) -> ScenarioResult<Vec<PathChange>> {
    let mut made: Vec<PathChange> = Vec::new();
    for id in with {
        let change = known(source, changes, id)?;
        if let Some(other) = made.iter().find(|other| other.excludes(&change)) {
            let problem = format!("{} excludes {}\nhint: choose one", other.id, change.id);
            return Err(source.error(id.span(), problem));
        }
        made.push(change);
    }
    for (change, id) in made.iter().zip(with) {
        let Some(needs) = &change.needs else { continue };
        if !made.iter().any(|other| &other.id == needs) {
            let problem = format!("{} needs {needs}\nhint: add it", change.id);
            return Err(source.error(id.span(), problem));
        }
    }
    made.sort_by_key(|change| changes.iter().position(|known| known.id == change.id));
    // A change that is made cannot be made again.
    made.dedup();
    Ok(made)
}
