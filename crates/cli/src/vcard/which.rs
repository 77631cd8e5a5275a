//! Which card: one of the two without a profile, a shipped profile, or a file.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use tapstone_files::{FileLimit, read_text};
use tapstone_vcard::piv::{self, CardData, PivApplet, Recipe};
use tapstone_vcard::{BenchApplet, IdentityApplet, Profile, VirtualCard, shipped};

use crate::print::say;

/// A card that was asked for.
pub(super) enum Which {
    /// The PIV applet, taking no time.
    PivApplet,
    /// The benchmark applet, taking no time.
    BenchApplet,
    /// As this profile says.
    Profile(Box<Profile>),
}

impl Which {
    pub(super) fn find(name: &str) -> anyhow::Result<Self> {
        match name {
            "piv" => return Ok(Self::PivApplet),
            "bench" => return Ok(Self::BenchApplet),
            _ => {}
        }
        if let Some(shipped) = shipped().iter().find(|shipped| shipped.name == name) {
            return Ok(Self::Profile(Box::new(shipped.profile())));
        }
        let is_file = name.contains('/') || name.ends_with(".toml") || Path::new(name).exists();
        if !is_file {
            bail!(
                "no profile is called {name:?}\n\
                 hint: `tapstone vcard --list-profiles` lists the shipped ones; a file of your own ends in \
                 .toml"
            );
        }
        let text = read_text(Path::new(name), FileLimit::TOML).map_err(|error| {
            anyhow!(
                "{name} cannot be read: {error}\n\
                 hint: `tapstone vcard --list-profiles` lists the shipped profiles"
            )
        })?;
        Ok(Self::Profile(Box::new(Profile::parse(name, &text)?)))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::PivApplet => "piv",
            Self::BenchApplet => "bench",
            Self::Profile(profile) => &profile.name,
        }
    }

    /// The text of the profile's TOML file.
    pub(super) fn text(&self) -> anyhow::Result<&str> {
        match self {
            Self::Profile(profile) => Ok(profile.text()),
            _ => bail!(
                "{} has no profile: it takes no time\n\
                 hint: `tapstone vcard --list-profiles` lists the profiles",
                self.name()
            ),
        }
    }

    pub(super) fn card(&self, card_data: Option<&Path>) -> anyhow::Result<VirtualCard> {
        let has_piv = match self {
            Self::PivApplet => true,
            Self::BenchApplet => false,
            Self::Profile(profile) => profile.has_piv(),
        };
        if !has_piv {
            if card_data.is_some() {
                bail!(
                    "{} has no PIV applet, so no card data\nhint: leave --card-data out",
                    self.name()
                );
            }
            return Ok(match self {
                Self::Profile(profile) => profile.card(None)?,
                _ => plain().with("bench", Box::new(BenchApplet::default())),
            });
        }
        let folder = card_data.map_or_else(|| self.folder(), |path| Ok(path.to_owned()))?;
        if !folder.exists() {
            say!("making a PIV card in {}: RSA keys take some seconds", folder.display());
        }
        Ok(match self {
            Self::Profile(profile) => profile.card(Some(&folder))?,
            _ => {
                let card_data = CardData::open_or_generate(&folder, &Recipe::default())?;
                plain()
                    .with_atr(&piv::atr::T1)
                    .with_default("piv", Box::new(PivApplet::new(card_data)))
            }
        })
    }

    /// Where the card is kept that is made at first use (XDG Base Directory Specification).
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
        let data = data.or_else(home).context(
            "there is no place for the PIV card's keys: HOME is not set\n\
             hint: name a folder with --card_data",
        )?;
        Ok(data.join("tapstone/vcard").join(self.name()))
    }
}

/// A card that says that it is a virtual one.
fn plain() -> VirtualCard {
    VirtualCard::new().with("identity", Box::new(IdentityApplet::plain()))
}
