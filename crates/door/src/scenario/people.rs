//! Who comes to the door, and with which cards.

use tapstone_source::Source;
use toml::{Spanned, Value};

use super::Scenario;
use super::checks::{ScenarioResult, is_whole, shown_sum, together_made};
use super::figure::FigureSource;
use super::raw::{RawCardKind, RawPeople};
use crate::change;
use crate::distribution::TimeDistribution;
use crate::people::{CardKind, People};

pub(super) fn people(source: &Source<'_>, raw: &RawPeople) -> ScenarioResult<People> {
    let usual = People::default();
    let time = |raw: &Option<Spanned<Value>>| -> ScenarioResult<Option<TimeDistribution>> {
        raw.as_ref().map(|raw| Ok(source.figure(raw)?.time)).transpose()
    };
    let read_failure = raw.read_failure.as_ref().map_or(Ok(usual.read_failure), |raw| {
        let part = *raw.get_ref();
        let fits = (0.0..1.0).contains(&part);
        let problem = format!("{part} is no part of all readings\nhint: 0.02 is 2 %");
        fits.then_some(part).ok_or_else(|| source.error(raw.span(), problem))
    })?;
    let attempts = raw.attempts.as_ref().map_or(Ok(usual.attempts), |raw| {
        let attempts = *raw.get_ref();
        let problem = "people try at least once\nhint: 1 to 1000";
        let fits = (1..=1000).contains(&attempts);
        fits.then_some(attempts).ok_or_else(|| source.error(raw.span(), problem))
    })?;
    let doors = raw.doors.as_ref().map_or(Ok(usual.doors), |raw| {
        let doors = *raw.get_ref();
        let problem = "people come to a door at least\nhint: 1 to 1000";
        (1..=1000)
            .contains(&doors)
            .then_some(doors)
            .ok_or_else(|| source.error(raw.span(), problem))
    })?;
    Ok(People {
        tap: time(&raw.tap_ms)?.unwrap_or(usual.tap),
        hold: time(&raw.hold_ms)?,
        again: time(&raw.again_ms)?.unwrap_or(usual.again),
        read_failure,
        attempts,
        patience: time(&raw.patience_ms)?,
        pass: time(&raw.pass_ms)?.unwrap_or(usual.pass),
        doors,
        cards: Vec::new(),
    })
}

/// The kinds of card that people hold: the scenario's with some changes.
pub(super) fn card_kinds(
    source: &Source<'_>,
    raw: &[Spanned<RawCardKind>],
    scenario: &Scenario,
) -> ScenarioResult<Vec<CardKind>> {
    let mut kinds: Vec<CardKind> = Vec::new();
    for kind in raw {
        let RawCardKind { name, share, with } = kind.get_ref();
        if kinds.iter().any(|other| &other.name == name) {
            let problem = format!("a second card {name:?}\nhint: choose another name");
            return Err(source.error(kind.span(), problem));
        }
        if !(*share.get_ref() > 0.0 && *share.get_ref() <= 1.0) {
            let problem =
                format!("{} is no part of all people\nhint: 0.3 is 30 %", share.get_ref());
            return Err(source.error(share.span(), problem));
        }
        let made = together_made(source, with, &scenario.changes)?;
        let path = change::apply(&scenario.path, &made);
        kinds.push(CardKind { name: name.clone(), share: *share.get_ref(), path });
    }
    let sum: f64 = kinds.iter().map(|kind| kind.share).sum();
    if let (Some(last), true) = (raw.last(), !is_whole(sum)) {
        let sum = shown_sum(sum);
        let problem = format!("the shares of the cards add up to {sum}\nhint: they add up to 1");
        return Err(source.error(last.span(), problem));
    }
    Ok(kinds)
}
