//! What could be changed: what the scenario itself names, and what follows from its path.

use tapstone_link::Hop;
use tapstone_source::{Mistake, Source};
use toml::Spanned;

use super::figure::FigureSource;
use super::raw::{RawChange, RawChangeKind, RawScenario};
use crate::change::{ChangeKind, Edit, PathChange};
use crate::millis::Millis;
use crate::path::{AuthenticationPath, LinkEnd, Role, step};

/// All of them, in the order in which they are applied: first what the card computes, then what is
/// sent, then what is left out, then what happens at the same time.
pub(super) fn possible_changes(
    source: &Source<'_>,
    raw: &RawScenario,
    path: &AuthenticationPath,
) -> Result<Vec<PathChange>, Mistake> {
    let mut changes = Vec::new();
    for change in &raw.change {
        changes.push(named(source, change, path)?);
    }
    changes.extend(bit_rates(path));
    changes.extend(links(path));
    changes.extend(structure(path));
    for (name, effort) in &raw.effort {
        let meant = |change: &&mut PathChange| &change.id == name || change.kind.name() == name;
        let mut known = false;
        for change in changes.iter_mut().filter(meant) {
            change.effort = *effort.get_ref();
            known = true;
        }
        if !known {
            let ids: Vec<&str> = changes.iter().map(|change| change.id.as_str()).collect();
            let problem = format!("there is no change {name:?}\nhint: {}", ids.join(", "));
            return Err(source.error(effort.span(), problem));
        }
    }
    changes.sort_by_key(|change| change.kind);
    for (at, change) in changes.iter().enumerate() {
        if changes[..at].iter().any(|other| other.id == change.id) {
            let problem = format!("a second change {}\nhint: choose another name", change.id);
            return Err(source.error(0..0, problem));
        }
    }
    Ok(changes)
}

/// A change that the scenario names.
fn named(
    source: &Source<'_>,
    raw: &Spanned<RawChange>,
    path: &AuthenticationPath,
) -> Result<PathChange, Mistake> {
    let here = |problem: &str| source.error(raw.span(), problem);
    let raw = raw.get_ref();
    let over = parts(source, raw, path)?;
    let (kind, edit) = match (raw.kind, &raw.saves_ms, &raw.factor, &raw.by) {
        (RawChangeKind::Algorithm, Some(saves), None, None) => {
            let time = source.one_figure(saves)?;
            let there: Millis = path
                .parts
                .iter()
                .filter(|part| over.contains(&part.name))
                .map(crate::PathPart::mean)
                .sum();
            if time > there || there == Millis::ZERO {
                let problem = format!(
                    "it saves {} ms of parts that take {} ms\nhint: name further parts in `over`",
                    time.0, there.0
                );
                return Err(source.error(saves.span(), problem));
            }
            // From each in proportion: another card, measured, then saves in proportion too.
            (ChangeKind::Algorithm, Edit::Factor { factor: 1.0 - time.0 / there.0, over })
        }
        (RawChangeKind::Algorithm, None, Some(factor), None) => {
            (ChangeKind::Algorithm, Edit::Factor { factor: source.factor(factor)?, over })
        }
        (RawChangeKind::FasterCard, None, Some(factor), None) => {
            (ChangeKind::FasterCard, Edit::Factor { factor: source.factor(factor)?, over })
        }
        (RawChangeKind::Link, None, None, Some(hop)) => {
            let [name] = &over[..] else {
                return Err(here("a link change is of one link\nhint: over = [\"reader-module\"]"));
            };
            let part = path.parts.iter().find(|part| &part.name == name);
            let part = part.filter(|part| replaceable(part));
            let problem =
                "what is sent over this link is not known\nhint: [[link.message]] says it";
            part.ok_or_else(|| source.error(hop.span(), problem))?;
            let edit = Edit::Link { part: name.clone(), hop: hop.get_ref().clone() };
            let change = PathChange::new(ChangeKind::Link, &format!("{name}={}", raw.name), edit);
            return Ok(worded(change, raw));
        }
        _ => {
            return Err(here(
                "a change has what its kind needs\nhint: algorithm has saves_ms or factor, \
                 faster-card has factor, link has by",
            ));
        }
    };
    Ok(worded(PathChange::new(kind, &raw.name, edit), raw))
}

fn worded(mut change: PathChange, raw: &RawChange) -> PathChange {
    if let Some(what) = &raw.what {
        change.what.clone_from(what);
    }
    if let Some(condition) = &raw.condition {
        change.condition.clone_from(condition);
    }
    if let Some(from) = raw.from {
        change.provenance = from;
    }
    change
}

/// The parts that a change is over: the card unless it says otherwise.
fn parts(
    source: &Source<'_>,
    raw: &RawChange,
    path: &AuthenticationPath,
) -> Result<Vec<String>, Mistake> {
    let Some(over) = &raw.over else {
        return Ok(path.find(Role::Card).map(|part| part.name.clone()).into_iter().collect());
    };
    let check = |name: &Spanned<String>| {
        if path.parts.iter().any(|part| &part.name == name.get_ref()) {
            return Ok(name.get_ref().clone());
        }
        let known: Vec<&str> = path.parts.iter().map(|part| part.name.as_str()).collect();
        let problem = format!("there is no part {:?}\nhint: {}", name.get_ref(), known.join(", "));
        Err(source.error(name.span(), problem))
    };
    over.iter().map(check).collect()
}

/// Only where it is known what is sent can another link be reckoned.
fn replaceable(part: &crate::PathPart) -> bool {
    part.hop.is_some() && !part.messages.is_empty()
}

/// The faster bit rates of a card without contacts.
fn bit_rates(path: &AuthenticationPath) -> Vec<PathChange> {
    let field = path.parts.iter().find(|part| part.role.is_card_link() && replaceable(part));
    let Some((part, Hop::Contactless(link))) =
        field.and_then(|part| Some((part, part.hop.as_ref()?)))
    else {
        return Vec::new();
    };
    let now = link.parameters().kbit_per_second.per_second_thousands();
    let faster = |kbit: u16| {
        let mut parameters = link.parameters().clone();
        parameters.kbit_per_second = kbit.try_into().ok()?;
        let hop = Hop::Contactless(parameters.try_into().ok()?);
        let edit = Edit::Link { part: part.name.clone(), hop };
        Some(PathChange::new(ChangeKind::BitRate, &kbit.to_string(), edit))
    };
    [212, 424, 848].into_iter().filter(|kbit| *kbit > now).filter_map(faster).collect()
}

/// OSDP and IP in the place of the links behind the reader, where they are faster.
fn links(path: &AuthenticationPath) -> Vec<PathChange> {
    let others = [
        (
            "osdp",
            "kind = \"osdp\"\nbaud = 230400\npacket_bytes = 1440\nsecure_channel = true\npoll_us = 10000",
        ),
        ("ip", "kind = \"ip\"\nround_trip_us = 1000\nbits_per_second = 100000000"),
    ];
    let mut changes = Vec::new();
    for part in path.parts.iter().filter(|part| replaceable(part) && !part.role.is_card_link()) {
        let now: Millis = part.hop.iter().flat_map(|hop| part.by_formula(hop).into_values()).sum();
        for (name, text) in others {
            let hop: Hop =
                toml::from_str(text).expect("these links are possible: a test reads them");
            let then: Millis = part.by_formula(&hop).into_values().sum();
            if then < now {
                let edit = Edit::Link { part: part.name.clone(), hop };
                changes.push(PathChange::new(
                    ChangeKind::Link,
                    &format!("{}={name}", part.name),
                    edit,
                ));
            }
        }
    }
    changes
}

/// What can be left out, moved, or done at the same time.
fn structure(path: &AuthenticationPath) -> Vec<PathChange> {
    let mut changes = Vec::new();
    let has = |steps: &[&str]| {
        let needs = |part: &&crate::PathPart| {
            let mut pieces = part.pieces.iter();
            pieces.any(|piece| steps.iter().any(|step| piece.steps.contains_key(*step)))
        };
        path.parts.iter().any(|part| needs(&part))
    };
    if let Some(link) = path.find(Role::Link(LinkEnd::Module, LinkEnd::Controller)) {
        let edit = Edit::Drop { part: link.name.clone() };
        changes.push(PathChange::new(ChangeKind::ControllerSide, "", edit));
    }
    if has(&[step::READ_CERTIFICATE]) {
        changes.push(PathChange::new(ChangeKind::KnownCard, "", Edit::KnownCard));
    }
    if has(&[step::VALIDATE, step::REVOCATION]) {
        changes.push(PathChange::new(ChangeKind::BackgroundValidation, "", Edit::Background));
    }
    if path.could_overlap() > Millis::ZERO {
        changes.push(PathChange::new(ChangeKind::Overlap, "", Edit::Overlap));
    }
    if let Some(check) = path.find(Role::SelfCheck) {
        let edit = Edit::Drop { part: check.name.clone() };
        changes.push(PathChange::new(ChangeKind::SelfCheckPolicy, "", edit));
    }
    changes
}
