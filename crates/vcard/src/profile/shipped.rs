//! The profiles that come with the program.

use super::Profile;

/// A shipped profile's file.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// The name that `tapstone vcard` knows the profile by.
    pub name: &'static str,
    /// The text of the file, TOML.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../profiles/", $name, ".toml")),
        }),+]
    };
}

const SHIPPED: [Shipped; 11] = shipped![
    "jcop41-v2.2",
    "jcop41-v2.2.1",
    "jcop41-v2.2.1-usb",
    "jcop31-v2.2",
    "piv-card-1",
    "piv-card-2",
    "piv-card-3",
    "piv-card-4",
    "piv-card-5",
    "piv-p71-rsa2048",
    "piv-p71-p256",
];

/// All profiles that come with Tapstone.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    &SHIPPED
}

impl Shipped {
    /// The profile.
    ///
    /// # Panics
    /// Never: a test reads them all.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let file = format!("{}.toml", self.name);
        Profile::parse(&file, self.text).expect("the file is compiled in, and a test reads it")
    }
}
