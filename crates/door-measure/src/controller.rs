//! Starts the process that talks to the card, watches it, and starts another when it is lost.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tapstone_card::controller::Lost;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::PcscFunction;
use tapstone_piv::{
    AuthenticationMechanism, CardIdentity, CardLost, Denial, Dialogue, DialogueLog, Time,
};
use tapstone_worker::{Conversation, Interrupt, OnInterrupt, Timeouts, Unanswered, WorkerCommand};

use crate::error::DoorMeasureError;
use crate::observer::DoorObserver;
use crate::protocol::{Authentication, DoorOrder, DoorProtocol, DoorReport, DoorSetup};

/// How long a worker may take to let the card go.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// After so many lost workers nothing is to be hoped for.
const MOST_LOST: u32 = 3;

/// Steers the process that talks to the card; it never calls PC/SC itself.
pub struct DoorController {
    setup: DoorSetup,
    command: WorkerCommand,
    workers: Conversation<DoorProtocol>,
    /// The worker that is ready for orders.
    ready: Option<usize>,
    lost: u32,
    /// A worker that had the PIN was lost: nobody knows what became of it.
    pin_is_spent: bool,
}

impl DoorController {
    /// A controller without a worker; one is started when there is work. A call may take `timeout`;
    /// one that waits for another program's transaction, `wait` if that is longer.
    #[must_use]
    pub fn new(
        setup: DoorSetup,
        command: WorkerCommand,
        timeout: Nanos,
        wait: Nanos,
        interrupt: Arc<AtomicBool>,
    ) -> Self {
        let timeouts = Timeouts {
            call: timeout.into(),
            waiting_call: wait.max(timeout).into(),
            clean_up: CLEAN_UP,
        };
        let interrupt = Interrupt::new(interrupt, OnInterrupt::GiveUp);
        let workers = Conversation::new(timeouts, interrupt);
        Self { setup, command, workers, ready: None, lost: 0, pin_is_spent: false }
    }

    /// One authentication; `None` when the user ended it.
    pub(crate) fn authenticate(
        &mut self,
        mechanism: AuthenticationMechanism,
        at: Option<Time>,
        observer: &mut dyn DoorObserver,
    ) -> Result<Option<Authentication>, DoorMeasureError> {
        let start = Monotonic.now();
        if mechanism.needs_pin() && self.pin_is_spent {
            let why = "the process that had it was lost, and its fate is unknown".to_owned();
            let outcome = Ok(Err(Denial::PinNotSent { why }));
            return Ok(Some(nothing_said(start, outcome, true)));
        }
        let number = match self.ready {
            Some(number) => number,
            None => self.start(observer)?,
        };
        match self.ask(number, &DoorOrder::Authenticate { mechanism, at }, observer) {
            Ok(DoorReport::Authenticated(authentication)) => Ok(Some(*authentication)),
            Ok(_) => Err(DoorMeasureError::Unexpected),
            Err(Unanswered::Interrupted) => {
                self.ready = None;
                Ok(None)
            }
            Err(Unanswered::Lost(lost)) => {
                self.ready = None;
                self.lost += 1;
                self.pin_is_spent |= mechanism.needs_pin();
                observer.notice(&lost.to_string());
                let outcome = Err(card_lost(&lost));
                Ok(Some(nothing_said(start, outcome, self.lost >= MOST_LOST)))
            }
        }
    }

    /// Whether the user has asked to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.workers.is_interrupted()
    }

    /// Starts a worker and makes it ready; its number.
    fn start(&mut self, observer: &mut dyn DoorObserver) -> Result<usize, DoorMeasureError> {
        let number = self.workers.start(&self.command).map_err(DoorMeasureError::Spawn)?;
        let board = self.workers.board(number).unwrap_or_default();
        let order = DoorOrder::Open { board, setup: Box::new(self.setup.clone()) };
        match self.ask(number, &order, observer) {
            Ok(DoorReport::Opened(Ok(()))) => {
                self.ready = Some(number);
                Ok(number)
            }
            Ok(DoorReport::Opened(Err(why))) => Err(DoorMeasureError::Open(why)),
            Ok(_) => Err(DoorMeasureError::Unexpected),
            Err(Unanswered::Interrupted) => Err(DoorMeasureError::Interrupted),
            Err(Unanswered::Lost(lost)) => Err(DoorMeasureError::Lost(lost)),
        }
    }

    /// Gives the worker an order and waits for its answer; that it waits is no answer.
    fn ask(
        &mut self,
        number: usize,
        order: &DoorOrder,
        observer: &mut dyn DoorObserver,
    ) -> Result<DoorReport, Unanswered<PcscFunction>> {
        self.workers.send_order(number, order);
        let pick = |report| match report {
            DoorReport::Waiting(text) => {
                observer.notice(&text);
                None
            }
            report => Some(report),
        };
        self.workers.answer(number, pick, || ())
    }
}

/// The worker that is no more, as the end of a dialogue.
fn card_lost(lost: &Lost) -> CardLost {
    let call = lost.call().map_or_else(|| "worker".to_owned(), PcscFunction::to_string);
    CardLost { call, code: lost.code().to_owned() }
}

/// An authentication of which nothing was seen.
fn nothing_said(
    start: Nanos,
    outcome: Result<Result<CardIdentity, Denial>, CardLost>,
    gave_up: bool,
) -> Authentication {
    let dialogue = Dialogue { outcome, fell_back: false, log: DialogueLog::default() };
    Authentication { start, latency: Nanos::ZERO, dialogue, gave_up }
}
