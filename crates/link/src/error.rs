//! What can be wrong with a link's parameters.

use thiserror::Error;

/// A parameter that the standard does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} = {value} is impossible: {why}\nhint: {hint}")]
pub struct LinkError {
    /// The parameter's name, as it is written in TOML.
    pub field: &'static str,
    /// The value that was given, in the parameter's unit.
    pub value: u64,
    /// What the standard says.
    pub why: &'static str,
    /// What can be given.
    pub hint: &'static str,
}

/// Whether the parameter is one that the standard has.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: impl Into<u64>,
    why: &'static str,
    hint: &'static str,
) -> Result<(), LinkError> {
    if holds { Ok(()) } else { Err(LinkError { field, value: value.into(), why, hint }) }
}
