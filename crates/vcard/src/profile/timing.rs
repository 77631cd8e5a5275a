//! How long a card takes for a command: a sum of what the profile prices.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tapstone_link::Link;
use tapstone_measure::units::Nanos;

use super::names;
use crate::applet::CardWork;

/// The prices of a profile. Nothing costs nothing by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    pub(super) power_on: Nanos,
    pub(super) command: Price,
    /// In its place, by applet and INS, or by INS alone.
    pub(super) commands: BTreeMap<(Option<&'static str>, u8), Price>,
    pub(super) byte_to_card: Price,
    pub(super) byte_from_card: Price,
    pub(super) link: Option<Link>,
    pub(super) work: BTreeMap<String, Price>,
    pub(super) jitter: Option<Jitter>,
}

/// Nanoseconds for one of something, in fractions: a cycle of a card is more than one, but a sum
/// of roundings would show.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Price(pub(super) f64);

/// An even spread around the computed time.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// The share of the time by which it varies, from 0 to 1.
    pub(super) share: f64,
    pub(super) random: ChaCha8Rng,
}

/// What a command was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge<'a> {
    /// The application that answered it.
    pub(crate) application: Option<&'static str>,
    pub(crate) ins: u8,
    pub(crate) command_bytes: usize,
    pub(crate) response_bytes: usize,
    pub(crate) work: &'a [CardWork],
}

impl Jitter {
    pub(super) fn new(share: f64, seed: u64) -> Self {
        Self { share, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// 1 - share to 1 + share.
    fn factor(&mut self) -> f64 {
        // The upper 53 bits are a number from 0 to 1 that an f64 holds exactly.
        let even = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + self.share * (2.0 * even - 1.0)
    }
}

impl Timing {
    /// From power on to the answer to reset.
    pub(crate) const fn power_on(&self) -> Nanos {
        self.power_on
    }

    /// From the first byte of the command to the last of the response.
    pub(crate) fn time_of(&mut self, charge: &Charge<'_>) -> Nanos {
        let work = charge.work.iter().map(|work| {
            let price = self.work.get(work.name).copied().unwrap_or_default();
            price.0 * f64::from(work.count)
        });
        let computing = self.fixed(charge).0 + work.sum::<f64>();
        let on_the_way = match &self.link {
            Some(link) => {
                let exchange = link.exchange(charge.command_bytes, charge.response_bytes);
                (exchange + link.waiting_time_extensions(nanos(computing))).0 as f64
            }
            None => {
                self.byte_to_card.0 * charge.command_bytes as f64
                    + self.byte_from_card.0 * charge.response_bytes as f64
            }
        };
        let factor = self.jitter.as_mut().map_or(1.0, Jitter::factor);
        nanos((computing + on_the_way) * factor)
    }

    /// What so many requests for more time take, when the card makes them without need: each is a
    /// waiting time and what it costs on the link.
    pub(crate) fn waiting_time_extensions(&self, count: u32) -> Nanos {
        let one =
            self.link.as_ref().map(|link| link.waiting_time() + link.waiting_time_extension());
        Nanos(one.unwrap_or_default().0.saturating_mul(count.into()))
    }

    /// Whether this work is timed: by its own price, or by one of the whole command. A profile that
    /// prices no work at all says that commands take what they take, whatever they compute. Where
    /// the source gave one figure for a set-up and its blocks, one of them is
    /// priced and stands for both.
    pub(super) fn prices_work(&self, application: &'static str, ins: u8, work: &str) -> bool {
        let stands_for = |priced: &String| {
            let part = work.strip_suffix(".init").or(work.strip_suffix(".block"));
            part.is_some_and(|algorithm| {
                priced.strip_prefix(algorithm).is_some_and(|rest| rest.starts_with('.'))
            })
        };
        self.work.is_empty()
            || self.work.contains_key(work)
            || self.work.keys().any(stands_for)
            || self.commands.contains_key(&(Some(application), ins))
            || self.commands.contains_key(&(None, ins))
    }

    /// The first computation of a command that this profile does not price, though it prices
    /// others: it would look nearly free.
    pub(crate) fn unpriced(
        &self,
        application: &'static str,
        ins: u8,
        work: &[CardWork],
    ) -> Option<&'static str> {
        let mut names = work.iter().map(|work| work.name);
        names.find(|name| {
            names::is_measured(application, ins, name) && !self.prices_work(application, ins, name)
        })
    }

    fn fixed(&self, charge: &Charge<'_>) -> Price {
        let of_applet = self.commands.get(&(charge.application, charge.ins));
        let by_ins = || self.commands.get(&(None, charge.ins));
        of_applet.or_else(by_ins).copied().unwrap_or(self.command)
    }
}

fn nanos(value: f64) -> Nanos {
    Nanos(value.round() as u64)
}
