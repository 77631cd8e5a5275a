//! Starts the process that talks to the card, watches it, and starts another when it is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::PcscFunction as Call;
use tapstone_piv::{
    AuthenticationMechanism as Mechanism, CardLost as Lost, Denial as Refusal, Dialogue,
    DialogueLog as Log, Time,
};
use tapstone_worker::{Command, Process};

use crate::error::DoorError;
use crate::protocol::{Order, Ran, Report, Setup};
use crate::rounds::Observer;

type Word = tapstone_worker::Word<Report>;

/// How long a worker may take to let the card go.
const FAREWELL: Duration = Duration::from_secs(5);

/// Between two looks at a worker that is silent.
const LOOK: Duration = Duration::from_millis(20);

/// After so many lost workers nothing is to be hoped for.
const MOST_LOST: u32 = 3;

/// See the module's text.
pub struct DoorLab {
    setup: Setup,
    command: Command,
    timeout: Duration,
    wait: Duration,
    interrupt: Arc<AtomicBool>,
    sender: Sender<(usize, Word)>,
    inbox: Receiver<(usize, Word)>,
    process: Option<Process<Order, Report>>,
    started: usize,
    lost: u32,
    /// A worker that had the PIN was lost: nobody knows what became of it.
    pin_is_spent: bool,
}

impl DoorLab {
    /// A controller without a worker; one is started when there is work. A call may take `timeout`;
    /// one that waits for another program's transaction, `wait`.
    pub fn new(
        setup: Setup,
        command: Command,
        timeout: Nanos,
        wait: Nanos,
        interrupt: Arc<AtomicBool>,
    ) -> Self {
        let (sender, inbox) = mpsc::channel();
        Self {
            setup,
            command,
            timeout: timeout.into(),
            wait: wait.into(),
            interrupt,
            sender,
            inbox,
            process: None,
            started: 0,
            lost: 0,
            pin_is_spent: false,
        }
    }

    /// One authentication; `None` when the user ended it.
    pub(crate) fn run(
        &mut self,
        mechanism: Mechanism,
        at: Option<Time>,
        observer: &mut dyn Observer,
    ) -> Result<Option<Ran>, DoorError> {
        let start = Monotonic.now();
        if mechanism.needs_pin() && self.pin_is_spent {
            let why = "the process that had it was lost, and its fate is unknown".to_owned();
            let outcome = Ok(Err(Refusal::PinNotSent { why }));
            return Ok(Some(empty(start, outcome, true)));
        }
        if self.process.is_none() {
            self.start(observer)?;
        }
        self.order(&Order::Run { mechanism, at });
        match self.answer(observer) {
            Answer::Report(Report::Ran(ran)) => Ok(Some(*ran)),
            Answer::Report(_) => Err(DoorError::Unexpected),
            Answer::Interrupted => Ok(None),
            Answer::Lost(lost) => {
                self.lost += 1;
                self.pin_is_spent |= mechanism.needs_pin();
                let call = lost.call().map_or_else(|| "worker".to_owned(), Call::to_string);
                observer.notice(&lost.to_string());
                let lost = Lost { call, code: lost.code().to_owned() };
                Ok(Some(empty(start, Err(lost), self.lost >= MOST_LOST)))
            }
        }
    }

    fn start(&mut self, observer: &mut dyn Observer) -> Result<(), DoorError> {
        self.started += 1;
        let sender = self.sender.clone();
        let process = Process::start(&self.command, self.started, sender, FAREWELL)
            .map_err(DoorError::Spawn)?;
        let board = process.board();
        self.process = Some(process);
        self.order(&Order::Open { board, setup: Box::new(self.setup.clone()) });
        match self.answer(observer) {
            Answer::Report(Report::Opened(Ok(()))) => Ok(()),
            Answer::Report(Report::Opened(Err(why))) => Err(DoorError::Open(why)),
            Answer::Report(_) => Err(DoorError::Unexpected),
            Answer::Interrupted => Err(DoorError::Interrupted),
            Answer::Lost(lost) => Err(DoorError::Lost(lost)),
        }
    }

    fn order(&mut self, order: &Order) {
        if let Some(process) = &mut self.process {
            process.order(order);
        }
    }

    /// Waits for a report, a call that hangs, the worker's end, or the user's.
    fn answer(&mut self, observer: &mut dyn Observer) -> Answer {
        loop {
            match self.inbox.recv_timeout(LOOK).ok() {
                // Another worker's last word.
                Some((number, _)) if number != self.started => {}
                Some((_, Word::Report(Report::Waiting(text)))) => observer.notice(&text),
                Some((_, Word::Report(report))) => return Answer::Report(report),
                Some((_, Word::Gone)) => return Answer::Lost(self.bury(None)),
                Some((_, Word::Garbled(why))) => {
                    let why = tapstone_card::controller::Lost::Garbled(why);
                    return Answer::Lost(self.bury(Some(why)));
                }
                None => {}
            }
            if let Some(lost) = self.hangs() {
                return Answer::Lost(self.bury(Some(lost)));
            }
            if self.interrupt.load(Relaxed) {
                self.process = None;
                return Answer::Interrupted;
            }
        }
    }

    /// A call that will not return. One that waits for another program's transaction may go on
    /// for as long as that is waited for.
    fn hangs(&mut self) -> Option<tapstone_card::controller::Lost> {
        let process = self.process.as_mut()?;
        let stuck = process.stuck(0, self.timeout)?.named(Call::from_number);
        let waits = matches!(stuck.call(), Some(Call::BeginTransaction | Call::Connect));
        if waits && self.wait > self.timeout {
            return process.stuck(0, self.wait).map(|lost| lost.named(Call::from_number));
        }
        Some(stuck)
    }

    fn bury(
        &mut self,
        why: Option<tapstone_card::controller::Lost>,
    ) -> tapstone_card::controller::Lost {
        let Some(mut process) = self.process.take() else {
            return tapstone_card::controller::Lost::Garbled("the worker process is gone".into());
        };
        match why {
            Some(why) => {
                process.kill();
                why
            }
            None => process.post_mortem(0).named(Call::from_number),
        }
    }
}

enum Answer {
    Report(Report),
    Lost(tapstone_card::controller::Lost),
    Interrupted,
}

fn empty(
    start: Nanos,
    outcome: Result<Result<tapstone_piv::CardIdentity, Refusal>, Lost>,
    gave_up: bool,
) -> Ran {
    let dialogue = Dialogue { outcome, fell_back: false, log: Log::default() };
    Ran { start, latency: Nanos::ZERO, dialogue, gave_up }
}
