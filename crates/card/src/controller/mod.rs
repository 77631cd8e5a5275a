//! The lab: starts measuring processes, steers a run through them, and turns what they saw into
//! rows. It never calls PC/SC itself.

mod costs;
mod error;
mod figures;
mod rows;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use tapstone_names::pcsc::PcscFunction as Call;
use tapstone_worker::{Command, Process};

pub use self::costs::{apdus, costs};
use self::error::waits_for_others;
pub use self::error::{LabError, Lost};
pub use self::figures::{LaneFigures, Part, lanes};
pub use self::rows::{RowPlan, rows};
pub use self::run::{Observer, Progress, Ran, Stop};
use crate::protocol::{Cards, Job, Order, Reader, Report};

/// Something that a worker said, or that it says no more.
type Word = tapstone_worker::Word<Report>;

/// How long a worker may take to end its transaction and let the card go.
const FAREWELL: Duration = Duration::from_secs(5);

/// A wait for another program that a user wonders about.
const NOTABLE_WAIT: Duration = Duration::from_secs(1);

/// For what is too quick to watch.
struct NoObserver;

impl Observer for NoObserver {
    fn waiting(&mut self, _: &str) {}

    fn progress(&mut self, _: Progress) {}
}

/// How workers are started and how patiently they are waited for.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to run as a worker.
    pub worker: Command,
    /// How long a call may take before it counts as hung.
    pub timeout: Duration,
    /// How long another program may keep its transaction with the card.
    pub wait: Duration,
    /// Set when the user asks to end.
    pub interrupt: Arc<AtomicBool>,
}

/// See the module's text.
pub struct Lab {
    options: Options,
    sender: Sender<(usize, Word)>,
    inbox: Receiver<(usize, Word)>,
    workers: Vec<Option<Process<Order, Report>>>,
}

impl Lab {
    /// A lab without workers; they are started when there is work.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (sender, inbox) = mpsc::channel();
        Self { options, sender, inbox, workers: Vec::new() }
    }

    /// The readers, and what can be said of these cards.
    ///
    /// # Errors
    /// When there is no library or no service, or a call hangs.
    pub fn look(
        &mut self,
        cards: Cards,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Reader>, LabError> {
        let number = self.start()?;
        self.order(number, &Order::Look(cards));
        let pick = |report| match report {
            Report::Readers(readers) => Some(readers),
            _ => None,
        };
        let readers = self.answer(number, pick, observer)?;
        self.workers[number] = None;
        readers.map_err(LabError::Pcsc)
    }

    /// The reader of this name, or the only one that will do; `card` asks for one with a card.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn choose(
        &mut self,
        name: Option<&str>,
        card: bool,
        observer: &mut dyn Observer,
    ) -> Result<Reader, LabError> {
        let readers = self.look(Cards::None, observer)?;
        let chosen = pick(&readers, name, card)?.name.clone();
        let described = self.look(Cards::In(chosen.clone()), observer)?;
        let reader = described.into_iter().find(|reader| reader.name == chosen);
        reader.ok_or(LabError::NoReader)
    }

    /// Measures the jobs at the same time, each in a process of its own.
    ///
    /// # Errors
    /// When a process cannot be started or PC/SC has no library.
    pub fn measure(
        &mut self,
        jobs: &[Job],
        stop: Stop,
        observer: &mut dyn Observer,
    ) -> Result<Ran, LabError> {
        let numbers = jobs.iter().map(|_| self.start()).collect::<Result<Vec<_>, _>>()?;
        for (number, job) in numbers.iter().zip(jobs) {
            self.order(*number, &Order::Prepare(Box::new(job.clone())));
        }
        let ran = run::Steering::new(self, &numbers, stop, observer).run();
        for number in numbers {
            self.workers[number] = None;
        }
        ran
    }

    fn start(&mut self) -> Result<usize, LabError> {
        let number = self.workers.len();
        let sender = self.sender.clone();
        let process = Process::start(&self.options.worker, number, sender, FAREWELL);
        let mut process = process.map_err(LabError::Spawn)?;
        process.order(&Order::Open { board: process.board() });
        self.workers.push(Some(process));
        let pick = |report| match report {
            Report::Opened(opened) => Some(opened),
            _ => None,
        };
        let opened = self.answer(number, pick, &mut NoObserver)?;
        opened.map(|()| number).map_err(LabError::NoLibrary)
    }

    fn order(&mut self, number: usize, order: &Order) {
        if let Some(process) = &mut self.workers[number] {
            process.order(order);
        }
    }

    /// Waits for one worker's answer; other workers' words of that time are late ones.
    fn answer<T>(
        &mut self,
        number: usize,
        pick: impl Fn(Report) -> Option<T>,
        observer: &mut dyn Observer,
    ) -> Result<T, LabError> {
        let mut said = false;
        loop {
            if let Some((from, word)) = self.hear(Duration::from_millis(50))
                && from == number
            {
                match word {
                    Word::Report(report) => {
                        if let Some(answer) = pick(report) {
                            return Ok(answer);
                        }
                    }
                    Word::Gone => return Err(self.bury(number, None).into()),
                    Word::Garbled(why) => {
                        return Err(self.bury(number, Some(Lost::Garbled(why))).into());
                    }
                }
            }
            if let Some(lost) = self.hangs(number, &mut said, self.options.wait, observer) {
                return Err(self.bury(number, Some(lost)).into());
            }
            if self.interrupted() {
                self.workers[number] = None;
                return Err(LabError::Interrupted);
            }
        }
    }

    /// A call of this worker that will not return. One that waits for another program's
    /// transaction may go on for longer, and that is said once.
    fn hangs(
        &mut self,
        number: usize,
        said: &mut bool,
        wait: Duration,
        observer: &mut dyn Observer,
    ) -> Option<Lost> {
        let timeout = self.options.timeout;
        let waits = self.stuck(number, NOTABLE_WAIT).is_some_and(|lost| waits_for_others(&lost));
        if waits && !*said {
            *said = true;
            observer
                .waiting("another program has a transaction with the card: waiting for its end");
        }
        self.stuck(number, if waits { wait.max(NOTABLE_WAIT) } else { timeout })
    }

    /// A call of this worker that has not returned for so long.
    fn stuck(&mut self, number: usize, limit: Duration) -> Option<Lost> {
        self.workers[number].as_mut()?.stuck(0, limit).map(|lost| lost.named(Call::from_number))
    }

    /// Ends what is left of a worker; says why it was lost if nobody knows better.
    fn bury(&mut self, number: usize, why: Option<Lost>) -> Lost {
        let Some(mut process) = self.workers[number].take() else {
            return why.unwrap_or_else(|| Lost::Garbled("the worker process is gone".into()));
        };
        match why {
            Some(why) => {
                process.kill();
                why
            }
            None => process.post_mortem(0).named(Call::from_number),
        }
    }

    fn hear(&self, patience: Duration) -> Option<(usize, Word)> {
        // The lab holds a sender itself, so the channel never closes.
        self.inbox.recv_timeout(patience).ok()
    }

    fn interrupted(&self) -> bool {
        self.options.interrupt.load(Relaxed)
    }
}

/// The reader of this name, or the only one that will do.
fn pick<'a>(readers: &'a [Reader], name: Option<&str>, card: bool) -> Result<&'a Reader, LabError> {
    let names = || readers.iter().map(|reader| reader.name.clone()).collect::<Vec<_>>();
    let Some(name) = name else {
        let mut fit = readers.iter().filter(|reader| !card || reader.card_present);
        return match (fit.next(), fit.next()) {
            (Some(reader), None) => Ok(reader),
            (None, _) if readers.is_empty() => Err(LabError::NoReader),
            (None, _) => Err(LabError::NoCard(names())),
            (Some(_), Some(_)) => Err(LabError::ManyReaders(names())),
        };
    };
    // The whole name, or a part that is in one name only.
    let whole = readers.iter().find(|reader| reader.name == name);
    let mut parts = readers.iter().filter(|reader| reader.name.contains(name));
    let reader = match (whole, parts.next(), parts.next()) {
        (Some(reader), ..) | (None, Some(reader), None) => reader,
        (None, Some(_), Some(_)) => return Err(LabError::ManyReaders(names())),
        (None, None, _) if readers.is_empty() => return Err(LabError::NoReader),
        (None, None, _) => {
            return Err(LabError::UnknownReader { name: name.to_owned(), known: names() });
        }
    };
    if card && !reader.card_present {
        return Err(LabError::NoCard(vec![reader.name.clone()]));
    }
    Ok(reader)
}
