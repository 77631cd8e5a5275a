//! The way of an authentication from the card to the door: components and the links between them.

use std::collections::BTreeMap;

use tapstone_link::Hop;
use tapstone_record::{PartKind, Provenance};

use crate::content::CardContent;
use crate::distribution::TimeDistribution;
pub use crate::message::Message;
pub(crate) use crate::message::step;
use crate::millis::Millis;
use crate::random::RandomStream;

/// What a part is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The card that a person holds.
    Card,
    /// The card's check of its own cryptography, which sums of a path leave out.
    SelfCheck,
    /// The reader beside the door.
    Reader,
    /// The PKI authentication module.
    Module,
    /// The controller (panel) that decides.
    Controller,
    /// The lock that opens the door.
    Door,
    /// A link from the first role to the second.
    Link(LinkEnd, LinkEnd),
}

/// What a link ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The card that a person holds.
    Card,
    /// The reader beside the door.
    Reader,
    /// The PKI authentication module.
    Module,
    /// The controller (panel) that decides.
    Controller,
    /// The lock that opens the door.
    Door,
}

impl Role {
    /// What it does with its time.
    #[must_use]
    pub const fn kind(self) -> PartKind {
        match self {
            Self::Link(..) => PartKind::Transfer,
            _ => PartKind::Processing,
        }
    }

    /// Whether the card is at one end of it.
    #[must_use]
    pub const fn is_card_link(self) -> bool {
        matches!(self, Self::Link(LinkEnd::Card, _))
    }
}

/// A time, and which step needs which part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    /// The time of the whole piece.
    pub time: TimeDistribution,
    /// The parts of it by step. They add up to 1 until a change takes some away.
    pub steps: BTreeMap<String, f64>,
}

impl StepTime {
    /// A piece of one step.
    pub(crate) fn for_step(step: &str, time: TimeDistribution) -> Self {
        Self { time, steps: BTreeMap::from([(step.to_owned(), 1.0)]) }
    }

    pub(crate) fn scale(&mut self, of: StepFilter<'_>, factor: f64) {
        for (step, weight) in &mut self.steps {
            let meant = match of {
                StepFilter::All => true,
                StepFilter::Only(steps) => steps.contains(&step.as_str()),
            };
            if meant {
                *weight *= factor;
            }
        }
    }

    fn weight(&self, of: StepFilter<'_>) -> f64 {
        let wanted = |step: &str| match of {
            StepFilter::All => true,
            StepFilter::Only(steps) => steps.contains(&step),
        };
        self.steps.iter().filter(|(step, _)| wanted(step)).map(|(_, weight)| weight).sum()
    }
}

/// Some steps, or all of them.
#[derive(Clone, Copy)]
pub(crate) enum StepFilter<'a> {
    All,
    Only(&'a [&'a str]),
}

/// A component, or a link between two.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPart {
    /// `card`, or `card-reader` for the link between those.
    pub name: String,
    /// Which component or link it is.
    pub role: Role,
    /// Its time, by the steps that need it.
    pub pieces: Vec<StepTime>,
    /// How it is linked, if it is a link and that is known.
    pub hop: Option<Hop>,
    /// What is sent over it, if that is known.
    pub messages: Vec<Message>,
    /// Whether these messages are the commands that the path's content needs.
    pub carries_commands: bool,
    /// Which of its pieces is a fixed time for each command, if one is.
    pub per_command: Option<usize>,
    /// Where its time is from.
    pub provenance: Provenance,
    /// The source of its time: a study, a record's file, a formula.
    pub source: Option<String>,
}

impl PathPart {
    /// The mean of its time.
    #[must_use]
    pub fn mean(&self) -> Millis {
        self.mean_of(StepFilter::All)
    }

    pub(crate) fn mean_of(&self, steps: StepFilter<'_>) -> Millis {
        self.pieces.iter().map(|piece| piece.time.mean() * piece.weight(steps)).sum()
    }

    /// The time of each step by this link's formula.
    pub(crate) fn by_formula(&self, hop: &Hop) -> BTreeMap<String, Millis> {
        formula(hop, &self.messages)
    }

    /// Its time by its formula, where its own is from elsewhere.
    pub(crate) fn mean_by_formula(&self) -> Option<Millis> {
        let from_elsewhere = self.provenance != Provenance::Derived && !self.messages.is_empty();
        let hop = self.hop.as_ref().filter(|_| from_elsewhere)?;
        Some(self.by_formula(hop).into_values().sum())
    }

    /// All bytes that are sent here, in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        let each =
            |it: &Message| u64::from(it.count) * u64::from(it.command_bytes + it.response_bytes);
        self.messages.iter().map(each).sum()
    }

    /// These steps take so long, whatever they took before; what each command takes stays.
    pub(crate) fn replace_steps(&mut self, times: &[(String, Millis)]) {
        let steps: Vec<&str> = times.iter().map(|(step, _)| step.as_str()).collect();
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            if Some(at) != self.per_command {
                piece.scale(StepFilter::Only(&steps), 0.0);
            }
        }
        let fixed = |(step, time): &(String, Millis)| {
            StepTime::for_step(step, TimeDistribution::Fixed(*time))
        };
        self.pieces.extend(times.iter().map(fixed));
        self.provenance = Provenance::Derived;
    }

    /// The same but for what each command takes, of which their number decides.
    pub(crate) fn scale_work(&mut self, steps: StepFilter<'_>, factor: f64) {
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            if Some(at) != self.per_command {
                piece.scale(steps, factor);
            }
        }
    }

    /// Takes a part of the time of some steps away, or adds to it.
    pub(crate) fn scale(&mut self, steps: StepFilter<'_>, factor: f64) {
        self.pieces.iter_mut().for_each(|piece| piece.scale(steps, factor));
    }
}

/// The time of each step that sends messages over a link.
pub(crate) fn formula(hop: &Hop, messages: &[Message]) -> BTreeMap<String, Millis> {
    let mut steps = BTreeMap::new();
    for message in messages {
        let command = message.command_bytes as usize;
        let response = message.response_bytes as usize;
        let time = Millis::from(hop.exchange(command, response)) * f64::from(message.count);
        let step: &mut Millis = steps.entry(message.step.clone()).or_default();
        *step = *step + time;
    }
    steps
}

/// The whole way, in the order of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthenticationPath {
    /// Its parts. The self-check of the card, where there is one, is the last.
    pub parts: Vec<PathPart>,
    /// What is read and signed, where that is known.
    pub content: Option<CardContent>,
    /// Whether the card signs while the host validates.
    pub overlaps: bool,
    /// The part of reading the CHUID that reads its start, where the identifiers are.
    pub chuid_start: f64,
}

/// The start of a CHUID is one response, of about six that a signed one takes.
pub(crate) const CHUID_START: f64 = 1.0 / 6.0;

/// What the card does, and its link carries, while a host validates.
const SIGNING: StepFilter<'_> = StepFilter::Only(&[step::CHALLENGE, step::READ_CHUID]);
/// What a host can do while the card signs.
const VALIDATING: StepFilter<'_> = StepFilter::Only(&[step::VALIDATE, step::REVOCATION]);

impl AuthenticationPath {
    /// The mean of all parts, without the card's self-check.
    #[must_use]
    pub fn total(&self) -> Millis {
        self.sum(|part| part.role != Role::SelfCheck) - self.overlapped()
    }

    /// With the card's self-check: what one waits for.
    #[must_use]
    pub fn total_with_self_check(&self) -> Millis {
        self.sum(|_| true) - self.overlapped()
    }

    /// The part of that name.
    pub(crate) fn part_mut(&mut self, name: &str) -> Option<&mut PathPart> {
        self.parts.iter_mut().find(|part| part.name == name)
    }

    pub(crate) fn find(&self, role: Role) -> Option<&PathPart> {
        self.parts.iter().find(|part| part.role == role)
    }

    /// Whether nothing is known of its spread.
    pub(crate) fn is_fixed(&self) -> bool {
        self.parts.iter().flat_map(|part| &part.pieces).all(|piece| piece.time.is_fixed())
    }

    /// What the overlap of signing and validating saves.
    pub(crate) fn overlapped(&self) -> Millis {
        if self.overlaps { self.could_overlap() } else { Millis::ZERO }
    }

    /// What it would save: the shorter of the two.
    pub(crate) fn could_overlap(&self) -> Millis {
        let signing: Millis = self.signing().map(|part| part.mean_of(SIGNING)).sum();
        let validating: Millis = self.validating().map(|part| part.mean_of(VALIDATING)).sum();
        Millis(signing.0.min(validating.0))
    }

    /// One authentication, and how much of it the card is needed.
    pub(crate) fn draw(&self, random: &mut RandomStream) -> Drawn {
        let mut drawn =
            Drawn { total: Millis::ZERO, card_needed: Millis::ZERO, controller: Millis::ZERO };
        let mut signing = Millis::ZERO;
        let mut validating = Millis::ZERO;
        for part in &self.parts {
            for piece in &part.pieces {
                let time = piece.time.draw(random);
                let whole = time * piece.weight(StepFilter::All);
                drawn.total = drawn.total + whole;
                if part.role == Role::Controller {
                    drawn.controller = drawn.controller + whole;
                }
                if part.needs_card() {
                    drawn.card_needed = drawn.card_needed + whole;
                }
                if self.overlaps && part.signs() {
                    signing = signing + time * piece.weight(SIGNING);
                }
                if self.overlaps && part.validates() {
                    validating = validating + time * piece.weight(VALIDATING);
                }
            }
        }
        drawn.total = drawn.total - Millis(signing.0.min(validating.0));
        // What the controller does while the card signs delays nobody.
        drawn.controller = Millis(drawn.controller.0.min(drawn.total.0));
        drawn
    }

    fn sum(&self, which: impl Fn(&PathPart) -> bool) -> Millis {
        self.parts.iter().filter(|part| which(part)).map(PathPart::mean).sum()
    }

    fn signing(&self) -> impl Iterator<Item = &PathPart> {
        self.parts.iter().filter(|part| part.signs())
    }

    fn validating(&self) -> impl Iterator<Item = &PathPart> {
        self.parts.iter().filter(|part| part.validates())
    }
}

impl PathPart {
    /// The card must be in the field until its answer has left it, and with it the link behind the
    /// reader, over which a module asks.
    fn needs_card(&self) -> bool {
        matches!(
            self.role,
            Role::Card
                | Role::SelfCheck
                | Role::Link(LinkEnd::Card, _)
                | Role::Link(LinkEnd::Reader, _)
        )
    }

    /// While a host validates, the card works and its link to the reader carries what it says.
    fn signs(&self) -> bool {
        self.role == Role::Card || self.role.is_card_link()
    }

    fn validates(&self) -> bool {
        matches!(self.role, Role::Module | Role::Controller | Role::Reader)
    }
}

/// The times of one authentication, drawn at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    /// From the tap to the open door.
    pub(crate) total: Millis,
    /// How long of it the card must stay in the field.
    pub(crate) card_needed: Millis,
    /// How long of it the controller works.
    pub(crate) controller: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(role: Role, pieces: &[(&str, f64)]) -> PathPart {
        let pieces = pieces
            .iter()
            .map(|(step, ms)| StepTime::for_step(step, TimeDistribution::Fixed(Millis(*ms))));
        PathPart {
            name: format!("{role:?}"),
            role,
            pieces: pieces.collect(),
            hop: None,
            messages: Vec::new(),
            carries_commands: false,
            per_command: None,
            provenance: Provenance::Assumed,
            source: None,
        }
    }

    /// A card that signs for 600 ms while a module could validate for 400.
    fn path(overlaps: bool) -> AuthenticationPath {
        let parts = vec![
            part(Role::Card, &[(step::CHALLENGE, 600.0), (step::READ_CERTIFICATE, 300.0)]),
            part(Role::Link(LinkEnd::Card, LinkEnd::Reader), &[(step::OTHER, 10.0)]),
            part(Role::Link(LinkEnd::Reader, LinkEnd::Module), &[(step::OTHER, 20.0)]),
            part(Role::Module, &[(step::VALIDATE, 300.0), (step::REVOCATION, 100.0)]),
            part(Role::Link(LinkEnd::Module, LinkEnd::Controller), &[(step::OTHER, 40.0)]),
            part(Role::Door, &[(step::OTHER, 80.0)]),
            part(Role::SelfCheck, &[(step::OTHER, 160.0)]),
        ];
        AuthenticationPath { parts, content: None, overlaps, chuid_start: CHUID_START }
    }

    #[test]
    fn only_the_card_signs_and_only_a_host_validates() {
        // Each of the three has something of both; the shorter of what counts is 100 ms.
        for (signed, validated) in [(100.0, 300.0), (600.0, 100.0)] {
            let parts = vec![
                part(Role::Card, &[(step::CHALLENGE, signed), (step::VALIDATE, 30.0)]),
                part(
                    Role::Link(LinkEnd::Reader, LinkEnd::Module),
                    &[(step::CHALLENGE, 20.0), (step::REVOCATION, 70.0)],
                ),
                part(Role::Module, &[(step::CHALLENGE, 50.0), (step::VALIDATE, validated)]),
            ];
            let path = AuthenticationPath { parts, ..path(true) };
            assert_eq!(path.could_overlap(), Millis(100.0));
            let drawn = path.draw(&mut RandomStream::new(1, 0));
            assert_eq!(drawn.total, path.total());
        }
    }

    #[test]
    fn a_formula_stands_beside_a_time_from_elsewhere_only() {
        let hop: Hop =
            toml::from_str("kind = \"ip\"\nround_trip_us = 1000\nbits_per_second = 100000000")
                .unwrap();
        let message = Message {
            step: step::CHALLENGE.to_owned(),
            count: 2,
            command_bytes: 100,
            response_bytes: 200,
        };
        let mut link = part(Role::Link(LinkEnd::Module, LinkEnd::Controller), &[]);
        assert_eq!(link.mean_by_formula(), None, "no link is known");
        link.hop = Some(hop.clone());
        assert_eq!(link.mean_by_formula(), None, "nothing is known to be sent");
        link.messages.push(message);
        let times: Millis = formula(&hop, &link.messages).into_values().sum();
        assert!(times > Millis::ZERO);
        assert_eq!(link.mean_by_formula(), Some(times));
        link.provenance = Provenance::Derived;
        assert_eq!(link.mean_by_formula(), None, "its own time is that formula's");
    }

    #[test]
    fn work_is_scaled_and_what_each_command_takes_stays() {
        let pieces = [(step::READ_CERTIFICATE, 300.0), (step::READ_CERTIFICATE, 40.0)];
        let mut card = part(Role::Card, &pieces);
        card.scale_work(StepFilter::All, 0.5);
        assert_eq!(card.mean(), Millis(170.0), "no piece is for each command");
        let mut card = part(Role::Card, &pieces);
        card.per_command = Some(1);
        card.scale_work(StepFilter::Only(&[step::CHALLENGE]), 0.5);
        assert_eq!(card.mean(), Millis(340.0));
        card.scale_work(StepFilter::Only(&[step::READ_CERTIFICATE]), 0.5);
        assert_eq!(card.mean(), Millis(190.0));
        card.replace_steps(&[(step::READ_CERTIFICATE.to_owned(), Millis(7.0))]);
        assert_eq!(card.mean(), Millis(47.0));
    }

    #[test]
    fn sums_leave_the_self_check_out_and_waiting_does_not() {
        assert_eq!(path(false).total(), Millis(1_450.0));
        assert_eq!(path(false).total_with_self_check(), Millis(1_610.0));
        assert_eq!(path(false).overlapped(), Millis::ZERO);
        assert_eq!(path(true).overlapped(), Millis(400.0), "the shorter of the two");
        assert_eq!(path(true).total(), Millis(1_050.0));
        assert_eq!(path(true).total_with_self_check(), Millis(1_210.0));
        let mut quick = path(true);
        quick.parts[0].scale(StepFilter::Only(&[step::CHALLENGE]), 0.5);
        assert_eq!((quick.overlapped(), quick.total()), (Millis(300.0), Millis(850.0)));
        quick.parts[1] = part(quick.parts[1].role, &[(step::CHALLENGE, 10.0)]);
        assert_eq!(quick.overlapped(), Millis(310.0), "the link carries what is signed");
    }

    /// The card must stay until its last answer has left it: through both of its links.
    #[test]
    fn one_authentication_takes_what_the_sums_say() {
        let mut random = RandomStream::new(1, 0);
        for overlaps in [false, true] {
            let path = path(overlaps);
            let drawn = path.draw(&mut random);
            assert_eq!(drawn.total, path.total_with_self_check());
            assert_eq!(drawn.card_needed, Millis(900.0 + 10.0 + 20.0 + 160.0));
        }
    }

    #[test]
    fn a_part_of_some_steps_is_taken_away_from_those_alone() {
        let mut card = part(Role::Card, &[(step::CHALLENGE, 600.0), (step::SELECT, 300.0)]);
        assert_eq!(card.mean_of(StepFilter::Only(&[step::SELECT])), Millis(300.0));
        card.scale(StepFilter::Only(&[step::CHALLENGE]), 0.5);
        assert_eq!(card.mean(), Millis(600.0));
        card.scale(StepFilter::All, 2.0);
        assert_eq!(card.mean(), Millis(1_200.0));
    }

    #[test]
    fn a_path_with_any_spread_is_not_fixed() {
        let mut path = path(false);
        assert!(path.is_fixed());
        let door = path.part_mut("Door").unwrap();
        door.pieces[0].time = TimeDistribution::Uniform { low: Millis(1.0), high: Millis(2.0) };
        assert!(!path.is_fixed());
        assert_eq!(path.find(Role::Door).map(PathPart::mean), Some(Millis(1.5)));
        assert!(path.find(Role::Reader).is_none() && path.part_mut("nowhere").is_none());
    }

    #[test]
    fn links_transfer_and_the_others_process() {
        let link = Role::Link(LinkEnd::Card, LinkEnd::Reader);
        assert_eq!((link.kind(), Role::Card.kind()), (PartKind::Transfer, PartKind::Processing));
        assert!(link.is_card_link() && !Role::Card.is_card_link());
        assert!(!Role::Link(LinkEnd::Reader, LinkEnd::Module).is_card_link());
    }
}
