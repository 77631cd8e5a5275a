//! The door's side: what it knows, and the dialogue with a card from the first command to the
//! decision.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use der::asn1::ObjectIdentifier;
use serde::{Deserialize, Serialize};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use self::memory::{Checked, Known};
use crate::card::{Card, Lost};
use crate::certificate::Certificate;
use crate::chuid::{Chuid, Identity, START};
use crate::key::{Challenge, PublicKey};
use crate::log::{Log, Step};
use crate::object::{self, Object};
use crate::pin::Pin;
use crate::refusal::Refusal;
use crate::strategy::Strategy;
use crate::talk::{End, Talk};
use crate::time::Time;
use crate::trust::{Path, Purpose, Trust};

/// Key references (SP 800-73-5 part 1, table 4).
const KEY_9A: u8 = 0x9A;
const KEY_9E: u8 = 0x9E;

/// The longest header of the object, before the bytes that hold the identifiers.
const CHUID_START: usize = 4 + START;

/// An authentication mechanism of FIPS 201-3, section 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// The card authentication key signs a challenge.
    PkiCak(Strategy),
    /// The CHUID's signature is checked; the card proves nothing.
    Chuid,
    /// The PIN, then the PIV authentication key signs a challenge.
    PkiAuth,
    /// The sequence of the published card comparison: CHUID, PIN, a signature by 9A. The
    /// certificate was read before.
    Contact,
}

impl Mechanism {
    /// Whether it gives the PIN to the card.
    #[must_use]
    pub const fn needs_pin(self) -> bool {
        matches!(self, Self::PkiAuth | Self::Contact)
    }
}

/// What the door asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A policy that the certificate must have been issued under.
    pub policy: Option<ObjectIdentifier>,
    /// How old a check made beforehand may be.
    pub age_limit: Duration,
    /// How long the door's module takes for a path; the rest is waited.
    pub module_time: Nanos,
}

/// How a dialogue went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialogue {
    /// Granted to whom, or why refused; or the card was lost in the middle.
    pub outcome: Result<Result<Identity, Refusal>, Lost>,
    /// The way that the strategy saves was gone in full: the card, or its certificate, was not
    /// known, or known as another one.
    pub fell_back: bool,
    /// Where the time went.
    pub log: Log,
}

/// See the module's text.
#[derive(Debug)]
pub struct Desk {
    trust: Trust,
    rules: Rules,
    known: Known,
    checked: Checked,
    /// The certificate of 9A, read and judged beforehand.
    contact: Option<Judged>,
    /// A card did not take the PIN, or nobody knows whether it did: it is never sent again.
    pin_is_spent: bool,
}

impl Desk {
    /// A door that has seen nobody yet.
    #[must_use]
    pub fn new(trust: Trust, rules: Rules) -> Self {
        Self {
            trust,
            rules,
            known: Known::default(),
            checked: Checked::default(),
            contact: None,
            pin_is_spent: false,
        }
    }

    /// What is trusted.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Carries out one authentication at this moment.
    pub fn authenticate(
        &mut self,
        card: &mut dyn Card,
        mechanism: Mechanism,
        pin: Option<&Pin>,
        at: Time,
    ) -> Dialogue {
        let mut talk = Talk::new(card);
        let mut fell_back = false;
        let ended = match mechanism {
            Mechanism::PkiCak(Strategy::KnownCard) => {
                self.known_card(&mut talk, at, &mut fell_back)
            }
            Mechanism::PkiCak(strategy) => {
                self.full(&mut talk, strategy, at, &mut fell_back).map(|full| full.identity)
            }
            Mechanism::Chuid => self.chuid(&mut talk, at),
            Mechanism::PkiAuth => self.pki_auth(&mut talk, pin, at),
            Mechanism::Contact => self.contact(&mut talk, pin, at),
        };
        let outcome = match ended {
            Ok(identity) => Ok(Ok(identity)),
            Err(End::Refused(refusal)) => Ok(Err(refusal)),
            Err(End::Lost(lost)) => Err(lost),
        };
        Dialogue { outcome, fell_back, log: talk.log }
    }

    /// What has to be there before the door can do it this way: a known card's key, a checked
    /// certificate, the certificate of the contact sequence. Not part of any authentication.
    ///
    /// # Errors
    /// When the card is lost. That it is refused is no error here: it will be.
    pub fn prepare(
        &mut self,
        card: &mut dyn Card,
        mechanism: Mechanism,
        at: Time,
    ) -> Result<(), Lost> {
        let mut talk = Talk::new(card);
        let prepared = match mechanism {
            Mechanism::PkiCak(Strategy::KnownCard) if self.known.is_empty() => {
                self.known_card(&mut talk, at, &mut false).map(|_| ())
            }
            Mechanism::PkiCak(Strategy::BackgroundValidation) if self.checked.is_empty() => {
                let read = talk
                    .select()
                    .and_then(|()| self.read_certificate(&mut talk, object::CARD_AUTHENTICATION));
                read.map(|certificate| {
                    let path = self.path(&certificate, Purpose::CardAuthentication, at);
                    self.checked.put(&certificate, path, at);
                })
            }
            Mechanism::Contact => {
                let read = talk
                    .select()
                    .and_then(|()| self.read_certificate(&mut talk, object::PIV_AUTHENTICATION));
                read.map(|certificate| {
                    let path = self.path(&certificate, Purpose::PivAuthentication, at);
                    self.contact = Some((certificate, path));
                })
            }
            _ => Ok(()),
        };
        if mechanism == Mechanism::PkiCak(Strategy::BackgroundValidation) {
            self.check_again(at);
        }
        match prepared {
            Ok(()) | Err(End::Refused(_)) => Ok(()),
            Err(End::Lost(lost)) => Err(lost),
        }
    }

    /// Looks at the PIN's retry counter; the PIN may be sent only after that.
    ///
    /// # Errors
    /// When one wrong PIN more would block it, when it was refused before, when the card does not
    /// tell. Or the card is lost.
    pub fn look_at_tries(&mut self, card: &mut dyn Card) -> Result<Result<(), Refusal>, Lost> {
        let not_sent = |why: String| Ok(Err(Refusal::PinNotSent { why }));
        if self.pin_is_spent {
            return not_sent("it was refused before, or its fate is unknown".to_owned());
        }
        let mut talk = Talk::new(card);
        let status = match talk.select().and_then(|()| talk.tries()) {
            Ok(status) => status,
            Err(End::Refused(refusal)) => return Ok(Err(refusal)),
            Err(End::Lost(lost)) => return Err(lost),
        };
        match status.tries() {
            Some(0) => not_sent("the PIN is blocked".to_owned()),
            Some(1) => not_sent("the PIN has one try left".to_owned()),
            // 9000: verified already, and the counter is at its highest.
            Some(_) => Ok(Ok(())),
            None if status == tapstone_apdu::StatusWord::OK => Ok(Ok(())),
            None => not_sent(format!("the card does not tell how many tries are left ({status})")),
        }
    }

    /// The whole of PKI-CAK, in the order of the strategy.
    fn full(
        &mut self,
        talk: &mut Talk<'_>,
        strategy: Strategy,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<Full, End> {
        talk.select()?;
        let certificate = self.read_certificate(talk, object::CARD_AUTHENTICATION)?;
        let (path, chuid) = match strategy {
            Strategy::Overlap => self.overlapped(talk, &certificate, at)?,
            Strategy::BackgroundValidation => {
                let path = talk.step(Step::Validate, |talk| {
                    self.checked_before(talk, &certificate, at, fell_back)
                })?;
                challenge(talk, &certificate, KEY_9E)?;
                (path, Some(read_chuid(talk)?))
            }
            Strategy::Plain | Strategy::KnownCard | Strategy::NoChuid => {
                let path = talk.step(Step::Validate, |talk| {
                    let (path, replayed) = self.module(&certificate, at);
                    talk.log.replayed = replayed;
                    path
                })?;
                challenge(talk, &certificate, KEY_9E)?;
                let chuid = match strategy {
                    Strategy::NoChuid => None,
                    _ => Some(read_chuid(talk)?),
                };
                (path, chuid)
            }
        };
        let identity = Identity::of(&certificate)?;
        match &chuid {
            None => Ok(Full { identity, path }),
            Some(chuid) => {
                identity.is_of(chuid)?;
                chuid.in_time(at)?;
                Ok(Full { identity: chuid.identity.clone(), path })
            }
        }
    }

    /// The card signs and gives its CHUID while the path is validated.
    fn overlapped(
        &self,
        talk: &mut Talk<'_>,
        certificate: &Arc<Certificate>,
        at: Time,
    ) -> Result<(Path, Option<Chuid>), End> {
        let (path, talked) = std::thread::scope(|scope| {
            let validation = scope.spawn(|| {
                let start = Monotonic.now();
                let (path, replayed) = self.module(certificate, at);
                (path, replayed, Monotonic.now() - start)
            });
            let talked = challenge(talk, certificate, KEY_9E).and_then(|()| read_chuid(talk));
            (validation.join(), talked)
        });
        // Only a bug panics there, and then nobody may enter.
        let (path, replayed, time) = path.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        talk.took(Step::Validate, time);
        // The waiting that the card's own time did not hide.
        let beside: Nanos = [Step::Challenge, Step::ReadChuid]
            .into_iter()
            .filter_map(|step| talk.log.step(step))
            .sum();
        talk.log.replayed = (time - beside).min(replayed);
        Ok((path?, Some(talked?)))
    }

    /// Path validation, and the wait for a module that is slower than this machine.
    fn module(&self, certificate: &Arc<Certificate>, at: Time) -> (Result<Path, Refusal>, Nanos) {
        let start = Monotonic.now();
        let path = self.path(certificate, Purpose::CardAuthentication, at);
        let own = Monotonic.now();
        if own - start < self.rules.module_time {
            Monotonic.wait_until(start + self.rules.module_time);
        }
        (path, Monotonic.now() - own)
    }

    fn path(
        &self,
        certificate: &Arc<Certificate>,
        purpose: Purpose,
        at: Time,
    ) -> Result<Path, Refusal> {
        let card = purpose == Purpose::CardAuthentication;
        let policy = self.rules.policy.as_ref().filter(|_| card);
        self.trust.validate(certificate, purpose, policy, at)
    }

    /// What was found beforehand for a certificate with these bytes, if that is not too old.
    fn checked_before(
        &mut self,
        talk: &mut Talk<'_>,
        certificate: &Arc<Certificate>,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<Path, Refusal> {
        if let Some(found) = self.checked.young(certificate, at, self.rules.age_limit) {
            let path = found.clone()?;
            self.trust.in_time(&path, at)?;
            return Ok(path);
        }
        *fell_back = true;
        let (path, replayed) = self.module(certificate, at);
        talk.log.replayed = replayed;
        self.checked.put(certificate, path.clone(), at);
        path
    }

    /// The background's work: checks that are half as old as they may be are made anew.
    fn check_again(&mut self, at: Time) {
        for certificate in self.checked.ageing(at, self.rules.age_limit / 2) {
            let path = self.path(&certificate, Purpose::CardAuthentication, at);
            self.checked.put(&certificate, path, at);
        }
    }

    /// The register first, and everything when that does not do.
    fn known_card(
        &mut self,
        talk: &mut Talk<'_>,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<Identity, End> {
        if !self.known.is_empty() {
            talk.select()?;
            if let Some(identity) = self.recognised(talk, at)? {
                return Ok(identity);
            }
        }
        *fell_back = true;
        let full = self.full(talk, Strategy::KnownCard, at, &mut false)?;
        self.known.register(&full.identity, full.path);
        Ok(full.identity)
    }

    /// Whether this is a registered card that proves to have the registered key.
    fn recognised(&mut self, talk: &mut Talk<'_>, at: Time) -> Result<Option<Identity>, End> {
        let start = talk.step(Step::ReadChuid, |talk| {
            let start = talk.get_data(object::CHUID, CHUID_START)?;
            Ok::<_, End>(Chuid::parse_start(&start)?)
        })?;
        start.in_time(at)?;
        let paths = self.known.paths(&start.identity);
        let good = talk.step(Step::Validate, |_| {
            paths.into_iter().find(|path| self.trust.recheck(path, at).is_ok())
        });
        let Some(path) = good else {
            self.known.forget(&start.identity);
            return Ok(None);
        };
        match challenge(talk, path.certificate(), KEY_9E) {
            Ok(()) => Ok(Some(start.identity)),
            Err(End::Lost(lost)) => Err(lost.into()),
            // Another key, or another kind of key: the full reading says what it is.
            Err(End::Refused(_)) => Ok(None),
        }
    }

    fn chuid(&self, talk: &mut Talk<'_>, at: Time) -> Result<Identity, End> {
        talk.select()?;
        let chuid = read_chuid(talk)?;
        talk.step(Step::Validate, |_| chuid.verify(&self.trust, at))?;
        Ok(chuid.identity)
    }

    fn pki_auth(
        &mut self,
        talk: &mut Talk<'_>,
        pin: Option<&Pin>,
        at: Time,
    ) -> Result<Identity, End> {
        talk.select()?;
        let certificate = self.read_certificate(talk, object::PIV_AUTHENTICATION)?;
        talk.step(Step::Validate, |_| self.path(&certificate, Purpose::PivAuthentication, at))?;
        self.verify_pin(talk, pin)?;
        challenge(talk, &certificate, KEY_9A)?;
        let chuid = read_chuid(talk)?;
        Identity::of(&certificate)?.is_of(&chuid)?;
        chuid.in_time(at)?;
        Ok(chuid.identity)
    }

    fn contact(
        &mut self,
        talk: &mut Talk<'_>,
        pin: Option<&Pin>,
        at: Time,
    ) -> Result<Identity, End> {
        talk.select()?;
        let chuid = read_chuid(talk)?;
        self.verify_pin(talk, pin)?;
        let Some((certificate, path)) = self.contact.clone() else {
            let object = object::PIV_AUTHENTICATION.name.to_owned();
            let status = tapstone_apdu::StatusWord::NOT_FOUND.0;
            return Err(Refusal::Missing { object, status }.into());
        };
        challenge(talk, &certificate, KEY_9A)?;
        path?;
        Identity::of(&certificate)?.is_of(&chuid)?;
        chuid.in_time(at)?;
        Ok(chuid.identity)
    }

    fn verify_pin(&mut self, talk: &mut Talk<'_>, pin: Option<&Pin>) -> Result<(), End> {
        let why = match pin {
            Some(_) if self.pin_is_spent => "it was refused before, or its fate is unknown",
            Some(pin) => return talk.step(Step::Pin, |talk| self.send_pin(talk, pin)),
            None => "there is none",
        };
        Err(Refusal::PinNotSent { why: why.to_owned() }.into())
    }

    fn send_pin(&mut self, talk: &mut Talk<'_>, pin: &Pin) -> Result<(), End> {
        self.pin_is_spent = true;
        let status = talk.verify(pin)?;
        if status != tapstone_apdu::StatusWord::OK {
            return Err(Refusal::Pin { status: status.0 }.into());
        }
        self.pin_is_spent = false;
        Ok(())
    }

    fn read_certificate(
        &self,
        talk: &mut Talk<'_>,
        object: Object,
    ) -> Result<Arc<Certificate>, End> {
        talk.step(Step::ReadCertificate, |talk| {
            let response = talk.get_data(object, usize::MAX)?;
            let der = object.certificate(&response)?;
            let parsed = Certificate::from_der(der.to_vec());
            let parsed = parsed.map_err(|why| Refusal::NotACertificate { why: why.to_string() })?;
            Ok(Arc::new(parsed))
        })
    }
}

/// A certificate, and whether a good path leads to it.
type Judged = (Arc<Certificate>, Result<Path, Refusal>);

/// What a full reading brings.
struct Full {
    identity: Identity,
    path: Path,
}

fn read_chuid(talk: &mut Talk<'_>) -> Result<Chuid, End> {
    talk.step(Step::ReadChuid, |talk| {
        let response = talk.get_data(object::CHUID, usize::MAX)?;
        Ok(Chuid::parse(&response)?)
    })
}

/// A fresh challenge, signed by a key of the card and checked with its certificate's.
fn challenge(talk: &mut Talk<'_>, certificate: &Certificate, reference: u8) -> Result<(), End> {
    talk.step(Step::Challenge, |talk| {
        let key: &PublicKey = certificate
            .key
            .as_ref()
            .map_err(|algorithm| Refusal::Algorithm { algorithm: algorithm.clone() })?;
        let challenge = Challenge::new(key)?;
        let signature = talk.sign(&challenge, reference)?;
        match challenge.is_answered_by(key, &signature) {
            true => Ok(()),
            false => Err(Refusal::WrongKey.into()),
        }
    })
}
