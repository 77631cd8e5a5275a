//! The operations that can be measured on a token, as data: `catalogue.toml`, read once.
//!
//! A short name means one documented variant (`rsa2048.sign`); a longer name is another one that
//! differs in what it names (`rsa2048.sign.pss`). There is no code per operation anywhere: a
//! [`Variant`] says which calls to make, with which mechanism, key and input.
#![forbid(unsafe_code)]

mod error;
mod family;
mod hash;
mod key;
pub mod mechanism;
mod slh_dsa;
mod suite;
mod variant;

use std::sync::LazyLock;

pub use error::{CatalogueError, MAX_MESSAGE_BYTES};
pub use hash::Hash;
pub use key::{Curve, KeySpec, MlDsa, MlKem};
pub use mechanism::Mechanism;
pub use slh_dsa::SlhDsa;
pub use suite::{Suite, SuiteCase};
pub use variant::{InputKind, Parameters, Shape, SizeRule, Variant, find_label};

/// The suite that runs when nothing is named.
const DEFAULT_SUITE: &str = include_str!("../../../../suites/token-default.toml");

/// The operations by name, in the order of the catalogue file.
#[derive(Clone, Debug)]
pub struct Catalogue {
    variants: Vec<Variant>,
}

impl Catalogue {
    /// The catalogue that the program carries.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
            let variants = family::read(include_str!("../../catalogue.toml"))
                .expect("the catalogue is part of the program, and a test reads it");
            let mut catalogue = Catalogue { variants };
            catalogue.mark_default_suite();
            catalogue
        });
        &BUILTIN
    }

    /// All operations, in the order of the file.
    #[must_use]
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// The operations that a selector means: a name alone is exactly that operation, a name with
    /// `.*` is it and all its longer variants, `*` is everything except logging in.
    ///
    /// # Errors
    /// Nothing is called so; the error holds the nearest names.
    pub fn select(&self, selector: &str) -> Result<Vec<Variant>, CatalogueError> {
        let chosen: Vec<Variant> =
            self.variants.iter().filter(|variant| selects(selector, variant)).cloned().collect();
        if chosen.is_empty() {
            return Err(CatalogueError::Unknown {
                name: selector.to_owned(),
                nearest: self.nearest(selector),
            });
        }
        Ok(chosen)
    }

    /// The suite that runs when nothing is named, `suites/token-default.toml`.
    #[must_use]
    pub fn default_suite(&self) -> Suite {
        Suite::parse_with(self, "suites/token-default.toml", DEFAULT_SUITE)
            .expect("the default suite is part of the program, and a test reads it")
    }

    fn mark_default_suite(&mut self) {
        let suite = self.default_suite();
        let chosen: Vec<String> =
            suite.cases.into_iter().flat_map(|case| case.variants).map(|v| v.name).collect();
        for variant in &mut self.variants {
            variant.in_default_suite = chosen.contains(&variant.name);
        }
    }

    /// Up to three names that are like this one, best first.
    fn nearest(&self, selector: &str) -> Vec<String> {
        /// Below this similarity a suggestion is noise; found by trying misspellings.
        const ALIKE: f64 = 0.8;
        let wanted = selector.trim_end_matches(".*").to_lowercase();
        let mut scored: Vec<(f64, &str)> = self
            .variants
            .iter()
            .map(|variant| (strsim::jaro_winkler(&wanted, &variant.name), variant.name.as_str()))
            .filter(|(score, _)| *score >= ALIKE)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
    }
}

fn selects(selector: &str, variant: &Variant) -> bool {
    if selector == "*" {
        return variant.shape != Shape::Login;
    }
    match selector.strip_suffix(".*") {
        None => variant.name == selector,
        Some(stem) => variant
            .name
            .strip_prefix(stem)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
    }
}

#[cfg(test)]
mod tests;
