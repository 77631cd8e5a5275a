//! The door's side: what it knows, and the dialogue with a card from the first command to the
//! decision.

mod known_card;
mod memory;
mod rules;

use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use serde::{Deserialize, Serialize};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use self::memory::{PriorChecks, RegisteredKeys};
pub use self::rules::{PolicyRule, Rules};
use crate::card::{CardConnection, CardLost};
use crate::certificate::Certificate;
use crate::channel::{CardChannel, DialogueEnd};
use crate::chuid::{CardIdentity, Chuid, START};
use crate::denial::Denial;
use crate::key::{Challenge, PublicKey};
use crate::log::{DialogueLog, DialogueStep};
use crate::object::{self, DataObject};
use crate::pin::PivPin;
use crate::profile::CertificatePurpose;
use crate::strategy::{CommandLengths, Strategy};
use crate::time::Time;
use crate::trust::{CertificationPath, PathDemands, Trust};

/// Key references (SP 800-73-5 part 1, table 4).
const KEY_9A: u8 = 0x9A;
const KEY_9E: u8 = 0x9E;

/// The longest header of the object, before the bytes that hold the identifiers.
const CHUID_START: usize = 4 + START;

/// An authentication mechanism of FIPS 201-3, section 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthenticationMechanism {
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

impl AuthenticationMechanism {
    /// Whether it gives the PIN to the card.
    #[must_use]
    pub const fn needs_pin(self) -> bool {
        matches!(self, Self::PkiAuth | Self::Contact)
    }

    /// How long its commands may be.
    const fn lengths(self) -> CommandLengths {
        match self {
            Self::PkiCak(strategy) => strategy.lengths(),
            Self::Chuid | Self::PkiAuth | Self::Contact => CommandLengths::Short,
        }
    }
}

/// How a dialogue went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialogue {
    /// Granted to whom, or why refused; or the card was lost in the middle.
    pub outcome: Result<Result<CardIdentity, Denial>, CardLost>,
    /// The way that the strategy saves was gone in full: the card, or its certificate, was not
    /// known, or known as another one.
    pub fell_back: bool,
    /// Where the time went.
    pub log: DialogueLog,
}

/// The door's side of an authentication: what it trusts, its rules, and what it knows of cards.
#[derive(Debug)]
pub struct RelyingSystem {
    trust: Trust,
    rules: Rules,
    known: RegisteredKeys,
    checked: PriorChecks,
    /// The certificate of 9A, read and judged beforehand.
    contact: Option<Judged>,
    /// A card did not take the PIN, or nobody knows whether it did: it is never sent again.
    pin_is_spent: bool,
    /// What was fetched, for the log of the next dialogue: preparations have none.
    fetched: Vec<String>,
}

impl RelyingSystem {
    /// A door that has seen nobody yet.
    #[must_use]
    pub fn new(trust: Trust, rules: Rules) -> Self {
        Self {
            trust,
            rules,
            known: RegisteredKeys::default(),
            checked: PriorChecks::default(),
            contact: None,
            pin_is_spent: false,
            fetched: Vec::new(),
        }
    }

    /// The trust anchors, other CAs and CRLs.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Carries out one authentication at this moment.
    pub fn authenticate(
        &mut self,
        card: &mut dyn CardConnection,
        mechanism: AuthenticationMechanism,
        pin: Option<&PivPin>,
        at: Time,
    ) -> Dialogue {
        let mut channel = CardChannel::new(card, self.rules.time_limit);
        channel.lengths = mechanism.lengths();
        let mut fell_back = false;
        let ended = match mechanism {
            AuthenticationMechanism::PkiCak(strategy) if strategy.way() == Strategy::KnownCard => {
                self.known_card(&mut channel, strategy, at, &mut fell_back)
            }
            AuthenticationMechanism::PkiCak(strategy) => {
                self.full(&mut channel, strategy, at, &mut fell_back).map(|full| full.identity)
            }
            AuthenticationMechanism::Chuid => self.chuid(&mut channel, at),
            AuthenticationMechanism::PkiAuth => self.pki_auth(&mut channel, pin, at),
            AuthenticationMechanism::Contact => self.contact(&mut channel, pin, at),
        };
        let outcome = match ended {
            Ok(identity) => Ok(Ok(identity)),
            Err(DialogueEnd::Refused(refusal)) => Ok(Err(refusal)),
            Err(DialogueEnd::Lost(lost)) => Err(lost),
        };
        channel.log.fetched = std::mem::take(&mut self.fetched);
        Dialogue { outcome, fell_back, log: channel.log }
    }

    /// What has to be there before the door can do it this way: a known card's key, a checked
    /// certificate, the certificate of the contact sequence. Not part of any authentication.
    ///
    /// # Errors
    /// When the card is lost. That it is refused is no error here: it will be.
    pub fn prepare(
        &mut self,
        card: &mut dyn CardConnection,
        mechanism: AuthenticationMechanism,
        at: Time,
    ) -> Result<(), CardLost> {
        let mut channel = CardChannel::new(card, self.rules.time_limit);
        let prepared = match mechanism {
            AuthenticationMechanism::PkiCak(strategy)
                if strategy.way() == Strategy::KnownCard && self.known.is_empty() =>
            {
                self.known_card(&mut channel, strategy, at, &mut false).map(|_| ())
            }
            AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation)
                if self.checked.is_empty() =>
            {
                let read = channel.select().and_then(|()| {
                    self.read_certificate(&mut channel, object::CARD_AUTHENTICATION)
                });
                read.map(|certificate| {
                    self.fetch_issuers(&mut channel, &certificate);
                    let path = self.path(&certificate, CertificatePurpose::CardAuthentication, at);
                    self.checked.remember(&certificate, &path, at);
                })
            }
            AuthenticationMechanism::Contact => {
                // Another card may be in the reader by now.
                self.contact = None;
                let read = channel
                    .select()
                    .and_then(|()| self.read_certificate(&mut channel, object::PIV_AUTHENTICATION));
                read.map(|certificate| {
                    self.fetch_issuers(&mut channel, &certificate);
                    let path = self.path(&certificate, CertificatePurpose::PivAuthentication, at);
                    self.contact = Some((certificate, path));
                })
            }
            _ => Ok(()),
        };
        if mechanism == AuthenticationMechanism::PkiCak(Strategy::BackgroundValidation) {
            self.check_again(at);
        }
        match prepared {
            Ok(()) | Err(DialogueEnd::Refused(_)) => Ok(()),
            Err(DialogueEnd::Lost(lost)) => Err(lost),
        }
    }

    /// Looks at the PIN's retry counter; the PIN may be sent only after that.
    ///
    /// # Errors
    /// When one wrong PIN more would block it, when it was refused before, when the card does not
    /// tell. Or the card is lost.
    pub fn look_at_tries(
        &mut self,
        card: &mut dyn CardConnection,
    ) -> Result<Result<(), Denial>, CardLost> {
        let not_sent = |why: String| Ok(Err(Denial::PinNotSent { why }));
        if self.pin_is_spent {
            return not_sent("it was refused before, or its fate is unknown".to_owned());
        }
        let mut channel = CardChannel::new(card, self.rules.time_limit);
        let status = match channel.select().and_then(|()| channel.tries()) {
            Ok(status) => status,
            Err(DialogueEnd::Refused(refusal)) => return Ok(Err(refusal)),
            Err(DialogueEnd::Lost(lost)) => return Err(lost),
        };
        match status.tries() {
            Some(0) => not_sent("the PIN is blocked".to_owned()),
            Some(1) => not_sent("the PIN has one try left".to_owned()),
            Some(_) => Ok(Ok(())),
            None if status == tapstone_apdu::StatusWord::OK => not_sent(
                "the card does not tell how many tries are left: the PIN was given already, \
                 perhaps by another program"
                    .to_owned(),
            ),
            None => not_sent(format!("the card does not tell how many tries are left ({status})")),
        }
    }

    /// The whole of PKI-CAK, in the order of the strategy.
    fn full(
        &mut self,
        channel: &mut CardChannel<'_>,
        strategy: Strategy,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<Full, DialogueEnd> {
        channel.select()?;
        let certificate = self.read_certificate(channel, object::CARD_AUTHENTICATION)?;
        self.fetch_issuers(channel, &certificate);
        let (path, chuid) = match strategy.way() {
            Strategy::Overlap => self.overlapped(channel, &certificate, at)?,
            Strategy::BackgroundValidation => {
                let path = channel.step(DialogueStep::Validate, |channel| {
                    self.checked_before(channel, &certificate, at, fell_back)
                })?;
                challenge(channel, &certificate, KEY_9E)?;
                (path, Some(read_chuid(channel)?))
            }
            _ => {
                let path = channel.step(DialogueStep::Validate, |channel| {
                    let (path, replayed) = self.module(&certificate, at);
                    channel.log.replayed = replayed;
                    path
                })?;
                challenge(channel, &certificate, KEY_9E)?;
                let chuid = match strategy {
                    Strategy::NoChuid => None,
                    _ => Some(read_chuid(channel)?),
                };
                (path, chuid)
            }
        };
        if let Some(chuid) = &chuid {
            is_of_this_card(&certificate, chuid, at)?;
        }
        channel.log.unchecked = path.unchecked().to_vec();
        let identity = CardIdentity::from_certificate(&certificate).proven()?;
        Ok(Full { identity, path })
    }

    /// The card signs and gives its CHUID while the path is validated.
    fn overlapped(
        &self,
        channel: &mut CardChannel<'_>,
        certificate: &Arc<Certificate>,
        at: Time,
    ) -> Result<(CertificationPath, Option<Chuid>), DialogueEnd> {
        let (path, exchanged) = std::thread::scope(|scope| {
            let validation = beside_the_card(scope, || {
                let start = Monotonic.now();
                let (path, replayed) = self.module(certificate, at);
                (path, replayed, Monotonic.now() - start)
            })?;
            let exchanged =
                challenge(channel, certificate, KEY_9E).and_then(|()| read_chuid(channel));
            Ok::<_, Denial>((validation.join(), exchanged))
        })?;
        // Only a bug panics there, and then nobody may enter.
        let (path, replayed, time) = path.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        channel.took(DialogueStep::Validate, time);
        // The waiting that the card's own time did not hide.
        let beside: Nanos = [DialogueStep::Challenge, DialogueStep::ReadChuid]
            .into_iter()
            .filter_map(|step| channel.log.step(step))
            .sum();
        channel.log.replayed = (time - beside).min(replayed);
        Ok((path?, Some(exchanged?)))
    }

    /// Path validation, and the wait for a module that is slower than this machine.
    fn module(
        &self,
        certificate: &Arc<Certificate>,
        at: Time,
    ) -> (Result<CertificationPath, Denial>, Nanos) {
        let start = Monotonic.now();
        let path = self.path(certificate, CertificatePurpose::CardAuthentication, at);
        let own = Monotonic.now();
        if own - start < self.rules.module_time {
            Monotonic.wait_until(start + self.rules.module_time);
        }
        (path, Monotonic.now() - own)
    }

    fn path(
        &self,
        certificate: &Arc<Certificate>,
        purpose: CertificatePurpose,
        at: Time,
    ) -> Result<CertificationPath, Denial> {
        let policies = self.rules.policies.inputs(purpose);
        self.trust.validate(certificate, &PathDemands { purpose: Some(purpose), policies }, at)
    }

    /// What was found beforehand for a certificate with these bytes, if that is not too old.
    fn checked_before(
        &mut self,
        channel: &mut CardChannel<'_>,
        certificate: &Arc<Certificate>,
        at: Time,
        fell_back: &mut bool,
    ) -> Result<CertificationPath, Denial> {
        if let Some(found) = self.checked.young(certificate, at, self.rules.age_limit) {
            let path = found.clone();
            self.trust.still_holds(&path, at)?;
            return Ok(path);
        }
        *fell_back = true;
        let (path, replayed) = self.module(certificate, at);
        channel.log.replayed = replayed;
        self.checked.remember(certificate, &path, at);
        path
    }

    /// The background's work: checks that are half as old as they may be are made anew.
    fn check_again(&mut self, at: Time) {
        for certificate in self.checked.ageing(at, self.rules.age_limit / 2) {
            let path = self.path(&certificate, CertificatePurpose::CardAuthentication, at);
            self.checked.remember(&certificate, &path, at);
        }
    }

    /// The signature of a CHUID, and the path of its signer.
    fn chuid(
        &mut self,
        channel: &mut CardChannel<'_>,
        at: Time,
    ) -> Result<CardIdentity, DialogueEnd> {
        channel.select()?;
        let chuid = read_chuid(channel)?;
        let signer = channel.step(DialogueStep::Validate, |_| {
            chuid.in_time(at)?;
            chuid.signer()
        })?;
        self.fetch_issuers(channel, &signer);
        let path = channel.step(DialogueStep::Validate, |_| {
            self.path(&signer, CertificatePurpose::ContentSigning, at)
        })?;
        channel.log.unchecked = path.unchecked().to_vec();
        Ok(chuid.identity.proven()?)
    }

    /// Fetches what is missing above a certificate, if that is wanted at all.
    fn fetch_issuers(&mut self, channel: &mut CardChannel<'_>, certificate: &Arc<Certificate>) {
        if self.trust.may_fetch() {
            let trust = &mut self.trust;
            let notes = channel.step(DialogueStep::Validate, |_| trust.fetch_issuers(certificate));
            self.fetched.extend(notes);
        }
    }

    fn pki_auth(
        &mut self,
        channel: &mut CardChannel<'_>,
        pin: Option<&PivPin>,
        at: Time,
    ) -> Result<CardIdentity, DialogueEnd> {
        channel.select()?;
        let certificate = self.read_certificate(channel, object::PIV_AUTHENTICATION)?;
        self.fetch_issuers(channel, &certificate);
        let path = channel.step(DialogueStep::Validate, |_| {
            self.path(&certificate, CertificatePurpose::PivAuthentication, at)
        })?;
        self.verify_pin(channel, pin)?;
        challenge(channel, &certificate, KEY_9A)?;
        let chuid = read_chuid(channel)?;
        is_of_this_card(&certificate, &chuid, at)?;
        channel.log.unchecked = path.unchecked().to_vec();
        Ok(CardIdentity::from_certificate(&certificate).proven()?)
    }

    fn contact(
        &mut self,
        channel: &mut CardChannel<'_>,
        pin: Option<&PivPin>,
        at: Time,
    ) -> Result<CardIdentity, DialogueEnd> {
        channel.select()?;
        let chuid = read_chuid(channel)?;
        let Some((certificate, path)) = self.contact.clone() else {
            let object = object::PIV_AUTHENTICATION.name.to_owned();
            let status = tapstone_apdu::StatusWord::NOT_FOUND.0;
            return Err(Denial::Missing { object, status }.into());
        };
        // A card that is not trusted gets no PIN.
        let path = path?;
        self.trust.still_holds(&path, at)?;
        self.verify_pin(channel, pin)?;
        challenge(channel, &certificate, KEY_9A)?;
        channel.log.unchecked = path.unchecked().to_vec();
        is_of_this_card(&certificate, &chuid, at)?;
        Ok(CardIdentity::from_certificate(&certificate).proven()?)
    }

    fn verify_pin(
        &mut self,
        channel: &mut CardChannel<'_>,
        pin: Option<&PivPin>,
    ) -> Result<(), DialogueEnd> {
        let why = match pin {
            Some(_) if self.pin_is_spent => "it was refused before, or its fate is unknown",
            Some(pin) => {
                return channel.step(DialogueStep::Pin, |channel| self.send_pin(channel, pin));
            }
            None => "there is none",
        };
        Err(Denial::PinNotSent { why: why.to_owned() }.into())
    }

    fn send_pin(&mut self, channel: &mut CardChannel<'_>, pin: &PivPin) -> Result<(), DialogueEnd> {
        self.pin_is_spent = true;
        let status = channel.verify(pin)?;
        if status != tapstone_apdu::StatusWord::OK {
            return Err(Denial::Pin { status: status.0 }.into());
        }
        self.pin_is_spent = false;
        Ok(())
    }

    fn read_certificate(
        &self,
        channel: &mut CardChannel<'_>,
        object: DataObject,
    ) -> Result<Arc<Certificate>, DialogueEnd> {
        channel.step(DialogueStep::ReadCertificate, |channel| {
            let response = channel.get_data(object, usize::MAX)?;
            let der = object.certificate(&response)?;
            let parsed = Certificate::from_der(der);
            let parsed = parsed.map_err(|why| Denial::NotACertificate { why: why.to_string() })?;
            Ok(Arc::new(parsed))
        })
    }
}

/// A certificate, and whether a good path leads to it.
type Judged = (Arc<Certificate>, Result<CertificationPath, Denial>);

/// What a full reading brings.
struct Full {
    identity: CardIdentity,
    path: CertificationPath,
}

/// Work of the host on a thread of its own, while the card signs.
fn beside_the_card<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Denial> {
    let spawned = std::thread::Builder::new().spawn_scoped(scope, work);
    spawned.map_err(|error| Denial::NoThread { why: error.to_string() })
}

fn read_chuid(channel: &mut CardChannel<'_>) -> Result<Chuid, DialogueEnd> {
    channel.step(DialogueStep::ReadChuid, |channel| {
        let response = channel.get_data(object::CHUID, usize::MAX)?;
        Ok(Chuid::parse(&response)?)
    })
}

/// Whether a CHUID, signed or not, contradicts the certificate whose key the card proved to have.
fn is_of_this_card(certificate: &Certificate, chuid: &Chuid, at: Time) -> Result<(), Denial> {
    CardIdentity::from_certificate(certificate).is_of(chuid)?;
    chuid.in_time(at)
}

/// A fresh challenge, signed by a key of the card and checked with its certificate's.
fn challenge(
    channel: &mut CardChannel<'_>,
    certificate: &Certificate,
    reference: u8,
) -> Result<(), DialogueEnd> {
    channel.step(DialogueStep::Challenge, |channel| {
        let key: &PublicKey = certificate
            .key
            .as_ref()
            .map_err(|algorithm| Denial::Algorithm { algorithm: algorithm.clone() })?;
        let challenge = Challenge::new(key)?;
        let signature = channel.sign(&challenge, reference)?;
        match challenge.is_answered_by(key, &signature) {
            true => Ok(()),
            false => Err(Denial::WrongKey.into()),
        }
    })
}
