//! From TOML to a path whose parts were checked.

use std::collections::BTreeMap;

use tapstone_record::Provenance;
use tapstone_source::{Mistake, Source};
use toml::{Spanned, Value};

use super::changes;
use super::checks::{ScenarioResult, is_whole, known, shown_sum, together_made};
use super::figure::{FigureSource, ScenarioFigure};
use super::raw::{RawComponent, RawKind, RawLink, RawMessage, RawProjection, RawScenario};
use super::{Projected, PublishedProjection, Scenario, content, people};
use crate::change::PathChange;
use crate::content::CardContent;
use crate::distribution::TimeDistribution;
use crate::millis::Millis;
use crate::path::{
    AuthenticationPath, CHUID_START, LinkEnd, Message, PathPart, Role, StepTime, formula, step,
};
use crate::people::People;

/// What PKI-CAK at a door is called.
const OPERATION: &str = "door.pki-cak";

pub(super) fn scenario(source: &Source<'_>) -> ScenarioResult<Scenario> {
    let hint = "`tapstone door budget --show hid-rsa2048` prints a scenario to compare with";
    let raw: RawScenario =
        toml::from_str(source.text).map_err(|error| source.syntax(&error, hint))?;
    let mut scenario = match &raw.base {
        Some(base) => on(source, base, &raw)?,
        None => from_parts(source, &raw)?,
    };
    scenario.title.clone_from(&raw.title);
    if let Some(target) = &raw.target_ms {
        scenario.target = source.one_figure(target)?;
    }
    if let Some(crowd) = &raw.people {
        scenario.people = people::people(source, crowd)?;
        scenario.people.cards = people::card_kinds(source, &crowd.card, &scenario)?;
    }
    Ok(scenario)
}

/// A shipped scenario with some changes made.
fn on(source: &Source<'_>, base: &Spanned<String>, raw: &RawScenario) -> ScenarioResult<Scenario> {
    let here = |error: String| source.error(base.span(), error);
    let scenario = Scenario::shipped(base.get_ref()).map_err(|error| here(error.to_string()))?;
    if !raw.component.is_empty() || !raw.link.is_empty() || !raw.change.is_empty() {
        let problem = "with a base, components, links and changes are those of the base\nhint: \
                       write the whole path, or leave them out";
        return Err(here(problem.into()));
    }
    let made = together_made(source, &raw.with, &scenario.changes)?;
    let mut scenario = scenario.changed(&made);
    // What the source expects of changes, it expects from where it started.
    scenario.projections.clear();
    Ok(scenario)
}

fn from_parts(source: &Source<'_>, raw: &RawScenario) -> ScenarioResult<Scenario> {
    let Some(target) = &raw.target_ms else {
        let problem = "the target is missing\nhint: target_ms = 1500";
        return Err(source.error(0..0, problem));
    };
    if let Some(id) = raw.with.first() {
        let problem = "changes are made to a base\nhint: base = \"hid-rsa2048\"";
        return Err(source.error(id.span(), problem));
    }
    let path = path(source, raw)?;
    let changes = changes::possible_changes(source, raw, &path)?;
    let projections = raw.projection.iter().map(|raw| projection(source, raw, &changes, &path));
    let projections = projections.collect::<ScenarioResult<_>>()?;
    Ok(Scenario {
        title: raw.title.clone(),
        operation: raw.operation.clone().unwrap_or_else(|| OPERATION.into()),
        source: raw.source.clone(),
        target: source.one_figure(target)?,
        projections,
        path,
        changes,
        made: Vec::new(),
        spent: Vec::new(),
        people: People::default(),
        notes: Vec::new(),
    })
}

/// Components in their order, each followed by its link to the next; the self-check last.
fn path(source: &Source<'_>, raw: &RawScenario) -> ScenarioResult<AuthenticationPath> {
    let content = raw.content.as_ref().map(|raw| content::content(source, raw)).transpose()?;
    let mut components: Vec<(LinkEnd, PathPart)> = Vec::new();
    for component in &raw.component {
        let (end, part) = self::component(source, component.get_ref(), raw, content.as_ref())?;
        if components.iter().any(|(_, other)| other.name == part.name || other.role == part.role) {
            let problem = format!("a second {}\nhint: a path has one of each", part.name);
            return Err(source.error(component.span(), problem));
        }
        components.push((end, part));
    }
    if components.is_empty() {
        let problem = "there are no components\nhint: [[component]] with kind = \"card\" is one";
        return Err(source.error(0..0, problem));
    }
    let mut links: BTreeMap<usize, PathPart> = BTreeMap::new();
    for link in &raw.link {
        let (at, part) = self::link(source, link, &components, raw, content.as_ref())?;
        if links.insert(at, part).is_some() {
            let problem = "a second link between these two\nhint: remove one";
            return Err(source.error(link.get_ref().between.span(), problem));
        }
    }
    let mut parts = Vec::new();
    for (at, (_, component)) in components.into_iter().enumerate() {
        parts.push(component);
        parts.extend(links.remove(&at));
    }
    if let Some(check) = &raw.self_check {
        let figure = source.figure(&check.time_ms)?;
        let from = (check.from, check.source.as_ref());
        let (provenance, said) = origin(source, &check.time_ms, &figure, from, raw)?;
        parts.push(PathPart {
            name: "self-check".into(),
            role: Role::SelfCheck,
            pieces: vec![StepTime::for_step(step::OTHER, figure.time)],
            hop: None,
            messages: Vec::new(),
            carries_commands: false,
            per_command: None,
            provenance,
            source: said,
        });
    }
    // What a card takes beside its commands and their bytes it takes for each object, however much
    // of it is read.
    let is_by_object = parts.iter().any(|part| part.per_command.is_some());
    let chuid_start = if is_by_object { 1.0 } else { CHUID_START };
    Ok(AuthenticationPath { parts, content, overlaps: false, chuid_start })
}

fn component(
    source: &Source<'_>,
    raw: &RawComponent,
    all: &RawScenario,
    content: Option<&CardContent>,
) -> ScenarioResult<(LinkEnd, PathPart)> {
    let (role, end, name) = match raw.kind.get_ref() {
        RawKind::Card => (Role::Card, LinkEnd::Card, "card"),
        RawKind::Reader => (Role::Reader, LinkEnd::Reader, "reader"),
        RawKind::Module => (Role::Module, LinkEnd::Module, "module"),
        RawKind::Controller => (Role::Controller, LinkEnd::Controller, "controller"),
        RawKind::Door => (Role::Door, LinkEnd::Door, "door"),
    };
    let name = raw.name.as_ref().map_or(name, |name| name.get_ref());
    let mut origins = Vec::new();
    let mut pieces = Vec::new();
    let from = || (raw.from, raw.source.as_ref());
    if let Some(time) = &raw.time_ms {
        let figure = source.figure(time)?;
        origins.push(origin(source, time, &figure, from(), all)?);
        let steps = raw.steps.as_ref().map(|steps| shares(source, steps)).transpose()?;
        let whole = || BTreeMap::from([(step::OTHER.to_owned(), 1.0)]);
        pieces.push(StepTime { time: figure.time, steps: steps.unwrap_or_else(whole) });
    } else if let Some(steps) = &raw.steps {
        let problem = "steps are shares of `time_ms`, which is missing\nhint: add it";
        return Err(source.error(steps.span(), problem));
    }
    for work in &raw.work {
        check_step(source, &work.step)?;
        let figure = source.figure(&work.time_ms)?;
        origins.push(origin(source, &work.time_ms, &figure, from(), all)?);
        pieces.push(StepTime::for_step(work.step.get_ref(), figure.time));
    }
    let mut per_command = None;
    if let Some(each) = &raw.command_ms {
        let Some(content) = content else { return Err(no_content(source, each.span())) };
        let figure = source.figure(each)?;
        origins.push(origin(source, each, &figure, from(), all)?);
        per_command = Some(pieces.len());
        pieces.push(StepTime { time: figure.time, steps: content.commands() });
    }
    let (provenance, said) = together(origins);
    let part = PathPart {
        name: name.to_owned(),
        role,
        pieces,
        hop: None,
        messages: Vec::new(),
        carries_commands: false,
        per_command,
        provenance,
        source: said,
    };
    Ok((end, part))
}

fn no_content(source: &Source<'_>, at: std::ops::Range<usize>) -> Mistake {
    let problem = "which commands there are is not known\nhint: [content] with key and certificate \
                   says it";
    source.error(at, problem)
}

/// Of several, the least certain: a sum is no better than its worst part.
fn together(origins: Vec<(Provenance, Option<String>)>) -> (Provenance, Option<String>) {
    let rank = |provenance: Provenance| match provenance {
        Provenance::Measured => 0,
        Provenance::Published => 1,
        Provenance::Replayed => 2,
        Provenance::Emulated => 3,
        Provenance::Derived => 4,
        Provenance::Assumed => 5,
    };
    let worst = origins.into_iter().max_by_key(|(provenance, _)| rank(*provenance));
    worst.unwrap_or((Provenance::Derived, None))
}

fn shares(
    source: &Source<'_>,
    raw: &Spanned<BTreeMap<String, f64>>,
) -> ScenarioResult<BTreeMap<String, f64>> {
    let shares = raw.get_ref();
    if let Some(unknown) = shares.keys().find(|name| !step::ALL.contains(&name.as_str())) {
        return Err(source.error(raw.span(), no_such_step(unknown)));
    }
    let sum: f64 = shares.values().sum();
    if shares.values().any(|share| *share < 0.0) || !is_whole(sum) {
        let sum = shown_sum(sum);
        let problem = format!("the shares of the steps add up to {sum}\nhint: they add up to 1");
        return Err(source.error(raw.span(), problem));
    }
    // Exactly 1, so that a published sum comes out as it was published.
    Ok(shares.iter().map(|(step, share)| (step.clone(), share / sum)).collect())
}

fn check_step(source: &Source<'_>, step: &Spanned<String>) -> ScenarioResult<()> {
    if step::ALL.contains(&step.get_ref().as_str()) {
        return Ok(());
    }
    Err(source.error(step.span(), no_such_step(step.get_ref())))
}

fn no_such_step(name: &str) -> String {
    format!("there is no step {name:?}\nhint: {}", step::ALL.join(", "))
}

/// The link, and after which component it comes.
fn link(
    source: &Source<'_>,
    raw: &Spanned<RawLink>,
    components: &[(LinkEnd, PathPart)],
    all: &RawScenario,
    content: Option<&CardContent>,
) -> ScenarioResult<(usize, PathPart)> {
    let span = raw.span();
    let raw = raw.get_ref();
    let place = |name: &String| {
        components.iter().position(|(_, part)| &part.name == name).ok_or_else(|| {
            let known: Vec<&str> = components.iter().map(|(_, part)| part.name.as_str()).collect();
            let known = known.join(", ");
            let problem = format!("there is no component {name:?}\nhint: {known}");
            source.error(raw.between.span(), problem)
        })
    };
    let [from, to] = raw.between.get_ref();
    let at = place(from)?;
    if place(to)? != at + 1 {
        let problem = format!(
            "{to} does not follow {from}\nhint: a link is between a component and the next"
        );
        return Err(source.error(raw.between.span(), problem));
    }
    let messages = match (&raw.carries, content) {
        (None, _) => messages(source, &raw.message)?,
        (Some(carries), None) => return Err(no_content(source, carries.span())),
        (Some(carries), Some(_)) if !raw.message.is_empty() => {
            let problem = "it carries the content's commands, and messages of its own\nhint: leave \
                           out one of the two";
            return Err(source.error(carries.span(), problem));
        }
        (Some(_), Some(content)) => content.messages(),
    };
    let hop = raw.by.as_ref().map(|hop| hop.get_ref().clone());
    let by_formula = hop.as_ref().map(|hop| formula(hop, &messages)).unwrap_or_default();
    let (piece, provenance, said) = match (&raw.time_ms, &hop) {
        (Some(time), _) => {
            let figure = source.figure(time)?;
            let from = (raw.from, raw.source.as_ref());
            let (provenance, said) = origin(source, time, &figure, from, all)?;
            (StepTime { time: figure.time, steps: split(&by_formula) }, provenance, said)
        }
        (None, Some(hop)) => {
            if messages.is_empty() {
                let problem = "nothing is sent over this link\nhint: [[link.message]] says what, \
                               with step, count, command_bytes and response_bytes";
                return Err(source.error(span, problem));
            }
            let total = by_formula.values().copied().sum();
            let piece =
                StepTime { time: TimeDistribution::Fixed(total), steps: split(&by_formula) };
            (piece, Provenance::Derived, Some(hop.name()))
        }
        (None, None) => {
            let problem = "a link has a time or a formula\nhint: time_ms = 400, or by = { kind = \
                           \"osdp\", baud = 115200 } with messages";
            return Err(source.error(span, problem));
        }
    };
    let role = Role::Link(components[at].0, components[at + 1].0);
    let name = format!("{from}-{to}");
    let part = PathPart {
        name,
        role,
        pieces: vec![piece],
        hop,
        messages,
        carries_commands: raw.carries.is_some(),
        per_command: None,
        provenance,
        source: said,
    };
    Ok((at, part))
}

fn messages(source: &Source<'_>, raw: &[RawMessage]) -> ScenarioResult<Vec<Message>> {
    raw.iter()
        .map(|raw| {
            check_step(source, &raw.step)?;
            let RawMessage { step, count, command_bytes, response_bytes } = raw;
            if *count > 10_000 || *command_bytes > 1 << 20 || *response_bytes > 1 << 20 {
                let problem = "more than any authentication sends\nhint: at most 10,000 messages \
                               of at most 1 MiB";
                return Err(source.error(step.span(), problem));
            }
            Ok(Message {
                step: step.get_ref().clone(),
                count: *count,
                command_bytes: *command_bytes,
                response_bytes: *response_bytes,
            })
        })
        .collect()
}

/// A time, split as the formula would have it.
fn split(by_formula: &BTreeMap<String, Millis>) -> BTreeMap<String, f64> {
    let total: Millis = by_formula.values().copied().sum();
    if total.0 <= 0.0 {
        return BTreeMap::from([(step::OTHER.to_owned(), 1.0)]);
    }
    by_formula.iter().map(|(step, time)| (step.clone(), time.0 / total.0)).collect()
}

/// Where a time is from, which must be said unless its reference says it.
pub(super) fn origin(
    source: &Source<'_>,
    place: &Spanned<Value>,
    figure: &ScenarioFigure,
    (from, said): (Option<Provenance>, Option<&String>),
    all: &RawScenario,
) -> ScenarioResult<(Provenance, Option<String>)> {
    match figure.provenance.or(from) {
        Some(provenance) => {
            let said =
                said.cloned().or_else(|| figure.source.clone()).or_else(|| all.source.clone());
            Ok((provenance, said))
        }
        None => {
            let problem = "it is not said where this time is from\nhint: add from = \"published\", \
                           \"measured\", \"derived\" or \"assumed\" beside it";
            Err(source.error(place.span(), problem))
        }
    }
}

fn projection(
    source: &Source<'_>,
    raw: &RawProjection,
    changes: &[PathChange],
    path: &AuthenticationPath,
) -> ScenarioResult<PublishedProjection> {
    for id in &raw.with {
        known(source, changes, id)?;
    }
    if let Some(until) = &raw.until
        && path.parts.iter().all(|part| &part.name != until.get_ref())
    {
        let known: Vec<&str> = path.parts.iter().map(|part| part.name.as_str()).collect();
        let problem = format!("there is no part {:?}\nhint: {}", until.get_ref(), known.join(", "));
        return Err(source.error(until.span(), problem));
    }
    let (of, published) = match (&raw.saving_ms, &raw.total_ms, &raw.still_ms) {
        (Some(time), None, None) => (Projected::Saving, time),
        (None, Some(time), None) => (Projected::Total, time),
        (None, None, Some(time)) => (Projected::Still, time),
        _ => {
            let problem = format!(
                "the projection {:?} is not about one figure\nhint: saving_ms, total_ms or still_ms",
                raw.says
            );
            return Err(source.error(raw.with.first().map_or(0..0, Spanned::span), problem));
        }
    };
    Ok(PublishedProjection {
        says: raw.says.clone(),
        with: raw.with.iter().map(|id| id.get_ref().clone()).collect(),
        of,
        until: raw.until.as_ref().map(|until| until.get_ref().clone()),
        published: source.one_figure(published)?,
    })
}
