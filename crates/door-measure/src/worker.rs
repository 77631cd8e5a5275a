//! The process that talks to the card: SCardTransmit has no time limit and cannot be cancelled, so
//! whoever calls it can hang. This process can be ended at any moment, and pcscd then ends its
//! transaction.

use std::fs::File;
use std::io;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tapstone_apdu::StatusWord;
use tapstone_card::scard::{
    Connection, Context, Disposition, LONGEST_RESPONSE, Pcsc, ShareMode, reader_name,
};
use tapstone_firewall::{Declared, Firewall, Permissions};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::{PcscCode, PcscFailure};
use tapstone_piv::{
    AuthenticationMechanism, CardConnection, CardLost, Dialogue, DialogueLog, DialogueStep, Oid,
    PivPin, PolicyRule, RelyingSystem, Rules, Time,
};
use tapstone_worker::{
    Board, Controller, private_pipes, receive, send, signal_at_controllers_death,
};

use crate::error::OpenError;
use crate::protocol::{Authentication, DoorOrder, DoorReport, DoorSetup, PolicyChoice};

/// Between two attempts to get the reader or the card.
const RETRY: Duration = Duration::from_millis(100);

/// Runs the worker on standard input and output until its orders end.
///
/// # Errors
/// What the pipes say. Everything that goes wrong with the card is a report.
pub fn serve() -> io::Result<()> {
    if signal_at_controllers_death(Signal::KILL)? == Controller::Gone {
        return Ok(());
    }
    let (mut orders, mut reports) = private_pipes()?;
    let mut worker = None;
    while let Some(order) = receive(&mut orders)? {
        match order {
            DoorOrder::Open { board, setup } => match Worker::open(&board, *setup) {
                Ok(opened) => {
                    worker = Some(opened);
                    send(&mut reports, &DoorReport::Opened(Ok(())))?;
                }
                Err(error) => {
                    send(&mut reports, &DoorReport::Opened(Err(error.to_string())))?;
                }
            },
            DoorOrder::Authenticate { mechanism, at } => {
                let worker = worker.as_mut().ok_or_else(|| io::Error::other("not open"))?;
                let seen = worker.authenticate(mechanism, at, &mut reports)?;
                send(&mut reports, &DoorReport::Authenticated(Box::new(seen)))?;
            }
        }
    }
    Ok(())
}

struct Worker {
    pcsc: Pcsc,
    /// One for all rounds: a PIN that was not taken is not tried again.
    firewall: Firewall,
    setup: DoorSetup,
    relying_system: RelyingSystem,
    pin: Option<PivPin>,
    card: Option<Held>,
    memory: Vec<u8>,
}

/// A card that is connected to. The connection goes before its context.
struct Held {
    card: Connection,
    context: Context,
}

/// SCardTransmit as the way to the card, behind the firewall.
struct Wire<'a> {
    card: &'a Connection,
    firewall: &'a mut Firewall,
    memory: &'a mut [u8],
}

impl CardConnection for Wire<'_> {
    fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost> {
        let cleared = self.firewall.clear(command, Declared::Nothing).map_err(|refusal| {
            CardLost { call: "firewall".to_owned(), code: refusal.to_string() }
        })?;
        let answer = self.card.transmit(cleared, self.memory).map_err(lost)?;
        response.extend_from_slice(answer);
        if let Some((data, status)) = answer.split_last_chunk::<2>() {
            self.firewall.answered(StatusWord(u16::from_be_bytes(*status)), data);
        }
        Ok(())
    }
}

fn lost(failure: PcscFailure) -> CardLost {
    CardLost { call: failure.call.to_string(), code: failure.code.to_string() }
}

/// Nothing was said with the card, or nothing that counts.
fn without(outcome: Result<tapstone_piv::Denial, CardLost>) -> Dialogue {
    Dialogue { outcome: outcome.map(Err), fell_back: false, log: DialogueLog::default() }
}

impl Worker {
    fn open(board: &std::path::Path, setup: DoorSetup) -> Result<Self, OpenError> {
        let pcsc = Pcsc::open(Board::open(board)?.cell(0))?;
        let trust = setup.trust.trust()?.trust;
        let policies = match &setup.policy {
            PolicyChoice::Usual => PolicyRule::Usual,
            PolicyChoice::Any => PolicyRule::Any,
            PolicyChoice::One(oid) => PolicyRule::One(
                Oid::from_str(oid).map_err(|error| OpenError::Policy(error.to_string()))?,
            ),
        };
        let rules = Rules {
            policies,
            age_limit: setup.age_limit.into(),
            module_time: setup.module_time,
            ..Rules::default()
        };
        let pin = match &setup.pin {
            None => None,
            Some(pin) => Some(PivPin::new(pin.expose()).ok_or(OpenError::Pin)?),
        };
        let permissions = Permissions::default();
        let firewall = Firewall::new(match &pin {
            Some(pin) => permissions.with_pin(pin.padded()),
            None => permissions,
        });
        let relying_system = RelyingSystem::new(trust, rules);
        let memory = vec![0; LONGEST_RESPONSE];
        Ok(Self { pcsc, firewall, setup, relying_system, pin, card: None, memory })
    }

    /// One authentication with everything that it needs beforehand.
    fn authenticate(
        &mut self,
        mechanism: AuthenticationMechanism,
        at: Option<Time>,
        reports: &mut File,
    ) -> io::Result<Authentication> {
        let at = || at.unwrap_or_else(Time::now);
        let start = Monotonic.now();
        let nothing =
            |dialogue, gave_up| Authentication { start, latency: Nanos::ZERO, dialogue, gave_up };
        if self.card.is_none() {
            match self.patiently(reports)? {
                Ok(held) => {
                    self.firewall.reset();
                    self.card = Some(held);
                }
                Err(failure) => return Ok(nothing(without(Err(lost(failure))), true)),
            }
        }
        let prepared = self.prepare(mechanism, at());
        let ran = match prepared {
            Ok(Ok(())) if mechanism == AuthenticationMechanism::Contact => self.cold(at()),
            Ok(Ok(())) => Ok(self.timed(mechanism, at(), Monotonic.now(), None)),
            Ok(Err(refusal)) => Ok(nothing(without(Ok(refusal)), false)),
            Err(lost) => Err(lost),
        };
        let ran = ran.unwrap_or_else(|lost| nothing(without(Err(lost)), false));
        self.part(mechanism, ran.dialogue.outcome.is_err());
        Ok(ran)
    }

    /// Begins the transaction, and does what is not part of the authentication.
    fn prepare(
        &mut self,
        mechanism: AuthenticationMechanism,
        at: Time,
    ) -> Result<Result<(), tapstone_piv::Denial>, CardLost> {
        let Some(held) = &self.card else { return Ok(Ok(())) };
        held.card.begin().map_err(lost)?;
        let mut wire =
            Wire { card: &held.card, firewall: &mut self.firewall, memory: &mut self.memory };
        self.relying_system.prepare(&mut wire, mechanism, at)?;
        match mechanism.needs_pin() {
            true => self.relying_system.look_at_tries(&mut wire),
            false => Ok(Ok(())),
        }
    }

    /// The sequence from a card without power on.
    fn cold(&mut self, at: Time) -> Result<Authentication, CardLost> {
        let Some(Held { card, context }) = self.card.take() else {
            return Err(CardLost { call: "SCardConnect".into(), code: "no card".into() });
        };
        card.end().map_err(lost)?;
        card.disconnect(Disposition::Unpower).map_err(lost)?;
        let start = Monotonic.now();
        let card =
            context.connect(&reader_name(&self.setup.reader), ShareMode::Shared).map_err(lost)?;
        let connected = Monotonic.now() - start;
        card.begin().map_err(lost)?;
        self.firewall.reset();
        self.card = Some(Held { card, context });
        Ok(self.timed(AuthenticationMechanism::Contact, at, start, Some(connected)))
    }

    /// The authentication itself, counted from `start`.
    fn timed(
        &mut self,
        mechanism: AuthenticationMechanism,
        at: Time,
        start: Nanos,
        connected: Option<Nanos>,
    ) -> Authentication {
        let Some(held) = &self.card else { unreachable!("a card is held before it is asked") };
        let mut wire =
            Wire { card: &held.card, firewall: &mut self.firewall, memory: &mut self.memory };
        let mut dialogue =
            self.relying_system.authenticate(&mut wire, mechanism, self.pin.as_ref(), at);
        let latency = Monotonic.now() - start;
        if let Some(time) = connected {
            dialogue.log.steps.insert(0, (DialogueStep::Connect, time));
        }
        Authentication { start, latency, dialogue, gave_up: false }
    }

    /// Ends the transaction. A card with a verified PIN is reset; one that was lost is let go.
    fn part(&mut self, mechanism: AuthenticationMechanism, was_lost: bool) {
        let Some(held) = &self.card else { return };
        let ended = held.card.end();
        if (was_lost || mechanism.needs_pin() || ended.is_err())
            && let Some(Held { card, context }) = self.card.take()
        {
            // Of a card that is gone nothing can be reset.
            let _ = card.disconnect(Disposition::Reset);
            drop(context);
        }
    }

    /// A connection; waits for a reader that another program has, and for a card.
    fn patiently(&mut self, reports: &mut File) -> io::Result<Result<Held, PcscFailure>> {
        let until = Instant::now() + Duration::from(self.setup.wait);
        let mut said = false;
        loop {
            let failure = match self.connect() {
                Ok(held) => return Ok(Ok(held)),
                Err(failure) => failure,
            };
            let passing = matches!(
                failure.code,
                PcscCode::SHARING_VIOLATION
                    | PcscCode::NO_SMARTCARD
                    | PcscCode::REMOVED_CARD
                    | PcscCode::UNRESPONSIVE_CARD
                    | PcscCode::UNPOWERED_CARD
            );
            if !passing || Instant::now() >= until {
                return Ok(Err(failure));
            }
            if !said {
                said = true;
                send(reports, &DoorReport::Waiting(format!("{failure}: waiting for the card")))?;
            }
            thread::sleep(RETRY);
        }
    }

    fn connect(&self) -> Result<Held, PcscFailure> {
        let context = self.pcsc.establish()?;
        let card = context.connect(&reader_name(&self.setup.reader), ShareMode::Shared)?;
        Ok(Held { card, context })
    }
}
