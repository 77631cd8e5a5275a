//! Timing profiles: what a card is and how long it takes, from a TOML file.
//!
//! ```toml
//! name = "slow-card"
//! description = "One line for --list-profiles"
//! source = "where its figures come from"
//! atr = "3B 80 01 81"
//!
//! [[applet]]
//! name = "bench"                # or "piv", then with `card_data` and `chuid_bytes`
//!
//! [time]                        # each may be left out: it takes no time then
//! power_on = { ms = 90, from = "assumed" }        # before the answer to reset
//! command = { us = 5150, from = "published" }     # every command
//! byte_to_card = { us = 128, from = "derived" }   # not together with [link]
//! byte_from_card = { us = 82, from = "derived" }
//!
//! [command]                     # in the place of `time.command`: of an applet, or by INS
//! "bench WRITE" = { ms = 12, from = "derived" }
//! "A4" = { ms = 30, from = "assumed" }
//!
//! [work]                        # for each unit of what applets compute
//! "rsa2048.private" = { ms = 650, from = "derived" }
//!
//! [link]                        # instead of times per byte: crate `link`
//! kind = "contact"
//! protocol = "T=1"
//! clock_hz = 4000000
//! from = "assumed"
//!
//! [jitter]                      # every command takes up to so much more or less, evenly spread
//! percent = 2
//! seed = 1
//! from = "assumed"
//!
//! [[fault]]                     # at the command of this number, from 1, counted over resets
//! kind = "slow"                 # `times`; from then on
//! at = 1000                     # "mute": `closes_after`; "removed"; "wrong_status": `status`;
//! times = 3                     # "waiting_time_extension": `count`, with [link]
//! from = "assumed"
//! ```
//!
//! Every number stands beside a `from` that says where it comes from: `published` by the source,
//! `derived` from what it published, or `assumed`. A number without one is refused, and so is a
//! profile that contradicts itself. What a profile with `[work]` does not price it does not time
//! either: a key whose work has no price is refused when the card is made, and a command of the
//! benchmark applet that computes something without a price is answered with 6A81.

mod atr;
mod faults;
mod names;
mod price;
mod raw;
mod resolve;
mod shipped;
#[cfg(test)]
mod tests;
pub(crate) mod timing;

use std::path::Path;

use serde::Deserialize;
use tapstone_measure::units::Nanos;
use tapstone_source::Mistake;

pub use self::shipped::{Shipped, shipped};
use self::timing::Timing;
use crate::applet::Applet;
use crate::bench::BenchApplet;
use crate::card::VirtualCard;
use crate::fault::InjectedFault;
use crate::identity::IdentityApplet;
use crate::piv::{CardData, CardDataError, PivApplet, Recipe};
use crate::transmission::Transmission;

/// What a card is, and how long it takes.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What it calls itself.
    pub name: String,
    /// What card it is, in one line.
    pub description: String,
    /// Where its figures come from.
    pub source: String,
    text: String,
    atr: Vec<u8>,
    transmission: Transmission,
    applets: Vec<InstalledApplet>,
    timing: Timing,
    faults: Vec<InjectedFault>,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileOrigin {
    /// The source gives it.
    Published,
    /// Computed from what the source gives.
    Derived,
    /// Neither: chosen so that the whole is plausible.
    Assumed,
}

/// An applet of a profile.
#[derive(Clone, Debug)]
enum InstalledApplet {
    Bench,
    Piv(Recipe),
}

impl Profile {
    /// Reads a profile; `file` is for error texts.
    ///
    /// # Errors
    /// Not TOML, an unknown field or name, a number without its origin, a contradiction: with line
    /// and field.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        resolve::profile(file, text)
    }

    /// The text of the profile's file, as it was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether its card has the PIV applet, which needs card data.
    #[must_use]
    pub fn has_piv(&self) -> bool {
        self.applets.iter().any(|applet| matches!(applet, InstalledApplet::Piv(_)))
    }

    /// The card. `card_data` is the PIV applet's folder or file, made when it is not there;
    /// without one card data is made that nobody keeps.
    ///
    /// # Errors
    /// When the card data cannot be read or made, or has a key whose work this profile does not
    /// price.
    pub fn card(&self, card_data: Option<&Path>) -> Result<VirtualCard, CardDataError> {
        let mut card = VirtualCard::new()
            .with_atr(&self.atr)
            .with_transmission(self.transmission)
            .with_timing(self.timing.clone())
            .with_faults(self.faults.clone())
            .with("identity", Box::new(IdentityApplet::new(&self.name, &self.text)));
        for applet in &self.applets {
            card = match applet {
                InstalledApplet::Bench => card.with(names::BENCH, Box::new(BenchApplet::default())),
                InstalledApplet::Piv(recipe) => {
                    let card_data = match card_data {
                        Some(path) => CardData::open_or_generate(path, recipe)?,
                        None => CardData::generate(recipe)?,
                    };
                    self.check_keys_are_priced(&card_data)?;
                    let piv: Box<dyn Applet> = Box::new(PivApplet::new(card_data));
                    card.with_default(names::PIV, piv)
                }
            };
        }
        Ok(card)
    }

    fn check_keys_are_priced(&self, card_data: &CardData) -> Result<(), CardDataError> {
        const GENERAL_AUTHENTICATE: u8 = 0x87;
        for (reference, algorithm, work) in card_data.work_of_keys() {
            if !self.timing.prices_work(names::PIV, GENERAL_AUTHENTICATE, work) {
                let profile = self.name.clone();
                return Err(CardDataError::Unpriced { reference, algorithm, profile, work });
            }
        }
        Ok(())
    }

    /// From power on to the answer to reset.
    #[must_use]
    pub fn power_on(&self) -> Nanos {
        self.timing.power_on()
    }
}
