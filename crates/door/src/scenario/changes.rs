//! What could be changed: what the scenario itself names, and what follows from its path.

use std::collections::BTreeMap;

use tapstone_link::Hop;
use tapstone_source::{Mistake, Source};
use toml::{Spanned, Value};

use super::figure::FigureSource;
use super::raw::{RawChange, RawChangeKind, RawScenario};
use crate::change::{self, ChangeKind, Edit, PathChange};
use crate::content::{CertificateBytes, KeyKind};
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
    changes.extend(fields(path));
    changes.extend(contents(path, &changes));
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
    for change in &raw.change {
        let Some(needs) = &change.get_ref().needs else { continue };
        if !changes.iter().any(|known| &known.id == needs.get_ref()) {
            let ids: Vec<&str> = changes.iter().map(|change| change.id.as_str()).collect();
            let problem =
                format!("there is no change {:?}\nhint: {}", needs.get_ref(), ids.join(", "));
            return Err(source.error(needs.span(), problem));
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
    let place = raw.span();
    let raw = raw.get_ref();
    let over = parts(source, raw, path)?;
    let (kind, edit) = match (raw.kind, &raw.saves_ms, &raw.factor, &raw.by, &raw.steps_ms) {
        (RawChangeKind::Algorithm, Some(saves), None, None, None) => {
            (ChangeKind::Algorithm, algorithm(source, raw, saves, over, path)?)
        }
        (RawChangeKind::Algorithm, None, Some(factor), None, None) => {
            (ChangeKind::Algorithm, Edit::Factor { factor: source.factor(factor)?, over })
        }
        (RawChangeKind::Algorithm, None, None, None, Some(times)) => {
            (ChangeKind::Algorithm, algorithm_by_steps(source, raw, times, path, place)?)
        }
        (RawChangeKind::FasterCard, None, Some(factor), None, None) => {
            (ChangeKind::FasterCard, Edit::Factor { factor: source.factor(factor)?, over })
        }
        (RawChangeKind::FasterCard, None, None, None, Some(times)) => {
            (ChangeKind::FasterCard, steps(source, times, path, Role::Card, place)?)
        }
        (RawChangeKind::FasterModule, None, None, None, Some(times)) => {
            (ChangeKind::FasterModule, steps(source, times, path, Role::Module, place)?)
        }
        (RawChangeKind::Link, None, None, Some(hop), None) => {
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
                "a change has what its kind needs\nhint: algorithm has saves_ms, factor or steps_ms, \
                 faster-card factor or steps_ms, faster-module steps_ms, link has by",
            ));
        }
    };
    Ok(worded(PathChange::new(kind, &raw.name, edit), raw))
}

/// Another algorithm, of which a source tells how much it saves in all. Where it is known what is
/// sent, its bytes say what the links save, and the rest of the published saving is taken from
/// `over`; else all of it is.
fn algorithm(
    source: &Source<'_>,
    raw: &RawChange,
    saves: &Spanned<Value>,
    over: Vec<String>,
    path: &AuthenticationPath,
) -> Result<Edit, Mistake> {
    let published = source.one_figure(saves)?;
    let known = key_and_certificate(source, raw, path)?;
    let by_bytes = known.map_or(Millis::ZERO, |(key, certificate)| {
        let edit = Edit::Algorithm { key, certificate, factor: 1.0, over: Vec::new(), times: None };
        let sent = change::apply(path, &[PathChange::new(ChangeKind::Algorithm, "", edit)]);
        path.total() - sent.total()
    });
    let parts = path.parts.iter().filter(|part| over.contains(&part.name));
    let there: Millis = parts.map(crate::PathPart::mean).sum();
    let rest = published - by_bytes;
    if rest > there || there == Millis::ZERO || rest < Millis::ZERO {
        let problem = format!(
            "it saves {} ms, of which {:.1} by its bytes, of parts that take {} ms\nhint: name \
             further parts in `over`",
            published.0, by_bytes.0, there.0
        );
        return Err(source.error(saves.span(), problem));
    }
    // From each in proportion: another card, measured, then saves in proportion too.
    let factor = 1.0 - rest.0 / there.0;
    Ok(match known {
        Some((key, certificate)) => Edit::Algorithm { key, certificate, factor, over, times: None },
        None => Edit::Factor { factor, over },
    })
}

/// The key and the certificate of an algorithm, where a change tells them.
fn key_and_certificate(
    source: &Source<'_>,
    raw: &RawChange,
    path: &AuthenticationPath,
) -> Result<Option<(KeyKind, CertificateBytes)>, Mistake> {
    let Some(certificate) = &raw.certificate else { return Ok(None) };
    let problem = "the bytes of an algorithm are known where those of today's are\nhint: [content] \
                   with key and certificate, and a name such as ecc-p256";
    let key = KeyKind::named(&raw.name).filter(|_| path.content.is_some());
    let key = key.ok_or_else(|| source.error(certificate.span(), problem))?;
    Ok(Some((key, super::content::certificate(source, certificate)?)))
}

/// Another algorithm, of which it is known what it takes on the card; the links follow from bytes.
fn algorithm_by_steps(
    source: &Source<'_>,
    raw: &RawChange,
    times: &BTreeMap<Spanned<String>, Spanned<Value>>,
    path: &AuthenticationPath,
    place: std::ops::Range<usize>,
) -> Result<Edit, Mistake> {
    let problem = "what the links send with it is not known\nhint: certificate = { bytes = 1314 }";
    let known = key_and_certificate(source, raw, path)?;
    let (key, certificate) = known.ok_or_else(|| source.error(place.clone(), problem))?;
    let Edit::Steps { part, times } = steps(source, times, path, Role::Card, place)? else {
        unreachable!("steps are what they are made of")
    };
    let times = Some((part, times));
    Ok(Edit::Algorithm { key, certificate, factor: 1.0, over: Vec::new(), times })
}

/// What steps of the card or the module would take.
fn steps(
    source: &Source<'_>,
    times: &BTreeMap<Spanned<String>, Spanned<Value>>,
    path: &AuthenticationPath,
    role: Role,
    place: std::ops::Range<usize>,
) -> Result<Edit, Mistake> {
    let part = path.find(role).ok_or_else(|| {
        source.error(place, "the path has no such component\nhint: leave the change out")
    })?;
    let time = |(step, time): (&Spanned<String>, &Spanned<Value>)| {
        if !step::ALL.contains(&step.get_ref().as_str()) {
            let problem =
                format!("there is no step {:?}\nhint: {}", step.get_ref(), step::ALL.join(", "));
            return Err(source.error(step.span(), problem));
        }
        Ok((step.get_ref().clone(), source.one_figure(time)?))
    };
    let times = times.iter().map(time).collect::<Result<_, _>>()?;
    Ok(Edit::Steps { part: part.name.clone(), times })
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
    change.needs = raw.needs.as_ref().map(|needs| needs.get_ref().clone());
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

/// Faster bit rates and longer frames of a card without contacts.
fn fields(path: &AuthenticationPath) -> Vec<PathChange> {
    let field = path.parts.iter().find(|part| part.role.is_card_link() && replaceable(part));
    let Some((part, Hop::Contactless(link))) =
        field.and_then(|part| Some((part, part.hop.as_ref()?)))
    else {
        return Vec::new();
    };
    let now = link.parameters();
    let rate = |kbit: u16| {
        let edit = Edit::BitRate { part: part.name.clone(), rate: kbit.try_into().ok()? };
        let mut change = PathChange::new(ChangeKind::BitRate, &kbit.to_string(), edit);
        if kbit > FASTEST_OF_TODAYS_CARDS {
            change.effort = CARDS_FOR_EVERYBODY;
            change.condition.push_str(OF_AMENDMENTS);
        }
        Some(change)
    };
    let frame = |bytes: u16| {
        let edit = Edit::Frames { part: part.name.clone(), bytes };
        PathChange::new(ChangeKind::Frames, &bytes.to_string(), edit)
    };
    let rates = RATES.into_iter().filter(|kbit| *kbit > now.kbit_per_second.per_second_thousands());
    let frames = FRAMES.into_iter().filter(|bytes| *bytes > now.fsc.min(now.fsd));
    rates.filter_map(rate).chain(frames.map(frame)).collect()
}

/// In kbit/s: what goes beyond it is in amendments that cards of today do not have.
const FASTEST_OF_TODAYS_CARDS: u16 = 848;
const CARDS_FOR_EVERYBODY: u32 = 8;
const OF_AMENDMENTS: &str = "; rates from fc/8 on are those of its amendments of 2012 and are agreed \
                             on by S(PARAMETERS), so that cards and readers are new";

/// Bit rates of ISO/IEC 14443-2 in kbit/s; above 848 by its amendments.
const RATES: [u16; 5] = [212, 424, 848, 1695, 6780];
/// Frames of ISO/IEC 14443-4, table 1: one that holds a short response, and the longest.
const FRAMES: [u16; 2] = [512, 4096];

/// Other forms of what is sent, where that is known.
fn contents(path: &AuthenticationPath, changes: &[PathChange]) -> Vec<PathChange> {
    let Some(content) = &path.content else { return Vec::new() };
    let other_keys = changes.iter().filter_map(|change| match &change.edit {
        Edit::Algorithm { certificate, .. } => Some(*certificate),
        _ => None,
    });
    let forms: Vec<CertificateBytes> = other_keys.chain([content.certificate]).collect();
    let mut all = vec![PathChange::new(ChangeKind::ExtendedLength, "", Edit::ExtendedLength)];
    if forms.iter().any(|form| form.small.is_some()) {
        let edit = Edit::SmallCertificate;
        all.push(PathChange::new(ChangeKind::SmallerCertificate, "", edit));
    }
    if forms.iter().any(|form| form.gzip.is_some()) {
        all.push(PathChange::new(ChangeKind::GzipCertificate, "", Edit::GzipCertificate));
    }
    all
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
