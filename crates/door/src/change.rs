//! A change to a path: what it is, what it needs to be safe, and what it does to the time.

use tapstone_link::{BitRate, Hop};
use tapstone_record::Provenance;

use crate::content::{CertificateBytes, KeyKind, LengthFields};
use crate::millis::Millis;
use crate::path::{AuthenticationPath, CHUID_START, Role, StepFilter, step};
use crate::resend::{resend, send_content};

/// The kinds of changes, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Another algorithm on the card.
    Algorithm,
    /// A card that computes faster.
    FasterCard,
    /// A module between reader and controller that computes faster.
    FasterModule,
    /// More bits per second between card and reader.
    BitRate,
    /// Longer frames between card and reader.
    Frames,
    /// Commands and responses that are not chained.
    ExtendedLength,
    /// A certificate with fewer bytes.
    SmallerCertificate,
    /// A certificate that is stored compressed.
    GzipCertificate,
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
            Self::FasterModule => "faster-module",
            Self::BitRate => "bit-rate",
            Self::Frames => "frames",
            Self::ExtendedLength => "extended-length",
            Self::SmallerCertificate => "smaller-certificate",
            Self::GzipCertificate => "gzip-certificate",
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
            Self::FasterModule => "a module that computes faster",
            Self::BitRate => "more kbit/s between card and reader",
            Self::Frames => "longer frames between card and reader",
            Self::ExtendedLength => "commands and responses of extended length, without chaining",
            Self::SmallerCertificate => "a certificate with fewer bytes",
            Self::GzipCertificate => "the certificate is stored compressed",
            Self::Link => "another link",
            Self::ControllerSide => "the controller authenticates, without a link from a module",
            Self::KnownCard => "the card's key is known: its certificate is not read again",
            Self::BackgroundValidation => "path and revocation are checked beforehand",
            Self::Overlap => "the card signs while the host validates",
            Self::SelfCheckPolicy => "no self-check of the card's cryptography at every tap",
        }
    }

    /// Under which condition it is as secure, or possible at all, and by which standard.
    const fn condition(self) -> &'static str {
        match self {
            Self::Algorithm => {
                "cards with a key and a certificate of that algorithm are issued, and every reader \
                 and trust anchor on the way accepts it (SP 800-78-5)"
            }
            Self::FasterCard => {
                "people carry such cards: cards are replaced as they expire (FIPS 201-3, 2.9.1), \
                 and the new ones are validated too (FIPS 140-3)"
            }
            Self::FasterModule => {
                "the module is replaced by one whose processor validates a path and checks a \
                 signature in that time (RFC 5280, section 6); it still checks every signature, \
                 and its keys are as protected as before (FIPS 140-3)"
            }
            Self::BitRate => {
                "card and reader both offer the rate (ISO/IEC 14443-4, PPS), and the antenna holds \
                 it in the field that there is (ISO/IEC 14443-2)"
            }
            Self::Frames => {
                "the card's FSCI and the reader's FSDI announce it, and both have the memory \
                 (ISO/IEC 14443-4, 5.1 and 5.2.3); a longer frame that is disturbed is sent again \
                 whole"
            }
            Self::ExtendedLength => {
                "card, reader and its driver take extended length fields, and the card announces \
                 them (ISO/IEC 7816-4, 5.2); SP 800-73-5 part 2 asks for chaining alone, \
                 so that a reader falls back to it"
            }
            Self::SmallerCertificate => {
                "the issuing CA signs with P-256 (SP 800-78-5) and leaves out what its \
                 profile lets it; FASC-N, UUID, policy, and where CRLs are, stay (FIPS 201-3, \
                 4.2.2.2; RFC 5280)"
            }
            Self::GzipCertificate => {
                "the issuer stores it compressed and says so in CertInfo (SP 800-73-5 part 1, \
                 appendix A; RFC 1952); every reader expands it within a limit, and refuses what \
                 expands to more"
            }
            Self::Link => {
                "readers, cabling and panel speak it (SIA OSDP, IEC 60839-11-5; RFC 9293); in the \
                 open, encrypted (OSDP's secure channel; RFC 8446)"
            }
            Self::ControllerSide => {
                "the controller has the keys of trust anchors and the speed of the module, and the \
                 line from the reader to it is as protected as the module was (SP 800-116 Rev. 1)"
            }
            Self::KnownCard => {
                "the key is registered only after one full reading, is looked up by identifier and \
                 key hash, is challenged every time, and the stored certificate's validity and \
                 revocation are checked every time; a miss falls back to the full reading \
                 (SP 800-116 Rev. 1; FIPS 201-3, 6.2.3.2)"
            }
            Self::BackgroundValidation => {
                "results have an age limit, so a revocation counts only after at most that long, \
                 and a certificate that is not known is validated at the door (SP 800-116 Rev. 1; \
                 RFC 5280, 6.3)"
            }
            Self::Overlap => {
                "the door opens only when the signature and the path are both good; a card with a \
                 bad path is challenged in vain (FIPS 201-3, 6.2.3.2)"
            }
            Self::SelfCheckPolicy => {
                "the card's validation allows the check at first use or on a timer instead of at \
                 every power-up (FIPS 140-3; ISO/IEC 19790, 7.10.3)"
            }
        }
    }

    /// What it takes, where a setting is 1, software 2, wiring 4 and a card for everybody 8.
    const fn effort(self) -> u32 {
        match self {
            Self::BitRate | Self::Frames => 1,
            Self::ExtendedLength
            | Self::GzipCertificate
            | Self::KnownCard
            | Self::BackgroundValidation
            | Self::Overlap => 2,
            Self::Link | Self::ControllerSide | Self::FasterModule => 4,
            Self::Algorithm
            | Self::FasterCard
            | Self::SmallerCertificate
            | Self::SelfCheckPolicy => 8,
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
    /// The change without which this one is none: a chip that is fast in an algorithm needs it.
    pub needs: Option<String>,
    pub(crate) edit: Edit,
}

/// What a change does to a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// These parts times a factor.
    Factor { factor: f64, over: Vec<String> },
    /// Another key and its certificate; what that does not save by its bytes, these parts do, or
    /// steps of the card take other times.
    Algorithm {
        key: KeyKind,
        certificate: CertificateBytes,
        factor: f64,
        over: Vec<String>,
        times: Option<(String, Vec<(String, Millis)>)>,
    },
    /// These steps of a part take so long.
    Steps { part: String, times: Vec<(String, Millis)> },
    /// Another link in this part.
    Link { part: String, hop: Hop },
    /// Another bit rate of a field.
    BitRate { part: String, rate: BitRate },
    /// Frames of so many bytes in a field, in both directions.
    Frames { part: String, bytes: u16 },
    /// Commands are not chained.
    ExtendedLength,
    /// The card has a smaller certificate for the same key.
    SmallCertificate,
    /// The card stores its certificate under gzip (SP 800-73-5, part 1).
    GzipCertificate,
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
            (Edit::BitRate { .. }, _) => format!("{name} kbit/s between card and reader"),
            (Edit::Frames { .. }, _) => format!("frames of {name} bytes between card and reader"),
            (_, ChangeKind::FasterModule) => format!("a module as fast as {name}"),
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
            needs: None,
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
        // Of one thing there is one. How fast another card is was measured with its algorithm,
        // which is today's unless it says otherwise. What was validated beforehand cannot overlap.
        let needs = |one: &Self, two: &Self| one.needs.as_deref() == Some(two.id.as_str());
        if needs(self, other) || needs(other, self) {
            return false;
        }
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

/// Takes those away that need another change which is not among them.
pub(crate) fn leave_out_orphans(changes: &mut Vec<PathChange>) {
    let there: Vec<String> = changes.iter().map(|change| change.id.clone()).collect();
    changes.retain(|change| change.needs.as_ref().is_none_or(|needs| there.contains(needs)));
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
        Edit::Algorithm { key, certificate, factor, over, times } => {
            scale(path, over, *factor);
            if let Some((part, times)) = times
                && let Some(part) = path.part_mut(part)
            {
                part.replace_steps(times);
            }
            send_content(path, |content| {
                content.key = *key;
                content.certificate = *certificate;
            });
        }
        Edit::Steps { part, times } => {
            if let Some(part) = path.part_mut(part) {
                part.replace_steps(times);
            }
        }
        Edit::Link { part, hop } => relink(path, part, |_| Some(hop.clone())),
        Edit::BitRate { part, rate } => {
            relink(path, part, |hop| field_with(hop, Some(*rate), None))
        }
        Edit::Frames { part, bytes } => {
            relink(path, part, |hop| field_with(hop, None, Some(*bytes)));
        }
        Edit::ExtendedLength => {
            send_content(path, |content| content.lengths = LengthFields::Extended);
        }
        Edit::SmallCertificate => send_content(path, |content| content.is_small = true),
        Edit::GzipCertificate => send_content(path, |content| content.is_gzip = true),
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

/// The link of this part by another formula, with the same messages.
fn relink(path: &mut AuthenticationPath, part: &str, other: impl Fn(&Hop) -> Option<Hop>) {
    let Some(part) = path.part_mut(part) else { return };
    let Some(hop) = part.hop.as_ref().and_then(other) else { return };
    let messages = part.messages.clone();
    part.source = Some(hop.name());
    resend(part, hop, messages);
}

/// The field at another rate, or with other frames. `None` where it is no field.
pub(crate) fn field_with(hop: &Hop, rate: Option<BitRate>, frame: Option<u16>) -> Option<Hop> {
    let Hop::Contactless(link) = hop else { return None };
    let mut parameters = link.parameters().clone();
    if let Some(rate) = rate {
        parameters.kbit_per_second = rate;
    }
    if let Some(frame) = frame {
        parameters.fsc = frame;
        parameters.fsd = frame;
    }
    Some(Hop::Contactless(parameters.try_into().ok()?))
}

fn known_card(path: &mut AuthenticationPath) {
    let reads_chuid = path
        .parts
        .iter()
        .any(|part| part.pieces.iter().any(|piece| piece.steps.contains_key(step::READ_CHUID)));
    // The start of the CHUID is read, for the identifier. Where none was read before, that takes
    // what one of the certificate's responses took.
    let certificate = if reads_chuid { 0.0 } else { CHUID_START };
    let knows_bytes = path.content.is_some();
    for part in &mut path.parts {
        // Where it is known what is sent, its bytes say what is left.
        if !(knows_bytes && part.carries_commands) {
            part.scale_work(StepFilter::Only(&[step::READ_CERTIFICATE]), certificate);
        }
        part.scale_work(StepFilter::Only(&[step::READ_CHUID]), path.chuid_start);
    }
    send_content(path, |content| content.is_known = true);
    without(path, &[step::VALIDATE]);
}

fn without(path: &mut AuthenticationPath, steps: &[&str]) {
    for part in path.parts.iter_mut().filter(|part| part.role != Role::Card) {
        part.scale(StepFilter::Only(steps), 0.0);
    }
}
