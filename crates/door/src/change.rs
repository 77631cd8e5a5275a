//! A change to a path: what it is, what it needs to be safe, and what it does to the time.

use tapstone_link::Hop;
use tapstone_record::Provenance;

use crate::path::{AuthenticationPath, CHUID_START, Role, StepFilter, formula, step};

/// The kinds of changes, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Another algorithm on the card.
    Algorithm,
    /// A card that computes faster.
    FasterCard,
    /// More bits per second between card and reader.
    BitRate,
    /// Another kind of link behind the reader.
    Link,
    /// The controller authenticates, and there is no module.
    ControllerSide,
    /// The card's public key was registered earlier.
    KnownCard,
    /// Path and revocation were checked beforehand.
    BackgroundValidation,
    /// The card signs while the host validates.
    Overlap,
    /// The card does not check its cryptography at every tap.
    SelfCheckPolicy,
}

impl ChangeKind {
    /// As it stands in identifiers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Algorithm => "algorithm",
            Self::FasterCard => "faster-card",
            Self::BitRate => "bit-rate",
            Self::Link => "link",
            Self::ControllerSide => "controller-side",
            Self::KnownCard => "known-card",
            Self::BackgroundValidation => "background-validation",
            Self::Overlap => "overlap",
            Self::SelfCheckPolicy => "self-check-policy",
        }
    }

    /// In words, before anything that only a scenario knows.
    const fn what(self) -> &'static str {
        match self {
            Self::Algorithm => "another algorithm on the card",
            Self::FasterCard => "a faster card",
            Self::BitRate => "more kbit/s between card and reader",
            Self::Link => "another link",
            Self::ControllerSide => "the controller authenticates, without a link from a module",
            Self::KnownCard => "the card's key is known: its certificate is not read again",
            Self::BackgroundValidation => "path and revocation are checked beforehand",
            Self::Overlap => "the card signs while the host validates",
            Self::SelfCheckPolicy => "no self-check of the card's cryptography at every tap",
        }
    }

    /// Under which condition it is as secure, or possible at all.
    const fn condition(self) -> &'static str {
        match self {
            Self::Algorithm => {
                "cards with a key and a certificate of that algorithm are issued, and every reader \
                 and trust anchor on the way accepts it (SP 800-78-5)"
            }
            Self::FasterCard => "people carry such cards: cards are replaced as they expire",
            Self::BitRate => {
                "card and reader both offer the rate (ISO 14443-4, PPS), and the antenna holds it \
                 in the field that there is"
            }
            Self::Link => "readers, cabling and panel speak it; in the open, encrypted",
            Self::ControllerSide => {
                "the controller has the keys of trust anchors and the speed of the module, and the \
                 line from the reader to it is as protected as the module was"
            }
            Self::KnownCard => {
                "the key is registered only after one full reading, is looked up by identifier and \
                 key hash, is challenged every time, and the stored certificate's validity and \
                 revocation are checked every time; a miss falls back to the full reading"
            }
            Self::BackgroundValidation => {
                "results have an age limit, so a revocation counts only after at most that long, \
                 and a certificate that is not known is validated at the door"
            }
            Self::Overlap => {
                "the door opens only when the signature and the path are both good; a card with a \
                 bad path is challenged in vain"
            }
            Self::SelfCheckPolicy => {
                "the card's FIPS 140 validation allows the check at first use or on a timer instead \
                 of at every power-up"
            }
        }
    }

    /// What it takes, where a setting is 1, software 2, wiring 4 and a card for everybody 8.
    const fn effort(self) -> u32 {
        match self {
            Self::BitRate => 1,
            Self::KnownCard | Self::BackgroundValidation | Self::Overlap => 2,
            Self::Link | Self::ControllerSide => 4,
            Self::Algorithm | Self::FasterCard | Self::SelfCheckPolicy => 8,
        }
    }

    const fn provenance(self) -> Provenance {
        match self {
            Self::KnownCard | Self::BackgroundValidation | Self::Overlap => Provenance::Assumed,
            _ => Provenance::Derived,
        }
    }
}

/// A change to a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathChange {
    /// Its kind, and behind a colon which of several: `bit-rate:848`.
    pub id: String,
    /// The kind of change; alternatives of one kind exclude each other.
    pub kind: ChangeKind,
    /// What is changed, in words for a reader.
    pub what: String,
    /// What must hold for it to be safe, or possible at all.
    pub condition: String,
    /// How much work it is, in points.
    pub effort: u32,
    /// How well its gain is known: `assumed` where it rests on how a time was split into steps.
    pub provenance: Provenance,
    pub(crate) edit: Edit,
}

/// What a change does to a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// These parts times a factor.
    Factor { factor: f64, over: Vec<String> },
    /// Another link in this part.
    Link { part: String, hop: Hop },
    /// The part of this name is taken away.
    Drop { part: String },
    /// The certificate is not read, and its path not built.
    KnownCard,
    /// Neither path nor revocation at the door.
    Background,
    /// Signing and validating at the same time.
    Overlap,
}

impl PathChange {
    pub(crate) fn new(kind: ChangeKind, name: &str, edit: Edit) -> Self {
        let id =
            if name.is_empty() { kind.name().into() } else { format!("{}:{name}", kind.name()) };
        let what = match (&edit, kind) {
            (Edit::Link { hop, part }, ChangeKind::Link) => format!("{part} by {}", hop.name()),
            (Edit::Link { .. }, _) => format!("{name} kbit/s between card and reader"),
            (_, ChangeKind::Algorithm) => format!("{name} in the place of the card's algorithm"),
            (_, ChangeKind::FasterCard) => format!("a card as fast as {name}"),
            _ => kind.what().into(),
        };
        let condition = kind.condition().into();
        Self {
            id,
            kind,
            what,
            condition,
            effort: kind.effort(),
            provenance: kind.provenance(),
            edit,
        }
    }

    /// Whether both cannot be made, or the one leaves nothing for the other.
    #[must_use]
    pub fn excludes(&self, other: &Self) -> bool {
        use ChangeKind::{Algorithm, BackgroundValidation, FasterCard, Overlap};
        if self.id == other.id {
            return false;
        }
        let pair = |one: ChangeKind, two: ChangeKind| {
            (self.kind, other.kind) == (one, two) || (other.kind, self.kind) == (one, two)
        };
        // Of one thing there is one. How fast another card is was measured with its algorithm.
        // What was validated beforehand cannot overlap.
        let same = self.kind == other.kind && self.kind != ChangeKind::Link;
        same || pair(Algorithm, FasterCard)
            || pair(BackgroundValidation, Overlap)
            || matches!((self.part(), other.part()), (Some(one), Some(two)) if one == two)
    }

    /// What it changes: alternatives are about the same.
    pub(crate) fn about(&self) -> &str {
        self.part().unwrap_or(self.kind.name())
    }

    /// The part that it replaces or takes away.
    fn part(&self) -> Option<&str> {
        match &self.edit {
            Edit::Link { part, .. } | Edit::Drop { part } => Some(part),
            _ => None,
        }
    }
}

/// The path with these changes, which are in the order in which they apply.
pub(crate) fn apply(path: &AuthenticationPath, changes: &[PathChange]) -> AuthenticationPath {
    let mut path = path.clone();
    for change in changes {
        edit(&mut path, &change.edit);
    }
    path
}

fn edit(path: &mut AuthenticationPath, edit: &Edit) {
    match edit {
        Edit::Factor { factor, over } => scale(path, over, *factor),
        Edit::Link { part, hop } => {
            if let Some(part) = path.part_mut(part) {
                relink(part, hop);
            }
        }
        Edit::Drop { part } => path.parts.retain(|there| &there.name != part),
        Edit::KnownCard => known_card(path),
        Edit::Background => without(path, &[step::VALIDATE, step::REVOCATION]),
        Edit::Overlap => path.overlaps = true,
    }
}

fn scale(path: &mut AuthenticationPath, over: &[String], factor: f64) {
    for part in path.parts.iter_mut().filter(|part| over.contains(&part.name)) {
        part.scale(StepFilter::All, factor);
        part.provenance = Provenance::Derived;
    }
}

/// By how much the formula of the new link is faster than that of the old, step by step: a time
/// that was published or measured keeps what the formulas do not know.
fn relink(part: &mut crate::PathPart, hop: &Hop) {
    let Some(old) = &part.hop else { return };
    let before = formula(old, &part.messages);
    let after = formula(hop, &part.messages);
    for (step, then) in &after {
        let now = before.get(step).copied().unwrap_or_default();
        if now.0 > 0.0 {
            part.scale(StepFilter::Only(&[step]), then.0 / now.0);
        }
    }
    part.hop = Some(hop.clone());
    part.provenance = Provenance::Derived;
    part.source = Some(hop.name());
}

fn known_card(path: &mut AuthenticationPath) {
    let reads_chuid = path
        .parts
        .iter()
        .any(|part| part.pieces.iter().any(|piece| piece.steps.contains_key(step::READ_CHUID)));
    // The start of the CHUID is read, for the identifier. Where none was read before, that takes
    // what one of the certificate's responses took.
    let certificate = if reads_chuid { 0.0 } else { CHUID_START };
    for part in &mut path.parts {
        part.scale(StepFilter::Only(&[step::READ_CERTIFICATE]), certificate);
        part.scale(StepFilter::Only(&[step::READ_CHUID]), path.chuid_start);
    }
    without(path, &[step::VALIDATE]);
}

fn without(path: &mut AuthenticationPath, steps: &[&str]) {
    for part in path.parts.iter_mut().filter(|part| part.role != Role::Card) {
        part.scale(StepFilter::Only(steps), 0.0);
    }
}
