//! The scenarios that come with Tapstone, from the folder `scenarios`.

use thiserror::Error;

/// Name and text of each.
pub const SHIPPED: &[(&str, &str)] = &[
    ("hid-rsa2048", include_str!("../../../../scenarios/hid-rsa2048.toml")),
    ("hid-p256", include_str!("../../../../scenarios/hid-p256.toml")),
    ("osdp-ip-rsa2048", include_str!("../../../../scenarios/osdp-ip-rsa2048.toml")),
    ("osdp-ip-p256", include_str!("../../../../scenarios/osdp-ip-p256.toml")),
    ("virtual-p71", include_str!("../../../../scenarios/virtual-p71.toml")),
];

/// The text of a shipped scenario.
pub(super) fn text(name: &str) -> Result<&'static str, UnknownScenario> {
    let found = SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text);
    found.ok_or_else(|| UnknownScenario { name: name.to_owned() })
}

/// No scenario of this name is shipped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no scenario \"{name}\"\nhint: name a file, or one of {}",
    SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownScenario {
    /// The name asked for.
    pub name: String,
}
