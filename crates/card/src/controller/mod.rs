//! The controller: starts measuring processes, steers a run through them, and turns what they saw into
//! cases. It never calls PC/SC itself.

mod card_run;
mod cases;
mod costs;
mod error;
mod figures;
mod steering;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tapstone_worker::{
    Conversation, Interrupt, NOTABLE_WAIT, OnInterrupt, Timeouts, Unanswered, WorkerCommand,
};

pub use self::card_run::CardRun;
pub use self::cases::{CaseDescription, case_results};
pub use self::costs::{apdus, costs};
pub use self::error::{CardMeasureError, Lost};
pub use self::figures::{LaneFigures, WorkerPart, lanes};
pub use self::steering::{CardObserver, CardProgress, CardStop};
use crate::protocol::{CardProtocol, Cards, Job, Order, Reader, Report};

/// How long a worker may take to end its transaction and let the card go.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// What is said when it does.
const WAITS: &str = "another program has a transaction with the card: waiting for its end";

/// For what is too quick to watch.
struct NoObserver;

impl CardObserver for NoObserver {
    fn waiting(&mut self, _: &str) {}

    fn progress(&mut self, _: CardProgress) {}
}

/// How workers are started and how patiently they are waited for.
#[derive(Clone, Debug)]
pub struct CardOptions {
    /// What to run as a worker.
    pub worker: WorkerCommand,
    /// How long a call may take before it counts as hung.
    pub timeout: Duration,
    /// How long another program may keep its transaction with the card.
    pub wait: Duration,
    /// Set when the user asks to end.
    pub interrupt: Arc<AtomicBool>,
}

/// See the module's text.
pub struct CardController {
    worker: WorkerCommand,
    workers: Conversation<CardProtocol>,
}

impl CardController {
    /// a controller without workers; they are started when there is work.
    #[must_use]
    pub fn new(options: CardOptions) -> Self {
        let CardOptions { worker, timeout, wait, interrupt } = options;
        // A shorter limit ends a call before it can be seen to wait for another program.
        let waiting_call = if timeout < NOTABLE_WAIT { timeout } else { wait.max(NOTABLE_WAIT) };
        let timeouts = Timeouts { call: timeout, waiting_call, clean_up: CLEAN_UP };
        let interrupt = Interrupt::new(interrupt, OnInterrupt::GiveUp);
        Self { worker, workers: Conversation::new(timeouts, interrupt) }
    }

    /// The readers, and what can be said of these cards.
    ///
    /// # Errors
    /// When there is no library or no service, or a call hangs.
    pub fn look(
        &mut self,
        cards: Cards,
        observer: &mut dyn CardObserver,
    ) -> Result<Vec<Reader>, CardMeasureError> {
        let number = self.start()?;
        self.workers.send_order(number, &Order::Look(cards));
        let pick = |report| match report {
            Report::Readers(readers) => Some(readers),
            _ => None,
        };
        let readers = self.answer(number, pick, observer)?;
        self.workers.end(number);
        readers.map_err(CardMeasureError::Pcsc)
    }

    /// The reader of this name, or the only one that will do; `card` asks for one with a card.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn choose(
        &mut self,
        name: Option<&str>,
        card: bool,
        observer: &mut dyn CardObserver,
    ) -> Result<Reader, CardMeasureError> {
        let readers = self.look(Cards::None, observer)?;
        let chosen = pick(&readers, name, card)?.name.clone();
        let described = self.look(Cards::In(chosen.clone()), observer)?;
        let reader = described.into_iter().find(|reader| reader.name == chosen);
        reader.ok_or(CardMeasureError::NoReader)
    }

    /// Measures the jobs at the same time, each in a process of its own.
    ///
    /// # Errors
    /// When a process cannot be started or PC/SC has no library.
    pub fn measure(
        &mut self,
        jobs: &[Job],
        stop: CardStop,
        observer: &mut dyn CardObserver,
    ) -> Result<CardRun, CardMeasureError> {
        let numbers = jobs.iter().map(|_| self.start()).collect::<Result<Vec<_>, _>>()?;
        for (number, job) in numbers.iter().zip(jobs) {
            self.workers.send_order(*number, &Order::Prepare(Box::new(job.clone())));
        }
        let usual = self.workers.timeouts();
        self.workers.set_timeouts(steering::timeouts(usual, jobs.len(), stop));
        let ran = steering::CardSteering::new(self, &numbers, stop, observer).steer();
        self.workers.set_timeouts(usual);
        for number in numbers {
            self.workers.end(number);
        }
        ran
    }

    fn start(&mut self) -> Result<usize, CardMeasureError> {
        let number = self.workers.start(&self.worker).map_err(CardMeasureError::Spawn)?;
        let board = self.workers.board(number).unwrap_or_default();
        self.workers.send_order(number, &Order::Open { board });
        let pick = |report| match report {
            Report::Opened(opened) => Some(opened),
            _ => None,
        };
        let opened = self.answer(number, pick, &mut NoObserver)?;
        opened.map(|()| number).map_err(CardMeasureError::NoLibrary)
    }

    /// Waits for one worker's answer.
    fn answer<T>(
        &mut self,
        number: usize,
        pick: impl FnMut(Report) -> Option<T>,
        observer: &mut dyn CardObserver,
    ) -> Result<T, CardMeasureError> {
        let answer = self.workers.answer(number, pick, || observer.waiting(WAITS));
        answer.map_err(|why| match why {
            Unanswered::Lost(lost) => CardMeasureError::Lost(lost),
            Unanswered::Interrupted => CardMeasureError::Interrupted,
        })
    }
}

/// The reader of this name, or the only one that will do.
fn pick<'a>(
    readers: &'a [Reader],
    name: Option<&str>,
    card: bool,
) -> Result<&'a Reader, CardMeasureError> {
    let names = || readers.iter().map(|reader| reader.name.clone()).collect::<Vec<_>>();
    let Some(name) = name else {
        let mut fit = readers.iter().filter(|reader| !card || reader.card_present);
        return match (fit.next(), fit.next()) {
            (Some(reader), None) => Ok(reader),
            (None, _) if readers.is_empty() => Err(CardMeasureError::NoReader),
            (None, _) => Err(CardMeasureError::NoCard(names())),
            (Some(_), Some(_)) => Err(CardMeasureError::ManyReaders(names())),
        };
    };
    // The whole name, or a part that is in one name only.
    let whole = readers.iter().find(|reader| reader.name == name);
    let mut parts = readers.iter().filter(|reader| reader.name.contains(name));
    let reader = match (whole, parts.next(), parts.next()) {
        (Some(reader), ..) | (None, Some(reader), None) => reader,
        (None, Some(_), Some(_)) => return Err(CardMeasureError::ManyReaders(names())),
        (None, None, _) if readers.is_empty() => return Err(CardMeasureError::NoReader),
        (None, None, _) => {
            return Err(CardMeasureError::UnknownReader { name: name.to_owned(), known: names() });
        }
    };
    if card && !reader.card_present {
        return Err(CardMeasureError::NoCard(vec![reader.name.clone()]));
    }
    Ok(reader)
}
